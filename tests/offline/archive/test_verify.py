"""Confirmation of many pairs at once says what the rule says of each."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.analysis import shingles
from aggregator.dedup import verdict
from aggregator.domain import Sketch
from aggregator.offline.archive.columns import columns_from_signatures
from aggregator.offline.archive.encode import Signature
from aggregator.offline.archive.pairs import pack_pairs
from aggregator.offline.archive.verify import are_copies, estimate_overlaps
from tests.support.factories import story

WORDS = story(1, 60).split()


def signature(words: list[str]) -> Signature:
    """Only the sample matters here."""
    found = shingles.build_sketch(words)
    return Signature("", "", "en.0000", 0, 0, 0, len(words), found.size, found.sample)


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(1, 599)), min_size=2, max_size=6))
@settings(max_examples=50, deadline=None)
def test_many_pairs_at_once_get_the_figures_of_one_at_a_time(cuts: list[tuple[int, int]]) -> None:
    """Windows of one long text, so that all degrees of overlap occur."""
    texts = [WORDS[start : start + size] for start, size in cuts]
    columns = columns_from_signatures([signature(words) for words in texts])
    a, b = np.triu_indices(len(texts), 1)
    found = estimate_overlaps(columns, pack_pairs(a, b))
    verdicts = are_copies(found, verdict.Policy())

    for at, (one, other) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        wanted = shingles.estimate_overlap(
            Sketch(int(columns.size[one]), columns.sample_of(one)),
            Sketch(int(columns.size[other]), columns.sample_of(other)),
        )
        assert (found.containment[at], found.resemblance[at], found.shared[at], found.size_ratio[at]) == (
            wanted.containment, wanted.resemblance, wanted.shared, wanted.size_ratio,
        )  # fmt: skip
        assert abs(found.error[at] - wanted.error) < 1e-12
        assert verdicts[at] == verdict.is_copy(wanted, 1.0, verdict.Policy())
