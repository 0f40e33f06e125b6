"""Alternatives to the headline of an event."""

from __future__ import annotations

from aggregator.domain import NO_SKETCH, ArticleRecord
from aggregator.events.headline_alternatives import MAX_ALTERNATIVES, headline_alternatives

CURRENT = "Harbour bridge collapses in Wenlow"


def article(title: str) -> ArticleRecord:
    """An article whose terms are the words of its headline."""
    terms = tuple((word, 1.0) for word in title.lower().split())
    return ArticleRecord(
        1, 1, title, "en.1", "en", 0, b"", True, title, "", "one.example", 5, NO_SKETCH, terms
    )


def test_alternatives_differ_from_the_headline_and_from_each_other() -> None:
    """One of two headlines that say the same, and none that repeats the present one."""
    found = headline_alternatives(
        [
            article(title)
            for title in (
                CURRENT,
                "UPDATE 2-Harbour bridge in Wenlow collapses",
                "Will the harbour bridge of Wenlow be built again next year?",
                "Storm destroys bridge, ferries carry commuters across harbour",
                "Storm destroys harbour bridge, ferries carry commuters across",
                "Engineers had warned of rust in cables of bridge",
                "",
            )
        ],
        CURRENT,
    )

    assert sorted(a.title.split()[0] for a in found) == ["Engineers", "Storm"]


def test_an_event_may_have_none() -> None:
    """All headlines say the same, or no article is stored any more."""
    assert headline_alternatives([article(CURRENT)] * 5, CURRENT) == []
    assert headline_alternatives([], CURRENT) == []


def test_their_number_is_limited() -> None:
    """An editor compares a few."""
    titles = [f"Wordone{n} wordtwo{n} wordthree{n} wordfour{n}" for n in range(9)]
    assert len(headline_alternatives([article(t) for t in titles], CURRENT)) == MAX_ALTERNATIVES
