"""Titles, URLs and counts of events as text."""

from __future__ import annotations

from dataclasses import replace

from aggregator.events.event import event_url, size_summary
from tests.support.factories import event


def test_ids_are_escaped_in_urls() -> None:
    """Ids are hexadecimal today; a URL must be valid for any id."""
    assert event_url(event("a/b?c", "t"), "https://news.example") == ("https://news.example/events/a%2Fb%3Fc")


def test_the_number_of_outlets_is_singular_or_plural() -> None:
    """Singular "1 outlet", plural "2 outlets"."""
    one_outlet = replace(event("e", "t"), size=16, sources=("one.example",))

    assert size_summary(one_outlet) == "16 items from 1 outlet"
    assert size_summary(replace(one_outlet, sources=("a", "b"))) == "16 items from 2 outlets"
