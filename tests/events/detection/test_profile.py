"""Profiles: unit vectors of the common terms, and which of them describe one story."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.events.detection.clustering import Story
from aggregator.events.detection.profile import PROFILE_TERMS, build_profile, is_same_story

term_sums = st.dictionaries(st.text("abc", min_size=1, max_size=4), st.integers(1, 10_000), max_size=40)


@given(term_sums)
def test_a_profile_is_a_unit_vector_of_the_heaviest_terms(sums: dict[str, int]) -> None:
    """In descending order, with at most twenty terms, and the story matches its own profile."""
    profile = build_profile(Story(1, "s1", term_sums=sums), lambda term: float(len(term)))

    weights = [weight for _, weight in profile]
    assert len(profile) == min(len(sums), PROFILE_TERMS)
    assert weights == sorted(weights, reverse=True)
    assert is_same_story(profile, profile) is bool(sums)
    if sums:
        assert math.hypot(*weights) == pytest.approx(1.0, abs=0.001)


@given(term_sums)
def test_the_order_of_the_terms_does_not_matter(sums: dict[str, int]) -> None:
    """Equal weights are ordered by term, so every replica builds the same profile."""
    backwards = dict(reversed(sums.items()))

    assert build_profile(Story(1, "s", term_sums=sums), lambda _: 1.0) == build_profile(
        Story(1, "s", term_sums=backwards), lambda _: 1.0
    )


def test_without_weights_there_is_no_profile() -> None:
    """Neither for a story without terms nor if every idf is 0."""
    assert build_profile(Story(1, "s1"), lambda _: 1.0) == []
    assert build_profile(Story(1, "s1", term_sums={"storm": 3}), lambda _: 0.0) == []


@pytest.mark.parametrize(("weight", "same"), [(0.5, True), (0.49, False)])
def test_a_cosine_of_exactly_the_threshold_is_the_same_story(weight: float, same: bool) -> None:
    """In both directions; terms of only one profile do not count."""
    a, b = [("storm", 1.0)], [("storm", weight), ("pier", 0.8)]

    assert is_same_story(a, b) is is_same_story(b, a) is same


def test_an_empty_profile_describes_no_story() -> None:
    """A mute without a profile would otherwise silence everything."""
    assert not is_same_story([], [])
    assert not is_same_story([], [("storm", 1.0)])
