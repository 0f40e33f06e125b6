"""Packed bucket entries against a plain loop."""

from operator import add

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.errors import StoreUnavailable
from aggregator.index import keys
from aggregator.index.blocks import PLANS, BlockPlan
from aggregator.index.codec.postings import (
    appended_sharing,
    appended_within,
    compact_bucket,
    decode_numbers,
    decode_remainders,
    encode_posting,
    encode_sketch_postings,
    encode_term_postings,
    merge_matches,
    numbers_sharing_each,
    numbers_within,
    numbers_within_each,
    top_by_terms,
)

words = st.integers(0, 2**64 - 1)
entries = st.lists(st.tuples(words, st.integers(0, 40)), max_size=40)
BANDS = [3, 3 + (1 << 18), 5, 2**32 - 1]


def test_layout() -> None:
    """Persisted: what the key does not say and the number, both little-endian."""
    assert encode_posting(1, 2, 6) == b"\x01" + b"\x00" * 5 + b"\x02" + b"\x00" * 7
    assert encode_posting(2**56 - 1, 2**64 - 1, 7) == b"\xff" * 15
    assert encode_sketch_postings([0x1234_5678], 2)[0] == b"\x8d\x04" + b"\x02" + b"\x00" * 7
    assert encode_term_postings([0xABCDE_12345678], 2)[0] == b"\x78\x56\x34\x12" + b"\x02" + b"\x00" * 7
    assert keys.term_buckets(b"", [0xABCDE_12345678]) == [b"tabcde"]


@pytest.mark.parametrize("rest", [1, 8, 13])
def test_a_bucket_that_ends_within_an_entry_is_one_clear_error(rest: int) -> None:
    """Whoever reads it: half an entry would shift all that stand behind it."""
    around = PLANS["4x16"].probe_plan(0, 0)
    numbers = numbers_within([encode_posting(0, 6, 6)], around, 0, 0)[0]
    assert numbers.tolist() == [6]
    for read in (
        lambda: numbers_within([bytes(14 + rest)], around, 3, 0),
        lambda: numbers_sharing_each([bytes(10 + rest % 10)], [[1]], 0),
        lambda: top_by_terms([bytes(12 + rest % 12)], {0: 1.0}, 0),
        lambda: compact_bucket(bytes(14 + rest), 6, 0, numbers),
        lambda: decode_remainders(bytes(14 + rest), 6),
    ):
        with pytest.raises(StoreUnavailable, match="it ends within an entry"):
            read()


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@given(entries, words, st.integers(0, 7), st.integers(0, 40))
def test_within_equals_a_plain_loop(
    plan: BlockPlan, stored: list[tuple[int, int]], query: int, radius: int, floor: int
) -> None:
    """Every number at or above the floor within the radius, once, at its smallest distance; in two layers."""
    near = [(query ^ (1 << (i % 64)), n) for i, (_, n) in enumerate(stored)]  # some that must be found
    table = stored + near
    around = plan.probe_plan(query, radius)
    wanted = keys.block_buckets(b"", around)
    layers: list[bytes | None] = []
    for part in (table[::2], table[1::2]):
        filled: dict[bytes, bytes] = {}
        for value, number in part:
            for block, (cell, rest) in enumerate(plan.split(value)):
                key = keys.block_bucket(b"", block, cell)
                filled[key] = filled.get(key, b"") + encode_posting(rest, number, plan.remainder_bytes)
        layers += map(filled.get, wanted)

    numbers, distances = numbers_within(layers, around, radius, floor)

    expected: dict[int, int] = {}
    for value, number in table:
        distance = (value ^ query).bit_count()
        if distance <= radius and number >= floor:
            expected[number] = min(distance, expected.get(number, 64))
    assert dict(zip(numbers.tolist(), distances.tolist(), strict=True)) == expected
    assert numbers.tolist() == sorted(expected)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@given(entries, st.lists(words, min_size=1, max_size=5), st.integers(0, 7), st.integers(1, 2))
def test_several_look_ups_by_bits(
    plan: BlockPlan, stored: list[tuple[int, int]], queries: list[int], radius: int, layers: int
) -> None:
    """Each finds what it finds alone."""
    arounds = [plan.probe_plan(query, radius) for query in queries]
    filled: dict[bytes, bytes] = {}
    for value, number in [*stored, *((query ^ 6, 7) for query in queries)]:
        for block, (cell, rest) in enumerate(plan.split(value)):
            key = keys.block_bucket(b"", block, cell)
            filled[key] = filled.get(key, b"") + encode_posting(rest, number, plan.remainder_bytes)
    read = [list(map(filled.get, keys.block_buckets(b"", around))) * layers for around in arounds]

    together = numbers_within_each([bucket for one in read for bucket in one], arounds, radius, 3)

    alone = [numbers_within(one, around, radius, 3) for one, around in zip(read, arounds, strict=True)]
    assert [[part.tolist() for part in one] for one in together] == [
        [part.tolist() for part in one] for one in alone
    ]


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@given(entries, entries, words, st.integers(0, 7), st.integers(0, 40))
def test_what_came_since_is_added_by_bits(
    plan: BlockPlan,
    stored: list[tuple[int, int]],
    came: list[tuple[int, int]],
    query: int,
    radius: int,
    floor: int,
) -> None:
    """As if all had been read at once."""
    around = plan.probe_plan(query, radius)
    wanted = keys.block_buckets(b"", around)
    filled: dict[bytes, bytes] = {}
    read: list[list[bytes]] = []
    for table in (stored, came):
        near = [(query ^ (1 << (i % 64)), n) for i, (_, n) in enumerate(table)]  # some that must be found
        for value, number in (*table, *near):
            for block, (cell, rest) in enumerate(plan.split(value)):
                key = keys.block_bucket(b"", block, cell)
                filled[key] = filled.get(key, b"") + encode_posting(rest, number, plan.remainder_bytes)
        read.append([filled.get(key, b"") for key in wanted])
    before, after = read
    grown = {i: b[len(a) :] for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b}
    grown[len(wanted)] = b"another kind's"

    found = merge_matches(
        numbers_within(before, around, radius, floor), appended_within(grown, around, radius, floor), min
    )

    expected = numbers_within(after, around, radius, floor)
    assert [part.tolist() for part in found] == [part.tolist() for part in expected]
    assert [part.dtype for part in found] == [part.dtype for part in expected]


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@given(st.lists(words, min_size=1, max_size=20))
def test_a_key_and_its_entries_say_the_whole_fingerprint(plan: BlockPlan, stored: list[int]) -> None:
    """Of every block."""
    for block in range(len(plan.widths)):
        for fingerprint in stored:
            value, rest = plan.split(fingerprint)[block]
            bucket = encode_posting(rest, 9, plan.remainder_bytes) * 2
            assert (
                plan.join(block, value, decode_remainders(bucket, plan.remainder_bytes)).tolist()
                == [fingerprint] * 2
            )
            assert decode_numbers(bucket, plan.remainder_bytes).tolist() == [9, 9]


@given(
    st.lists(st.tuples(st.sampled_from(BANDS), st.integers(0, 9)), max_size=60, unique=True),
    st.lists(st.sampled_from(BANDS), unique=True),
    st.integers(0, 3),
)
def test_sharing_counts_bands(stored: list[tuple[int, int]], wanted: list[int], floor: int) -> None:
    """How many of the wanted bands each number is listed under, also where two bands share a bucket."""
    filled: dict[bytes, bytes] = {}
    for band, number in stored:
        key = keys.sketch_buckets(b"", [band])[0]
        filled[key] = filled.get(key, b"") + encode_sketch_postings([band], number)[0]

    ((numbers, counts),) = numbers_sharing_each(
        [filled.get(keys.sketch_buckets(b"", [band])[0]) for band in wanted], [wanted], floor
    )

    expected = {n: sum(m == n and v in wanted for v, m in stored) for _, n in stored if n >= floor}
    assert dict(zip(numbers.tolist(), counts.tolist(), strict=True)) == {
        n: c for n, c in expected.items() if c
    }


@given(
    st.lists(st.tuples(st.sampled_from(BANDS), st.integers(0, 9)), max_size=60),
    st.lists(st.lists(st.sampled_from(BANDS), unique=True), min_size=1, max_size=5),
    st.integers(1, 2),
)
def test_several_look_ups_by_bands(
    stored: list[tuple[int, int]], wanted: list[list[int]], layers: int
) -> None:
    """Each finds what it finds alone, also one without any band."""
    filled: dict[bytes, bytes] = {}
    for band, number in stored:
        key = keys.sketch_buckets(b"", [band])[0]
        filled[key] = filled.get(key, b"") + encode_sketch_postings([band], number)[0]
    read = [[filled.get(keys.sketch_buckets(b"", [band])[0]) for band in some] * layers for some in wanted]

    together = numbers_sharing_each([bucket for one in read for bucket in one], wanted, 3)

    alone = [numbers_sharing_each(one, [some], 3)[0] for one, some in zip(read, wanted, strict=True)]
    assert [[part.tolist() for part in one] for one in together] == [
        [part.tolist() for part in one] for one in alone
    ]


@given(
    st.lists(st.tuples(st.sampled_from(BANDS), st.integers(0, 9)), max_size=60),
    st.lists(st.tuples(st.sampled_from(BANDS), st.integers(0, 9)), max_size=9),
    st.lists(st.sampled_from(BANDS), unique=True, min_size=1),
    st.integers(0, 3),
)
def test_what_came_since_is_added_by_bands(
    stored: list[tuple[int, int]], came: list[tuple[int, int]], wanted: list[int], floor: int
) -> None:
    """As if all had been read at once; bands stand behind three buckets of blocks."""
    filled: dict[bytes, bytes] = {}
    read: list[list[bytes]] = []
    for table in (stored, came):
        for band, number in table:
            key = keys.sketch_buckets(b"", [band])[0]
            filled[key] = filled.get(key, b"") + encode_sketch_postings([band], number)[0]
        read.append([filled.get(keys.sketch_buckets(b"", [band])[0], b"") for band in wanted])
    before, after = read
    grown = {3 + i: b[len(a) :] for i, (a, b) in enumerate(zip(before, after, strict=True))}
    grown[2] = b"another kind's"

    found = merge_matches(
        numbers_sharing_each(before, [wanted], floor)[0], appended_sharing(grown, wanted, 3, floor), add
    )

    expected = numbers_sharing_each(after, [wanted], floor)[0]
    assert [part.tolist() for part in found] == [part.tolist() for part in expected]
    assert [part.dtype for part in found] == [part.dtype for part in expected]
