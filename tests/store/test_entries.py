"""Packed bucket entries against a plain loop."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.errors import StoreUnavailable
from aggregator.store.entries import ENTRY_BYTES, kept, pack, sharing, weighed, within

words = st.integers(0, 2**64 - 1)
entries = st.lists(st.tuples(words, st.integers(0, 40)), max_size=40)


def test_layout() -> None:
    """Sixteen bytes, both halves little-endian."""
    assert pack(1, 2) == b"\x01" + b"\x00" * 7 + b"\x02" + b"\x00" * 7
    assert len(pack(2**64 - 1, 2**64 - 1)) == ENTRY_BYTES


@pytest.mark.parametrize("rest", [1, 8, 15])
def test_a_bucket_that_ends_within_an_entry_is_one_clear_error(rest: int) -> None:
    """Whoever reads it: half an entry would shift all that stand behind it."""
    torn = (pack(1, 2) + pack(3, 4))[: ENTRY_BYTES + rest]
    numbers = within([pack(5, 6)], 5, 0, 0)[0]
    for read in (
        lambda: within([torn], 0, 3, 0),
        lambda: sharing([torn, None], {1}, 0),
        lambda: weighed([torn], {0: 1.0}, 0),
        lambda: kept(torn, 0, numbers),
    ):
        with pytest.raises(StoreUnavailable, match="it ends within an entry"):
            read()


@given(entries, words, st.integers(0, 7), st.integers(0, 40))
def test_within_equals_a_plain_loop(
    stored: list[tuple[int, int]], query: int, radius: int, floor: int
) -> None:
    """Every number at or above the floor within the radius, once, at its smallest distance."""
    near = [(query ^ (1 << (i % 64)), n) for i, (_, n) in enumerate(stored)]  # some that must be found
    table = stored + near
    buckets = [b"".join(pack(*e) for e in table[:5]), None, b"", b"".join(pack(*e) for e in table[5:])]

    numbers, distances = within(buckets, query, radius, floor)

    expected: dict[int, int] = {}
    for value, number in table:
        distance = (value ^ query).bit_count()
        if distance <= radius and number >= floor:
            expected[number] = min(distance, expected.get(number, 64))
    assert dict(zip(numbers.tolist(), distances.tolist(), strict=True)) == expected
    assert numbers.tolist() == sorted(expected)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=60), st.sets(st.integers(0, 9)))
def test_sharing_counts_bands(stored: list[tuple[int, int]], wanted: set[int]) -> None:
    """How many of the wanted bands each number is listed under."""
    numbers, counts = sharing([b"".join(pack(*e) for e in stored)], wanted, 0)

    expected = {n: sum(m == n and v in wanted for v, m in stored) for _, n in stored}
    assert dict(zip(numbers.tolist(), counts.tolist(), strict=True)) == {
        n: c for n, c in expected.items() if c
    }
