"""Properties of block plans and single postings, for tests and benchmarks."""

from __future__ import annotations

from math import comb

import numpy as np
import numpy.typing as npt

from aggregator.index.blocks import MAX_RADIUS, BlockPlan
from aggregator.index.codec.postings import encode_postings

# Plans to compare; the index has one, 4x16.
PLANS = {"4x16": BlockPlan((16,) * 4), "5x13": BlockPlan((13,) * 4 + (12,)), "8x8": BlockPlan((8,) * 8)}


def plan_name(plan: BlockPlan) -> str:
    """Number of blocks and their largest width: "4x16"."""
    return f"{len(plan.widths)}x{max(plan.widths)}"


def exact_radius(plan: BlockPlan) -> int:
    """The largest radius served by reading each block's own value only: blocks - 1, at most 7."""
    return min(len(plan.widths) - 1, MAX_RADIUS)


def block_values(plan: BlockPlan, fingerprint: int) -> tuple[int, ...]:
    """The value of each block, in block order: the buckets a fingerprint is stored under."""
    return tuple(value for value, _ in plan.split(fingerprint))


def block_column(plan: BlockPlan, fingerprints: npt.NDArray[np.uint64], block: int) -> npt.NDArray[np.uint64]:
    """The value of one block of many fingerprints, (n,) -> (n,)."""
    shift, mask, _ = plan._block_bounds[block]
    return fingerprints >> np.uint64(shift) & np.uint64(mask)


def bucket_probes(plan: BlockPlan, fingerprint: int, radius: int) -> list[tuple[int, int]]:
    """The (block, value) keys of all fingerprints within ``radius`` (0..7) bits, by block, own first."""
    return [
        (block, value ^ flip)
        for block, value, _, flips in plan.probe_plan(fingerprint, radius).block_probes
        for flip in flips
    ]


def expected_candidates(plan: BlockPlan, stored: int, radius: int) -> float:
    """Mean records read by a query among ``stored`` random fingerprints; a lower bound for real ones."""
    keys = (
        sum(comb(width, bits) for bits in range(reach + 1)) / 2.0**width
        for width, reach in zip(plan.widths, plan.block_radii(radius), strict=True)
    )
    return stored * sum(keys)


def encode_posting(remainder: int, number: int, remainder_bytes: int) -> bytes:
    """One entry of ``remainder_bytes`` + 8 bytes."""
    return encode_postings((remainder,), number, remainder_bytes)[0]
