"""Articles are looked for under shingles that few others have."""

import numpy as np

from aggregator.offline.archive.sketch_keys import (
    COMMON_ABOVE_ARTICLES,
    KEYS_PER_ARTICLE,
    RARE_KEYS,
    RARE_UP_TO_ARTICLES,
    SMALLEST_KEYS,
    select_sketch_keys,
)


def chosen(samples: list[list[int]]) -> list[list[int]]:
    """The distinct bands of each sample."""
    flat = np.array([one for sample in samples for one in sample], np.uint32)
    sizes = np.array([len(sample) for sample in samples], np.uint16)
    found = select_sketch_keys(flat, np.cumsum(sizes, dtype=np.int64), sizes)
    assert found.shape == (len(samples), KEYS_PER_ARTICLE)
    assert (np.diff(found.astype(np.int64), axis=1) >= 0).all()
    return [sorted(set(row)) for row in found.tolist()]


def test_what_a_crowd_has_is_passed_over() -> None:
    """The smallest hash of all is of no use when all have it."""
    many = [[5, *range(1000 * n, 1000 * n + 30)] for n in range(1, COMMON_ABOVE_ARTICLES + 2)]
    few = many[:COMMON_ABOVE_ARTICLES]

    assert all(row == sample[1 : SMALLEST_KEYS + 1] for row, sample in zip(chosen(many), many, strict=True))
    assert all(row == sample[: RARE_KEYS + 1] for row, sample in zip(chosen(few), few, strict=True))


def test_some_bands_are_of_hashes_that_few_have() -> None:
    """Beyond those that forty copies share, one's own."""
    shared = list(range(100, 130))
    samples = [[*shared, *range(1000 * n, 1000 * n + 18)] for n in range(1, RARE_UP_TO_ARTICLES + 25)]

    assert all(
        row == sample[:SMALLEST_KEYS] + sample[30 : 30 + RARE_KEYS]
        for row, sample in zip(chosen(samples), samples, strict=True)
    )


def test_a_text_of_common_shingles_only_is_found_under_the_smallest() -> None:
    """Many copies of one text, or a headline: there is nothing else to go by."""
    same = [list(range(100, 160))] * (COMMON_ABOVE_ARTICLES + 1)

    assert chosen(same) == [list(range(100, 100 + SMALLEST_KEYS))] * (COMMON_ABOVE_ARTICLES + 1)
    assert chosen([[7, 9], [3]]) == [[7, 9], [3]]
