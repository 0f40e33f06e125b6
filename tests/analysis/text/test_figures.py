"""Figures: one spelling, and the marks that belong to a number."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.text.figures import figures, is_marked, letter_marks, located_figures
from tests.analysis.text.any_text import ANY_TEXT, DIFFICULT_TEXT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,200 and 1200", ["1200", "1200"]),
        ("3.5 3.50 3.0 007 0.25 0", ["3.5", "3.5", "3", "7", "0.25", "0"]),
        ("１，２００ １２．5 ١٢٣", ["1200", "12.5", "123"]),
        ("1\u200b4\u00ad,000 of 3\ufeff.5", ["14000", "3.5"]),
        ("1.200.000 12,345,67 1,2", ["1200000", "12345", "67", "1", "2"]),
        ("At 9:05 on 12/31/2019, $5m", ["9", "5", "12", "31", "2019", "$5000000"]),
        ("COVID-19 killed 1,234.50.", ["19", "1234.5"]),
        ("共12人受伤，30%", ["12", "30%"]),
        ("none", []),
        ("3-1 after COVID-19 in 10-15 days", ["3", "1", "19", "10", "15"]),
        ("9" * 5000, ["9" * 5000]),
    ],
)
def test_figures(text: str, expected: list[str]) -> None:
    """Numbers are returned in order, each in one spelling."""
    assert figures(text) == expected


@given(ANY_TEXT | DIFFICULT_TEXT | st.text("0123456789.,", max_size=60))
def test_figures_are_plain_numbers(text: str) -> None:
    """For any text a figure has one number with at most one point, without redundant zeros."""
    assert all(
        re.fullmatch(r"[<>≤≥]?-?[^\d.]*(0|[1-9]\d*)(\.\d*[1-9])?%?", figure, re.ASCII)
        for figure in figures(text)
    )


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


@pytest.mark.parametrize(
    ("lang", "text", "expected"),
    [
        ("en", "+12 % -12 % \u221212% \u201312 % minus 12 percent", ["12%", "-12%", "-12%", "-12%", "-12%"]),
        ("zh", "＋５％ －５％ 零下12度 负5%，120万元", ["5%", "-5%", "-12", "-5%", "元1200000"]),
        ("en", "$5m US$5m USD 5m $5 million 5 million US dollars", ["$5000000"] * 5),
        ("en", "€1.2bn £5 A$5 -$5 $-5", ["€1200000000", "£5", "a$5", "-$5", "-$5"]),
        (
            "en",
            "<50 % >50 % \u226550 of 1,200,000 and 1 200 000",
            ["<50%", ">50%", "\u226550", "1200000", "1200000"],
        ),
        (
            "de",
            "5 Mio. Euro 1,2 Millionen 3,5 % 1.200 -12 °C",
            ["€5000000", "1200000", "3.5%", "1200", "-12"],
        ),
        ("fr", "5 millions d'euros 12,5 % 7 pour cent 1 200", ["€5000000", "12.5%", "7%", "1200"]),
        ("es", "5 mil millones de dólares, 7 por ciento", ["$5000000000", "7%"]),
        ("ru", "1,2 млн долларов, 5 миллиардов рублей, минус 12", ["$1200000", "₽5000000000", "-12"]),
        ("ar", "-٥٪ ٥-٪ ١٫٥ مليون دولار", ["-5%", "-5%", "$1500000"]),
        ("tr", "%5 -%5", ["5%", "-5%"]),
        ("hi", "−५ % ५ लाख ५ करोड़ रुपये", ["-5%", "500000", "50000000"]),
        ("ko", "5억원 500만 달러", ["₩500000000", "$5000000"]),
        ("ja", "120万円 5億ドル", ["¥1200000", "$500000000"]),
    ],
)
def test_signs_units_and_powers_of_ten_belong_to_a_figure(lang: str, text: str, expected: list[str]) -> None:
    """Each in one spelling, in any script."""
    assert figures(text, lang) == expected


def test_figures_are_located() -> None:
    """By the run of digits, without their marks."""
    text = "Fined $5 million in 2020"

    assert located_figures(text, "en") == [("$5000000", 7, 8), ("2020", 20, 24)]
    assert [is_marked(figure) for figure in ("12", "3.5", "-12", "5%", "€5")] == [
        False,
        False,
        True,
        True,
        True,
    ]


def test_letters_with_signs() -> None:
    """Programming languages, grades and brands; hyphens inside words are not marks."""
    text = "C++ and C#: A- or B+ for Disney+, x-ray, a - b, #tag, 3+1"

    assert letter_marks(text) == ["c++", "c#", "a-", "b+", "y+"]
    assert letter_marks("Grade A\u2212, C♯") == ["a-"]
