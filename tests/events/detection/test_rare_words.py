"""Rare words: a subject without a name, and no everyday topic."""

from __future__ import annotations

import pytest

from aggregator.events.detection.rare_words import is_rare_plain_word, is_rare_word, may_be_subject
from tests.events.detection.test_cold_start import rates_of
from tests.events.detection.window_items import window_item

# The rates of "tremor" and "orbex" are 5e-6; "sale" is frequent.
RATES = rates_of(tremor=0.00005, orbex=0.00005, sale=0.05, **{f"o{i}": 0.0005 for i in range(20_000)})


@pytest.mark.parametrize(
    ("term", "expected"),
    [("tremor", True), ("may", False), ("ebitda", False), ("bln", False), ("iii", False), ("q3", False)],
)
def test_the_calendar_and_figures_are_no_subjects(term: str, expected: bool) -> None:
    assert may_be_subject(term) is expected


@pytest.mark.parametrize(
    ("term", "title", "rare", "plain"),
    [
        ("tremor", "Town cut off by tremor", True, True),
        ("tremor", "Tremor In Thornby Cuts Off Town", False, False),  # nothing shows what it is
        ("orbex", "Sales of Orbex rise again", True, False),  # a name
        ("sale", "A rise of sale and profit", False, False),  # frequent
    ],
)
def test_a_rare_plain_word_is_no_name(term: str, title: str, rare: bool, plain: bool) -> None:
    members = [window_item(0, title, lang="en", terms={term: 100})]

    assert is_rare_word(term, members, RATES) is rare
    assert is_rare_plain_word(term, members, RATES) is plain
