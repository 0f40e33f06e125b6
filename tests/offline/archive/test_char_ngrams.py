"""Shingles of letters: blind to spaces, and hardly troubled by misread letters."""

import pytest

from aggregator.analysis import shingles
from aggregator.dedup.verdict import Policy
from aggregator.offline.archive.char_ngrams import (
    CHANCE_CONTAINMENT,
    letter_sketch,
    policy_for_letters,
    run_hashes,
)
from aggregator.offline.evaluation.ocr_noise import LEVELS, damaged
from tests.support.factories import story


def test_broken_words_change_nothing() -> None:
    """Only the letters count, wherever the spaces are."""
    assert run_hashes("thehousepassed").tolist() == run_hashes("".join(["the", "house", "passed"])).tolist()
    assert (
        letter_sketch(["thehou", "sepassed"]).sample.tolist()
        == letter_sketch(["the", "house", "passed"]).sample.tolist()
    )


def test_equal_runs_count_once_and_short_texts_are_one_run() -> None:
    """A run is eight characters of any alphabet."""
    assert len(run_hashes("a" * 20)) == 1
    assert len(run_hashes("abcdefgh")) == len(run_hashes("abc")) == 1
    assert len(run_hashes("")) == 0
    assert len(run_hashes("домикилес")) == 2


def test_a_text_that_shares_a_fifth_and_what_chance_gives_is_just_a_copy() -> None:
    """The rule for letters is that for words, measured with another rule."""
    policy = policy_for_letters(Policy())

    assert policy.min_containment == pytest.approx(0.2 + 0.8 * CHANCE_CONTAINMENT)
    assert (policy.min_shared, policy.min_similarity) == (300.0, Policy().min_similarity)
    assert 0.8 < policy.sure_containment < 0.9


def test_two_scans_of_one_text_share_more_runs_than_word_shingles() -> None:
    """Which is what they are for."""
    text = story(11)
    one, other = (damaged(text, LEVELS[2], seed).lower().replace(".", "").split() for seed in "ab")
    letters = shingles.compare(letter_sketch(one), letter_sketch(other)).containment
    words = shingles.compare(shingles.sketch(one), shingles.sketch(other)).containment

    assert letters > 2 * words
    strangers = letter_sketch(story(12).lower().replace(".", "").split())
    assert shingles.compare(letter_sketch(one), strangers).containment < 0.05
