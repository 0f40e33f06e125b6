"""API keys and sessions on every store, and which of their data is stored."""

from __future__ import annotations

import asyncio
import logging
import os
import signal

import pytest

from aggregator.auth import api_keys as api_keys_module
from aggregator.auth.api_keys import REFRESH_INTERVAL_MS, ROLE_PERMISSIONS, ApiKeys, Role
from aggregator.auth.sessions import SESSION_TTL_MS
from aggregator.errors import Conflict, InvalidInput, NotFound
from aggregator.store.base import Store
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.memory import MemoryStore
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.store_steps import scan
from tests.support.stores import direct_async_client, open_patient_store

BOOTSTRAP_KEY = "a-key-of-the-operator-0123456789abcdef"


class Clock:
    """A manual clock."""

    def __init__(self) -> None:
        self.now_ms = 1_790_000_000_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    """One clock per test."""
    return Clock()


async def stored_bytes(store: Store) -> bytes:
    """All keys and values of a store."""
    names = await scan(store, b"")
    return b"|".join([*names, *(value or b"" for value in await store.read(names))])


@pytest.mark.parametrize("role", ROLE_PERMISSIONS)
async def test_a_key_is_authenticated_by_its_text(store: Store, clock: Clock, role: Role) -> None:
    """Another process finds it with its role; similar texts are rejected."""
    key, text = await ApiKeys(store, clock).add("Desk", role)
    other = ApiKeys(store, clock)

    assert await other.authenticate(text) == key
    assert await other.is_required()
    for invalid in (
        text[:-1],
        text + "x",
        text.upper(),
        text.replace(key.id, "00000000"),
        key.id,
        "",
        "agg__",
        "é",
    ):
        assert await other.authenticate(invalid) is None
    assert not await ApiKeys(MemoryStore(), clock).is_required()


async def test_secrets_are_neither_stored_nor_logged(
    store: Store, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """The content of the store or the log does not allow authentication."""
    caplog.set_level(logging.DEBUG)
    keys = ApiKeys(store, clock, bootstrap=BOOTSTRAP_KEY)
    key, text = await keys.add("Crawler", "crawler")
    _, second = await keys.rotate(key.id, 1000)
    token = await keys.sessions.start(key.id)
    stored = await stored_bytes(store)

    assert key.hash in stored
    for secret in (text.split("_", 2)[2], second.split("_", 2)[2], token, BOOTSTRAP_KEY):
        assert secret.encode() not in stored
        assert secret not in caplog.text
    assert f"key added id={key.id} name='Crawler' role=crawler" in caplog.text


async def test_rotation_keeps_both_keys_active_for_the_overlap(store: Store, clock: Clock) -> None:
    """Then the old key expires; the new one has its name, role and sources."""
    keys = ApiKeys(store, clock)
    old, text = await keys.add("Crawler", "crawler", sources=("Gazette",))
    new, second = await keys.rotate(old.id, 60_000)

    authenticated = await keys.authenticate(text)
    assert authenticated is not None and authenticated.id == old.id
    assert (await keys.authenticate(second)) == new
    assert (new.name, new.role, new.sources, new.expires_ms) == ("Crawler", "crawler", ("Gazette",), None)
    assert {key.id: key.replaced_by for key in await keys.list_keys()} == {old.id: new.id, new.id: ""}
    clock.now_ms += 60_000
    assert await keys.authenticate(text) is None
    assert await keys.authenticate(second) == new


async def test_a_process_that_required_keys_keeps_requiring_them(store: Store, clock: Clock) -> None:
    """After the store was emptied or the last key revoked, every request is rejected, not admitted."""
    running = ApiKeys(store, clock)
    _, text = await ApiKeys(store, clock).add("Desk", "admin")
    assert await running.is_required()

    await store.delete(await scan(store, b""))
    clock.now_ms += REFRESH_INTERVAL_MS

    assert await running.is_required()
    assert await running.authenticate(text) is None


async def test_a_stalled_store_does_not_delay_authentication(
    own_server: EmbeddedServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cached keys stay valid; the refresh completes in the background when the store replies again."""
    monkeypatch.setattr(api_keys_module, "REFRESH_TIMEOUT_S", 0.01)
    patient = {"socket_timeout_s": 10 * HANG_LIMIT_S}
    store, other = open_patient_store(own_server.url, **patient), open_patient_store(own_server.url)
    running, other_process = ApiKeys(store, clock), ApiKeys(other, clock)
    key, text = await other_process.add("Desk", "admin")
    assert await running.authenticate(text) == key
    await other_process.revoke(key.id)
    clock.now_ms += REFRESH_INTERVAL_MS
    assert own_server.pid is not None
    os.kill(own_server.pid, signal.SIGSTOP)
    try:
        async with asyncio.timeout(HANG_LIMIT_S):
            assert await running.authenticate(text) == key
    finally:
        os.kill(own_server.pid, signal.SIGCONT)

    assert running._refresh_task is not None
    await running._refresh_task
    assert await running.authenticate(text) is None
    await store.close()
    await other.close()


async def test_revoked_and_expired_keys_are_rejected(store: Store, clock: Clock) -> None:
    """In other processes after ``REFRESH_INTERVAL_MS``; sessions of the keys end with them."""
    process, other_process = ApiKeys(store, clock), ApiKeys(store, clock)
    key, text = await process.add("Ada", "editor")
    brief, brief_text = await process.add("Bea", "editor", expires_ms=clock.now_ms + 1000)
    token = await other_process.sessions.start(key.id)
    assert await other_process.authenticate(text) == key
    assert await other_process.authenticate(brief_text) == brief
    await process.revoke(key.id)

    assert await process.authenticate(text) is None
    clock.now_ms += REFRESH_INTERVAL_MS
    assert await other_process.authenticate(text) is None
    assert await other_process.authenticate(brief_text) is None
    assert await other_process.authenticate_session(token) is None
    with pytest.raises(NotFound):
        await process.revoke(key.id)
    with pytest.raises(NotFound):
        await process.rotate(key.id, 1)


async def test_sessions(valkey_url: str, clock: Clock) -> None:
    """A session belongs to its key until it ends; it expires in the store."""
    store = open_patient_store(valkey_url)
    keys = ApiKeys(store, clock)
    key, _ = await keys.add("Ada", "editor")
    token = await keys.sessions.start(key.id)
    async with direct_async_client(valkey_url) as raw:
        (name,) = await raw.keys("session:*")
        assert SESSION_TTL_MS - 60_000 < await raw.pttl(name) <= SESSION_TTL_MS

    assert await keys.authenticate_session(token) == key
    assert await keys.authenticate_session(token + "x") is None
    await keys.sessions.end(token)
    assert await keys.authenticate_session(token) is None
    await store.close()


async def test_the_bootstrap_key(store: Store, clock: Clock) -> None:
    """It is an admin key even with an empty store; replacing it ends its sessions."""
    keys = ApiKeys(store, clock, bootstrap=BOOTSTRAP_KEY)
    key = await keys.authenticate(BOOTSTRAP_KEY)
    assert key is not None
    token = await keys.sessions.start(key.id)

    assert (key.name, key.role) == ("bootstrap", "admin")
    assert await keys.is_required()
    assert await keys.authenticate_session(token) == key
    assert await ApiKeys(store, clock, bootstrap=BOOTSTRAP_KEY + "2").authenticate_session(token) is None
    assert await ApiKeys(store, clock, bootstrap=BOOTSTRAP_KEY + "2").authenticate(BOOTSTRAP_KEY) is None


async def test_when_keys_are_required(clock: Clock) -> None:
    """Always if enforced, else as soon as one exists, never if disabled."""
    empty = MemoryStore()

    assert await ApiKeys(empty, clock, enforce=True).is_required()
    assert await ApiKeys(empty, clock, enforce=True).is_missing_keys()
    assert not await ApiKeys(empty, clock, enforce=True, bootstrap=BOOTSTRAP_KEY).is_missing_keys()
    assert not await ApiKeys(empty, clock).is_missing_keys()
    assert not await ApiKeys(empty, clock, enforce=True, disabled=True).is_required()
    assert not await ApiKeys(empty, clock, enforce=True, disabled=True).is_missing_keys()


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 101, "\x1b[2J"])
async def test_a_name_must_fit_a_log_line(clock: Clock, name: str) -> None:
    """Names appear in the audit log and next to actions of editors."""
    with pytest.raises(InvalidInput, match="name"):
        await ApiKeys(MemoryStore(), clock).add(name, "reader")


def test_roles_grant_what_they_should() -> None:
    """Crawlers cannot read, readers cannot change anything, only admins have every permission."""
    assert "reader" not in ROLE_PERMISSIONS["crawler"]
    assert not {"crawler", "editor", "admin"} & ROLE_PERMISSIONS["reader"]
    assert not {"crawler", "admin"} & ROLE_PERMISSIONS["editor"]
    assert ROLE_PERMISSIONS["admin"] == frozenset().union(*ROLE_PERMISSIONS.values())


async def test_a_first_key_without_an_admin_key_is_refused(store: Store, clock: Clock) -> None:
    """Nothing is stored; an expired admin key does not count, the bootstrap key does."""
    keys = ApiKeys(store, clock)
    with pytest.raises(Conflict, match="there is no admin key"):
        await keys.add("Crawler", "crawler", keep_admin=True)
    assert await keys.list_keys() == []
    assert not await keys.is_required()

    await ApiKeys(store, clock, bootstrap=BOOTSTRAP_KEY).add("Crawler", "crawler", keep_admin=True)
    admin, _ = await keys.add("Desk", "admin", expires_ms=clock.now_ms + 1000, keep_admin=True)
    await keys.add("Reader", "reader", keep_admin=True)
    clock.now_ms += 2000
    with pytest.raises(Conflict, match="there is no admin key"):
        await keys.add("Editor", "editor", keep_admin=True)
    await keys.revoke(admin.id, keep_admin=True)


async def test_the_last_admin_key_is_not_revoked(store: Store, clock: Clock) -> None:
    """Of two revoked at the same moment one stays; other keys can be revoked."""
    keys = ApiKeys(store, clock)
    admins = [(await keys.add(name, "admin", keep_admin=True))[0] for name in ("Ada", "Bob")]
    crawler, _ = await keys.add("Crawler", "crawler", keep_admin=True)

    results = await asyncio.gather(
        *(keys.revoke(admin.id, keep_admin=True) for admin in admins), return_exceptions=True
    )
    await keys.revoke(crawler.id, keep_admin=True)

    assert [type(result) for result in results].count(Conflict) == 1
    assert [key.role for key in await keys.list_keys()] == ["admin"]


async def test_ending_an_unknown_session_writes_nothing(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody can sign out of a made-up session, so it must not fill the log of the store."""
    store = MemoryStore()
    written: list[object] = []
    monkeypatch.setattr(store, "put", written.append)

    await ApiKeys(store, clock).sessions.end("made-up")

    assert written == []
