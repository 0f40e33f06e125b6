"""The published rule of online shingling: five kinds of articles, the choice of the original, the grid.

The kinds are those that Table 1 of the paper distinguishes as far as they are on record here (an original, an
edited copy, an article with a shared passage, a copy of a copy, an unrelated article); its texts are not.
"""

from __future__ import annotations

import numpy as np
import pytest

from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator_lab.evaluation.online_protocol import DecisionCounts, count_decisions
from aggregator_lab.evaluation.published_shingling import (
    TABLE_4,
    Nearest,
    evaluate,
    format_table,
    nearest_earlier,
    settings_grid,
    sketch,
)
from aggregator_lab.labeled import LabeledArticle, originals_first
from tests.lab.evaluation.test_shingling import TEXTS
from tests.support.factories import edited, story


def nearest(k: int = 1, p: int = 64) -> dict[str, Nearest]:
    """Most likely original of each of the five articles, by id."""
    sketches = {id_: sketch(text, 3, k, p, 1.0) for id_, text in TEXTS.items()}
    return {item.id: item for item in nearest_earlier(list(TEXTS), sketches)}


@pytest.mark.parametrize("k", [1, 3])
def test_five_kinds_of_articles(k: int) -> None:
    """Copies are found, the copy of a copy by its nearest version; a shared passage stays under t."""
    decisions = {id_: item.decide(t=16 * k) for id_, item in nearest(k).items()}

    assert [decision.original for decision in decisions.values()] == [None, "original", None, "edited", None]


def test_outcomes_of_table_1() -> None:
    """True positives, a false positive and a false negative are counted as the protocol defines them."""
    labels = {"original": "bridge", "edited": "bridge", "excerpt": "ferries", "copy of copy": "bridge",
              "unrelated": "pumpkin"}  # fmt: skip

    def counts(t: int) -> DecisionCounts:
        return count_decisions(((id_, item.decide(t).original) for id_, item in nearest().items()), labels)

    assert counts(16) == DecisionCounts(true_positive=2, false_positive=0, false_negative=0)
    assert counts(0) == DecisionCounts(true_positive=2, false_positive=1, false_negative=0)
    assert counts(63) == DecisionCounts(true_positive=0, false_positive=0, false_negative=2)


def test_more_than_t_collisions() -> None:
    """Exactly t collisions are not enough."""
    item = Nearest("b", "a", collisions=5, samples=8)

    assert item.decide(4).original == "a"
    assert item.decide(5).original is None


def test_the_highest_collision_count_wins_and_then_the_earliest() -> None:
    """The earliest of equal candidates is the original."""
    values = {"a": [1, 2, 9], "b": [1, 2, 3], "c": [1, 2, 3], "d": [1, 2, 3]}
    sketches = {id_: np.array(hashes, np.uint64) for id_, hashes in values.items()}
    found = nearest_earlier(list(values), sketches)

    assert [(item.original, item.collisions) for item in found] == [("", 0), ("a", 2), ("b", 3), ("b", 3)]


def test_sketch_size_and_leading_fraction() -> None:
    """The k samples of each of p permutations; the second half of a text does not count at f = 0.5."""
    opening, end, other = story(1, 100), story(2, 100), story(3, 100)
    halves = [sketch(f"{opening} {rest}", 3, 2, 16, 0.5) for rest in (end, other)]

    assert len(halves[0]) == 32
    assert np.array_equal(halves[0], halves[1])
    assert not np.array_equal(halves[0], sketch(f"{opening} {end}", 3, 2, 16, 1.0))
    assert not len(sketch("", 3, 2, 16, 1.0))


def test_chinese_shingles_are_runs_of_words() -> None:
    """Two texts with common characters, but no common run of three words, have no common sample."""
    first, second = "国家主席会见代表团", "国家主席会谈代表团"
    of_words, of_characters = (
        set(sketch(first, 3, 1, 16, 1.0, lang)) & set(sketch(second, 3, 1, 16, 1.0, lang))
        for lang in ("zh", "en")
    )

    assert not of_words
    assert of_characters


def test_originals_are_decided_first() -> None:
    """Marked articles precede all others, in every order."""
    gold = [LabeledArticle(Article(id=str(i), text="x"), "a", original=i > 3) for i in range(6)]

    assert {item.article.id for item in originals_first(gold, seed=3)[:2]} == {"4", "5"}


def test_grid_and_cross_validated_row() -> None:
    """A row per setting and labeling, one left-out row, and the names of Table 4."""
    gold = [
        LabeledArticle(Article(id=f"{s}-{c}", text=edited(story(s), c, changes=c + 1)), f"story {s}", c == 0)
        for s in range(6)
        for c in range(3)
    ]
    settings = settings_grid([3], [1], [16], [1, 16, 15], [1.0])
    rows = evaluate(gold, settings, orders=2)

    assert [row.setting for row in rows] == [*settings, None]
    assert [row.held_out for row in rows] == [False, False, True]
    assert rows[-1].f1 == rows[0].f1 == 1.0
    assert rows[1].recall < 1.0
    assert all(name in format_table(rows) for name, _ in TABLE_4)


@pytest.mark.parametrize(("n", "f", "message"), [([6], [1.0], "at most 5 words"), ([3], [0.0], "above 0")])
def test_values_out_of_range_are_refused(n: list[int], f: list[float], message: str) -> None:
    """The error names the limit."""
    with pytest.raises(InvalidInput, match=message):
        settings_grid(n, [1], [8], [1], f)
