"""Published measures against values worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.evaluation.measures import adjusted_rand, b_cubed

labels = st.lists(st.integers(0, 4), min_size=2, max_size=30)


def test_b_cubed_by_hand() -> None:
    """Three of one label, one of another, the first pair found, the rest put together."""
    precision, recall, f1 = b_cubed(["a", "a", "a", "b"], [1, 1, 2, 2])

    assert (precision, recall) == (pytest.approx(0.75), pytest.approx((2 / 3 + 2 / 3 + 1 / 3 + 1) / 4))
    assert f1 == pytest.approx(2 * precision * recall / (precision + recall))


def test_adjusted_rand_by_hand() -> None:
    """The example of Hubert & Arabie's formula with one pair of six right."""
    assert adjusted_rand(["a", "a", "b", "b"], [1, 2, 2, 2]) == pytest.approx((1 - 1) / (2.5 - 1))


@given(labels)
def test_equal_partitions(truth: list[int]) -> None:
    """Renaming labels changes nothing; a perfect result scores one."""
    renamed = [f"group {t}" for t in truth]

    assert b_cubed(truth, renamed)[2] == pytest.approx(1)
    assert adjusted_rand(truth, renamed) == pytest.approx(1)
