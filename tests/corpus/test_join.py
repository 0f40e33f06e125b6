"""Candidates: nothing within the radius is missed, and partitions agree with the whole."""

from itertools import pairwise

import numpy as np
import pytest
from archive import archive_rows

from aggregator.corpus.columns import Columns, distinct, of_signatures
from aggregator.corpus.encode import Encoder, Encoding
from aggregator.corpus.join import Partition, join, merged, partitions, rows_of
from aggregator.corpus.rows import as_dict


@pytest.fixture(scope="module")
def columns() -> Columns:
    """The small archive, encoded."""
    encoder = Encoder(Encoding())
    return of_signatures([encoder.signature(encoder.article(as_dict(row))) for row in archive_rows()])


def random_columns(count: int, seed: int) -> Columns:
    """Fingerprints in families of a few bits' difference; the other columns hold nothing of interest."""
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 2**64, count // 4 + 1, np.uint64)
    flips = np.uint64(1) << rng.integers(0, 64, (count, 4), np.uint64)
    fingerprint = base[rng.integers(0, len(base), count)]
    for column in range(4):
        fingerprint = np.where(rng.random(count) < 0.5, fingerprint ^ flips[:, column], fingerprint)
    empty = np.zeros(count, np.uint32)
    return Columns(
        fingerprint, np.zeros((count, 2), np.uint64), empty.astype(np.uint16), empty, np.zeros(count, np.int64),
        empty, empty, empty.astype(np.uint16), empty.astype(np.uint8), np.zeros((count, 16), np.uint32), empty, np.arange(count),
        np.zeros(0, np.uint8), np.zeros(count, np.int64), ["en.0000"], [""],
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_the_join_finds_exactly_the_pairs_within_the_radius(seed: int) -> None:
    """Against brute force over all pairs."""
    columns = random_columns(400, seed)
    rows = np.arange(400)
    found = merged([join(part, columns, rows, 3)[0] for part in partitions(400, bits=True, bands=False)])

    a, b = np.triu_indices(400, 1)
    near = np.bitwise_count(columns.fingerprint[a] ^ columns.fingerprint[b]) <= 3
    assert set(zip(*map(np.ndarray.tolist, rows_of(found)), strict=True)) == set(
        zip(a[near].tolist(), b[near].tolist(), strict=True)
    )


def test_any_cut_into_partitions_gives_the_same_candidates(columns: Columns) -> None:
    """Partitions are independent: what one finds does not depend on the others."""
    rows = distinct(columns).rows
    whole = merged([join(Partition(0, 1 << 32), columns, rows, 3)[0]])
    edges = [0, 1 << 20, 1 << 26, 1 << 31, 1 << 32]
    cut = merged([join(Partition(lo, hi), columns, rows, 3)[0] for lo, hi in pairwise(edges)])

    assert len(whole) >= 10
    assert np.array_equal(whole, cut)


def test_fingerprints_of_two_spaces_are_never_compared() -> None:
    """Equal bits of two models mean nothing."""
    columns = random_columns(40, 1)
    columns.fingerprint[:] = columns.fingerprint[0]
    columns.space[20:] = 1
    found = merged(
        [join(part, columns, np.arange(40), 3)[0] for part in partitions(40, bits=True, bands=False)]
    )

    a, b = rows_of(found)
    assert len(found) == 2 * (20 * 19 // 2)
    assert ((a < 20) == (b < 20)).all()


def test_equal_texts_are_taken_together_unless_far_apart_in_time(columns: Columns) -> None:
    """A copy printed weeks later starts a group of its own under ``within``."""
    originals = [at for at, row in enumerate(archive_rows()) if row["id"].endswith("original")]

    assert [int(distinct(columns).first[at + 3]) for at in originals] == originals
    assert [int(distinct(columns, 7 * 86_400_000).first[at + 3]) for at in originals] == [
        at + 3 for at in originals
    ]


def test_a_crowded_bucket_is_not_compared_in_full() -> None:
    """What was left out is counted."""
    columns = random_columns(1_000, 2)
    columns.bands[:] = np.arange(16, dtype=np.uint32)
    pairs, left_out = join(Partition(0, 1), columns, np.arange(1_000), 3)

    assert 0 < len(pairs) <= 8 * 1_000
    assert left_out == 1_000 * 999 // 2 - sum(1_000 - step for step in range(1, 9))


def test_crowded_buckets_ask_for_more_agreement() -> None:
    """Thirty articles with one shingle in common are no candidates; two that share more are, long or short."""
    columns = random_columns(30, 3)
    rng = np.random.default_rng(5)
    columns.bands[:] = np.sort(rng.integers(1_000, 2**32, columns.bands.shape, np.uint32), axis=1)
    columns.bands[:, 0] = 7
    columns.bands[1, :4] = columns.bands[0, :4]
    columns.bands[2, 1:] = columns.bands[3, 1:] = 900  # two hashes each, both the same

    pairs, _ = join(Partition(0, 8), columns, np.arange(30), 3)
    assert sorted(zip(*map(np.ndarray.tolist, rows_of(pairs)), strict=True)) == [(0, 1), (2, 3)]
