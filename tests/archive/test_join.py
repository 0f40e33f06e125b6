"""Candidate pairs: complete within the radius, and independent of the partitions."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from aggregator.domain import Article
from aggregator_archive.arrays import Pairs, merge_pairs, unpack_pairs
from aggregator_archive.columns import Columns, columns_from_signatures, group_equal_texts
from aggregator_archive.encode import Encoder, Encoding
from aggregator_archive.join import (
    BLOCK_PAIRS,
    BLOCK_WIDTHS_BITS,
    Partition,
    find_candidates,
    join_partition,
    partitions,
)
from aggregator_archive.rows import parse_article, row_as_dict
from aggregator_archive.sketch_keys import sorted_entries
from tests.support.archive_data import archive_rows


@pytest.fixture(scope="module")
def columns() -> Columns:
    """Columns of the small archive."""
    encoder = Encoder(Encoding())
    return columns_from_signatures(
        [encoder.encode(parse_article(row_as_dict(row), {})) for row in archive_rows()]
    )


def random_columns(count: int, seed: int) -> Columns:
    """Columns with families of fingerprints that differ in a few bits; the other columns are empty."""
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 2**64, count // 4 + 1, np.uint64)
    flips = np.uint64(1) << rng.integers(0, 64, (count, 4), np.uint64)
    fingerprint = base[rng.integers(0, len(base), count)]
    for column in range(4):
        fingerprint = np.where(rng.random(count) < 0.5, fingerprint ^ flips[:, column], fingerprint)
    empty = np.zeros(count, np.uint32)
    return Columns(
        fingerprint=fingerprint, text_hash=np.zeros((count, 2), np.uint64),
        text_key=np.zeros(count, np.uint64),
        space=empty.astype(np.uint16), source=empty, date_ms=np.zeros(count, np.int64),
        has_text=empty.astype(np.uint8), words=empty, size=empty, sample_size=empty.astype(np.uint16),
        figure_count=empty.astype(np.uint8), uses_char_ngrams=empty.astype(np.uint8),
        sketch_keys=np.zeros((count, 32), np.uint32), bitmap=np.zeros((count, 32), np.uint64),
        sample=empty, sample_end=np.arange(count), figure=empty, figure_end=np.zeros(count, np.int64),
        id=np.zeros(0, np.uint8), id_end=np.zeros(count, np.int64),
        detail=np.zeros(0, np.uint8), detail_end=np.zeros(count, np.int64),
        spaces=["en.0000"], sources=[""],
    )  # fmt: skip


def pair_list(pairs: Pairs) -> list[tuple[int, int]]:
    """The pairs as tuples, ascending."""
    a, b = unpack_pairs(pairs)
    return list(zip(a.tolist(), b.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_the_join_finds_exactly_the_pairs_within_the_radius(seed: int) -> None:
    """Against brute force over all pairs."""
    columns = random_columns(400, seed)
    rows = np.arange(400)
    found = find_candidates(columns, rows, 3, sketch_keys=False)

    a, b = np.triu_indices(400, 1)
    near = np.bitwise_count(columns.fingerprint[a] ^ columns.fingerprint[b]) <= 3
    assert set(pair_list(found)) == set(zip(a[near].tolist(), b[near].tolist(), strict=True))


def test_any_partitioning_gives_the_same_candidates(columns: Columns) -> None:
    """Partitions are independent of each other."""
    rows = group_equal_texts(columns).rows
    entries = sorted_entries(columns.sketch_keys, rows)
    whole = find_candidates(columns, rows, 3)
    keys, positions = [0, 1 << 20, 1 << 26, 1 << 31, 1 << 32], [0, 1, 7, 30, len(rows)]
    parts = [Partition(low, high, blocks) for low, high in pairwise(keys) for blocks in BLOCK_PAIRS]
    parts += [Partition(low, high) for low, high in pairwise(positions)]
    partitioned = merge_pairs([join_partition(part, columns, rows, entries, 3)[0] for part in parts])

    assert len(whole) >= 10
    assert np.array_equal(whole, partitioned)


def test_fingerprints_of_two_spaces_are_never_compared() -> None:
    """Equal bits of two models have no meaning."""
    columns = random_columns(40, 1)
    columns.fingerprint[:] = columns.fingerprint[0]
    columns.space[20:] = 1
    found = find_candidates(columns, np.arange(40), 3, sketch_keys=False)
    a, b = unpack_pairs(found)
    assert len(found) == 2 * (20 * 19 // 2)
    assert ((a < 20) == (b < 20)).all()


def test_equal_texts_are_grouped_unless_far_apart_in_time(columns: Columns) -> None:
    """With ``within_ms`` a copy printed weeks later starts a new group."""
    originals = [at for at, row in enumerate(archive_rows()) if row["id"].endswith("original")]

    assert [int(group_equal_texts(columns).first_row[at + 3]) for at in originals] == originals
    assert [int(group_equal_texts(columns, 7 * 86_400_000).first_row[at + 3]) for at in originals] == [
        at + 3 for at in originals
    ]


def test_equal_texts_in_several_languages_are_one_group() -> None:
    """Also through a third one; a sign makes another text."""
    ferry, fall = "Fährverkehr über den Skarnsund ruht elf Tage", "Aktien der Skarn AG: -4,2 %"
    rows = [(ferry, "en"), (ferry.upper(), "de"), (fall, "de"), (fall.replace("-", "+"), "es"), (ferry, "xx"),
            (f"{ferry}!", "de"), (fall, "es")]  # fmt: skip
    encoder = Encoder(Encoding())
    columns = columns_from_signatures(
        [encoder.encode(Article(id=str(n), title=title, lang=lang)) for n, (title, lang) in enumerate(rows)]
    )

    assert len(set(columns.space.tolist())) > 1
    assert group_equal_texts(columns).first_row.tolist() == [0, 0, 2, 3, 0, 0, 2]


def columns_with_equal_keys(count: int) -> Columns:
    """Columns of articles that all have the same sketch keys."""
    columns = random_columns(count, 2)
    columns.sketch_keys[:] = np.arange(32, dtype=np.uint32)
    columns.sample_size[:] = 32
    return columns


def test_a_large_bucket_is_not_compared_in_full() -> None:
    """Pairs that were not compared are counted for each bucket."""
    rows = np.arange(1_000)
    columns = columns_with_equal_keys(1_000)
    pairs, uncompared = join_partition(
        Partition(0, 1_000), columns, rows, sorted_entries(columns.sketch_keys, rows), 3
    )
    compared = sum(1_000 - step for step in range(1, 9))

    assert len(pairs) == compared
    assert uncompared == 32 * (1_000 * 999 // 2 - compared)


def test_keys_of_large_buckets_weigh_less() -> None:
    """30 articles with one common key are not candidates; two that share more are, and so are short ones."""
    columns = random_columns(30, 3)
    rng = np.random.default_rng(5)
    columns.sketch_keys[:] = np.sort(rng.integers(1_000, 2**32, columns.sketch_keys.shape, np.uint32), axis=1)
    columns.sample_size[:] = 32
    columns.sketch_keys[:, 0] = 7
    columns.sketch_keys[1, :4] = columns.sketch_keys[0, :4]
    columns.sketch_keys[2, 1:] = columns.sketch_keys[3, 1:] = 900  # samples of the same two hashes
    columns.sample_size[2:4] = 2

    pairs = find_candidates(columns, np.arange(30), 3, bits=False)
    assert pair_list(pairs) == [(0, 1), (2, 3)]


@pytest.mark.parametrize(
    ("sharing", "others", "found"),
    [(1, 15, True), (1, 16, False), (2, 63, True), (2, 64, False), (3, 255, False), (4, 255, True)],
)
def test_a_shared_key_weighs_more_the_fewer_articles_have_it(sharing: int, others: int, found: bool) -> None:
    """Two articles share ``sharing`` keys; each of these is in one bucket with ``others`` other articles."""
    count = 2 + sharing * (others - 1)
    columns = random_columns(count, 4)
    columns.sample_size[:] = 32
    columns.sketch_keys[:] = 1_000 + np.arange(count * 32, dtype=np.uint32).reshape(count, 32)
    for hash_ in range(sharing):
        columns.sketch_keys[:2, hash_] = hash_
        start = 2 + hash_ * (others - 1)
        columns.sketch_keys[start : start + others - 1, 0] = hash_

    pairs = find_candidates(columns, np.arange(count), 3, bits=False)
    assert ((0, 1) in pair_list(pairs)) == found


def test_three_bits_leave_two_of_five_blocks_unchanged() -> None:
    """Any three blocks leave one pair of blocks untouched; the blocks cover the whole fingerprint."""
    assert sum(BLOCK_WIDTHS_BITS) == 64
    for touched in combinations(range(5), 3):
        assert any(not set(blocks) & set(touched) for blocks in BLOCK_PAIRS)


def test_partitions_of_a_table_cover_all_keys() -> None:
    """Each table of an archive of many millions is split into consecutive ranges of keys."""
    parts = partitions(3 << 22, bits=True, sketch_keys=False)
    for blocks in BLOCK_PAIRS:
        ranges = [(part.low, part.high) for part in parts if part.blocks == blocks]
        assert len(ranges) == 4
        assert (ranges[0][0], ranges[-1][1]) == (0, 1 << 32)
        assert all(before[1] == after[0] for before, after in pairwise(ranges))


def test_a_large_bucket_of_equal_fingerprints_is_not_compared_in_full() -> None:
    """Each article of a template is compared with its next neighbors; the other pairs are counted."""
    columns = random_columns(4_200, 5)
    columns.fingerprint[:] = columns.fingerprint[0]
    rows = np.arange(4_200)
    pairs, uncompared = join_partition(
        Partition(0, 1 << 32, (0, 1)), columns, rows, sorted_entries(columns.sketch_keys, rows), 3
    )

    assert len(pairs) == sum(4_200 - step for step in range(1, 9))
    assert uncompared == 4_200 * 4_199 // 2 - 2 * len(pairs)
