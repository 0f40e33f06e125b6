"""The copy rule at its boundaries: outlets, times, openings, headlines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.analyzer import MAX_TERMS, Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.shingles import OverlapEstimate, estimate_overlap
from aggregator.dedup.copy_rule import (
    Evidence,
    hours_between,
    is_same_outlet,
    same_template_other_names,
)
from aggregator.dedup.policy import Policy
from aggregator.dedup.verdict import template_difference
from aggregator.domain import Analysis, Article
from aggregator.time_units import HOUR_MS
from tests.support.pair_evidence import are_copies
from tests.support.template_sentences import TEMPLATES

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

    assert rule.other_outlet.containment == 0.65
    assert not rule.is_copy(Evidence(overlap(0.649, 1.0, common_opening=1.0), 1.0), headline(1.0))


def test_a_statement_that_two_outlets_quote_makes_no_copy() -> None:
    """It opens one text and is further down in the other; a shortened report begins like its source."""
    assert not RULE.is_copy(Evidence(overlap(0.3, opening=0.8), 0.5), headline(0.5))
    assert RULE.is_copy(Evidence(overlap(0.3, opening=0.8, common_opening=0.8), 0.5), headline(0.5))


@pytest.mark.parametrize(
    ("same_outlet", "shared", "containment", "similarity", "copy"),
    [
        (False, 30, 0.5, 0.1, True),
        (False, 29.9, 0.5, 0.1, False),
        (False, 30, 0.5, 0.09, False),
        (True, 60, 0.7, 0.1, True),
        (True, 59.9, 0.7, 0.1, False),
        (True, 5, 0.75, 0.0, True),
        (False, 5, 0.75, 0.0, True),
    ],
)
def test_amount_of_wording(
    same_outlet: bool, shared: float, containment: float, similarity: float, copy: bool
) -> None:
    """Below strong containment a number of shingles and some common terms are needed."""
    evidence = Evidence(overlap(containment, 0.9, shared), similarity, same_outlet=same_outlet)

    assert RULE.is_copy(evidence, headline(0.0)) is copy


@pytest.mark.parametrize(
    ("size_ratio", "containment", "shared", "copy"),
    [(0.79, 0.4, 30, True), (0.8, 0.4, 44.9, False), (0.8, 0.4, 45, True), (0.8, 0.5, 30, True)],
)
def test_texts_of_equal_length_must_share_more(
    size_ratio: float, containment: float, shared: float, copy: bool
) -> None:
    """A shortened or padded copy differs in length; one of equal length that shares little is another."""
    found = overlap(containment, 0.9, shared, size_ratio)

    assert RULE.is_copy(Evidence(found, 0.5), headline(0.89)) is copy


@pytest.mark.parametrize(
    ("shared", "containment", "headlines", "same_outlet", "copy"),
    [
        (20, 0.3, 0.9, False, True),
        (19.9, 0.7, 1.0, False, False),
        (20, 0.3, 0.89, False, False),
        (20, 0.299, 1.0, False, False),
        (20, 0.7, 1.0, True, False),
    ],
)
def test_under_one_headline_fewer_shingles_suffice(
    shared: float, containment: float, headlines: float, same_outlet: bool, copy: bool
) -> None:
    """What another outlet left of a short text under its headline; within one outlet it is a series."""
    found = overlap(containment, shared=shared, size_ratio=1.0)

    assert RULE.is_copy(Evidence(found, 0.5, same_outlet=same_outlet), headline(headlines)) is copy


@pytest.mark.parametrize(
    ("size_ratio", "containment", "similarity", "copy"),
    [
        (0.8, 0.84, 0.84, False),
        (0.8, 0.84, 0.85, True),
        (0.8, 0.85, 0.0, True),
        (0.79, 0.75, 0.0, True),
    ],
)
def test_a_short_template_with_other_names_is_not_a_copy(
    size_ratio: float, containment: float, similarity: float, copy: bool
) -> None:
    """Equal length, the same words, other top terms; other lengths and full agreement skip this test."""
    found = overlap(containment, 0.9, shared=20, size_ratio=size_ratio)

    assert RULE.is_copy(Evidence(found, similarity), headline(0.0)) is copy
    long = overlap(containment, 0.9, shared=100, size_ratio=size_ratio)
    assert RULE.is_copy(Evidence(long, 0.5), headline(0.0))  # a long text that was revised


def test_a_headline_needs_common_terms() -> None:
    """A weekly column has one headline and another subject each week."""
    assert not RULE.is_copy(Evidence(overlap(0.5), similarity=0.19), headline(1.0))
    assert RULE.is_copy(Evidence(overlap(0.5), similarity=0.2), headline(1.0))


@given(
    containment=st.floats(0, 1),
    opening=st.floats(0, 1),
    shared=st.floats(0, 500),
    similarity=st.floats(0, 1),
    headlines=st.floats(0, 1),
    same_outlet=st.booleans(),
    hours=st.none() | st.floats(0, 10_000),
)
def test_more_agreement_never_separates(
    containment: float,
    opening: float,
    shared: float,
    similarity: float,
    headlines: float,
    same_outlet: bool,
    hours: float | None,
) -> None:
    """A copy stays one if it agrees more, or if the outlet is another one."""
    found = overlap(containment, opening, shared)
    if not RULE.is_copy(Evidence(found, similarity, 0, same_outlet, hours), headline(headlines)):
        return
    more = overlap(containment, 1.0, shared + 100, common_opening=1.0)
    for is_same, apart in ((same_outlet, hours), (same_outlet, 0.0), (False, hours)):
        assert RULE.is_copy(Evidence(more, 1.0, 0, is_same, apart), headline(1.0))


@given(
    containment=st.floats(0, 1),
    error=st.floats(0, 0.2),
    opening=st.floats(0, 1),
    shared=st.floats(0, 500),
    size_ratio=st.floats(0, 1),
    similarity=st.floats(0, 1),
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
    similarity: float,
    headlines: float,
    same_outlet: bool,
    hours: float | None,
) -> None:
    """So its terms, headlines and times need not be read."""
    found = replace(overlap(containment, opening, shared, size_ratio, opening), error=error)
    evidence = Evidence(found, similarity, 0, same_outlet, hours)
    if RULE.is_copy(evidence, headline(headlines)) or RULE.shares_enough(evidence, headline(headlines)):
        assert RULE.may_match(found, same_outlet=same_outlet)


@pytest.mark.parametrize(
    ("containment", "shared", "same_outlet", "possible"),
    [
        (0.2, 20, False, True),
        (0.199, 500, False, False),
        (0.2, 19.9, False, False),
        (0.75, 0, False, True),
        (0.7, 60, True, True),
        (0.699, 500, True, False),
        (0.7, 59.9, True, False),
        (0.75, 0, True, True),
    ],
)
def test_wording_that_may_match(containment: float, shared: float, same_outlet: bool, possible: bool) -> None:
    """Within one outlet a pair must share most of its wording."""
    assert RULE.may_match(overlap(containment, 1.0, shared), same_outlet=same_outlet) is possible


ANALYZER = Analyzer(load_models())
COMPLETE_SAMPLE = OverlapEstimate(containment=0.9, resemblance=0.8, shared=90, size_ratio=1.0)
INCOMPLETE_SAMPLE = OverlapEstimate(containment=0.89, resemblance=0.8, shared=300, size_ratio=1.0, error=0.02)


def analyze(title: str, text: str, lang: str) -> Analysis:
    """Return the analysis of an article, as the service computes it."""
    return ANALYZER.analyze(Article(id="", title=title, text=text, lang=lang))


def weighted(*terms: str) -> tuple[tuple[str, float], ...]:
    """Return terms with weights that decrease from the first to the last, L2 norm 1."""
    raw = [0.9**place for place in range(len(terms))]
    norm = sum(weight * weight for weight in raw) ** 0.5
    return tuple((term, weight / norm) for term, weight in zip(terms, raw, strict=True))


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_with_other_names_is_not_a_duplicate(name: str) -> None:
    """Agency sentences about two companies, people or places that share all other words."""
    lang, title, text, fillings = TEMPLATES[name]
    first, second = (analyze(title.format(**f), text.format(**f), lang) for f in fillings)

    assert template_difference(estimate_overlap(first.sketch, second.sketch), first, second) == "names"


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_with_the_same_names_is_a_duplicate(name: str) -> None:
    """The notice without its last sentence keeps its names."""
    lang, title, text, fillings = TEMPLATES[name]
    whole = text.format(**fillings[0])
    cut = whole[: whole.rstrip("。.").rfind("。" if lang in ("zh", "ja") else ".") + 1]
    first, second = (
        analyze(title.format(**fillings[0]), whole, lang),
        analyze(title.format(**fillings[0]), cut, lang),
    )
    overlap = estimate_overlap(first.sketch, second.sketch)

    assert template_difference(overlap, first, second) == ""
    assert are_copies(first, second)


def test_long_texts_must_differ_in_their_top_terms() -> None:
    """With incomplete samples the top terms of each must be missing in the other; figures are not names."""
    template = [f"word{n}" for n in range(12)]
    first, second = weighted("alpha", *template), weighted("beta", *template)

    assert same_template_other_names(INCOMPLETE_SAMPLE, first, second)
    assert same_template_other_names(INCOMPLETE_SAMPLE, second, first)
    assert not same_template_other_names(INCOMPLETE_SAMPLE, first, first)
    assert not same_template_other_names(
        INCOMPLETE_SAMPLE,
        weighted(template[0], "alpha", *template[1:]),
        weighted(template[0], "beta", *template[1:]),
    )
    assert not same_template_other_names(
        INCOMPLETE_SAMPLE, weighted("1200", *template), weighted("1300", *template)
    )
    # A name that is missing was cut off, not exchanged.
    assert not same_template_other_names(INCOMPLETE_SAMPLE, first, weighted(*template))


def test_completely_sampled_texts_are_compared_by_all_terms() -> None:
    """Other names need not be the top terms; a word or two that an editor replaced are not enough."""
    template = [f"word{n}" for n in range(6)]
    first, second = (
        weighted(template[0], "alpha", "ann", *template[1:]),
        weighted(template[0], "beta", "ben", *template[1:]),
    )

    assert same_template_other_names(COMPLETE_SAMPLE, first, second)
    assert not same_template_other_names(INCOMPLETE_SAMPLE, first, second)
    assert not same_template_other_names(
        COMPLETE_SAMPLE, weighted(*template, "said", "big"), weighted(*template, "told", "large")
    )


def test_a_term_too_light_for_a_full_list_is_not_missing() -> None:
    """Terms that a full list omits as too light do not count as different."""
    shared = [f"word{n}" for n in range(4)]
    level = [(f"a{n}", 0.2) for n in range(MAX_TERMS - 4)], [(f"b{n}", 0.2) for n in range(MAX_TERMS - 4)]
    first, second = ([(word, 0.22) for word in shared] + rest for rest in level)

    assert not same_template_other_names(COMPLETE_SAMPLE, first, second)
    # Lists that are not full omit nothing.
    assert same_template_other_names(COMPLETE_SAMPLE, first[:-1], second[:-1])


@pytest.mark.parametrize(
    ("containment", "shared", "template"), [(0.9, 100, False), (0.9, 99, True), (0.89, 300, True)]
)
def test_a_long_text_of_which_nine_tenths_agree_is_no_filling(
    containment: float, shared: float, template: bool
) -> None:
    """A name or two in 100 words were corrected."""
    overlap = OverlapEstimate(containment, 0.8, shared, 1.0)
    assert same_template_other_names(overlap, weighted("alpha"), weighted("beta")) is template


def test_a_name_in_another_spelling_is_not_exchanged() -> None:
    """Nor is it missing."""
    first, second = weighted("selenskyj", "kyiv", "war"), weighted("zelensky", "kiev", "war")
    assert not same_template_other_names(COMPLETE_SAMPLE, first, second)
    assert same_template_other_names(COMPLETE_SAMPLE, first, weighted("orban", "budapest", "war"))


def test_other_lengths_are_not_templates() -> None:
    """Truncated or padded texts, and texts that share every shingle, have no names exchanged."""
    for overlap in (
        OverlapEstimate(0.9, 0.7, 90, size_ratio=0.79),
        OverlapEstimate(1.0, 0.9, 90, size_ratio=0.9),
    ):
        assert not same_template_other_names(overlap, weighted("alpha"), weighted("beta"))


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
