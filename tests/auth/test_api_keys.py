"""access.py: keys and sessions over a real store, and what may be found of them there."""

from __future__ import annotations

import asyncio
import logging
import os
import signal

import pytest

from aggregator.auth import api_keys as access_module
from aggregator.auth.api_keys import REFRESH_INTERVAL_MS, ROLE_PERMISSIONS, ROLES, SESSION_TTL_MS, ApiKeys
from aggregator.errors import InvalidInput, NotFound
from aggregator.store.base import Store
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.memory import MemoryStore
from aggregator.store.redis import open_redis_store

OWN = "a-key-of-the-operator-0123456789abcdef"


class Clock:
    """A clock that tests turn."""

    def __init__(self) -> None:
        self.now_ms = 1_790_000_000_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    """One clock per test."""
    return Clock()


async def everything(store: Store) -> bytes:
    """All keys and values of a store."""
    names = await store.scan(b"")
    return b"|".join([*names, *(value or b"" for value in await store.read(names))])


@pytest.mark.parametrize("role", ROLES)
async def test_a_key_is_known_again_by_its_text_alone(store: Store, clock: Clock, role: str) -> None:
    """Another process sees it, with its role; near misses are nobody's."""
    key, text = await ApiKeys(store, clock).add("Desk", role)
    other = ApiKeys(store, clock)

    assert await other.authenticate(text) == key
    assert await other.is_required()
    for wrong in (
        text[:-1],
        text + "x",
        text.upper(),
        text.replace(key.id, "00000000"),
        key.id,
        "",
        "agg__",
        "é",
    ):
        assert await other.authenticate(wrong) is None
    assert not await ApiKeys(MemoryStore(), clock).is_required()


async def test_secrets_are_neither_stored_nor_logged(store: Store, clock: Clock, caplog) -> None:
    """Whoever reads the store or the log can sign in nowhere."""
    caplog.set_level(logging.DEBUG)
    access = ApiKeys(store, clock, bootstrap=OWN)
    key, text = await access.add("Crawler", "crawler")
    _, second = await access.rotate(key.id, 1000)
    token = await access.start_session(key)
    kept = await everything(store)

    assert key.hash in kept
    for secret in (text.split("_", 2)[2], second.split("_", 2)[2], token, OWN):
        assert secret.encode() not in kept
        assert secret not in caplog.text
    assert f"key added id={key.id} name='Crawler' role=crawler" in caplog.text


async def test_rotation_keeps_both_keys_alive_for_the_overlap(store: Store, clock: Clock) -> None:
    """Then the old one ends, and the new one has its name, role and sources."""
    access = ApiKeys(store, clock)
    old, text = await access.add("Crawler", "crawler", sources=("Gazette",))
    new, second = await access.rotate(old.id, 60_000)

    assert (await access.authenticate(text)).id == old.id
    assert (await access.authenticate(second)) == new
    assert (new.name, new.role, new.sources, new.expires_ms) == ("Crawler", "crawler", ("Gazette",), None)
    clock.now_ms += 60_000
    assert await access.authenticate(text) is None
    assert await access.authenticate(second) == new


async def test_who_asked_for_keys_goes_on_asking(store: Store, clock: Clock) -> None:
    """A store that was emptied, or the last key revoked: nobody comes in, instead of everybody."""
    running = ApiKeys(store, clock)
    _, text = await ApiKeys(store, clock).add("Desk", "admin")
    assert await running.is_required()

    await store.delete(await store.scan(b""))
    clock.now_ms += REFRESH_INTERVAL_MS

    assert await running.is_required()
    assert await running.authenticate(text) is None


async def test_a_store_that_hangs_holds_nobody_up(
    own_server: EmbeddedServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who was known stays so meanwhile; what was changed is known when it answers again, without a further question."""
    monkeypatch.setattr(access_module, "REFRESH_TIMEOUT_S", 0.01)
    store, other = open_redis_store(own_server.url), open_redis_store(own_server.url)
    running, elsewhere = ApiKeys(store, clock), ApiKeys(other, clock)
    key, text = await elsewhere.add("Desk", "admin")
    assert await running.authenticate(text) == key
    await elsewhere.revoke(key.id)
    clock.now_ms += REFRESH_INTERVAL_MS
    assert own_server.pid is not None
    os.kill(own_server.pid, signal.SIGSTOP)
    try:
        async with asyncio.timeout(2):
            assert await running.authenticate(text) == key
    finally:
        os.kill(own_server.pid, signal.SIGCONT)

    assert running._refresh_task is not None
    await running._refresh_task
    assert await running.authenticate(text) is None
    await store.close()
    await other.close()


async def test_revoked_and_expired_keys_are_nobodys(store: Store, clock: Clock) -> None:
    """In another process after REFRESH_MS at most; their sessions end with them."""
    here, there = ApiKeys(store, clock), ApiKeys(store, clock)
    key, text = await here.add("Ada", "editor")
    brief, brief_text = await here.add("Bea", "editor", expires_ms=clock.now_ms + 1000)
    token = await there.start_session(key)
    assert await there.authenticate(text) == key
    assert await there.authenticate(brief_text) == brief
    await here.revoke(key.id)

    assert await here.authenticate(text) is None
    clock.now_ms += REFRESH_INTERVAL_MS
    assert await there.authenticate(text) is None
    assert await there.authenticate(brief_text) is None
    assert await there.authenticate_session(token) is None
    with pytest.raises(NotFound):
        await here.revoke(key.id)
    with pytest.raises(NotFound):
        await here.rotate(key.id, 1)


async def test_sessions(valkey_url: str, clock: Clock) -> None:
    """A session is its key's until it is ended; it has a time to live in the store."""
    import redis.asyncio

    from aggregator.store.redis import open_redis_store

    store = open_redis_store(valkey_url)
    access = ApiKeys(store, clock)
    key, _ = await access.add("Ada", "editor")
    token = await access.start_session(key)
    async with redis.asyncio.Redis.from_url(valkey_url) as raw:
        (name,) = await raw.keys("session:*")
        assert SESSION_TTL_MS - 60_000 < await raw.pttl(name) <= SESSION_TTL_MS

    assert await access.authenticate_session(token) == key
    assert await access.authenticate_session(token + "x") is None
    await access.end_session(token)
    assert await access.authenticate_session(token) is None
    await store.close()


async def test_the_operators_own_key(store: Store, clock: Clock) -> None:
    """An admin from the first second, also when the store is emptied; another one ends its sessions."""
    access = ApiKeys(store, clock, bootstrap=OWN)
    key = await access.authenticate(OWN)
    token = await access.start_session(key)

    assert (key.name, key.role) == ("bootstrap", "admin")
    assert await access.is_required()
    assert await access.authenticate_session(token) == key
    assert await ApiKeys(store, clock, bootstrap=OWN + "2").authenticate_session(token) is None
    assert await ApiKeys(store, clock, bootstrap=OWN + "2").authenticate(OWN) is None


async def test_when_keys_are_asked_for(clock: Clock) -> None:
    """Beyond loopback always; with keys everywhere; never where something in front does it."""
    empty = MemoryStore()

    assert await ApiKeys(empty, clock, enforce=True).is_required()
    assert await ApiKeys(empty, clock, enforce=True).is_missing_keys()
    assert not await ApiKeys(empty, clock, enforce=True, bootstrap=OWN).is_missing_keys()
    assert not await ApiKeys(empty, clock).is_missing_keys()
    assert not await ApiKeys(empty, clock, enforce=True, disabled=True).is_required()
    assert not await ApiKeys(empty, clock, enforce=True, disabled=True).is_missing_keys()


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 101, "\x1b[2J"])
async def test_a_name_must_fit_a_log_line(clock: Clock, name: str) -> None:
    """Names stand in the audit log and beside what editors did."""
    with pytest.raises(InvalidInput, match="name"):
        await ApiKeys(MemoryStore(), clock).add(name, "reader")


def test_roles_grant_what_they_should() -> None:
    """Crawlers do not read along, readers change nothing, only admins may all."""
    assert "reader" not in ROLE_PERMISSIONS["crawler"]
    assert not {"crawler", "editor", "admin"} & ROLE_PERMISSIONS["reader"]
    assert not {"crawler", "admin"} & ROLE_PERMISSIONS["editor"]
    assert ROLE_PERMISSIONS["admin"] == frozenset().union(*ROLE_PERMISSIONS.values())
