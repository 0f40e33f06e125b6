"""The event filter: every condition that is set must hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aggregator.events.filter import EventFilter, OwnSources
from tests.support.factories import event

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
