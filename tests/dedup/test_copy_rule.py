"""The copy rule at its boundaries: outlets, times, openings, headlines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.shingles import OverlapEstimate
from aggregator.dedup.copy_rule import (
    Evidence,
    hours_between,
    is_same_outlet,
)
from aggregator.dedup.policy import Policy
from aggregator.time_units import HOUR_MS

RULE = Policy().copy_rule


def overlap(
    containment: float,
    opening: float = 0.0,
    shared: float = 200.0,
    size_ratio: float = 0.6,
    common_opening: float = 0.0,
) -> OverlapEstimate:
    """Return an overlap with these estimates."""
    return OverlapEstimate(
        containment, containment / 2, shared, size_ratio, opening=opening, common_opening=common_opening
    )


def headline(similarity: float) -> Callable[[], float]:
    """Return the function that the rule calls for the similarity of the headlines."""
    return lambda: similarity


@pytest.mark.parametrize(
    ("containment", "opening", "common_opening", "headlines", "copy"),
    [
        (0.2, 0.35, 0.35, 0.0, True),
        (0.199, 1.0, 1.0, 1.0, False),
        (0.2, 1.0, 0.349, 0.0, False),
        (0.35, 0.35, 0.0, 0.0, True),
        (0.349, 1.0, 0.349, 0.79, False),
        (0.2, 0.0, 0.0, 0.8, True),
        (0.599, 0.349, 0.0, 0.79, False),
        (0.6, 0.0, 0.0, 0.0, True),
    ],
)
def test_other_outlets(
    containment: float, opening: float, common_opening: float, headlines: float, copy: bool
) -> None:
    """Less wording suffices if both begin alike; similar headlines replace equal openings."""
    evidence = Evidence(overlap(containment, opening, common_opening=common_opening), similarity=0.5)

    assert RULE.is_copy(evidence, headline(headlines)) is copy


@pytest.mark.parametrize(
    ("hours", "containment", "opening", "headlines", "copy"),
    [
        (None, 0.7, 0.5, 0.0, True),
        (16.0, 0.7, 0.5, 0.0, True),
        (16.0, 0.699, 1.0, 0.79, False),
        (16.0, 0.7, 0.499, 0.79, False),
        (16.0, 0.7, 0.0, 0.8, True),
        (16.0, 0.699, 0.0, 1.0, False),
        (16.1, 0.899, 1.0, 1.0, False),
        (16.1, 0.9, 0.0, 0.9, True),
        (16.1, 0.959, 1.0, 0.89, False),
        (16.1, 0.96, 0.5, 0.0, True),
        (16.1, 0.96, 0.499, 0.89, False),
    ],
)
def test_one_outlet(
    hours: float | None, containment: float, opening: float, headlines: float, copy: bool
) -> None:
    """An outlet that prints similar text again reports a development, the more probably the later it does."""
    evidence = Evidence(overlap(containment, opening), similarity=0.5, same_outlet=True, hours_apart=hours)

    assert RULE.is_copy(evidence, headline(headlines)) is copy


def test_a_raised_minimum_holds_in_every_row() -> None:
    """No other outlet's copy shares less than ``min_containment``, whatever else agrees."""
    rule = Policy(min_containment=0.65).copy_rule

    assert min(row.containment for row in rule.other_outlet) == 0.65
    assert not rule.is_copy(Evidence(overlap(0.649, 1.0, common_opening=1.0), 1.0), headline(1.0))


def test_a_statement_that_two_outlets_quote_makes_no_copy() -> None:
    """It opens one text and is further down in the other; a shortened report begins like its source."""
    assert not RULE.is_copy(Evidence(overlap(0.3, opening=0.8), 0.5), headline(0.5))
    assert RULE.is_copy(Evidence(overlap(0.3, opening=0.8, common_opening=0.8), 0.5), headline(0.5))


@pytest.mark.parametrize("same_outlet", [False, True])
@pytest.mark.parametrize(
    ("shared", "containment", "copy"),
    [(14.3, 0.7, True), (14.2, 0.7, False), (5, 0.749, False), (2, 0.75, True)],
)
def test_amount_of_wording(same_outlet: bool, shared: float, containment: float, copy: bool) -> None:
    """Below strong containment a number of shingles is needed."""
    evidence = Evidence(overlap(containment, 0.9, shared), same_outlet=same_outlet)

    assert RULE.is_copy(evidence, headline(0.0)) is copy


@given(
    containment=st.floats(0, 1),
    opening=st.floats(0, 1),
    shared=st.floats(0, 500),
    headlines=st.floats(0, 1),
    same_outlet=st.booleans(),
    hours=st.none() | st.floats(0, 10_000),
)
def test_more_agreement_never_separates(
    containment: float,
    opening: float,
    shared: float,
    headlines: float,
    same_outlet: bool,
    hours: float | None,
) -> None:
    """A copy stays one if it agrees more, or if the outlet is another one."""
    found = overlap(containment, opening, shared)
    if not RULE.is_copy(Evidence(found, same_outlet=same_outlet, hours_apart=hours), headline(headlines)):
        return
    more = overlap(containment, 1.0, shared + 100, common_opening=1.0)
    for is_same, apart in ((same_outlet, hours), (same_outlet, 0.0), (False, hours)):
        assert RULE.is_copy(Evidence(more, same_outlet=is_same, hours_apart=apart), headline(1.0))


@given(
    containment=st.floats(0, 1),
    error=st.floats(0, 0.2),
    opening=st.floats(0, 1),
    shared=st.floats(0, 500),
    size_ratio=st.floats(0, 1),
    headlines=st.floats(0, 1),
    same_outlet=st.booleans(),
    hours=st.none() | st.floats(0, 100),
)
def test_what_cannot_match_by_its_wording_never_does(
    containment: float,
    error: float,
    opening: float,
    shared: float,
    size_ratio: float,
    headlines: float,
    same_outlet: bool,
    hours: float | None,
) -> None:
    """So its terms, headlines and times need not be read."""
    found = replace(overlap(containment, opening, shared, size_ratio, opening), error=error)
    evidence = Evidence(found, same_outlet=same_outlet, hours_apart=hours)
    if RULE.is_copy(evidence, headline(headlines)) or RULE.shares_enough(evidence):
        assert RULE.may_match(found)


@pytest.mark.parametrize(
    ("containment", "shared", "possible"),
    [
        (0.2, 50, True),
        (0.5, 20, True),
        (0.199, 500, False),
        (0.2, 49.9, False),
        (0.5, 19.9, False),
        (0.75, 0, True),
    ],
)
def test_wording_that_may_match(containment: float, shared: float, possible: bool) -> None:
    """Of any outlets: what an outlet repeats around its texts is found in its other articles."""
    assert RULE.may_match(overlap(containment, 1.0, shared)) is possible


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("Harbour Gazette", "harbour gazette", True),
        ("Gazette", "Radio", False),
        ("", "", False),
        ("Gazette", "", False),
    ],
)
def test_same_outlet(a: str, b: str, same: bool) -> None:
    """Two unknown sources are not one outlet."""
    assert is_same_outlet(a, b) is same


def test_publications_count_before_arrivals() -> None:
    """Arrival times replace missing publication times; without either the time is unknown."""
    assert hours_between(10 * HOUR_MS, 4 * HOUR_MS, 0, 100 * HOUR_MS) == 6
    assert hours_between(10 * HOUR_MS, None, 3 * HOUR_MS, 5 * HOUR_MS) == 2
    assert hours_between(10 * HOUR_MS, None, None, 5 * HOUR_MS) is None


@pytest.mark.parametrize(
    ("opening", "headlines", "alike"), [(0.5, 0.0, True), (0.0, 0.8, True), (0.49, 0.79, False)]
)
def test_copies_begin_alike(opening: float, headlines: float, alike: bool) -> None:
    """By an opening or the headlines, as copies of one outlet do; the wording does not count."""
    assert RULE.begins_alike(Evidence(overlap(0.9, opening)), headlines) is alike
