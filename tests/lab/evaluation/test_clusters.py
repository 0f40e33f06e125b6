"""Agreement of duplicate groups with labeled ones."""

from __future__ import annotations

from statistics import mean

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.dedup.policy import Policy
from aggregator.domain import Article
from aggregator_lab.evaluation.near_duplicates import compare_partitions, evaluate_groups, format_groups_table
from aggregator_lab.labeled import SPOTSIGS_LABEL_MERGES, LabeledArticle
from tests.support.factories import edited, story

ANALYZER = Analyzer({"xx": HashedModel()})


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
    (row,) = await evaluate_groups(gold(), ANALYZER, policy=Policy(), orders=2)

    assert row.clusters == 6
    assert [order.groups for order in row.orders] == [6, 6]
    assert min(row.values("adjusted_rand")) == min(row.values("b_cubed_f1")) == pytest.approx(1.0)
    assert min(row.values("v_measure")) == pytest.approx(1.0)
    assert "lowest" in format_groups_table([row])


async def test_one_label_for_all_articles_lowers_completeness() -> None:
    """The groups stay homogeneous when all stories have the same label."""
    (row,) = await evaluate_groups(gold("everything"), ANALYZER, policy=Policy())

    assert mean(row.values("homogeneity")) == 1.0
    assert mean(row.values("completeness")) == pytest.approx(0.0, abs=1e-9)
    assert row.as_json()["adjusted_rand"] < 0.1


async def test_overlapping_labels_are_merged_in_a_second_row() -> None:
    """Files with all labels of ``SPOTSIGS_LABEL_MERGES`` have a row per labeling, files with one do not."""
    labeled = [
        LabeledArticle(g.article, "Drink" if g.article.id == "0-1" else "Caffeine") for g in gold()[:3]
    ]
    targets = [*SPOTSIGS_LABEL_MERGES.values()]
    others = [
        LabeledArticle(Article(label, text=story(20 + targets.index(target))), label)
        for label, target in SPOTSIGS_LABEL_MERGES.items()
        if label != "Drink"
    ]
    given, merged = await evaluate_groups([*labeled, *others], ANALYZER, policy=Policy())

    assert mean(given.values("b_cubed_f1")) < mean(merged.values("b_cubed_f1")) == 1.0
    assert len(await evaluate_groups(labeled, ANALYZER, policy=Policy())) == 1


def test_agreement_of_a_split_group() -> None:
    """One group of four split in two: precision stays 1, recall falls to 0.5."""
    agreement = compare_partitions(["a", "a", "a", "a"], ["1", "1", "2", "2"])

    assert (agreement.b_cubed_precision, agreement.b_cubed_recall) == (1.0, 0.5)
