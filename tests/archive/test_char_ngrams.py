"""Character n-grams: independent of spaces, and robust against misread letters."""

import pytest

from aggregator.analysis import shingles
from aggregator.dedup.policy import Policy
from aggregator_archive.char_ngrams import (
    UNRELATED_CONTAINMENT,
    char_ngram_hashes,
    char_ngram_sketch,
    policy_for_char_ngrams,
)
from aggregator_lab.evaluation.noise import NOISE_LEVELS, add_ocr_noise
from tests.support.factories import story


def test_split_words_have_the_same_ngrams() -> None:
    """Only the letters count, not the positions of the spaces."""
    assert (
        char_ngram_hashes("thehousepassed").tolist()
        == char_ngram_hashes("".join(["the", "house", "passed"])).tolist()
    )
    assert (
        char_ngram_sketch(["thehou", "sepassed"]).sample.tolist()
        == char_ngram_sketch(["the", "house", "passed"]).sample.tolist()
    )


def test_equal_ngrams_count_once_and_a_short_text_is_one_ngram() -> None:
    """An n-gram is eight characters of any alphabet."""
    assert char_ngram_sketch(["a" * 20]).size == 1
    assert len(char_ngram_hashes("abcdefgh")) == len(char_ngram_hashes("abc")) == 1
    assert len(char_ngram_hashes("")) == 0
    assert len(char_ngram_hashes("домикилес")) == 2


def test_the_policy_is_converted_from_word_shingles() -> None:
    """The minimum containment is 0.2 of what chance leaves; a word shingle is five n-grams."""
    policy = policy_for_char_ngrams(Policy())

    assert policy.min_containment == pytest.approx(0.2 + 0.8 * UNRELATED_CONTAINMENT)
    assert policy.min_shared_shingles == 50
    assert 0.8 < policy.strong_containment < 0.9


def test_two_scans_of_one_text_share_more_ngrams_than_word_shingles() -> None:
    """With heavy OCR noise, containment by n-grams is more than twice that by word shingles."""
    text = story(11)
    first, second = (
        add_ocr_noise(text, NOISE_LEVELS[2], seed).lower().replace(".", "").split() for seed in "ab"
    )
    sketch = char_ngram_sketch(first)
    by_ngrams = shingles.estimate_overlap(sketch, char_ngram_sketch(second))
    by_words = shingles.estimate_overlap(shingles.build_sketch(first), shingles.build_sketch(second))

    assert by_ngrams.containment > 2 * by_words.containment
    unrelated = char_ngram_sketch(story(12).lower().replace(".", "").split())
    assert shingles.estimate_overlap(sketch, unrelated).containment < 0.05
