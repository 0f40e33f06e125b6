"""Block plans: the buckets that hold every stored fingerprint within a radius of a given one.

A plan cuts the 64 bits into m blocks, the first the most significant; a stored fingerprint is listed under
(block number, value of that block) for each block. A query reads, for block i, all values within ``t_i`` bits
of its value (``probe_plan``), and compares what it finds.

**Recall is exact** (general pigeonhole principle: Qin et al., ICDE 2018; with all ``t_i`` equal or one apart
it is the multi-index hashing of Norouzi, Punjani & Fleet, CVPR 2012, proposition 2). Let ``t_i`` be integers
>= -1 (-1: the block is not read) with ``sum(t_i) = r - m + 1``. A fingerprint at distance <= r that is missed
differs in at least ``t_i + 1`` bits in *every* block, so in at least ``r + 1`` bits: a contradiction. The sum
cannot be smaller: one that differs in exactly ``t_i + 1`` bits of each block would be missed.

With ``r = m * q + a`` (0 <= a < m) we take ``t = q`` for blocks 0..a and ``q - 1`` for the others. With 4
blocks 1, 2, 3, 4, 20, 36, 52, 68 keys are read for a radius of 0 to 7.

Entries keep the **remainder**, the bits of the other blocks (``split``). The distance is that of the
remainders plus the bits flipped in the key (``ProbePlan``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate, combinations

import numpy as np
import numpy.typing as npt

from aggregator.analysis.simhash import FINGERPRINT_BITS

MAX_RADIUS = 7

# Per block that is read: its number, and the masks to xor to its value, exact match first.
_ProbeMasks = tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class ProbePlan:
    """The buckets that one lookup reads, in compact form.

    block_probes     per block that is read: its number, its value, the remainder of the fingerprint, and
                     the masks to xor to the value
    flipped_bits     (k,) uint8: number of key bits flipped in each of the k buckets, in that order
    remainder_bytes  size of a remainder
    """

    block_probes: tuple[tuple[int, int, int, tuple[int, ...]], ...]
    flipped_bits: npt.NDArray[np.uint8]
    remainder_bytes: int


@dataclass(frozen=True)
class BlockPlan:
    """How a fingerprint is cut: ``widths`` in bits, most significant block first, together 64."""

    widths: tuple[int, ...]
    # Per block: its lowest bit, its mask, the bit above it.
    _block_bounds: tuple[tuple[int, int, int], ...] = field(init=False, repr=False, compare=False)
    _masks_by_radius: tuple[_ProbeMasks, ...] = field(init=False, repr=False, compare=False)
    _flipped_bits_by_radius: tuple[npt.NDArray[np.uint8], ...] = field(init=False, repr=False, compare=False)
    # Size of a remainder.
    remainder_bytes: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if sum(self.widths) != FINGERPRINT_BITS or min(self.widths) < 1:
            raise ValueError(
                f"Block widths must be at least 1 and add up to {FINGERPRINT_BITS}, unlike {self.widths}."
            )
        # Computed once: every article needs them.
        lowest = [FINGERPRINT_BITS - end for end in accumulate(self.widths)]
        bounds = tuple((low, (1 << w) - 1, low + w) for low, w in zip(lowest, self.widths, strict=True))
        object.__setattr__(self, "_block_bounds", bounds)
        masks = tuple(
            tuple((n, _xor_masks(width, reach)) for n, (width, reach) in enumerate(reaches) if reach >= 0)
            for reaches in (zip(self.widths, self.block_radii(r), strict=True) for r in range(MAX_RADIUS + 1))
        )
        object.__setattr__(self, "_masks_by_radius", masks)
        flipped = [[flip.bit_count() for _, flips in each for flip in flips] for each in masks]
        bits = tuple(np.array(counts, np.uint8) for counts in flipped)
        object.__setattr__(self, "_flipped_bits_by_radius", bits)
        object.__setattr__(self, "remainder_bytes", (FINGERPRINT_BITS - min(self.widths) + 7) // 8)

    def split(self, fingerprint: int) -> list[tuple[int, int]]:
        """Per block its value and the remainder: the bits above the block and those below it, joined."""
        return [
            (fingerprint >> shift & mask, fingerprint >> end << shift | fingerprint & (1 << shift) - 1)
            for shift, mask, end in self._block_bounds
        ]

    def join(self, block: int, value: int, remainders: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """The fingerprints, (n,), with this value of one block and these remainders, (n,)."""
        shift, mask, _ = self._block_bounds[block]
        above = remainders >> np.uint64(shift) << np.uint64(shift) << np.uint64(mask.bit_length())
        return above | np.uint64(value << shift) | remainders & np.uint64((1 << shift) - 1)

    def probe_plan(self, fingerprint: int, radius: int) -> ProbePlan:
        """The buckets of all fingerprints within ``radius`` (0..7) bits, and the remainders to compare."""
        blocks = self.split(fingerprint)
        block_probes = tuple(
            [(block, *blocks[block], flips) for block, flips in self._masks_by_radius[radius]]
        )
        return ProbePlan(block_probes, self._flipped_bits_by_radius[radius], self.remainder_bytes)

    def block_radii(self, radius: int) -> tuple[int, ...]:
        """How many bits each block is probed around its own value; -1: the block is not read."""
        quotient, remainder = divmod(radius, len(self.widths))
        return tuple(quotient - (block > remainder) for block in range(len(self.widths)))


def _xor_masks(width: int, radius: int) -> tuple[int, ...]:
    return tuple(
        sum(1 << bit for bit in chosen)
        for count in range(radius + 1)
        for chosen in combinations(range(width), count)
    )


PLAN = BlockPlan((16,) * 4)
