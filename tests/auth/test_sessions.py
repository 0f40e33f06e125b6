"""Last use of API keys: stored in the background, rarely, and without harm while the store is unavailable."""

from __future__ import annotations

import pytest

from aggregator.auth.api_keys import ApiKeys
from aggregator.auth.sessions import STEP_MS, LastUse
from aggregator.store.base import Store
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.memory import MemoryStore
from tests.auth.test_api_keys import BOOTSTRAP_KEY, Clock
from tests.support.store_steps import scan
from tests.support.stores import open_patient_store


class CountingStore(MemoryStore):
    """A store that counts writes."""

    writes = 0

    async def put(self, *arguments: object, **options: object) -> list[bool]:
        self.writes += 1
        return await super().put(*arguments, **options)  # type: ignore[arg-type]


async def test_requests_and_sessions_are_uses(store: Store) -> None:
    """Another process reads them; a key that is only listed stays unused."""
    clock = Clock()
    api_keys = ApiKeys(store, clock)
    (crawler, text), (desk, desk_text), (unused, _) = [
        await api_keys.add(name, "admin") for name in ("Crawler", "Desk", "Unused")
    ]
    token = await api_keys.sessions.start(desk.id)
    clock.now_ms += 5

    assert await api_keys.authenticate(text)
    assert await api_keys.authenticate_session(token)
    await api_keys.last_use.finish()

    ids = [crawler.id, desk.id, unused.id]
    assert await LastUse(store, clock).read(ids) == [clock.now_ms, clock.now_ms, None]
    assert desk_text


async def test_a_rejected_key_is_no_use(store: Store) -> None:
    """A wrong secret, an expired key and the bootstrap key, which is not stored."""
    clock = Clock()
    api_keys = ApiKeys(store, clock, bootstrap=BOOTSTRAP_KEY)
    key, text = await api_keys.add("Crawler", "crawler", expires_ms=clock.now_ms + 1)
    assert await api_keys.authenticate(text + "x") is None
    clock.now_ms += 1
    assert await api_keys.authenticate(text) is None
    bootstrap = await api_keys.authenticate(BOOTSTRAP_KEY)
    assert bootstrap is not None
    await api_keys.last_use.finish()

    assert await api_keys.last_use.read([key.id, bootstrap.id]) == [None, None]


@pytest.mark.parametrize(("pause_ms", "writes"), [(1, 1), (STEP_MS - 1, 1), (STEP_MS, 2), (-1, 2)])
async def test_a_step_is_stored_once(pause_ms: int, writes: int) -> None:
    """A clock that was set back begins a new step."""
    clock, store = Clock(), CountingStore()
    last_use = LastUse(store, clock)
    for _ in range(3):
        last_use.note("a")
    clock.now_ms += pause_ms
    last_use.note("a")
    await last_use.finish()

    assert store.writes == writes
    assert await last_use.read(["a"]) == [clock.now_ms if writes == 2 else clock.now_ms - pause_ms]


async def test_a_revoked_key_leaves_no_time(store: Store) -> None:
    """Its id does not come back."""
    api_keys = ApiKeys(store, Clock())
    key, text = await api_keys.add("Crawler", "crawler")
    await api_keys.authenticate(text)
    await api_keys.last_use.finish()
    await api_keys.revoke(key.id)

    assert await api_keys.last_use.read([key.id]) == [None]
    assert [name for name in await scan(store, b"") if b"used" in name] == []


@pytest.mark.integration
async def test_an_unavailable_store_delays_the_time(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No error reaches the caller, and the next use is stored."""
    with EmbeddedServer(tmp_path_factory.mktemp("store")) as server:
        store = open_patient_store(server.url)
        last_use = LastUse(store, Clock())
        server.stop()
        last_use.note("a")
        await last_use.finish()
        server.start()
        last_use.note("a")
        await last_use.finish()

        assert await last_use.read(["a"]) == [Clock().now_ms]
        await store.close()
