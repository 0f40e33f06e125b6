"""Block plans: no fingerprint within the radius is missed, with as few keys as the proof allows."""

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.index.blocks import MAX_RADIUS, PLAN, BlockPlan
from tests.support.index_layout import (
    PLANS,
    block_values,
    bucket_probes,
    exact_radius,
    expected_candidates,
    plan_name,
)

FINGERPRINTS = st.integers(0, 2**64 - 1)
BIT_SETS = st.sets(st.integers(0, 63), max_size=MAX_RADIUS)
KEYS_READ = {
    "4x16": (1, 2, 3, 4, 20, 36, 52, 68),
    "5x13": (1, 2, 3, 4, 5, 18, 31, 44),
    "8x8": (1, 2, 3, 4, 5, 6, 7, 8),
}


def flip(fingerprint: int, bits: set[int]) -> int:
    for bit in bits:
        fingerprint ^= 1 << bit
    return fingerprint


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@given(fingerprint=FINGERPRINTS, bits=BIT_SETS)
def test_no_pair_within_the_radius_is_missed(plan: BlockPlan, fingerprint: int, bits: set[int]) -> None:
    """A fingerprint with any set of up to r bits flipped is stored under a key that r probes."""
    stored_under = set(enumerate(block_values(plan, flip(fingerprint, bits))))

    for radius in range(len(bits), MAX_RADIUS + 1):
        assert stored_under.intersection(bucket_probes(plan, fingerprint, radius)), radius


@pytest.mark.parametrize(("plan", "radius"), list(product(PLANS.values(), range(MAX_RADIUS + 1))))
def test_worst_spread_of_differing_bits_is_found(plan: BlockPlan, radius: int) -> None:
    """Any spread of r bits over the blocks leaves one block within its probe radius (the proof as a test)."""
    radii = plan.block_radii(radius)
    spreads: Iterator[tuple[int, ...]] = (
        s for s in product(range(radius + 1), repeat=len(plan.widths)) if sum(s) <= radius
    )
    if len(plan.widths) == 8 and radius > 4:  # 9^8 spreads: the property test above covers these
        spreads = iter([])

    assert sum(radii) == radius - len(plan.widths) + 1
    assert all(any(bits <= t for bits, t in zip(spread, radii, strict=True)) for spread in spreads)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@given(fingerprint=FINGERPRINTS)
def test_probe_counts(plan: BlockPlan, fingerprint: int) -> None:
    """Each radius reads exactly the documented number of keys, none of them twice."""
    probes = [bucket_probes(plan, fingerprint, radius) for radius in range(MAX_RADIUS + 1)]

    assert tuple(map(len, probes)) == KEYS_READ[plan_name(plan)]
    assert all(len(set(keys)) == len(keys) for keys in probes)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_fewer_keys_would_miss_a_pair(plan: BlockPlan) -> None:
    """The radii are minimal: one more differing bit in the worst spread is not found."""
    for radius in range(MAX_RADIUS):
        missed = set()
        for (shift, *_), reach in zip(plan._block_bounds, plan.block_radii(radius), strict=True):
            missed |= {shift + bit for bit in range(reach + 1)}

        assert len(missed) == radius + 1
        assert not set(enumerate(block_values(plan, flip(0, missed)))) & set(bucket_probes(plan, 0, radius))


def test_default_plan_cuts_hex_digits() -> None:
    """4x16 blocks are the four groups of four hex digits, first group first."""
    assert PLANS["4x16"] == PLAN
    assert exact_radius(PLAN) == 3
    assert block_values(PLAN, 0x0123_4567_89AB_CDEF) == (0x0123, 0x4567, 0x89AB, 0xCDEF)
    assert bucket_probes(PLAN, 0x0123_4567_89AB_CDEF, 3) == [
        (0, 0x0123),
        (1, 0x4567),
        (2, 0x89AB),
        (3, 0xCDEF),
    ]


def test_uneven_plan_uses_all_bits() -> None:
    """5x13 has blocks of 13, 13, 13, 13 and 12 bits; joined, they are the fingerprint."""
    plan, fingerprint, joined = PLANS["5x13"], 0x9E37_79B9_7F4A_7C15, 0
    for width, value in zip(plan.widths, block_values(plan, fingerprint), strict=True):
        joined = joined << width | value

    assert plan.widths == (13, 13, 13, 13, 12)
    assert joined == fingerprint
    assert [exact_radius(PLANS[name]) for name in ("4x16", "5x13", "8x8")] == [3, 4, 7]


def test_expected_candidates() -> None:
    """A million random fingerprints: 61 records at radius 3, 1038 at 7 (4x16); 8x8 reads 31250."""
    assert expected_candidates(PLAN, 10**6, 3) == pytest.approx(4e6 / 2**16)
    assert expected_candidates(PLAN, 10**6, 7) == pytest.approx(68e6 / 2**16)
    assert expected_candidates(PLANS["8x8"], 10**6, 7) == pytest.approx(8e6 / 2**8)


@pytest.mark.parametrize("widths", [(16, 16, 16), (32, 33), (64, 0)])
def test_widths_must_cover_64_bits(widths: tuple[int, ...]) -> None:
    """Block widths that do not add up to 64, or are 0, are rejected."""
    with pytest.raises(ValueError, match="add up to 64"):
        BlockPlan(widths)
