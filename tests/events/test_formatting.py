"""How feeds and calls write times, addresses and counts."""

from dataclasses import replace

from aggregator.events import formatting
from tests.support.factories import event


def test_a_time_is_always_to_the_millisecond():
    """So that times compare as text."""
    assert formatting.format_rfc3339(0) == "1970-01-01T00:00:00.000Z"
    assert formatting.format_rfc3339(1_300_000_000_007) == "2011-03-13T07:06:40.007Z"


def test_an_id_cannot_leave_its_place_in_the_address():
    """Ids are hexadecimal today; an address must hold whatever they become."""
    assert formatting.event_url(event("a/b?c", "t"), "https://news.example") == (
        "https://news.example/events/a%2Fb%3Fc"
    )


def test_one_outlet_is_not_several():
    """As people read it."""
    told = replace(event("e", "t"), size=16, sources=("one.example",))

    assert formatting.size_summary(told) == "16 items from 1 outlet"
    assert formatting.size_summary(replace(told, sources=("a", "b"))) == "16 items from 2 outlets"
