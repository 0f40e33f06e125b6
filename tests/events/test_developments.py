"""Key developments of a storyline by day, and alternatives to the headline of an event."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aggregator.domain import NO_SKETCH, ArticleRecord, article_number_at
from aggregator.events.developments import (
    MAX_ALTERNATIVES,
    MAX_STORY_ARTICLES,
    developments,
    headline_alternatives,
    sample_items,
)
from aggregator.time_units import DAY_MS, HOUR_MS
from tests.support.factories import event

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


DAY = 20_000 * DAY_MS


def record(id_: str, at_ms: int, words: str) -> ArticleRecord:
    """A stored article with equally heavy terms, published at ``at_ms``."""
    number = article_number_at(DAY + 9 * DAY_MS)
    terms = tuple((word, 0.5) for word in words.split())
    return ArticleRecord(
        number, number, id_, "en.1", "en", 0, b"", True, words, "", "one.example", at_ms, NO_SKETCH, terms
    )


def test_each_event_has_one_headline_a_day() -> None:
    """The headline that says most of what the day's have in common, the latest first; days in order."""
    articles = {
        r.id: r
        for r in (
            record("a1", DAY + 1, "quake coast japan"),
            record("a2", DAY + 2, "quake japan market"),
            record("a3", DAY + 3, "quake japan coast tsunami"),
            record("a4", DAY + DAY_MS + 1, "rescue teams arrive"),
            record("b1", DAY + DAY_MS + 2, "reactor cooling fails"),
        )
    }
    quake = event("a", "Quake", ("a1", "a2", "a3", "a4"), detected_at_ms=DAY)
    quake = replace(quake, timeline=((DAY, 2), (DAY + HOUR_MS, 1), (DAY + DAY_MS, 1)))
    reactor = event("b", "Reactor", ("b1", "gone"), detected_at_ms=DAY + HOUR_MS)
    reactor = replace(reactor, timeline=((DAY + DAY_MS, 2), (DAY + 2 * DAY_MS, 1)))

    found = developments([quake, reactor], articles)

    assert [(d.day_ms, d.event.id, d.items, d.article.id if d.article else None) for d in found] == [
        (DAY, "a", 3, "a3"),
        (DAY + DAY_MS, "a", 1, "a4"),
        (DAY + DAY_MS, "b", 2, "b1"),
        (DAY + 2 * DAY_MS, "b", 1, None),
    ]


def test_the_articles_read_are_spread_over_all_events() -> None:
    """A long event must not hide a short one, nor its last days."""
    long = event("a", "Long", [f"a{i}" for i in range(1000)])
    short = event("b", "Short", ["b0", "b1"])

    ids = sample_items([long, short])

    assert len(ids) == MAX_STORY_ARTICLES // 2 + 2 and ids[-2:] == ["b0", "b1"]
    assert np.diff([int(id_[1:]) for id_ in ids[:-2]]).tolist() == [5] * (MAX_STORY_ARTICLES // 2 - 1)
    assert sample_items([]) == []
