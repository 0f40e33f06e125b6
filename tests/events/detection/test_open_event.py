"""State of an open event: counts beyond the window."""

from __future__ import annotations

import pytest

from aggregator.events.detection import open_event
from aggregator.events.detection.open_event import TIMELINE_BUCKET_MS, OpenEvent
from tests.events.detection.window_items import window_item


def opened(*numbers: int, id_: str = "e1") -> OpenEvent:
    """An event of these items."""
    event = OpenEvent(id_, story_key=1, detected_at_ms=0, expected=0.4567, reason="16 items.")
    for number in numbers:
        event.add(window_item(number, source=f"s{number % 2}", lang="en", cosine=0.12345))
    return event


def test_items_may_be_added_out_of_order() -> None:
    """First and last time are those of the items, also if the first item is at the time 0 or negative."""
    event = opened(5, 0, 9, -3)

    assert (event.first_seen_ms, event.last_seen_ms, event.size) == (-3, 9, 4)
    assert event.to_event().items == ("a5", "a0", "a9", "a-3")


def test_the_timeline_counts_items_in_intervals_of_ten_minutes() -> None:
    """The last millisecond belongs to the interval; empty intervals are left out."""
    event = opened(3 * TIMELINE_BUCKET_MS, TIMELINE_BUCKET_MS - 1, 0).to_event()

    assert event.timeline == ((0, 2), (3 * TIMELINE_BUCKET_MS, 1))
    assert event.rate == 2


def test_the_value_is_rounded_and_has_no_repeated_source() -> None:
    """Decimals without meaning would only enlarge the stored event."""
    event = opened(1, 2, 3).to_event()

    assert (event.expected, event.cosines) == (0.46, (0.123,) * 3)
    assert (event.sources, event.languages) == (("s1", "s0"), ("en",))


def test_items_without_source_or_language_add_none() -> None:
    """An unnamed source is not shown as an empty name."""
    event = opened()
    event.add(window_item(1, source="", lang=""))

    assert (event.to_event().sources, event.to_event().languages, event.size) == ((), (), 1)


def test_lists_are_limited_while_counts_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit an item is counted, has a number, and is not listed."""
    monkeypatch.setattr(open_event, "MAX_EVENT_ITEMS", 2)
    monkeypatch.setattr(open_event, "MAX_EVENT_SOURCES", 1)

    event = opened(1, 2, 3)

    assert (event.size, list(event.items), list(event.sources)) == (3, ["a1", "a2"], ["s1"])
    assert event.pending_numbers == [1, 2, 3]
    event.absorb(opened(4, id_="e2"))
    assert (event.size, list(event.items)) == (4, ["a1", "a2"])


def test_an_absorbed_event_leaves_its_items_and_its_own_absorbed_ones() -> None:
    """Counts and times of both, intervals added, articles of both announced with the next change."""
    event, other = opened(10, 20), opened(5, 15, id_="e2")
    other.absorbed, other.sightings = ["e3"], 2

    event.absorb(other)

    assert (event.size, event.sightings, event.first_seen_ms, event.last_seen_ms) == (4, 2, 5, 20)
    assert event.timeline == {0: 4}
    assert list(event.items) == ["a10", "a20", "a5", "a15"]
    assert event.pending_numbers == [10, 20, 5, 15]
    assert event.absorbed == ["e2", "e3"]


def test_only_a_listed_article_is_removed() -> None:
    """A second removal of it changes nothing."""
    event = opened(1, 2)

    for _ in range(2):
        event.remove_item("a1", None)
    event.remove_item("a9", None)

    assert (event.size, list(event.items)) == (1, ["a2"])


def test_terms_are_shown_in_their_surface_form() -> None:
    """A term that no headline contains is left out, unless that leaves none."""
    event = opened(1)
    event.terms = ["thornbi", "detail1", "storm"]

    event.surface_forms = {"thornbi": "Thornby", "detail1": ""}
    assert event.to_event().terms == ("Thornby", "storm")
    event.surface_forms = dict.fromkeys(event.terms, "")
    assert event.to_event().terms == ("thornbi", "detail1", "storm")


def test_a_removed_item_leaves_the_timeline_too() -> None:
    """Size and timeline agree; an item that is not listed, or whose time is unknown, leaves it unchanged."""
    event = opened(0, TIMELINE_BUCKET_MS, TIMELINE_BUCKET_MS + 1)

    event.remove_item(f"a{TIMELINE_BUCKET_MS}", TIMELINE_BUCKET_MS)
    event.remove_item("unlisted", TIMELINE_BUCKET_MS)
    assert (event.size, event.to_event().timeline) == (2, ((0, 1), (TIMELINE_BUCKET_MS, 1)))

    event.remove_item("a0", 0)
    assert (event.size, event.to_event().timeline) == (1, ((TIMELINE_BUCKET_MS, 1),))
    event.remove_item(f"a{TIMELINE_BUCKET_MS + 1}", None)
    assert (event.size, event.to_event().timeline) == (0, ((TIMELINE_BUCKET_MS, 1),))
