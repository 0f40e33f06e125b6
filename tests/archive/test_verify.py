"""Batch verification agrees with the rule for one pair."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aggregator.analysis import shingles
from aggregator.domain import Sketch
from aggregator_archive.arrays import pack_pairs
from aggregator_archive.columns import Columns, columns_from_signatures
from aggregator_archive.confirm import estimate_overlaps
from aggregator_archive.encode import Signature
from tests.support.factories import story

WORDS = story(1, 60).split()


def signature(words: list[str]) -> Signature:
    """A signature with the sample of these words; other values do not matter."""
    return Signature("", "", "en.0000", 0, 0, 0, len(words), shingles.build_sketch(words))


def sketch_of(columns: Columns, row: int) -> Sketch:
    """The sketch of the article in a row."""
    end = int(columns.sample_end[row])
    sample = columns.sample[end - int(columns.sample_size[row]) : end]
    return Sketch(int(columns.size[row]), sample, np.zeros(len(sample), np.bool_))


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(1, 599)), min_size=2, max_size=6))
@example([(207, 187), (387, 2)])  # two shingles differ in bits that are ignored only
@settings(max_examples=50, deadline=None)
def test_batch_estimates_equal_those_of_one_pair(cuts: list[tuple[int, int]]) -> None:
    """Windows of one long text, so that all degrees of overlap occur."""
    texts = [WORDS[start : start + size] for start, size in cuts]
    columns = columns_from_signatures([signature(words) for words in texts])
    a, b = np.triu_indices(len(texts), 1)
    found = estimate_overlaps(columns, pack_pairs(a, b))

    for at, (i, j) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        expected = shingles.estimate_overlap(sketch_of(columns, i), sketch_of(columns, j))
        assert (found.containment[at], found.resemblance[at], found.shared[at], found.size_ratio[at]) == (
            expected.containment, expected.resemblance, expected.shared, expected.size_ratio,
        )  # fmt: skip
        assert abs(found.error[at] - expected.error) < 1e-12
