"""Groups of copies against labelled ones."""

from __future__ import annotations

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.dedup.verdict import Policy
from aggregator.domain import Article
from aggregator.offline.evaluation.clusters import compare_partitions, evaluate, format_table
from aggregator.offline.evaluation.near_duplicates import LabeledArticle
from tests.support.factories import edited, story

ANALYSER = Analyzer({"xx": HashedModel()})


def gold(label_of: str = "story {s}") -> list[LabeledArticle]:
    """Six stories with three edited copies each."""
    return [
        LabeledArticle(
            Article(id=f"{s}-{c}", text=edited(story(s), c, changes=c + 1), lang="en"), label_of.format(s=s)
        )
        for s in range(6)
        for c in range(3)
    ]


async def test_perfect_groups() -> None:
    """Every measure is 1 in every order."""
    (row,) = await evaluate(gold(), ANALYSER, policy=Policy(), orders=2)

    assert row.clusters == 6
    assert [one.groups for one in row.orders] == [6, 6]
    assert row.lowest("adjusted_rand") == row.lowest("b_cubed_f1") == pytest.approx(1.0)
    assert row.lowest("v_measure") == pytest.approx(1.0)
    assert "lowest" in format_table([row])


async def test_one_label_for_all_is_not_what_was_found() -> None:
    """Right groups that the labels lump together: complete no longer, homogeneous still."""
    (row,) = await evaluate(gold("everything"), ANALYSER, policy=Policy())

    assert row.mean("homogeneity") == 1.0
    assert row.mean("completeness") == pytest.approx(0.0, abs=1e-9)
    assert row.as_json()["adjusted_rand"] < 0.1


async def test_overlapping_labels_are_merged_beside() -> None:
    """Files with the known overlapping labels are given under both labellings."""
    labelled = [
        LabeledArticle(g.article, "Drink" if g.article.id == "0-1" else "Caffeine") for g in gold()[:3]
    ]
    given, merged, bound = await evaluate(labelled, ANALYSER, policy=Policy())

    assert given.mean("b_cubed_f1") < merged.mean("b_cubed_f1") == 1.0
    assert bound.labels == "labels themselves"
    assert bound.mean("b_cubed_precision") == 1.0 > bound.mean("b_cubed_recall")


def test_agreement_of_a_split_group() -> None:
    """Two of four apart: precision stays whole, recall falls to a half."""
    found = compare_partitions(["a", "a", "a", "a"], ["1", "1", "2", "2"])

    assert (found.b_cubed_precision, found.b_cubed_recall) == (1.0, 0.5)
