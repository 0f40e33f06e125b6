"""Distinct values of an array."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.index.codec.distinct import distinct


@pytest.mark.parametrize("dtype", [np.uint64, np.int64, np.uint32])
@given(values=st.lists(st.integers(0, 2**31), max_size=30), repeats=st.integers(1, 3))
def test_each_value_is_kept_once_in_order(dtype: type, values: list[int], repeats: int) -> None:
    """As ``sorted(set(...))`` gives, with the type of the array."""
    found: np.ndarray = distinct(np.array(values * repeats, dtype))

    assert found.tolist() == sorted(set(values))
    assert found.dtype == dtype
