"""The event filter: every condition that is set must hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.events.event import Event
from aggregator.events.repository import EventRepository
from aggregator.events.selection import (
    PAGED_ORDERS,
    SEVERITIES,
    EventFilter,
    EventOrder,
    OwnSources,
    growth,
    page_key,
    rank,
    severity,
    sort_events,
    surprise,
)
from aggregator.store.memory import MemoryStore
from aggregator.time_units import HOUR_MS, MINUTE_MS
from tests.support.factories import EVENT_MS, commit_event, event

STORM = replace(
    event("e1", "Storm closes the Harbour Bridge", ["a", "b"]),
    size=17,
    sources=("Harbour Post", "two.example"),
    languages=("en", "zh"),
    terms=("storm", "bridg", "ferri"),
)


@pytest.mark.parametrize(
    ("event_filter", "matches"),
    [
        (EventFilter(), True),
        (EventFilter(term="harbour BRIDGE"), True),
        (EventFilter(term="ferries"), True),
        (EventFilter(term="ferries storm"), True),
        (EventFilter(term="ferries volcano"), False),
        (EventFilter(term="the"), True),
        (EventFilter(term="of"), False),
        (EventFilter(source="harbour post"), True),
        (EventFilter(source="harbour"), False),
        (EventFilter(lang="zh-Hant"), True),
        (EventFilter(lang="de"), False),
        (EventFilter(min_size=17), True),
        (EventFilter(min_size=18), False),
        (EventFilter(status="breaking"), True),
        (EventFilter(status="closed"), False),
        (EventFilter(term="storm", source="two.example", lang="en", min_size=1), True),
        (EventFilter(term="storm", source="two.example", lang="de", min_size=1), False),
    ],
)
def test_every_condition_must_hold(event_filter: EventFilter, matches: bool) -> None:
    """Each condition alone, and several together."""
    assert event_filter.matches(STORM) is matches


def test_terms_are_tokenized_in_the_languages_of_the_event() -> None:
    """The event's terms are stems of its languages, so the searched words are tokenized alike."""
    chinese = replace(STORM, title="港口大桥因暴风雨受损关闭", terms=("暴风雨", "大桥"), languages=("zh",))

    assert EventFilter(term="大桥").matches(chinese)
    assert EventFilter(term="暴风雨 大桥").matches(chinese)
    assert not EventFilter(term="地震").matches(chinese)


def test_a_saved_query_string_is_parsed() -> None:
    """Blanks around a value, as in older saved queries, are ignored."""
    parsed = EventFilter.parse("term=+ferries+&source=harbour+post&min_size=17&status=breaking&lang=en")

    assert parsed == EventFilter("ferries", "harbour post", "en", 17, "breaking")


@pytest.mark.parametrize(
    ("source", "expected"),
    [("Harbour Times", True), ("  harbour  TIMES", True), ("Harbour Times Sport", False), ("", False)],
)
def test_a_source_is_recognized_in_any_case(source: str, expected: bool) -> None:
    """White space and letter case do not matter, the rest of the name does."""
    own = OwnSources("Quay News, Harbour Times,,")

    assert own.is_own(source) is expected
    assert own.any_of(["Pier Nine", source]) is expected


def test_without_own_sources_no_event_is_ours() -> None:
    """Also none whose articles name no source."""
    own = OwnSources("")

    assert not own
    assert not own.any_of([""])


OLD = {"detected_at_ms": EVENT_MS - 3 * HOUR_MS, "size": 40}
HOUR_AGO = EVENT_MS - HOUR_MS


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"status": "closed", **OLD}, "ended"),
        ({"status": "fading", **OLD}, "fading"),
        ({"last_seen_ms": EVENT_MS - HOUR_MS, **OLD}, "fading"),
        ({"last_seen_ms": EVENT_MS - HOUR_MS + 1, "timeline": (), **OLD}, "breaking"),
        ({"detected_at_ms": EVENT_MS - HOUR_MS + 1, "size": 29}, "emerging"),
        ({"detected_at_ms": EVENT_MS - HOUR_MS, "size": 29, "timeline": ()}, "breaking"),
        ({"detected_at_ms": EVENT_MS, "size": 30, "timeline": ((EVENT_MS, 30),)}, "growing"),
        ({"timeline": ((HOUR_AGO, 5), (EVENT_MS, 10)), **OLD}, "growing"),
        ({"timeline": ((HOUR_AGO, 6), (EVENT_MS, 11)), **OLD}, "breaking"),
        ({"timeline": ((EVENT_MS, 9),), **OLD}, "breaking"),
    ],
)
def test_each_threshold_from_both_sides(fields: dict[str, Any], expected: str) -> None:
    """One hour, 30 items, 10 items in an hour, twice the hour before."""
    assert severity(event("e1", "Bridge", **fields), EVENT_MS) == expected


def test_growth_counts_buckets_by_their_start() -> None:
    """A bucket of exactly an hour ago belongs to the hour before, one of two hours ago to neither."""
    timeline = (
        (EVENT_MS - 2 * HOUR_MS, 1),
        (EVENT_MS - 2 * HOUR_MS + 1, 2),
        (HOUR_AGO, 4),
        (HOUR_AGO + 1, 8),
    )
    rates = growth(event("e1", "Bridge", timeline=(*timeline, (EVENT_MS + MINUTE_MS, 16))), EVENT_MS)

    assert (rates.last_hour, rates.hour_before, rates.gained) == (24, 6, 18)


@given(
    st.sampled_from(["breaking", "fading", "closed"]),
    st.integers(0, 100),
    st.integers(-HOUR_MS, 9 * HOUR_MS),
    st.lists(st.tuples(st.integers(-9 * HOUR_MS, HOUR_MS), st.integers(1, 50)), max_size=9),
)
def test_every_event_has_one_severity(
    status: str, size: int, age_ms: int, offsets: list[tuple[int, int]]
) -> None:
    """Exactly the closed ones have ended, and a fading one is never called breaking."""
    some = replace(
        event("e1", "Bridge", status=status, size=size, detected_at_ms=EVENT_MS - age_ms),
        timeline=tuple((EVENT_MS + at, items) for at, items in offsets),
    )
    found = severity(some, EVENT_MS)

    assert found in SEVERITIES
    assert (found == "ended") == (status == "closed")
    assert status != "fading" or found == "fading"


BASE = replace(
    event("e", "Bridge closed"), peak=31, expected=0.0, detected_at_ms=EVENT_MS, last_seen_ms=EVENT_MS
)


def test_surprise_counts_doublings_over_the_usual() -> None:
    """31 items where none is usual are five doublings; the usual number is zero."""
    assert surprise(BASE) == 5.0
    assert surprise(replace(BASE, expected=31.0)) == 0.0
    assert surprise(replace(BASE, expected=15.0)) == 1.0


def test_the_rank_halves_with_quiet_hours_and_with_age() -> None:
    """Two hours without a new item, or twelve hours since detection."""
    assert rank(BASE, EVENT_MS) == 5.0
    assert rank(replace(BASE, last_seen_ms=EVENT_MS - 2 * HOUR_MS), EVENT_MS) == 2.5
    assert rank(replace(BASE, detected_at_ms=EVENT_MS - 12 * HOUR_MS), EVENT_MS) == 2.5
    assert rank(BASE, EVENT_MS - HOUR_MS) == 5.0


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
        rest = await repository.list_events(order=order, after=page_key(first[-1], first[-1].id, order))
        assert ids([*first, *rest]) == expected


async def test_growth_and_surprise_list_open_events() -> None:
    """Ended events neither grow nor surprise; other orders contain them."""
    repository = EventRepository(MemoryStore())
    await commit_event(repository, "fired", BASE, EVENT_MS)
    await commit_event(repository, "closed", replace(FAST, status="closed"), EVENT_MS)

    assert ids(await repository.list_events(order="growth", now_ms=EVENT_MS)) == ["e"]
    assert ids(await repository.list_events(order="surprise", now_ms=EVENT_MS, limit=1)) == ["e"]
    assert ids(await repository.list_events(order="size")) == ["fast", "e"]


def test_an_order_that_changes_with_time_has_no_page_keys() -> None:
    """A program error, not an empty page."""
    with pytest.raises(ValueError, match="growth has no page keys"):
        page_key(BASE, BASE.id, "growth")
