"""Titles, URLs and counts of events as text."""

from __future__ import annotations

from dataclasses import replace

from aggregator.events.event import EditorAction, event_url, newest_figures, size_summary
from tests.support.factories import event


def test_ids_are_escaped_in_urls() -> None:
    """Ids are hexadecimal today; a URL must be valid for any id."""
    assert event_url(event("a/b?c", "t"), "https://news.example") == ("https://news.example/events/a%2Fb%3Fc")


def test_the_number_of_outlets_is_singular_or_plural() -> None:
    """Singular "1 outlet", plural "2 outlets"."""
    one_outlet = replace(event("e", "t"), size=16, sources=("one.example",))

    assert size_summary(one_outlet) == "16 items from 1 outlet"
    assert size_summary(replace(one_outlet, sources=("a", "b"))) == "16 items from 2 outlets"


def test_an_action_is_in_force_until_undone_and_again_when_that_was_undone() -> None:
    """So it is with any number of undoings."""
    steps = ((1, None), (2, 1), (3, 2), (4, 3))
    actions = [EditorAction("undo" if of else "mute", "Ann", 5, "e", of=of, id=id_) for id_, of in steps]

    in_force = [[a.id for a in event("e", "t", actions=actions[:n]).in_force] for n in range(5)]
    assert in_force == [[], [1], [2], [1, 3], [2, 4]]


def test_the_headline_of_an_event_may_be_outdated() -> None:
    """By the figures of the event, in its language."""
    storm = event("e", "Storm kills 3", tolls=((1, "dead", 1), (2, "dead", 3)), languages=("en",))

    assert newest_figures(storm) == ""
    assert newest_figures(replace(storm, title="Storm kills 1 sailor")) == "2+ outlets: 3 dead"
