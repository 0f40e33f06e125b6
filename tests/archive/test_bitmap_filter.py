"""The bitmap filter passes every copy and rejects most unrelated pairs."""

import numpy as np
import pytest

from aggregator_archive.arrays import pack_pairs
from aggregator_archive.bitmap_filter import BITMAP_BITS, may_share, sample_bitmaps
from aggregator_archive.columns import columns_from_signatures
from aggregator_archive.join import may_reach_containment
from tests.archive.test_confirm import signature
from tests.support.factories import story


def test_a_hash_sets_one_bit() -> None:
    """Equal samples have equal bitmaps wherever they are in the batch; an empty sample sets no bit."""
    sample = np.array([5, 9, 70_000, 5, 9, 70_000, 3], np.uint32)
    found = sample_bitmaps(sample, np.array([3, 0, 3, 1]))

    assert found.shape == (4, BITMAP_BITS // 64)
    assert np.array_equal(found[0], found[2])
    assert np.bitwise_count(found).sum(axis=1).tolist() == [3, 0, 3, 1]


@pytest.mark.parametrize(("size_a", "size_b"), [(8, 8), (100, 100), (40, 400), (400, 400), (512, 512)])
@pytest.mark.parametrize("share", [0.1, 0.3, 1.0])
def test_samples_that_share_the_minimum_pass(size_a: int, size_b: int, share: float) -> None:
    """Of 1,000 pairs of samples that share exactly the minimum, more than 99 % pass."""
    rng = np.random.default_rng(size_a)
    common = max(1, round(share * min(size_a, size_b)))
    hashes = rng.integers(0, 2**32, (1_000, size_a + size_b - common), np.uint32)
    sizes = np.full(1_000, size_a), np.full(1_000, size_b)
    samples = hashes[:, :size_a], hashes[:, size_a - common :]
    a, b = (sample_bitmaps(sample.ravel(), size) for sample, size in zip(samples, sizes, strict=True))

    assert may_share(a, b, *sizes, np.full(1_000, float(common))).mean() > 0.99


def test_copies_pass_and_few_unrelated_pairs_do() -> None:
    """Copies cut to any length pass; of unrelated pairs under 2 % pass, under 15 % with cut articles."""
    texts = [story(n, 60).split() for n in range(40)]
    columns = columns_from_signatures(
        [signature(words) for words in texts]
        + [signature(words[: len(words) * (at + 10) // 50]) for at, words in enumerate(texts)]
    )
    a, b = np.triu_indices(80, 1)
    found = may_reach_containment(columns, pack_pairs(a, b), 0.2)
    copies = a + 40 == b

    assert found[copies].all()
    assert found[b < 40].mean() < 0.02
    assert found[~copies].mean() < 0.15
