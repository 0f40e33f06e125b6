"""Shingles of letters: blind to spaces, and hardly troubled by misread letters."""

import pytest

from aggregator.analysis import shingles
from aggregator.dedup.verdict import Policy
from aggregator.offline.archive.char_ngrams import (
    UNRELATED_CONTAINMENT,
    char_ngram_hashes,
    char_ngram_sketch,
    policy_for_char_ngrams,
)
from aggregator.offline.evaluation.ocr_noise import NOISE_LEVELS, add_ocr_noise
from tests.support.factories import story


def test_broken_words_change_nothing() -> None:
    """Only the letters count, wherever the spaces are."""
    assert (
        char_ngram_hashes("thehousepassed").tolist()
        == char_ngram_hashes("".join(["the", "house", "passed"])).tolist()
    )
    assert (
        char_ngram_sketch(["thehou", "sepassed"]).sample.tolist()
        == char_ngram_sketch(["the", "house", "passed"]).sample.tolist()
    )


def test_equal_runs_count_once_and_short_texts_are_one_run() -> None:
    """A run is eight characters of any alphabet."""
    assert len(char_ngram_hashes("a" * 20)) == 1
    assert len(char_ngram_hashes("abcdefgh")) == len(char_ngram_hashes("abc")) == 1
    assert len(char_ngram_hashes("")) == 0
    assert len(char_ngram_hashes("домикилес")) == 2


def test_a_text_that_shares_a_fifth_and_what_chance_gives_is_just_a_copy() -> None:
    """The rule for letters is that for words, measured with another rule."""
    policy = policy_for_char_ngrams(Policy())

    assert policy.min_containment == pytest.approx(0.2 + 0.8 * UNRELATED_CONTAINMENT)
    assert (policy.min_shared_shingles, policy.min_similarity) == (300.0, Policy().min_similarity)
    assert 0.8 < policy.strong_containment < 0.9


def test_two_scans_of_one_text_share_more_runs_than_word_shingles() -> None:
    """Which is what they are for."""
    text = story(11)
    one, other = (
        add_ocr_noise(text, NOISE_LEVELS[2], seed).lower().replace(".", "").split() for seed in "ab"
    )
    letters = shingles.estimate_overlap(char_ngram_sketch(one), char_ngram_sketch(other)).containment
    words = shingles.estimate_overlap(shingles.build_sketch(one), shingles.build_sketch(other)).containment

    assert letters > 2 * words
    strangers = char_ngram_sketch(story(12).lower().replace(".", "").split())
    assert shingles.estimate_overlap(char_ngram_sketch(one), strangers).containment < 0.05
