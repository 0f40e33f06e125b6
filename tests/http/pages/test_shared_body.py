"""Answers that equal requests share: events, days, feeds and pages, over the real service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from aggregator.app import Service, open_service
from aggregator.http.pages import MAX_CACHED_MS
from aggregator.settings import Settings
from aggregator.time_units import to_datetime
from tests.support.factories import EVENT_MS, commit_event, event
from tests.support.fake_service import Client, serving

pytestmark = pytest.mark.integration
DAY = to_datetime(EVENT_MS).date()
PATHS = ("/", "/v1/events", "/v1/events?limit=1", f"/v1/days/{DAY}", f"/days/{DAY}", "/v1/events.atom")
DESK = {"name": "Floods", "terms": ["bridge"]}


@pytest.fixture
def now() -> dict[str, int]:
    """The time of the service in ms, under "ms"."""
    return {"ms": EVENT_MS}


@pytest.fixture
async def service(now: dict[str, int]) -> AsyncIterator[Service]:
    """A service in memory with one event."""
    async with open_service(Settings(store_url="memory"), clock=lambda: now["ms"]) as opened:
        await commit_event(opened.events.repository, "fired", event("e1", "Bridge closed", ["a"]), EVENT_MS)
        yield opened


@pytest.fixture
async def client(service: Service) -> AsyncIterator[Client]:
    """A client of it."""
    async with serving(service) as opened:
        yield opened


@pytest.fixture
def reads(service: Service, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each list of events that is read."""
    found: list[str] = []
    list_events = service.events.repository.list_events

    async def counted(*args: Any, **options: Any) -> Any:
        found.append("list")
        return await list_events(*args, **options)

    monkeypatch.setattr(service.events.repository, "list_events", counted)
    return found


async def get(client: Client, path: str, **headers: str) -> str:
    """The body of a successful answer."""
    async with client.get(path, headers=headers) as response:
        assert response.status == 200
        return await response.text()


@pytest.mark.parametrize("path", PATHS)
async def test_readers_share_an_answer_until_an_event_changes(
    client: Client, service: Service, now: dict[str, int], reads: list[str], path: str
) -> None:
    """Or until it is 5 s old; a caller that has it gets 304."""
    first = await get(client, path)
    of_one = len(reads)
    assert [await get(client, path) for _ in range(5)] == [first] * 5 and len(reads) == of_one > 0
    async with client.get(path) as response:
        tag = response.headers["ETag"]
    async with client.get(path, headers={"If-None-Match": tag}) as response:
        assert response.status == 304

    await commit_event(service.events.repository, "fired", event("e2", "Ferry sinks", ["a"]), EVENT_MS + 1)
    changed = await get(client, path)
    assert changed != first and "Ferry sinks" in changed and len(reads) == 2 * of_one
    now["ms"] += MAX_CACHED_MS
    await get(client, path)
    assert len(reads) == 3 * of_one


async def test_an_editor_reads_what_an_action_changed(client: Client) -> None:
    """At once, in the list that was cached before."""
    assert '"handled":false' in await get(client, "/v1/events")
    action = {"action": "acknowledge", "actor": "Ann"}
    async with client.post("/v1/events/e1/actions", json=action) as response:
        assert response.status == 200
    assert '"handled":true' in await get(client, "/v1/events")


async def test_a_changed_desk_shows_other_events_at_once(client: Client) -> None:
    """In lists, feeds and pages of its view."""
    async with client.post("/v1/desks", json=DESK) as response:
        desk = (await response.json())["id"]
    paths = [f"{path}{'&' if '?' in path else '?'}watch={desk}" for path in PATHS]
    assert all(["Bridge closed" in await get(client, path) for path in paths])
    async with client.put(f"/v1/desks/{desk}", json=DESK | {"terms": ["volcano"]}) as response:
        assert response.status == 200
    assert not any(["Bridge closed" in await get(client, path) for path in paths])


async def test_keys_share_what_names_no_user(client: Client, service: Service, reads: list[str]) -> None:
    """The list of events is one for all keys; a page is that of its user."""
    await service.edge.api_keys.add("Ada", "admin")
    keys = [(await service.edge.api_keys.add(name, "reader"))[1] for name in ("Ben", "Eve")]
    for path, lists in (("/v1/events", 1), (f"/days/{DAY}", 2)):
        reads.clear()
        for key in keys:
            text = await get(client, path, Authorization=f"Bearer {key}")
        assert len(reads) == lists and ("Eve" in text) is (lists > 1)
    async with client.get("/v1/events") as response:
        assert response.status == 401
