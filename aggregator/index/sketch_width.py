"""Sketch width: how many bits of a sketch key name its bucket in a segment. Pure.

A bucket also holds entries of other sketch keys that agree in these bits, and a look-up reads them all. So
the width grows with the segment, one bit at a time, by an incremental rehash (``sketch_rehash.py``):

    18                 as every segment begins; nothing is stored
    "18>19"            rehashing: new entries go to buckets of 19 bits, older ones are being moved there from
                       those of 18, and a look-up reads both
    "19"               all are moved
    "19>20" ... "24"

The stored value is read together with the buckets, and every commit that decides or appends checks it. So
no writer appends to buckets that have been moved, and no decision misses an entry.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from aggregator.index.keys import MAX_SKETCH_BUCKET_BITS, SKETCH_BUCKET_BITS
from aggregator.store.decoding import corrupt_error

_STORED = re.compile(rb"(?:(\d\d)>)?(\d\d)")


@dataclass(frozen=True, slots=True)
class SketchWidth:
    """Width of a segment's sketch buckets in bits.

    ``bits``: of the buckets that entries are appended to. ``former_bits``: of those whose entries are being
    moved there; None unless a rehash runs.
    """

    bits: int = SKETCH_BUCKET_BITS
    former_bits: int | None = None

    @property
    def is_rehashing(self) -> bool:
        """Whether entries may be in buckets of ``former_bits``."""
        return self.former_bits is not None

    @property
    def bits_to_read(self) -> tuple[int, ...]:
        """The widths of all buckets that may have entries; those of older entries first."""
        return (self.bits,) if self.former_bits is None else (self.former_bits, self.bits)

    def begin_rehash(self) -> SketchWidth:
        """The width from the first move on."""
        return SketchWidth(self.bits + 1, self.bits)

    def end_rehash(self) -> SketchWidth:
        """The width after the last move."""
        return SketchWidth(self.bits)

    def encode(self) -> bytes | None:
        """The stored value; None if nothing is stored."""
        if self == INITIAL_WIDTH:
            return None
        return b">".join(b"%d" % bits for bits in self.bits_to_read)


INITIAL_WIDTH = SketchWidth()


@lru_cache(maxsize=32)
def decode_sketch_width(raw: bytes | None) -> SketchWidth:
    """The width of a segment from its stored value. Raises DamagedValue."""
    if raw is None:
        return INITIAL_WIDTH
    match = _STORED.fullmatch(raw)
    if match is not None:
        former = int(match[1]) if match[1] else None
        width = SketchWidth(int(match[2]), former)
        in_range = SKETCH_BUCKET_BITS < width.bits <= MAX_SKETCH_BUCKET_BITS
        if in_range and former in (None, width.bits - 1):
            return width
    raise corrupt_error("The width of sketch buckets", f"expected 18>19 to 24, got {raw[:16]!r}")
