"""Conditions, age, diversity and the interests of a reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from aggregator.domain import NO_SKETCH, ArticleRecord, article_number_at
from aggregator.queries.ranking import (
    DEFAULT_OPTIONS,
    READING_HALF_LIFE_MS,
    RelatedOptions,
    choose,
    interests_of,
)
from aggregator.queries.reasons import STORY_DAYS
from aggregator.queries.relatedness import ScoredArticle, related_evidence
from aggregator.time_units import DAY_MS, HOUR_MS

NOW_MS = 1_790_000_000_000


def article(id_: str, *, age_ms: int = 0, source: str = "", terms: Sequence[str] = ()) -> ArticleRecord:
    """An English article of this age with equally heavy terms."""
    number = article_number_at(NOW_MS - age_ms, 0)
    weighted = tuple((term, len(terms) ** -0.5) for term in terms)
    return ArticleRecord(
        number=number, first_version=number, id=id_, space="en.0", lang="en", fingerprint=0,
        text_hash=bytes(16), short=False, title=id_, url="", source=source,
        published_at_ms=NOW_MS - age_ms, sketch=NO_SKETCH, terms=weighted,
    )  # fmt: skip


def scored(record: ArticleRecord, probability: float = 0.8, group: int | None = None) -> ScoredArticle:
    """A candidate, by default the only article of its group."""
    evidence = related_evidence(record, record, 0.5, 20)
    return ScoredArticle(record, group if group is not None else hash(record.id), evidence, probability)


def aged(probability: float, days: float) -> ScoredArticle:
    """A candidate so many days from the question."""
    found = scored(article(f"{probability} {days}"), probability)
    return replace(found, evidence=replace(found.evidence, days=days))


def order(found: Sequence[ScoredArticle], options: RelatedOptions, question_age_ms: int = 0) -> str:
    """Ids in the order in which they are answered."""
    question_ms = NOW_MS - question_age_ms
    ranked = [(options.log_weight(each, question_ms, NOW_MS), each) for each in found]
    chosen = choose([ranked], [1.0], options.limit, options.diversity or 0.0)
    return " ".join(each.record.id for each in chosen)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (RelatedOptions(), True),
        (RelatedOptions(since_ms=NOW_MS - DAY_MS, until_ms=NOW_MS), True),
        (RelatedOptions(since_ms=NOW_MS - HOUR_MS + 1), False),
        (RelatedOptions(until_ms=NOW_MS - HOUR_MS), False),
        (RelatedOptions(sources=("post", "gazette")), True),
        (RelatedOptions(sources=("gazette",)), False),
        (RelatedOptions(exclude_sources=("gazette", "post")), False),
        (RelatedOptions(lang="de"), False),
    ],
)
def test_every_condition_must_hold(options: RelatedOptions, expected: bool) -> None:
    """Of source in any case, time from and before, id and language."""
    assert options.matches(article("a", age_ms=HOUR_MS, source=" POST ")) == expected


def test_newer_articles_come_first_among_equally_related_ones() -> None:
    """A half-life weighs as much as half the probability; without one, age does not count."""
    story = [scored(article(f"h{i}", age_ms=i * HOUR_MS), 0.8 + i / 60) for i in (3, 1, 2, 9)]
    assert order(story, RelatedOptions(half_life_ms=2 * DAY_MS)) == "h1 h2 h3 h9"
    found = [
        scored(article("week", age_ms=7 * DAY_MS), 0.9),
        scored(article("day", age_ms=DAY_MS), 0.9),
        scored(article("hour", age_ms=HOUR_MS), 0.6),
        scored(article("years", age_ms=3000 * DAY_MS), 0.99),
        scored(article("ages", age_ms=3001 * DAY_MS), 0.99),
    ]

    assert order(found, RelatedOptions(half_life_ms=2 * DAY_MS)) == "hour day week years ages"
    assert order(found, RelatedOptions(half_life_ms=HOUR_MS)) == "hour day week years ages"
    assert order(found, RelatedOptions(half_life_ms=0)) == "years ages day week hour"


def test_by_default_age_before_the_question_counts() -> None:
    """Reports of the same days lead, and later ones are no worse than those of the day."""
    found = [scored(article(str(days), age_ms=days * DAY_MS), 0.8) for days in (0, 95, 100, 105, 400)]

    assert order(found, DEFAULT_OPTIONS, 100 * DAY_MS) == "0 95 100 105 400"
    found[0] = scored(article("0"), 0.7)
    assert order(found, DEFAULT_OPTIONS, 100 * DAY_MS) == "95 100 0 105 400"


def test_diversity_moves_back_what_resembles_better_answers() -> None:
    """And leaves nothing out."""
    flood = [scored(article(f"flood{i}", terms=("flood", "river", "dam")), 0.9 - i / 100) for i in range(3)]
    other = scored(article("strike", terms=("rail", "strike", "union")), 0.6)

    assert order([*flood, other], RelatedOptions(diversity=0.0)) == "flood0 flood1 flood2 strike"
    assert order([*flood, other], RelatedOptions(diversity=0.5)) == "flood0 strike flood1 flood2"
    assert order([*flood, other], RelatedOptions(diversity=1.0, limit=2)) == "flood0 strike"


def test_every_interest_gets_a_place_and_the_heaviest_get_most() -> None:
    """Also if another has better articles; what two interests share is answered once."""
    good = [(-0.1 * i, scored(article(f"a{i}"), group=i)) for i in range(9)]
    poor = [(-9.0, scored(article("b0"), group=20)), (-0.5, scored(article("a1"), group=1))]
    lone = [(-20.0, scored(article("c0"), group=30))]
    chosen = choose([good, poor, lone], [6.0, 2.0, 1.0], 6, 0.0)

    assert " ".join(each.record.id for each in chosen) == "a0 a1 c0 a2 a3 a4"
    assert choose([], [], 10, 0.3) == []


def test_by_default_an_article_has_to_be_the_likelier_the_older_it_is() -> None:
    """Six days from the question it needs twice the odds of the minimum.

    A half-life, dates or a minimum of the site's own leave it in.
    """
    days = 8 * STORY_DAYS
    same_story, later = aged(0.8, STORY_DAYS), aged(0.88, 2 * STORY_DAYS)
    likely, unlikely = aged(0.97, days), aged(0.969, days)  # odds of 4 times 8

    assert RelatedOptions().listed([same_story, later, likely, unlikely], 0.8) == [likely, same_story]
    assert RelatedOptions().listed([later, unlikely], 0.75) == [unlikely, later]
    assert RelatedOptions().listed([unlikely], 0.0) == [unlikely]
    assert RelatedOptions().listed([likely], 1.0) == []
    for options in (
        RelatedOptions(half_life_ms=DAY_MS),
        RelatedOptions(since_ms=0),
        RelatedOptions(until_ms=NOW_MS),
        RelatedOptions(min_score=0.8),
    ):
        assert options.listed([likely, unlikely], 0.8) == [likely, unlikely]


def test_interests_cover_what_was_read() -> None:
    """The largest group first, by what its typical article covers anew; then what is left alone."""
    same, other, alone = [0.6, 0.8, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]
    vectors = np.array([[0.0, 1.0, 0.0, 0.0], same, [1.0, 0.0, 0.0, 0.0], other, other, alone, [0.0] * 4])
    half_lives = [0, 0, 0, 1, 2, 0, 1]
    times = [NOW_MS - READING_HALF_LIFE_MS * each for each in half_lives]
    found = interests_of(vectors, times)

    assert [articles for articles, _ in found] == [[1, 0, 2], [5], [3, 4], [6]]
    assert [weight for _, weight in found] == pytest.approx([2.4, 1.0, 0.75, 0.0])
    assert interests_of(np.zeros((0, 0)), []) == []
