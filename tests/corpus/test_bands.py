"""Articles are looked for under shingles that few others have."""

import numpy as np

from aggregator.corpus.bands import BANDS, COMMON, bands


def chosen(samples: list[list[int]]) -> list[list[int]]:
    """The distinct bands of each sample."""
    flat = np.array([one for sample in samples for one in sample], np.uint32)
    sizes = np.array([len(sample) for sample in samples], np.uint16)
    found = bands(flat, np.cumsum(sizes, dtype=np.int64), sizes)
    assert found.shape == (len(samples), BANDS)
    assert (np.diff(found.astype(np.int64), axis=1) >= 0).all()
    return [sorted(set(row)) for row in found.tolist()]


def test_what_many_have_is_passed_over() -> None:
    """The smallest hash of all is of no use when all have it."""
    many = [[5, *range(1000 * n, 1000 * n + 30)] for n in range(1, COMMON + 2)]
    few = many[:COMMON]

    assert all(row == sample[1 : BANDS + 1] for row, sample in zip(chosen(many), many, strict=True))
    assert all(row == sample[:BANDS] for row, sample in zip(chosen(few), few, strict=True))


def test_a_text_of_common_shingles_only_is_found_under_the_smallest() -> None:
    """Many copies of one text, or a headline: there is nothing else to go by."""
    same = [list(range(100, 160))] * 40

    assert chosen(same) == [list(range(100, 100 + BANDS))] * 40
    assert chosen([[7, 9], [3]]) == [[7, 9], [3]]
