"""Orders of lists of events."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aggregator.events.event import Event
from aggregator.events.ordering import PAGED_ORDERS, EventOrder, page_key_of, sort_events
from aggregator.events.repository import EventRepository, EventSummary
from aggregator.store.memory import MemoryStore
from aggregator.time_units import HOUR_MS, MINUTE_MS
from tests.support.factories import EVENT_MS, commit_event, event

BASE = replace(
    event("e", "Bridge closed"), peak=31, expected=0.0, detected_at_ms=EVENT_MS, last_seen_ms=EVENT_MS
)


def ids(events: list[Event]) -> list[str]:
    return [e.id for e in events]


def test_the_order_of_surprise_puts_a_fresh_burst_before_a_larger_quiet_one() -> None:
    """Equal ones by detection."""
    quiet = replace(BASE, id="quiet", peak=127, last_seen_ms=EVENT_MS - 3 * HOUR_MS)
    usual = replace(BASE, id="usual", expected=10.0)
    late = replace(BASE, id="late", detected_at_ms=EVENT_MS + 1)

    found = sort_events([quiet, usual, BASE, late], "surprise", EVENT_MS)

    assert ids(found) == ["late", "e", "quiet", "usual"]


# Largest, last detected, last seen and fastest growing are four different events.
LARGE = replace(BASE, id="large", size=90, detected_at_ms=EVENT_MS - 5, timeline=())
NEW = replace(BASE, id="new", size=16, detected_at_ms=EVENT_MS, last_seen_ms=EVENT_MS - 9, timeline=())
ACTIVE = replace(BASE, id="active", size=20, detected_at_ms=EVENT_MS - 6, last_seen_ms=EVENT_MS + 1)
ACTIVE = replace(ACTIVE, timeline=((EVENT_MS - 90 * MINUTE_MS, 12), (EVENT_MS, 8)))
FAST = replace(
    BASE,
    id="fast",
    size=30,
    detected_at_ms=EVENT_MS - 7,
    last_seen_ms=EVENT_MS - 8,
    timeline=((EVENT_MS, 9),),
)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("time", ["active", "large", "fast", "new"]),
        ("novelty", ["new", "large", "active", "fast"]),
        ("size", ["large", "fast", "active", "new"]),
        ("growth", ["fast", "new", "large", "active"]),
    ],
)
async def test_the_repository_lists_events_in_each_order(order: EventOrder, expected: list[str]) -> None:
    """The stored list has the order of the rule; pages of two continue it where there are page keys."""
    repository = EventRepository(MemoryStore())
    for stored in (FAST, NEW, LARGE, ACTIVE):
        await commit_event(repository, "fired", stored, EVENT_MS)

    listed = await repository.list_events(order=order, now_ms=EVENT_MS)

    assert ids(listed) == ids(sort_events(listed, order, EVENT_MS)) == expected
    if order in PAGED_ORDERS:
        first = await repository.list_events(order=order, limit=2)
        rest = await repository.list_events(order=order, after=page_key_of(first[-1], order))
        assert ids([*first, *rest]) == expected


async def test_growth_and_surprise_list_open_events() -> None:
    """Ended events neither grow nor surprise; other orders contain them."""
    repository = EventRepository(MemoryStore())
    await commit_event(repository, "fired", BASE, EVENT_MS)
    await commit_event(repository, "closed", replace(FAST, status="closed"), EVENT_MS)

    assert ids(await repository.list_events(order="growth", now_ms=EVENT_MS)) == ["e"]
    assert ids(await repository.list_events(order="surprise", now_ms=EVENT_MS, limit=1)) == ["e"]
    assert ids(await repository.list_events(order="size")) == ["fast", "e"]


async def test_entries_of_an_older_version_are_ordered_by_the_size_of_their_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their entries in the index have no size."""
    repository = EventRepository(MemoryStore())
    for stored in (FAST, LARGE, NEW):
        await commit_event(repository, "fired", stored, EVENT_MS)
    current = await repository.summaries()
    old = {
        id_: EventSummary(e.status, e.detected_at_ms, e.last_seen_ms, e.merged_into, e.story_id)
        for id_, e in current.items()
    }

    async def summaries() -> dict[str, EventSummary]:
        return old | {"fast": current["fast"]}

    monkeypatch.setattr(repository, "summaries", summaries)

    assert ids(await repository.list_events(order="size")) == ["large", "fast", "new"]


def test_an_order_that_changes_with_time_has_no_page_keys() -> None:
    """A program error, not an empty page."""
    with pytest.raises(ValueError, match="growth has no page keys"):
        page_key_of(BASE, "growth")
