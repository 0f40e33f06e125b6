"""Orders and filters of the front page as links."""

from __future__ import annotations

from aggregator.analysis.source import Outlet, name_outlets
from aggregator.http.pages.cards import Card, event_lists, make_card
from aggregator.http.pages.front import FrontQuery, desk_fields, filter_query, front_url, given_values, view
from tests.support.factories import EVENT_MS, event


def cards() -> list[Card]:
    """Two events of 120 and 30 items, in two languages, with one source in common."""
    events = [
        event("e1", "Bridge", ["a"] * 9, size=120, languages=("en",), sources=("one.example", "two.example")),
        event("e2", "Ferry", size=30, languages=("en", "de"), sources=("one.example",), status="closed"),
    ]
    return [make_card(e, EVENT_MS) for e in events]


def choices(query: FrontQuery, label: str) -> list[tuple[str, str, int | None]]:
    """(label, address, count) of the choices of one facet."""
    found = [choices for name, choices in view(query, cards(), {}).facets.items() if name == label]
    return [(c.label, c.url, c.count) for c in found[0]] if found else []


def test_a_view_without_filter_has_a_short_address() -> None:
    """Defaults are left out, also the default order."""
    assert given_values(FrontQuery()) == {}
    assert front_url({"sort": "surprise"}) == "/"
    assert front_url({"sort": "size", "lang": "de"}) == front_url({"lang": "de", "sort": "size"})
    plain = view(FrontQuery(), cards(), {})
    assert (plain.chips, plain.clear_url) == ((), "/")
    assert [c.label for c in plain.orders if c.is_current] == ["Most urgent"]


def test_a_filter_becomes_the_form_of_a_desk() -> None:
    """Named after what it filters by; nothing for what a desk cannot filter by."""
    fields = desk_fields(FrontQuery(term="harbour bridge", lang="de", min_size=20, severity="growing"))
    assert (fields["name"], fields["terms"], fields["languages"], fields["min_size"]) == (
        "harbour bridge, de", "harbour bridge", "de", "20",
    )  # fmt: skip
    assert desk_fields(FrontQuery(min_size=50))["name"] == "At least 50 items"
    assert desk_fields(FrontQuery(severity="growing")) == {} == desk_fields(FrontQuery(watch="w", lang="de"))


def test_every_filter_is_a_chip_that_removes_it() -> None:
    """Order and kiosk mode stay; the feed has the filter without them."""
    query = FrontQuery(
        term="harbour bridge", lang="de", min_size=20, severity="growing", sort="size", kiosk=True
    )
    found = view(query, cards(), {})

    assert [(c.label, c.url) for c in found.chips] == [
        ("Term: harbour bridge", "/?lang=de&min_size=20&sort=size&severity=growing&kiosk=1"),
        ("Language: de", "/?term=harbour+bridge&min_size=20&sort=size&severity=growing&kiosk=1"),
        ("At least 20 items", "/?term=harbour+bridge&lang=de&sort=size&severity=growing&kiosk=1"),
        ("State: Growing fast", "/?term=harbour+bridge&lang=de&min_size=20&sort=size&kiosk=1"),
    ]
    assert found.clear_url == "/?sort=size&kiosk=1"
    assert filter_query(query) == "?term=harbour+bridge&lang=de&min_size=20"
    assert found.kept == (("lang", "de"), ("sort", "size"), ("severity", "growing"), ("kiosk", "1"))


def test_choices_come_from_the_events_shown() -> None:
    """The most frequent first, with the number of events; sizes that would leave some out and keep some."""
    query = FrontQuery()

    assert choices(query, "Language") == [("en", "/?lang=en", 2), ("de", "/?lang=de", 1)]
    assert choices(query, "Source")[0] == ("one.example", "/?source=one.example", 2)
    assert choices(query, "At least") == [
        ("50 items", "/?min_size=50", 1),
        ("100 items", "/?min_size=100", 1),
    ]
    assert choices(query, "State") == [
        ("Breaking", "/?severity=breaking", 1),
        ("Ended", "/?severity=ended", 1),
    ]


def test_a_filter_in_force_has_no_further_choices() -> None:
    """Its chip is removed first; a larger minimum size replaces the present one."""
    query = FrontQuery(lang="en", source="one.example", min_size=50, severity="ended")

    assert list(view(query, cards(), {}).facets) == ["At least"]
    assert [label for label, _, _ in choices(query, "At least")] == ["100 items"]


def test_events_are_filtered_by_our_coverage() -> None:
    """With own sources only: a choice for each that occurs, and a chip for the one in force."""
    ours, others = event("e1", "Storm"), event("e2", "Wind", sources=("one.example",))
    plain = event_lists([ours, others], EVENT_MS)
    name_outlets([Outlet("two.example", own=True)])
    lists = event_lists([ours, others], EVENT_MS)
    only = event_lists([ours, others], EVENT_MS, only_ours=False)
    name_outlets(())
    facets = view(FrontQuery(), lists["open"], {}).facets

    assert [(c.label, c.url, c.count) for c in facets["Our coverage"]] == [
        ("Published by us", "/?ours=yes", 1),
        ("Not published by us yet", "/?ours=no", 1),
    ]
    assert [card.event.id for card in only["open"]] == ["e2"]
    assert [c.label for c in view(FrontQuery(ours="no"), only["open"], {}).chips] == [
        "Not published by us yet"
    ]
    assert "Our coverage" not in view(FrontQuery(), plain["open"], {}).facets
