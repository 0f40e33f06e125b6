"""Numbers of an event: whatever happens to its items, no two of them contradict each other."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.analysis.source import outlet_key
from aggregator.events import newsroom
from aggregator.events.detection import lifecycle
from aggregator.events.detection.lifecycle import OpenEvent
from aggregator.events.detection.numbers import (
    Item,
    bucket,
    course,
    course_of,
    end_of,
    first_ms,
    independent,
    items_of,
    items_within,
    peak,
)
from aggregator.events.event import EditorAction, Event, size_summary
from aggregator.events.selection import growth
from aggregator.http.pages.cards import spread_chart
from aggregator.time_units import DAY_MS, HOUR_MS
from tests.events.detection.window_items import window_item
from tests.support.factories import EVENT_MS, event

SPELLINGS = ["Pier Post", "PIER  POST", "Quay", "quay", "www.mole.example", "mole.example", "Buoy", ""]
ACTS = ["join", "join", "join", "absorb", "divide", "delete", "publish", "remove", "merge", "develop", "move"]
step = st.tuples(st.sampled_from(ACTS), st.integers(0, 2), st.integers(0, 2), st.integers(0, 60))


def facts(number: int) -> tuple[int, str]:
    """When and where the article with this number was published: within a day, in any order."""
    return EVENT_MS + number * 37 % 61 * DAY_MS // 61, SPELLINGS[number % 8]


class History:
    """Three events, as the detector holds and as the newsroom has stored them."""

    def __init__(self) -> None:
        self.found = [OpenEvent(f"e{n}", n, EVENT_MS, 0.5, 4 * HOUR_MS) for n in range(3)]
        self.stored: list[Event] = [Event.of(found.to_event()) for found in self.found]

    def act(self, name: str, a: int, b: int, number: int) -> None:
        """Carry out one step."""
        found, other, article = self.found[a], self.found[b], f"a{number}"
        if name == "join":
            at_ms, source = facts(number)
            claim_ms = (None, None, 0, at_ms - number * HOUR_MS)[number % 4]
            if all(article not in each.items for each in self.found):
                found.add(window_item(number, at_ms=at_ms, source=source, claim_ms=claim_ms))
                if article in found.items:
                    found.items[article] = found.items[article]._replace(doubtful=number % 7 == 3)
        elif name == "absorb" and a != b:
            found.absorb(other)
            self.found[b] = OpenEvent(other.id, b, EVENT_MS, 0.5, 4 * HOUR_MS)
        elif name == "divide" and a != b:
            for id_ in [id_ for id_ in found.items if int(id_[1:]) % 3 == number % 3]:
                other.items[id_] = found.items.pop(id_)
        elif name == "develop":
            found.developments.append((facts(number)[0], ("sea",)))
        elif name == "delete":
            for each in self.found:
                each.items.pop(article, None)
            self.stored = [newsroom.remove_items(each, [article]) for each in self.stored]
        else:
            self.edit(name, a, b, number)

    def edit(self, name: str, a: int, b: int, number: int) -> None:
        """Carry out what an editor does, or the next version of the detector."""
        if name == "publish":
            self.stored[a] = newsroom.rejoin(self.found[a].to_event(), self.stored[a])
        elif name == "remove":
            self.stored[a] = newsroom.remove_items(self.stored[a], [f"a{number}"])
        elif name == "move" and a != b:  # as a split, and as its undoing
            moved = {i: item for i, item in items_of(self.stored[a]).items() if int(i[1:]) % 3 == number % 3}
            self.stored[a] = newsroom.remove_items(self.stored[a], list(moved))
            self.stored[b] = newsroom.add_items(self.stored[b], moved)
            if self.stored[b].id in self.stored[a].absorbed:
                self.stored[a], self.stored[b] = newsroom.separate(
                    self.stored[a], self.stored[b], EditorAction("merge", "Ada", EVENT_MS, "")
                )
        elif name == "merge" and a != b:
            merge = EditorAction("merge", "Ada", EVENT_MS, f"e{b}", into=f"e{a}")
            self.stored[a], self.stored[b] = newsroom.merge_events(self.stored[a], self.stored[b], merge)


def check(shown: Event) -> None:
    """No number contradicts another, and those of the items are what one counts by hand."""
    items, hour_ago = items_of(shown), EVENT_MS + DAY_MS - HOUR_MS
    last_hour = growth(shown, EVENT_MS + DAY_MS).last_hour
    assert shown.size == len(shown.times) == sum(n for _, n in shown.timeline)
    assert len(shown.items) == len(items) <= shown.size
    assert len(shown.sources) == len(set(map(outlet_key, shown.sources))) <= shown.size
    assert {outlet_key(i.source) for i in items.values()} - {""} == set(map(outlet_key, shown.sources))
    assert shown.rate <= shown.peak <= shown.size and shown.first_seen_ms <= shown.last_seen_ms
    assert last_hour <= shown.size and sum(n for _, n in shown.voices) in {
        len(shown.sources), len(shown.sources) + 1
    } and sum(n for _, n in shown.voices) <= shown.size  # fmt: skip
    is_fresh = shown.size > 0 and bucket(shown.last_seen_ms) > hour_ago
    assert bool(last_hour) == is_fresh or (last_hour == 0 and any(shown.claims.values()))
    outlets = f" from {len(shown.sources)} outlet" if shown.sources else ""
    assert size_summary(shown).startswith(f"{shown.size} items{outlets}")
    assert all((item.at_ms, outlet_key(item.source)) == (at_ms, outlet_key(source))
               for id_, item in items.items() for at_ms, source in [facts(int(id_[1:]))])  # fmt: skip
    if shown.size:
        times = course_of(shown)
        sure = [i.at_ms for i in items.values() if not i.doubtful] + [*shown.times[len(items) :]]
        assert (
            shown.first_seen_ms == min(sure or shown.times) >= min(times) and max(times) == shown.last_seen_ms
        )
        assert all(at_ms <= own_ms for at_ms, own_ms in zip(times, shown.times, strict=True))
        assert spread_chart(shown, (), EVENT_MS + DAY_MS).bins[-1].total == shown.size


@pytest.mark.parametrize("listed", [2, 5, 17, 60, 5_000])
@given(st.lists(step, max_size=60))
@settings(deadline=None)
def test_no_history_of_an_event_makes_its_numbers_contradict_each_other(
    listed: int, steps: list[tuple[str, int, int, int]]
) -> None:
    """Items join, fragments meet and part, articles are deleted, editors remove and merge, in any order."""
    history = History()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lifecycle, "MAX_EVENT_ITEMS", listed)
        patch.setattr(newsroom, "MAX_EVENT_ITEMS", listed)
        for each in steps:
            history.act(*each)
            for shown in (*history.stored, Event.of(history.found[each[1]].to_event())):
                check(shown)


def test_the_first_item_is_not_a_doubtful_one() -> None:
    """Unless all are; a claim counts from the first item on, a doubtful item at its own time."""
    items = [Item(1.0, 10, "a", doubtful=True), Item(1.0, 40, "b", 20), Item(1.0, 30, "c")]

    assert first_ms(items, ()) == 30 and course(items, ()) == (10, 30, 30)
    assert first_ms(items[:1], ()) == 10 and first_ms((), (), 7) == 7


def test_the_peak_is_of_one_window() -> None:
    """An item of exactly the length of the window counts; order does not matter."""
    assert peak([0, 10, 5, 30], 10) == 3
    assert (peak([], 10), peak([1, 1], 0)) == (0, 2)


def test_a_family_counts_once() -> None:
    """What belongs to none counts by itself."""
    assert independent(("a", "b", "c", "d"), [("a", "b"), ("c", "d")]) == 2


def test_items_of_a_period_are_counted_by_their_times() -> None:
    """The end is excluded, so that each item is of one day."""
    found = event("e", "Flood", (), times=(10, 20, 20, 30))

    assert [items_within(found, *period) for period in ((10, 30), (20, 21), (31, 99))] == [3, 2, 0]


def test_the_ends_of_an_event_are_doubtful_if_no_certain_item_is_of_their_time() -> None:
    """They are those of the counts; an item that states an earlier time is at that time."""
    found = event("e", "Flood", ("a", "b", "c", "d"), times=(10, 20, 30, 30), doubtful=("a", "c", "d"))

    assert [end_of(found, at_ms) for at_ms in (10, 20, 30, 99)] == [
        (False, True),
        (False, False),
        (False, True),
        (False, False),
    ]
    late = event("e", "Flood", ("a", "b"), times=(10, 30), claims={"b": 20}, doubtful=("b",))
    assert (end_of(late, 20), end_of(late, 30)) == ((False, True), (False, False))
