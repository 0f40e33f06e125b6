"""Key developments of a storyline by day."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aggregator.domain import NO_SKETCH, ArticleRecord, article_number_at
from aggregator.events.developments import MAX_STORY_ARTICLES, developments, sample_items
from aggregator.time_units import DAY_MS, HOUR_MS
from tests.support.factories import event

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
