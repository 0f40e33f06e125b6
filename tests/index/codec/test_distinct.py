"""Distinct values of an array, and membership in one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.index.codec.distinct import distinct, is_among


@pytest.mark.parametrize("dtype", [np.uint64, np.int64, np.uint32])
@given(values=st.lists(st.integers(0, 2**31), max_size=30), repeats=st.integers(1, 3))
def test_each_value_is_kept_once_in_order(dtype: type, values: list[int], repeats: int) -> None:
    """As ``sorted(set(...))`` gives, with the type of the array."""
    found: np.ndarray = distinct(np.array(values * repeats, dtype))

    assert found.tolist() == sorted(set(values))
    assert found.dtype == dtype


@given(values=st.lists(st.integers(0, 9)), others=st.lists(st.integers(0, 9)))
def test_membership_with_repeated_values(values: list[int], others: list[int]) -> None:
    """As ``in`` gives, also for values that occur several times."""
    found = is_among(np.array(values, np.uint64), np.array(sorted(others), np.uint64))

    assert found.tolist() == [value in others for value in values]
