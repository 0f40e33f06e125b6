"""Options of ``aggregator evaluate``."""

from __future__ import annotations

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.cli.common_options import positive_int
from aggregator_lab.cli.evaluate_options import comma_separated


@given(st.lists(st.integers(min_value=1), min_size=1))
def test_lists_have_the_values_in_order(values: list[int]) -> None:
    """One value is a list too."""
    assert comma_separated(positive_int)(",".join(map(str, values))) == values


@pytest.mark.parametrize("text", ["", "1,", "1,x", "1;2"])
def test_a_list_with_an_unusable_value_is_rejected(text: str) -> None:
    """The whole list is quoted."""
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        comma_separated(int)(text)

    assert str(caught.value) == f"{text!r} is not a list of numbers such as 1,2,3"
