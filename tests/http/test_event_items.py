"""Loading of the articles of an event, and the cache per revision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from aggregator.domain import Article
from aggregator.http import event_items
from aggregator.http.event_items import EventItemsCache, load_event_items
from tests.support.factories import event
from tests.support.fake_service import START_MS, FakeService

HOUR_MS = 3_600_000


@pytest.fixture
async def service() -> FakeService:
    """A service with five articles; the second is published before the others, the third has a false date."""
    found = FakeService()
    dates = (None, START_MS - HOUR_MS, START_MS + 9 * HOUR_MS, None, None)
    for n, at_ms in enumerate(dates):
        await found.submit(Article(id=f"a{n}", title=f"Title {n}", text=f"Text {n}.", published_at_ms=at_ms))
    return found


def read_ids(service: FakeService, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The ids of all reads of articles from now on."""
    reads: list[Sequence[str]] = []
    original = service.get_many

    async def get_many(ids: Sequence[str]) -> dict[str, Any]:
        reads.append(ids)
        return await original(ids)

    monkeypatch.setattr(service, "get_many", get_many)
    return reads


async def test_articles_are_in_order_of_time(service: FakeService) -> None:
    """Of publication; a date after the arrival does not count."""
    found = await load_event_items(service, event("e1", "Storm", ["a0", "a1", "gone", "a2"]))  # type: ignore[arg-type]

    assert [item.id for item in found.items] == ["a1", "a0", "a2"]
    assert [item.at_ms - START_MS for item in found.items] == [-HOUR_MS, 0, 2]
    assert found.first is found.items[0]


async def test_an_event_is_read_once_per_revision(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred readers of one report cost one read; a new version, or a minute, another one."""
    reads = read_ids(service, monkeypatch)
    cache, storm = EventItemsCache(), event("e1", "Storm", ["a0", "a1"], revision=1)
    for _ in range(3):
        await cache.load(service, storm)  # type: ignore[arg-type]
    await cache.load(service, replace(storm, revision=2))  # type: ignore[arg-type]
    monkeypatch.setattr(service, "clock", lambda: START_MS + event_items.MAX_AGE_MS)
    await cache.load(service, replace(storm, revision=2))  # type: ignore[arg-type]

    assert len(reads) == 3


async def test_the_cache_is_limited(service: FakeService, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event that was read first is dropped."""
    monkeypatch.setattr(event_items, "MAX_KEPT_ARTICLES", 3)
    reads = read_ids(service, monkeypatch)
    cache = EventItemsCache()
    storm, wind = event("e1", "Storm", ["a0", "a1"]), event("e2", "Wind", ["a2", "a3"])
    for read in (storm, wind, wind, storm):
        await cache.load(service, read)  # type: ignore[arg-type]

    assert len(reads) == 3
