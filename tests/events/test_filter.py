"""The filter of events: what is not asked for admits everything, what is asked for must all hold."""

from dataclasses import replace

import pytest

from aggregator.events.filter import EventFilter
from tests.support.factories import event

STORM = replace(
    event("e1", "Storm closes the Harbour Bridge", ["a", "b"]),
    size=17,
    sources=("Harbour Post", "two.example"),
    languages=("en", "zh"),
    terms=("storm", "bridg", "ferri"),
)


@pytest.mark.parametrize(
    ("query", "admitted"),
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
def test_what_is_asked_for_must_hold(query, admitted):
    """Each part alone, and together."""
    assert query.matches(STORM) is admitted


def test_words_of_other_languages_are_found_in_theirs():
    """Terms are those of the event's languages, so a search is cut into words as they were."""
    chinese = replace(STORM, title="港口大桥因暴风雨受损关闭", terms=("暴风雨", "大桥"), languages=("zh",))

    assert EventFilter(term="大桥").matches(chinese)
    assert EventFilter(term="暴风雨 大桥").matches(chinese)
    assert not EventFilter(term="地震").matches(chinese)


def test_an_empty_query_says_so():
    """Defaults ask for nothing."""
    assert EventFilter().is_empty
    assert not EventFilter(min_size=1).is_empty


def test_a_saved_query_asks_for_what_was_saved():
    """Blanks around a value, as older saved ones may have, ask for nothing more."""
    parsed = EventFilter.parse("term=+ferries+&source=harbour+post&min_size=17&status=breaking&lang=en")

    assert parsed == EventFilter("ferries", "harbour post", "en", 17, "breaking")
