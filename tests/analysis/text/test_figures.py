"""Figures of a text, each in one spelling."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.text.figures import figures
from tests.analysis.text.any_text import ANY_TEXT, DIFFICULT_TEXT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,200 and 1200", ["1200", "1200"]),
        ("3.5 3.50 3.0 007 0.25 0", ["3.5", "3.5", "3", "7", "0.25", "0"]),
        ("１，２００ １２．5 ١٢٣", ["1200", "12.5", "123"]),
        ("1\u200b4\u00ad,000 of 3\ufeff.5", ["14000", "3.5"]),
        ("1.200.000 12,345,67 1,2", ["1200000", "12345", "67", "1", "2"]),
        ("At 9:05 on 12/31/2019, $5m", ["9", "5", "12", "31", "2019", "5"]),
        ("COVID-19 killed 1,234.50.", ["19", "1234.5"]),
        ("共12人受伤，30%", ["12", "30"]),
        ("none", []),
        ("9" * 5000, ["9" * 5000]),
    ],
)
def test_figures(text: str, expected: list[str]) -> None:
    """Numbers are returned in order, each in one spelling."""
    assert figures(text) == expected


@given(ANY_TEXT | DIFFICULT_TEXT | st.text("0123456789.,", max_size=60))
def test_figures_are_plain_numbers(text: str) -> None:
    """For any text a figure is digits with at most one point, without redundant zeros."""
    assert all(re.fullmatch(r"(0|[1-9]\d*)(\.\d*[1-9])?", figure, re.ASCII) for figure in figures(text))


@given(st.lists(st.integers(min_value=0, max_value=10**12)))
def test_digits_of_other_scripts_give_the_same_figures(numbers: list[int]) -> None:
    """Also with thousands separated; copies of a report in two spellings have equal figures."""
    expected = [str(number) for number in numbers]
    arabic = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
    full_width = str.maketrans("0123456789,", "０１２３４５６７８９，")

    assert figures("; ".join(expected)) == expected
    assert figures("; ".join(expected).translate(arabic)) == expected
    assert figures("; ".join(f"{number:,}" for number in numbers)) == expected
    assert figures("; ".join(f"{number:,}" for number in numbers).translate(full_width)) == expected
