"""Candidates: nothing within the radius is missed, and partitions agree with the whole."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from aggregator.offline.archive.columns import Columns, columns_from_signatures, group_equal_texts
from aggregator.offline.archive.encode import Encoder, Encoding
from aggregator.offline.archive.join import Partition, find_candidates, join_partition, partitions
from aggregator.offline.archive.join_bits import BLOCK_PAIRS, BLOCK_WIDTHS_BITS
from aggregator.offline.archive.pairs import merge_pairs, unpack_pairs
from aggregator.offline.archive.rows import row_as_dict
from aggregator.offline.archive.sketch_keys import sorted_entries
from tests.support.archive_data import archive_rows


@pytest.fixture(scope="module")
def columns() -> Columns:
    """The small archive, encoded."""
    encoder = Encoder(Encoding())
    return columns_from_signatures(
        [encoder.encode(encoder.parse_article(row_as_dict(row))) for row in archive_rows()]
    )


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
        empty, empty, empty.astype(np.uint16), *(empty.astype(np.uint8),) * 2, np.zeros((count, 32), np.uint32),
        np.zeros((count, 32), np.uint64), empty, np.arange(count), empty, np.zeros(count, np.int64),
        np.zeros(0, np.uint8), np.zeros(count, np.int64), ["en.0000"], [""],
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_the_join_finds_exactly_the_pairs_within_the_radius(seed: int) -> None:
    """Against brute force over all pairs."""
    columns = random_columns(400, seed)
    rows = np.arange(400)
    found = find_candidates(columns, rows, 3, sketch_keys=False)

    a, b = np.triu_indices(400, 1)
    near = np.bitwise_count(columns.fingerprint[a] ^ columns.fingerprint[b]) <= 3
    assert set(zip(*map(np.ndarray.tolist, unpack_pairs(found)), strict=True)) == set(
        zip(a[near].tolist(), b[near].tolist(), strict=True)
    )


def test_any_cut_into_partitions_gives_the_same_candidates(columns: Columns) -> None:
    """Partitions are independent: what one finds does not depend on the others."""
    rows = group_equal_texts(columns).rows
    listed = sorted_entries(columns.bands, rows)
    whole = find_candidates(columns, rows, 3)
    keys, positions = [0, 1 << 20, 1 << 26, 1 << 31, 1 << 32], [0, 1, 7, 30, len(rows)]
    parts = [Partition(lo, hi, blocks) for lo, hi in pairwise(keys) for blocks in BLOCK_PAIRS]
    parts += [Partition(lo, hi) for lo, hi in pairwise(positions)]
    cut = merge_pairs([join_partition(part, columns, rows, listed, 3)[0] for part in parts])

    assert len(whole) >= 10
    assert np.array_equal(whole, cut)


def test_fingerprints_of_two_spaces_are_never_compared() -> None:
    """Equal bits of two models mean nothing."""
    columns = random_columns(40, 1)
    columns.fingerprint[:] = columns.fingerprint[0]
    columns.space[20:] = 1
    found = find_candidates(columns, np.arange(40), 3, sketch_keys=False)
    a, b = unpack_pairs(found)
    assert len(found) == 2 * (20 * 19 // 2)
    assert ((a < 20) == (b < 20)).all()


def test_equal_texts_are_taken_together_unless_far_apart_in_time(columns: Columns) -> None:
    """A copy printed weeks later starts a group of its own under ``within``."""
    originals = [at for at, row in enumerate(archive_rows()) if row["id"].endswith("original")]

    assert [int(group_equal_texts(columns).first_row[at + 3]) for at in originals] == originals
    assert [int(group_equal_texts(columns, 7 * 86_400_000).first_row[at + 3]) for at in originals] == [
        at + 3 for at in originals
    ]


def crowded(count: int) -> Columns:
    """Rows that share each of their bands with all others."""
    columns = random_columns(count, 2)
    columns.bands[:] = np.arange(32, dtype=np.uint32)
    columns.sampled[:] = 32
    return columns


def test_a_crowded_bucket_is_not_compared_in_full() -> None:
    """What was left out is counted, for each of the buckets."""
    rows = np.arange(1_000)
    columns = crowded(1_000)
    pairs, left_out = join_partition(
        Partition(0, 1_000), columns, rows, sorted_entries(columns.bands, rows), 3
    )
    compared = sum(1_000 - step for step in range(1, 9))

    assert len(pairs) == compared
    assert left_out == 32 * (1_000 * 999 // 2 - compared)


def test_crowded_buckets_ask_for_more_agreement() -> None:
    """Thirty articles with one shingle in common are no candidates; two that share more are, long or short."""
    columns = random_columns(30, 3)
    rng = np.random.default_rng(5)
    columns.bands[:] = np.sort(rng.integers(1_000, 2**32, columns.bands.shape, np.uint32), axis=1)
    columns.sampled[:] = 32
    columns.bands[:, 0] = 7
    columns.bands[1, :4] = columns.bands[0, :4]
    columns.bands[2, 1:] = columns.bands[3, 1:] = 900  # two hashes each, both the same
    columns.sampled[2:4] = 2

    pairs = find_candidates(columns, np.arange(30), 3, bits=False)
    assert sorted(zip(*map(np.ndarray.tolist, unpack_pairs(pairs)), strict=True)) == [(0, 1), (2, 3)]


@pytest.mark.parametrize(
    ("sharing", "others", "found"),
    [(1, 15, True), (1, 16, False), (2, 63, True), (2, 64, False), (3, 255, False), (4, 255, True)],
)
def test_a_shared_hash_counts_the_more_the_fewer_have_it(sharing: int, others: int, found: bool) -> None:
    """Two articles with so many hashes in common, each of which so many others have, each by itself."""
    count = 2 + sharing * (others - 1)
    columns = random_columns(count, 4)
    columns.sampled[:] = 32
    columns.bands[:] = 1_000 + np.arange(count * 32, dtype=np.uint32).reshape(count, 32)
    for hash_ in range(sharing):
        columns.bands[:2, hash_] = hash_
        start = 2 + hash_ * (others - 1)
        columns.bands[start : start + others - 1, 0] = hash_

    pairs = find_candidates(columns, np.arange(count), 3, bits=False)
    assert ((0, 1) in set(zip(*map(np.ndarray.tolist, unpack_pairs(pairs)), strict=True))) == found


def test_three_bits_leave_two_of_five_blocks_alone() -> None:
    """Every way to lie in three blocks misses one of the tables; the blocks are the whole fingerprint."""
    assert sum(BLOCK_WIDTHS_BITS) == 64
    for touched in combinations(range(5), 3):
        assert any(not set(blocks) & set(touched) for blocks in BLOCK_PAIRS)


def test_bits_are_found_in_any_number_of_ranges() -> None:
    """An archive of many millions is cut into ranges of keys, which are the whole of each table."""
    parts = partitions(3 << 22, bits=True, sketch_keys=False)
    for blocks in BLOCK_PAIRS:
        ranges = [(part.low, part.high) for part in parts if part.blocks == blocks]
        assert len(ranges) == 4
        assert (ranges[0][0], ranges[-1][1]) == (0, 1 << 32)
        assert all(one[1] == other[0] for one, other in pairwise(ranges))


def test_a_crowd_of_equal_fingerprints_is_not_compared_in_full() -> None:
    """A template of thousands: each with its neighbours, and the rest counted."""
    columns = random_columns(4_200, 5)
    columns.fingerprint[:] = columns.fingerprint[0]
    rows = np.arange(4_200)
    pairs, left_out = join_partition(
        Partition(0, 1 << 32, (0, 1)), columns, rows, sorted_entries(columns.bands, rows), 3
    )

    assert len(pairs) == sum(4_200 - step for step in range(1, 9))
    assert left_out == 4_200 * 4_199 // 2 - 2 * len(pairs)
