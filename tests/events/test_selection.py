"""The event filter: every condition that is set must hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.domain import article_number_at
from aggregator.events.days import handover
from aggregator.events.detection.numbers import arrivals_of, bucket, with_items
from aggregator.events.detection.top_stories import TopStory
from aggregator.events.event import EditorAction, Event
from aggregator.events.newsroom import apply_action, split_off
from aggregator.events.repository import EventRepository
from aggregator.events.selection import (
    PAGED_ORDERS,
    SEVERITIES,
    CameSince,
    EventFilter,
    EventOrder,
    came_since,
    growth,
    is_handled,
    is_settled,
    largest_stories,
    page_key,
    severity,
    since_handled,
    sort_events,
    urgency,
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


OLD = {"detected_at_ms": EVENT_MS - 2 * HOUR_MS, "peak": 40}
HOUR_AGO = EVENT_MS - HOUR_MS


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"status": "closed", **OLD}, "ended"),
        ({"status": "fading", **OLD}, "fading"),
        ({"timeline": ((HOUR_AGO, 30),)}, "fading"),
        ({"timeline": ((EVENT_MS, 10),), "peak": 300}, "breaking"),
        ({"timeline": ((EVENT_MS, 10),), "size": 4, "doubtful": ("a", "b")}, "breaking"),
        ({"timeline": ((EVENT_MS, 10),), "size": 4, "doubtful": ("a", "b", "c")}, "emerging"),
        ({"timeline": ((EVENT_MS, 9),), "peak": 36}, "fading"),
        ({"timeline": ((EVENT_MS, 9),), "peak": 35}, "emerging"),
        ({"timeline": ((HOUR_AGO, 9), (EVENT_MS, 9)), "peak": 36}, "emerging"),
        ({"timeline": ((HOUR_AGO, 10), (EVENT_MS, 9)), "peak": 36}, "running"),
        ({"timeline": ((EVENT_MS - 3 * HOUR_MS, 10), (EVENT_MS, 1)), "peak": 11}, "fading"),
        ({"timeline": ((EVENT_MS, 1),), "peak": 1}, "emerging"),
        ({"timeline": ((EVENT_MS, 1),), **OLD, "peak": 1}, "running"),
        ({"timeline": ((EVENT_MS, 2),), "peak": 6}, "breaking"),
        ({"timeline": ((EVENT_MS, 4),), "peak": 4, "size": 4, "needed": 3}, "breaking"),
        ({"timeline": ((EVENT_MS, 2),), "peak": 2, "size": 2, "needed": 1}, "breaking"),
        ({"timeline": ((EVENT_MS, 2),), "peak": 2, "size": 2, "needed": 15}, "emerging"),
        ({"timeline": ((EVENT_MS, 2),), "peak": 7}, "emerging"),
        ({"timeline": ((HOUR_AGO, 5), (EVENT_MS, 10)), **OLD}, "growing"),
        ({"timeline": ((HOUR_AGO, 6), (EVENT_MS, 11)), **OLD}, "running"),
        ({"timeline": ((HOUR_AGO, 1), (EVENT_MS, 9)), **OLD}, "fading"),
        ({"timeline": ((HOUR_AGO, 2), (EVENT_MS, 9)), **OLD}, "running"),
        ({"timeline": ((EVENT_MS, 3),), **OLD, "peak": 6}, "growing"),
    ],
)
def test_each_threshold_from_both_sides(fields: dict[str, Any], expected: str) -> None:
    """Two hours since detection; 10 items in an hour or a third of the peak; twice the hour before.

    Half the rate of a peak of 4 hours is a quarter of its items in 2 hours; one item is not fast.
    """
    assert severity(event("e1", "Bridge", **{"size": 40, **fields}), EVENT_MS) == expected


SEEN_MS = EVENT_MS - HOUR_MS
SEEN = EditorAction("acknowledge", "Ada", SEEN_MS, "e1", id=1)
PUBLISHED = EditorAction("set_work_status", "Ada", SEEN_MS, "e1", work_status="published", id=1)
OPEN: dict[str, Any] = {"acknowledged_by": "Ada", "actions": (SEEN,)}
DONE: dict[str, Any] = {"work_status": "published", "actions": (PUBLISHED,)}


@pytest.mark.parametrize("fields", [OPEN, DONE])
@pytest.mark.parametrize(
    ("times", "developments", "since"),
    [
        ((0,) * 9 + (SEEN_MS,), (), (0, False)),
        ((0,) * 9 + (SEEN_MS + 1,) * 5, (), (5, False)),
        ((0,) * 9 + (SEEN_MS + 1,) * 6, (), (6, True)),
        ((0,) * 9, ((SEEN_MS, ("toll",)),), (0, False)),
        ((0,) * 9, ((SEEN_MS + 1, ("toll",)),), (0, True)),
    ],
)
def test_a_handled_event_returns_with_news(
    fields: dict[str, Any], times: tuple[int, ...], developments: Any, since: tuple[int, bool]
) -> None:
    """A development, or more items than an alert needs; an event that nobody has handled has none since."""
    told = event("e1", "Bridge", times=times, needed=5, developments=developments)
    handled = replace(told, **fields)

    assert since_handled(handled)[:2] == since
    assert (is_handled(handled), is_settled(handled)) == (not since[1], not since[1] and fields is DONE)
    assert since_handled(told) == CameSince() and not is_handled(told)
    assert since_handled(replace(handled, needed=0))[1] == bool(developments) * since[1]  # not known


@pytest.mark.parametrize("action", [SEEN, PUBLISHED])
def test_a_handled_event_returns_when_its_toll_grows(action: EditorAction) -> None:
    """Of two outlets, or is corrected; what was known when it was handled does not count."""
    tolls = ((SEEN_MS - 1, "dead", 8), (SEEN_MS, "dead", 11))
    handled = apply_action(event("e1", "Quake", tolls=tolls), action)
    grown = replace(handled, tolls=(*tolls, (SEEN_MS + 1, "injured", 300), (SEEN_MS + 2, "dead", 140)))
    corrected = replace(grown, tolls=(*grown.tolls, (SEEN_MS + 3, "dead", 41)))

    assert since_handled(handled) == CameSince()
    assert since_handled(grown) == CameSince(0, True, {"injured": (0, 300), "dead": (11, 140)})
    assert since_handled(corrected).tolls["dead"] == (11, 41)
    assert (is_handled(grown), is_settled(grown)) == (False, False)


def test_the_toll_when_an_event_was_handled_is_the_one_that_was_reported_then() -> None:
    """By one outlet too, if another one confirmed it since."""
    old, reported = (SEEN_MS - 2, "dead", 9), (SEEN_MS - 1, "dead", 11)
    handled = apply_action(event("e1", "Quake", tolls=(old,)), PUBLISHED)
    grown = replace(handled, tolls=(old, reported, (SEEN_MS + 1, "dead", 140)))

    assert since_handled(grown) == CameSince(0, True, {"dead": (11, 140)})
    assert since_handled(replace(handled, tolls=(old, reported))) == CameSince(0, True, {"dead": (11, 11)})


def test_updates_of_items_that_were_there_are_counted_apart() -> None:
    """A new item that was updated since is one new item; an update alone brings no event back."""
    times = (SEEN_MS - 9, SEEN_MS - 8, SEEN_MS + 1)
    seen = apply_action(event("e1", "Quake", ["old", "same", "new"], times=times, needed=5), PUBLISHED)
    updated = replace(seen, updates={"old": SEEN_MS + 2, "same": SEEN_MS - 1, "new": SEEN_MS + 3})

    assert since_handled(updated) == CameSince(1, updates=1)


def test_a_muted_event_does_not_return() -> None:
    """A mute holds, whatever comes; what an editor undid does not count as seen."""
    grown = replace(event("e1", "Bridge", times=(SEEN_MS + 1,) * 9, needed=5), **DONE)
    undone = (*grown.actions, EditorAction("undo", "Ada", EVENT_MS, "e1", of=1))

    assert not is_settled(grown) and is_settled(replace(grown, muted="story"))
    assert since_handled(replace(grown, actions=undone, detected_at_ms=SEEN_MS + 1)) == CameSince()


def test_growth_counts_items_by_their_exact_times() -> None:
    """One of exactly an hour ago belongs to the hour before, one of two hours ago to neither."""
    timeline = (
        (EVENT_MS - 2 * HOUR_MS, 1),
        (EVENT_MS - 2 * HOUR_MS + 1, 2),
        (HOUR_AGO, 4),
        (HOUR_AGO + 1, 8),
    )
    rates = growth(event("e1", "Bridge", timeline=(*timeline, (EVENT_MS + MINUTE_MS, 16))), EVENT_MS)

    assert rates == (24, 6)


@pytest.mark.parametrize(
    ("minutes_ago", "rates"),
    [((50, 54), (2, 0)), ((52,), (1, 0)), ((62, *range(64, 115, 7), 115), (0, 10)), ((119, 121), (0, 1))],
)
def test_an_hour_is_an_hour_within_the_steps_of_the_timeline(
    minutes_ago: tuple[int, ...], rates: tuple[int, int]
) -> None:
    """At any minute: an item of 52 minutes ago is of the last hour, and the event does not fade."""
    for minute in range(10):
        now_ms = bucket(EVENT_MS) + minute * MINUTE_MS
        times = [now_ms - minutes * MINUTE_MS for minutes in minutes_ago]
        shown = with_items(event("e1", "Bridge"), {}, times)
        assert growth(shown, now_ms) == rates
        assert (severity(shown, now_ms) == "fading") == (not rates[0])
        found = largest_stories([TopStory(shown, 0, False, 0)], EventFilter(), now_ms - HOUR_MS)
        assert [story.items for story in found] == [rates[0]] * (rates[0] > 0)


@pytest.mark.parametrize(("first_ms", "last_hour"), [(EVENT_MS - MINUTE_MS, 4), (EVENT_MS - 3 * HOUR_MS, 6)])
def test_what_states_an_old_date_is_no_item_of_the_last_hour(first_ms: int, last_hour: int) -> None:
    """In the timeline it is at the first item; 0 means without a date, and an hour is old."""
    claims = {"a": EVENT_MS - 12 * HOUR_MS, "b": HOUR_AGO, "c": HOUR_AGO + 1, "d": 0}
    late = event("e1", "Bridge", timeline=((EVENT_MS, 6),), claims=claims, first_seen_ms=first_ms)

    assert growth(late, EVENT_MS).last_hour == last_hour


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
        times=tuple(EVENT_MS + at for at, items in offsets for _ in range(items)),
    )
    found = severity(some, EVENT_MS)

    assert found in SEVERITIES
    assert (found == "ended") == (status == "closed")
    assert status != "fading" or found == "fading"


def burst(id_: str, *items: tuple[float, int], voices: int = 0, **fields: Any) -> Event:
    """An event with so many items so many minutes ago; ``voices``: how many of them are distinct, 0: all."""
    timeline = tuple((EVENT_MS - round(minutes * MINUTE_MS), count) for minutes, count in sorted(items)[::-1])
    times = tuple((at_ms, min(count, voices or count)) for at_ms, count in timeline)
    outlets = tuple(n % (voices or count) for _, count in timeline for n in range(count))
    fields = {"expected": 0.4, "size": len(outlets), **fields}
    return event(id_, "Bridge", timeline=timeline, voices=times, outlets=outlets, **fields)


def test_the_newest_alarm_stands_first() -> None:
    """22 items in 4 minutes, before all that is larger, older, usual or handled."""
    quake = burst("quake", (4, 22), voices=10)
    ordered = [
        quake,
        burst("war", *((minutes, 10) for minutes in range(5, 240, 10)), expected=60.0),
        burst("vote", *((minutes, 2) for minutes in range(5, 240, 10)), expected=60.0),
        burst("morning", (250, 200), (200, 100), (8, 3)),
        burst("backlog", (170, 300)),
        burst("faded", (70, 300)),
        burst("thin", (80, 2), (20, 1)),
        burst("show", (5, 40), acknowledged_by="Ada"),
        burst("cup", (5, 30), work_status="published"),
        burst("list", (5, 20), muted="routine"),
    ]

    found = sort_events(ordered[::-1], "surprise", EVENT_MS)

    assert ids(found) == [
        *("quake", "war", "vote", "thin", "morning", "faded", "backlog"),
        *("show", "cup", "list"),
    ]
    assert [severity(e, EVENT_MS) for e in found[:2]] == ["breaking", "breaking"]


def test_two_items_that_were_split_off_are_no_alarm() -> None:
    """They come after a story of the last hours, though nothing is usual for them; four are an event."""
    story = burst("story", (200, 6), (150, 5), (70, 4), size=15, needed=3, status="fading")
    whole = burst("whole", (5, 6), size=6, needed=3)
    split = EditorAction("move_items", "Ada", EVENT_MS, "whole", items=("a", "b"))
    pair, four = (
        with_items(split_off(whole, split), {}, [EVENT_MS - MINUTE_MS] * number) for number in (2, 4)
    )

    assert ids(sort_events([pair, story], "surprise", EVENT_MS)) == ["story", pair.id]
    assert ids(sort_events([story, four], "surprise", EVENT_MS)) == [four.id, "story"]
    assert [severity(e, EVENT_MS) for e in (pair, four)] == ["emerging", "breaking"]


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(1, 50)), max_size=9),
    st.integers(0, 59),
    st.integers(1, 50),
    st.floats(0, 100),
)
def test_more_items_in_the_last_hour_never_lower_an_event(
    items: list[tuple[int, int]], minutes: int, more: int, expected: float
) -> None:
    """Whatever came before and whatever is usual."""
    before = burst("e", *items, expected=expected)
    after = burst("e", *items, (minutes, more), expected=expected)

    assert urgency(after, EVENT_MS) >= urgency(before, EVENT_MS)


def test_many_voices_come_before_one() -> None:
    """Twenty items of one source are less urgent than twenty of twenty, and still more than one item."""
    many, one, single = burst("many", (5, 20)), burst("one", (5, 20), voices=1), burst("single", (5, 1))

    assert urgency(many, EVENT_MS) > urgency(one, EVENT_MS) > urgency(single, EVENT_MS)


BASE = replace(
    event("e", "Bridge closed"), peak=31, expected=0.0, detected_at_ms=EVENT_MS, last_seen_ms=EVENT_MS
)


def ids(events: list[Event]) -> list[str]:
    return [e.id for e in events]


# Largest, last detected, last seen and fastest growing are four different events.
LARGE = replace(BASE, id="large", size=90, detected_at_ms=EVENT_MS - 5)
NEW = replace(BASE, id="new", size=16, detected_at_ms=EVENT_MS, last_seen_ms=EVENT_MS - 9)
ACTIVE = replace(BASE, id="active", size=20, detected_at_ms=EVENT_MS - 6, last_seen_ms=EVENT_MS + 1)
ACTIVE = replace(ACTIVE, times=(*(EVENT_MS - 90 * MINUTE_MS,) * 12, *(EVENT_MS,) * 8))
FAST = replace(
    BASE,
    id="fast",
    size=30,
    detected_at_ms=EVENT_MS - 7,
    last_seen_ms=EVENT_MS - 8,
    times=(EVENT_MS,) * 9,
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


def test_the_largest_stories_of_some_hours_that_match() -> None:
    """Items and voices since then; stories without any are left out."""

    def story(event: Event) -> TopStory:
        return TopStory(event, event.first_seen_ms, is_event=False, needed=0)

    wide = burst("wide", (10, 12), languages=("en",))
    long = burst("long", (10, 4), (200, 90), languages=("de",), voices=3)
    past = burst("past", (200, 50), languages=("en",))
    stories = [story(event) for event in (past, long, wide)]

    def largest(hours: float, lang: str = "") -> list[tuple[str, int, int]]:
        found = largest_stories(stories, EventFilter(lang=lang), EVENT_MS - round(hours * HOUR_MS))
        return [(each.story.event.id, each.items, each.voices) for each in found]

    assert largest(4) == [("past", 50, 50), ("wide", 12, 12), ("long", 94, 3)]
    assert largest(1) == [("wide", 12, 12), ("long", 4, 3)]
    assert largest(4, "de") == [("long", 94, 3)]
    assert largest(0.1) == []


def test_what_came_since_a_time_arrived_since() -> None:
    """An item that is dated before, and was seen by nobody then, is not lost between two shifts."""
    numbers = (article_number_at(EVENT_MS - 5), article_number_at(EVENT_MS + 7), 0)
    late = event(
        "e1", "Storm", ("a", "b", "c"), times=(EVENT_MS - 9, EVENT_MS - 8, EVENT_MS - 3), numbers=numbers
    )

    assert arrivals_of(late) == (EVENT_MS - 5, EVENT_MS + 7, EVENT_MS - 3)
    assert [came_since(late, EVENT_MS + at).items for at in (-6, -4, 0, 7)] == [3, 2, 1, 0]
    lists = handover([late], EVENT_MS + 1, EVENT_MS + 9)
    assert [name for name, found in lists.items() if found] == ["developed"]
