"""Samples of article numbers: their stored form, and the estimate made of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.domain import article_number_at
from aggregator.index.article_numbers import ArticleNumberGenerator
from aggregator.index.segment_sampling import (
    MIN_SAMPLES_PER_SEGMENT,
    decode_samples,
    sample_entry,
    sampling_exponent_for,
)


def test_one_number_in_two_to_the_k_is_sampled() -> None:
    """The estimate over generated numbers is right, and a full segment has thousands of samples."""
    generator, exponent = ArticleNumberGenerator(), 4
    samples = b"".join(sample_entry(generator.next(1_000), exponent) for _ in range(64_000))
    numbers, weights = decode_samples(samples)

    assert set(weights) == {16}
    assert 0.9 < weights.sum() / 64_000 < 1.1
    assert int(numbers.min()) >= article_number_at(1_000)
    assert decode_samples(None)[1].sum() == 0
    assert sampling_exponent_for(10_000_000) == 11
    assert sampling_exponent_for(100) == 0


@given(st.integers(0, 2**59 - 1), st.integers(5, 24))
def test_a_sampled_number_is_restored(upper: int, exponent: int) -> None:
    """A sample keeps its number, and its weight is the number of articles that it represents."""
    number = upper << exponent & (1 << 64) - 1

    numbers, weights = decode_samples(sample_entry(number, exponent))

    assert (numbers.tolist(), weights.tolist()) == ([number], [1 << exponent])
    assert sample_entry(number | 1, exponent) == sample_entry(number | 1 << exponent - 1, exponent) == b""


def test_samples_of_two_exponents_add_up() -> None:
    """A segment whose capacity was changed has samples of both; the stored form is pinned."""
    samples = sample_entry(0x1234_5680, 7) + sample_entry(0x1234_5700, 8)

    assert samples == bytes.fromhex("87563412000000000857341200000000")
    assert decode_samples(samples)[1].sum() == 128 + 256


@pytest.mark.parametrize("max_articles", [4096, 8191, 8192, 100_000, 10_000_000])
def test_a_full_segment_has_enough_samples(max_articles: int) -> None:
    """At least the minimum is expected, and less than twice as many."""
    expected = max_articles / 2 ** sampling_exponent_for(max_articles)

    assert MIN_SAMPLES_PER_SEGMENT <= expected < 2 * MIN_SAMPLES_PER_SEGMENT
