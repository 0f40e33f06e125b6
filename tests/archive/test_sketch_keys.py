"""Sketch keys are chosen among the smallest hashes, without those that many articles have."""

import numpy as np

from aggregator_archive.sketch_keys import (
    COMMON_ABOVE_ARTICLES,
    KEYS_PER_ARTICLE,
    RARE_KEYS,
    RARE_UP_TO_ARTICLES,
    SMALLEST_KEYS,
    select_sketch_keys,
)


def distinct_keys(samples: list[list[int]]) -> list[list[int]]:
    """The distinct sketch keys of each sample."""
    flat = np.array([hash_ for sample in samples for hash_ in sample], np.uint32)
    sizes = np.array([len(sample) for sample in samples], np.uint16)
    found = select_sketch_keys(flat, np.cumsum(sizes, dtype=np.int64), sizes)
    assert found.shape == (len(samples), KEYS_PER_ARTICLE)
    assert (np.diff(found.astype(np.int64), axis=1) >= 0).all()
    return [sorted(set(row)) for row in found.tolist()]


def test_common_hashes_are_passed_over() -> None:
    """The smallest hash is not a key if more than COMMON_ABOVE_ARTICLES articles have it."""
    many = [[5, *range(1000 * n, 1000 * n + 30)] for n in range(1, COMMON_ABOVE_ARTICLES + 2)]
    few = many[:COMMON_ABOVE_ARTICLES]

    assert distinct_keys(many) == [sample[1 : SMALLEST_KEYS + 1] for sample in many]
    assert distinct_keys(few) == [sample[: RARE_KEYS + 1] for sample in few]


def test_rare_hashes_are_keys_too() -> None:
    """A text with 40 copies gets its own hashes as keys, in addition to the smallest shared ones."""
    shared = list(range(100, 130))
    samples = [[*shared, *range(1000 * n, 1000 * n + 18)] for n in range(1, RARE_UP_TO_ARTICLES + 25)]

    assert distinct_keys(samples) == [
        sample[:SMALLEST_KEYS] + sample[30 : 30 + RARE_KEYS] for sample in samples
    ]


def test_a_text_of_common_hashes_only_gets_the_smallest() -> None:
    """Many copies of one text have no other keys; a headline has fewer keys."""
    same = [list(range(100, 160))] * (COMMON_ABOVE_ARTICLES + 1)

    assert distinct_keys(same) == [list(range(100, 100 + SMALLEST_KEYS))] * (COMMON_ABOVE_ARTICLES + 1)
    assert distinct_keys([[7, 9], [3]]) == [[7, 9], [3]]
