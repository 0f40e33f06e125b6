"""Published measures against values computed by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator_lab.evaluation.metrics import (
    adjusted_rand,
    b_cubed,
    ndcg_at,
    precision_recall_f1,
    recall_at,
    roc_auc,
    v_measure,
)

labels = st.lists(st.integers(0, 4), min_size=2, max_size=30)


def test_precision_and_recall_by_hand() -> None:
    """Three of five predictions are correct, of six relevant items; and the cases without any."""
    assert precision_recall_f1(3, 5, 6) == pytest.approx((0.6, 0.5, 6 / 11))
    assert precision_recall_f1(0, 0, 6) == (1.0, 0.0, 0.0)
    assert precision_recall_f1(0, 5, 0) == (0.0, 1.0, 0.0)
    assert precision_recall_f1(0, 0, 0) == (1.0, 1.0, 1.0)


def test_b_cubed_by_hand() -> None:
    """Labels aaab, groups 1122."""
    precision, recall, f1 = b_cubed(["a", "a", "a", "b"], [1, 1, 2, 2])

    assert precision == pytest.approx(0.75)
    assert recall == pytest.approx((2 / 3 + 2 / 3 + 1 / 3 + 1) / 4)
    assert f1 == pytest.approx(2 * precision * recall / (precision + recall))


def test_adjusted_rand_by_hand() -> None:
    """Hubert & Arabie's formula with one correct pair of six."""
    assert adjusted_rand(["a", "a", "b", "b"], [1, 2, 2, 2]) == pytest.approx((1 - 1) / (2.5 - 1))


@given(labels)
def test_equal_partitions(truth: list[int]) -> None:
    """Renaming labels changes nothing; equal partitions score 1."""
    renamed = [f"group {t}" for t in truth]

    assert b_cubed(truth, renamed)[2] == pytest.approx(1)
    assert adjusted_rand(truth, renamed) == pytest.approx(1)


def test_v_measure_by_hand() -> None:
    """Homogeneous groups, each label split in two: completeness is 1 bit of 2."""
    assert v_measure("aabb", "1234") == pytest.approx((1.0, 0.5, 2 / 3))
    assert v_measure("abcd", "xxxx") == pytest.approx((0.0, 1.0, 0.0))
    assert v_measure("", "") == (1.0, 1.0, 1.0)


def test_area_under_the_roc_curve() -> None:
    """Correct order 1, reversed order 0, ties 0.5, one kind only 0.5."""
    assert roc_auc([False, True], [0.1, 0.9]) == 1.0
    assert roc_auc([True, False], [0.1, 0.9]) == 0.0
    assert roc_auc([True, False, True], [0.5, 0.5, 0.5]) == 0.5
    assert roc_auc([True, True], [0.1, 0.2]) == 0.5


def test_ranking_measures() -> None:
    """Recall counts the relevant items among the first k; nDCG weighs them by rank."""
    assert recall_at(["a", "x", "b"], {"a", "b"}, 2) == 0.5
    assert recall_at(["a"], {"a", "b", "c"}, 1) == 1.0
    assert ndcg_at(["a", "b"], {"a", "b"}, 2) == 1.0
    assert ndcg_at(["x", "a"], {"a"}, 2) == pytest.approx(0.6309, abs=1e-4)
    assert recall_at([], set(), 3) == ndcg_at([], set(), 3) == 1.0
