"""Event cards: titles, rates and the sections of the front page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.events.event import Event, title_of
from aggregator.events.selection import SEVERITIES, Severity, is_handled
from aggregator.http.pages.cards import BIN_MS, event_lists, make_card
from tests.support.factories import EVENT_MS, event

HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("title", "terms", "expected"),
    [
        ("Bridge closed", ("harbour",), "Bridge closed"),
        ("", ("harbour", "bridge"), "harbour, bridge"),
        ("", (), "(no headline)"),
    ],
)
def test_an_event_always_has_a_title(title: str, terms: tuple[str, ...], expected: str) -> None:
    """The headline of a deleted article is replaced by the terms."""
    assert title_of(event("e1", title, terms=terms)) == expected


@pytest.mark.parametrize(("languages", "lang"), [((), ""), (("de",), "de"), (("de", "fr"), "")])
def test_the_language_is_known_only_if_there_is_one(languages: tuple[str, ...], lang: str) -> None:
    """A wrong lang attribute makes a screen reader mispronounce the headline."""
    assert make_card(event("e1", "Bridge", languages=languages), EVENT_MS).lang == lang


def test_the_sparkline_of_a_closed_event_ends_with_its_last_item() -> None:
    """An open one moves on with time until its items are out of sight."""
    later_ms = EVENT_MS + 24 * HOUR_MS
    open_, closed = event("e1", "Bridge"), event("e2", "Bridge", status="closed")

    assert make_card(closed, later_ms).sparkline == make_card(open_, EVENT_MS).sparkline != ()
    assert make_card(open_, later_ms).sparkline == ()


def test_a_clock_behind_the_last_item_hides_nothing() -> None:
    """The clocks of the replicas may differ."""
    early = make_card(event("e1", "Bridge"), EVENT_MS - HOUR_MS)

    assert early.sparkline == make_card(event("e1", "Bridge"), EVENT_MS).sparkline


EVENTS = st.builds(
    lambda number, **fields: event(f"e{number}", "Bridge", **fields),
    st.integers(min_value=0, max_value=10**6),
    status=st.sampled_from(["breaking", "fading", "closed"]),
    muted=st.sampled_from([None, "story", "routine"]),
    false_alarm=st.booleans(),
    merged_into=st.sampled_from([None, "e0"]),
)


@given(st.lists(EVENTS, max_size=8, unique_by=lambda e: e.id))
def test_a_severity_selects_cards(events: list[Event]) -> None:
    """Every card is in the lists of exactly one severity."""

    def shown(only: Severity | None) -> list[str]:
        lists = event_lists(events, EVENT_MS, "novelty", only)
        return sorted(card.event.id for card in (*lists["open"], *lists["handled"], *lists["closed"]))

    assert sorted(id_ for severity in SEVERITIES for id_ in shown(severity)) == shown(None)


@given(st.lists(EVENTS, max_size=8, unique_by=lambda e: e.id))
def test_every_event_is_in_one_section(events: list[Event]) -> None:
    """Open ones above the line that editors are not done with; those merged into others in none."""
    lists = event_lists(events, EVENT_MS)
    listed = [card.event for card in (*lists["open"], *lists["handled"], *lists["closed"])]

    assert sorted(e.id for e in listed) == sorted(e.id for e in events if e.merged_into is None)
    assert all(is_handled(card.event) for card in lists["handled"])
    assert all(card.event.status == "closed" for card in lists["closed"])
    assert not any(is_handled(card.event) for card in lists["open"])
    assert all(card.event.status != "closed" for card in (*lists["open"], *lists["handled"]))


@given(st.dictionaries(st.integers(0, 40), st.integers(1, 9), min_size=1))
def test_the_items_of_an_event_add_up(items_by_age: dict[int, int]) -> None:
    """Those of the last hour, of the hour before and the earlier ones are all; of any timeline."""
    timeline = tuple((EVENT_MS - age * BIN_MS, items) for age, items in sorted(items_by_age.items())[::-1])
    card = make_card(event("e1", "Storm", size=sum(items_by_age.values()), timeline=timeline), EVENT_MS)

    earlier = sum(items for age, items in items_by_age.items() if age >= 12)
    assert card.event.size - sum(card.growth) == earlier >= 0
