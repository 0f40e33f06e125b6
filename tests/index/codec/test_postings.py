"""Packed postings: every function is compared with a plain loop."""

from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.errors import StoreUnavailable
from aggregator.index import keys
from aggregator.index.blocks import BlockPlan
from aggregator.index.codec.postings import (
    appended_sharing,
    appended_within,
    compact_bucket,
    decode_numbers,
    decode_remainders,
    encode_sketch_postings,
    encode_term_postings,
    entries_of_terms,
    is_among,
    merge_matches,
    numbers_sharing_each,
    numbers_within,
    numbers_within_each,
    shares_of_terms,
    top_by_terms,
)
from tests.support.index_layout import PLANS, encode_posting

words = st.integers(0, 2**64 - 1)
entries = st.lists(st.tuples(words, st.integers(0, 40)), max_size=40)
SKETCH_KEYS = [3, 3 + (1 << 18), 5, 2**32 - 1]


def test_the_layout_is_pinned() -> None:
    """Stored format: the remainder and the article number, both little-endian."""
    assert encode_posting(1, 2, 6) == b"\x01" + b"\x00" * 5 + b"\x02" + b"\x00" * 7
    assert encode_posting(2**56 - 1, 2**64 - 1, 7) == b"\xff" * 15
    assert encode_sketch_postings([0x1234_5678], 2)[0] == b"\x8d\x04" + b"\x02" + b"\x00" * 7
    assert encode_term_postings([0xABCDE_1234], 2)[0] == b"\x34\x12" + b"\x02" + b"\x00" * 7
    assert keys.term_buckets(b"", [0xABCDE_1234]) == [b"tabcde"]


@pytest.mark.parametrize("extra_bytes", [1, 8, 13])
def test_a_truncated_bucket_is_rejected(extra_bytes: int) -> None:
    """By every reader: a partial entry would shift all that follow it."""
    probe_plan = PLANS["4x16"].probe_plan(0, 0)
    numbers = numbers_within([encode_posting(0, 6, 6)], probe_plan, 0, 0)[0]
    assert numbers.tolist() == [6]
    for read in (
        lambda: numbers_within([bytes(14 + extra_bytes)], probe_plan, 3, 0),
        lambda: numbers_sharing_each([bytes(10 + extra_bytes % 10)], [[1]], 0),
        lambda: entries_of_terms([bytes(10 + extra_bytes % 10)], [0], 0),
        lambda: compact_bucket(bytes(14 + extra_bytes), 6, 0, numbers),
        lambda: decode_remainders(bytes(14 + extra_bytes), 6),
    ):
        with pytest.raises(StoreUnavailable, match="it ends within an entry"):
            read()


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@given(entries, words, st.integers(0, 7), st.integers(0, 40))
def test_numbers_within_equals_a_plain_loop(
    plan: BlockPlan, stored: list[tuple[int, int]], query: int, radius: int, floor: int
) -> None:
    """Numbers at or above the floor within the radius, once, at the smallest distance; two segments."""
    near = [(query ^ (1 << (i % 64)), n) for i, (_, n) in enumerate(stored)]  # these must be found
    table = stored + near
    probe_plan = plan.probe_plan(query, radius)
    wanted = keys.block_buckets(b"", [probe_plan])
    buckets: list[bytes | None] = []
    for part in (table[::2], table[1::2]):
        filled: dict[bytes, bytes] = {}
        for value, number in part:
            for block, (block_value, remainder) in enumerate(plan.split(value)):
                key = keys.block_bucket(b"", block, block_value)
                filled[key] = filled.get(key, b"") + encode_posting(remainder, number, plan.remainder_bytes)
        buckets += map(filled.get, wanted)

    numbers, distances = numbers_within(buckets, probe_plan, radius, floor)

    expected: dict[int, int] = {}
    for value, number in table:
        distance = (value ^ query).bit_count()
        if distance <= radius and number >= floor:
            expected[number] = min(distance, expected.get(number, 64))
    assert dict(zip(numbers.tolist(), distances.tolist(), strict=True)) == expected
    assert numbers.tolist() == sorted(expected)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@given(entries, st.lists(words, min_size=1, max_size=5), st.integers(0, 7), st.integers(1, 2))
def test_several_lookups_by_bits(
    plan: BlockPlan, stored: list[tuple[int, int]], queries: list[int], radius: int, segments: int
) -> None:
    """Each finds what it finds when it is evaluated alone."""
    probe_plans = [plan.probe_plan(query, radius) for query in queries]
    filled: dict[bytes, bytes] = {}
    for value, number in [*stored, *((query ^ 6, 7) for query in queries)]:
        for block, (block_value, remainder) in enumerate(plan.split(value)):
            key = keys.block_bucket(b"", block, block_value)
            filled[key] = filled.get(key, b"") + encode_posting(remainder, number, plan.remainder_bytes)
    read = [
        list(map(filled.get, keys.block_buckets(b"", [probe_plan]))) * segments for probe_plan in probe_plans
    ]

    results = numbers_within_each([bucket for buckets in read for bucket in buckets], probe_plans, radius, 3)

    alone = [
        numbers_within(buckets, probe_plan, radius, 3)
        for buckets, probe_plan in zip(read, probe_plans, strict=True)
    ]
    assert [[column.tolist() for column in result] for result in results] == [
        [column.tolist() for column in result] for result in alone
    ]


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@given(entries, entries, words, st.integers(0, 7), st.integers(0, 40))
def test_appended_entries_are_added_by_bits(
    plan: BlockPlan,
    stored: list[tuple[int, int]],
    added: list[tuple[int, int]],
    query: int,
    radius: int,
    floor: int,
) -> None:
    """The result equals that of one lookup after the append."""
    probe_plan = plan.probe_plan(query, radius)
    wanted = keys.block_buckets(b"", [probe_plan])
    filled: dict[bytes, bytes] = {}
    read: list[list[bytes]] = []
    for table in (stored, added):
        near = [(query ^ (1 << (i % 64)), n) for i, (_, n) in enumerate(table)]  # these must be found
        for value, number in (*table, *near):
            for block, (block_value, remainder) in enumerate(plan.split(value)):
                key = keys.block_bucket(b"", block, block_value)
                filled[key] = filled.get(key, b"") + encode_posting(remainder, number, plan.remainder_bytes)
        read.append([filled.get(key, b"") for key in wanted])
    before, after = read
    appended = {i: b[len(a) :] for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b}
    appended[len(wanted)] = b"another kind of bucket"

    found = merge_matches(
        numbers_within(before, probe_plan, radius, floor),
        appended_within(appended, probe_plan, radius, floor),
        min,
    )

    expected = numbers_within(after, probe_plan, radius, floor)
    assert [part.tolist() for part in found] == [part.tolist() for part in expected]
    assert [part.dtype for part in found] == [part.dtype for part in expected]


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@given(st.lists(words, min_size=1, max_size=20))
def test_key_and_remainder_give_the_fingerprint(plan: BlockPlan, stored: list[int]) -> None:
    """For every block."""
    for block in range(len(plan.widths)):
        for fingerprint in stored:
            value, remainder = plan.split(fingerprint)[block]
            bucket = encode_posting(remainder, 9, plan.remainder_bytes) * 2
            assert (
                plan.join(block, value, decode_remainders(bucket, plan.remainder_bytes)).tolist()
                == [fingerprint] * 2
            )
            assert decode_numbers(bucket, plan.remainder_bytes).tolist() == [9, 9]


@given(
    st.lists(st.tuples(st.sampled_from(SKETCH_KEYS), st.integers(0, 9)), max_size=60, unique=True),
    st.lists(st.sampled_from(SKETCH_KEYS), unique=True),
    st.integers(0, 3),
)
def test_shared_sketch_keys_are_counted(stored: list[tuple[int, int]], wanted: list[int], floor: int) -> None:
    """Per number, also where two sketch keys share a bucket."""
    filled: dict[bytes, bytes] = {}
    for sketch_key, number in stored:
        key = keys.sketch_buckets(b"", [sketch_key])[0]
        filled[key] = filled.get(key, b"") + encode_sketch_postings([sketch_key], number)[0]

    ((numbers, counts, key_entries, key_ranks),) = numbers_sharing_each(
        [filled.get(keys.sketch_buckets(b"", [sketch_key])[0]) for sketch_key in wanted], [wanted], floor
    )

    expected = {n: sum(m == n and v in wanted for v, m in stored) for _, n in stored if n >= floor}
    assert dict(zip(numbers.tolist(), counts.tolist(), strict=True)) == {
        n: c for n, c in expected.items() if c
    }
    of_key = {key: sum(v == key for v, _ in stored) for key in wanted}
    columns = (column.tolist() for column in (numbers, key_entries, key_ranks))
    for number, entries, rank in zip(*columns, strict=True):
        assert (wanted[rank], number) in stored
        assert entries == of_key[wanted[rank]]


@given(
    st.lists(st.tuples(st.sampled_from(SKETCH_KEYS), st.integers(0, 9)), max_size=60),
    st.lists(st.lists(st.sampled_from(SKETCH_KEYS), unique=True), min_size=1, max_size=5),
    st.integers(1, 2),
)
def test_several_lookups_by_sketch_keys(
    stored: list[tuple[int, int]], wanted: list[list[int]], segments: int
) -> None:
    """Each finds what it finds when it is evaluated alone, also one without sketch keys."""
    filled: dict[bytes, bytes] = {}
    for sketch_key, number in stored:
        key = keys.sketch_buckets(b"", [sketch_key])[0]
        filled[key] = filled.get(key, b"") + encode_sketch_postings([sketch_key], number)[0]
    read = [
        [filled.get(keys.sketch_buckets(b"", [sketch_key])[0]) for sketch_key in own] * segments
        for own in wanted
    ]

    results = numbers_sharing_each([bucket for buckets in read for bucket in buckets], wanted, 3)

    alone = [numbers_sharing_each(buckets, [own], 3)[0] for buckets, own in zip(read, wanted, strict=True)]
    assert [[column.tolist() for column in result] for result in results] == [
        [column.tolist() for column in result] for result in alone
    ]


@given(
    st.lists(st.tuples(st.sampled_from(SKETCH_KEYS), st.integers(0, 9)), max_size=60),
    st.lists(st.tuples(st.sampled_from(SKETCH_KEYS), st.integers(0, 9)), max_size=9),
    st.lists(st.sampled_from(SKETCH_KEYS), unique=True, min_size=1),
    st.integers(0, 3),
)
def test_appended_entries_are_added_by_sketch_keys(
    stored: list[tuple[int, int]], added: list[tuple[int, int]], wanted: list[int], floor: int
) -> None:
    """The result equals that of one lookup after the append; three block buckets come first."""
    filled: dict[bytes, bytes] = {}
    read: list[list[bytes]] = []
    for table in (stored, added):
        for sketch_key, number in table:
            key = keys.sketch_buckets(b"", [sketch_key])[0]
            filled[key] = filled.get(key, b"") + encode_sketch_postings([sketch_key], number)[0]
        read.append([filled.get(keys.sketch_buckets(b"", [sketch_key])[0], b"") for sketch_key in wanted])
    before, after = read
    appended = {3 + i: b[len(a) :] for i, (a, b) in enumerate(zip(before, after, strict=True))}
    appended[2] = b"another kind of bucket"

    found = merge_matches(
        numbers_sharing_each(before, [wanted], floor)[0][:2],
        appended_sharing(appended, wanted, 3, floor),
        add,
    )

    expected = numbers_sharing_each(after, [wanted], floor)[0][:2]
    assert [part.tolist() for part in found] == [part.tolist() for part in expected]
    assert [part.dtype for part in found] == [part.dtype for part in expected]


@given(values=st.lists(st.integers(0, 9)), others=st.lists(st.integers(0, 9)))
def test_membership_with_repeated_values(values: list[int], others: list[int]) -> None:
    """As ``in`` gives, also for values that occur several times."""
    found = is_among(np.array(values, np.uint64), np.array(sorted(others), np.uint64))

    assert found.tolist() == [value in others for value in values]


def test_articles_are_ranked_by_the_weight_of_shared_terms() -> None:
    """Weights are summed over buckets and segments; ties: newer first. A bucket also has other terms."""
    sea, storm, other = 0xABCDE_0001, 0xABCDF_0001, 0xABCDF_0002

    def postings(hashed: int, *numbers: int) -> bytes:
        return b"".join(encode_term_postings([hashed], number)[0] for number in numbers)

    frozen = [postings(sea, 1, 5, 7), postings(storm, 3) + postings(other, 9)]
    numbers, terms = entries_of_terms([*frozen, postings(sea, 3), None], [sea, storm], 3)

    assert sorted(zip(numbers.tolist(), terms.tolist(), strict=True)) == [(3, 0), (3, 1), (5, 0), (7, 0)]
    assert top_by_terms(numbers, terms, np.array([0.5, 0.25])).tolist() == [3, 7, 5]
    assert top_by_terms(numbers, terms, np.array([0.0, 0.25])).tolist() == [3]
    for found in (entries_of_terms([None], [sea], 3), entries_of_terms([], [], 3)):
        assert [part.tolist() for part in found] == [[], []]
        assert top_by_terms(found[0], found[1], np.ones(1)).dtype == np.uint64


def test_a_full_list_is_compared_with_the_articles_since_its_oldest_entry() -> None:
    """Another with all that are stored; few articles have no samples."""
    numbers = np.array([3000, 3100, 3200, 100, 3100], np.uint64)
    terms = np.array([0, 0, 0, 1, 1])
    sampled, represented = np.array([2048, 0, 3072], np.uint64), np.array([1024, 2048, 1024])

    entries = np.array([3, 2, 0])

    shares = shares_of_terms(numbers, terms, entries, (sampled, represented), 3)

    assert shares.tolist() == [3 / 1024, 2 / 4096, 1 / 4096]
    without = shares_of_terms(numbers, terms, entries, (sampled[:0], represented[:0]), 9)
    assert without.tolist() == [0.003, 0.002, 0.001]
