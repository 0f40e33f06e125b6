"""Search of events by words, ranked and filtered, current after every change."""

from typing import Any

import pytest

from aggregator.events.repository import EventRepository
from aggregator.events.search import EventSearch
from aggregator.store.memory import MemoryStore
from tests.support.factories import EVENT_MS, commit_event, event

HOUR_MS = 3_600_000


@pytest.fixture
async def repository() -> EventRepository:
    """A dam event and its aftermath, a closed one, one in Chinese, and one merged into another."""
    repository = EventRepository(MemoryStore())
    for at, stored in enumerate(
        (
            event("dam", "Kareth dam bursts", ["a"], terms=("dam", "kareth"), languages=("en",)),
            event("rescue", "Thousands rescued", ["b"], terms=("rescu", "dam"), languages=("en",)),
            event("old", "Dams checked", ["c"], terms=("dam",), languages=("en",), status="closed"),
            event("zh", "卡雷斯大坝决堤", ["d"], terms=("大坝",), languages=("zh",), sources=("Gangkou",)),
            event("gone", "Dam near Kareth", ["e"], terms=("dam",), merged_into="dam", status="closed"),
        )
    ):
        await commit_event(repository, "fired", stored, EVENT_MS + at)
    return repository


async def ids(search: EventSearch, query: str, limit: int = 9, **conditions: Any) -> list[str]:
    """Ids of the results, best first."""
    events, total = await search.find(query, limit, **conditions)
    assert total >= len(events)
    return [found.id for found, _ in events]


async def test_events_with_the_words_in_the_headline_come_first(repository: EventRepository) -> None:
    """Then open ones before closed ones; inflected forms count, merged events are left out."""
    search = EventSearch(repository)

    assert await ids(search, "dam") == ["dam", "old", "rescue"]
    assert await ids(search, "DAMS") == ["dam", "old", "rescue"]
    assert await ids(search, "kareth dam rescue") == ["dam", "rescue"]
    assert await ids(search, "dam", limit=1) == ["dam"]
    assert (await search.find("dam", 1))[1] == 3


async def test_parts_of_words_and_scripts_without_spaces(repository: EventRepository) -> None:
    """A part of the headline of three characters, of two in Chinese; shorter ones only as words."""
    search = EventSearch(repository)

    assert await ids(search, "Kare") == ["dam"]
    assert await ids(search, "Ka") == []
    assert await ids(search, "大坝") == ["zh"]
    assert await ids(search, "") == await ids(search, "volcano") == []


async def test_phrases_and_accents(repository: EventRepository) -> None:
    """The words of a phrase stand next to each other in the headline; accents count nowhere."""
    search = EventSearch(repository)

    assert await ids(search, '"dam bursts" rescue') == await ids(search, "Káreth bursts") == ["dam"]
    assert await ids(search, '"bursts dam"') == await ids(search, '"dam kareth"') == []
    assert await ids(search, '"dam burst"') == [] and await ids(search, '"dams"') == ["old"]


async def test_events_are_found_by_source_and_filtered(repository: EventRepository) -> None:
    """By the words of an outlet; language, outlet and period must all match."""
    search = EventSearch(repository)

    assert await ids(search, "gangkou") == ["zh"]
    assert await ids(search, "dam", lang="zh") == []
    assert await ids(search, "大坝", sources=["GANGKOU"], lang="zh") == ["zh"]
    assert await ids(search, "dam", since_ms=EVENT_MS + 1) == []
    assert await ids(search, "dam", until_ms=EVENT_MS - HOUR_MS) == []
    assert len(await ids(search, "dam", since_ms=EVENT_MS, until_ms=EVENT_MS)) == 3


async def test_a_changed_event_is_found_by_its_new_headline(repository: EventRepository) -> None:
    """Words are read again when the event has changed."""
    search = EventSearch(repository)
    assert await ids(search, "volcano") == []
    changed = event("dam", "Volcano erupts", ["a"], terms=("volcano",), last_seen_ms=EVENT_MS + HOUR_MS)

    await commit_event(repository, "updated", changed, EVENT_MS + HOUR_MS)

    assert await ids(search, "volcano") == ["dam"]
    assert await ids(search, "kareth") == []
