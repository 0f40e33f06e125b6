"""Sketch buckets: how many bits of a sketch key name its bucket, and how full a key may be. Pure.

**Width.** A bucket also holds entries of other sketch keys that agree in its bits, so the width grows with
the segment, one bit at a time (``upkeep/sketch_rehash.py``). Stored value:

    absent             18, as every segment begins
    "18>19"            rehashing: entries go to buckets of 19 bits, and a look-up reads both widths
    "19", "19>20" ... "24"

It is read together with the buckets and checked by every commit that decides or appends. So no writer appends
to buckets that have been moved, and no decision misses an entry.

**Bound.** A full key keeps its newest entries only: some shingles ("one of the") are in every fiftieth
article. An insert that finds ``FULL_KEY_ENTRIES`` of one of its keys first replaces the bucket by one with
the key's newest ``KEPT_KEY_ENTRIES``. So a length may come back, and the commit checks by content:

* a bucket of fewer than ``KEPT_KEY_ENTRIES`` entries was never trimmed, so its length is its version;
* a longer one is compared by value.

Updates and reindexed copies append without trimming; the next insert trims.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress

from aggregator.index.codec.postings import SKETCH_POSTING_BYTES, SKETCH_REMAINDER_BYTES, trim_sketch_key
from aggregator.index.keys import MAX_SKETCH_BUCKET_BITS, SKETCH_BUCKET_BITS
from aggregator.store.base import Check, LengthsUnchanged, Put, ValueEquals
from aggregator.store.decoding import corrupt_error

_STORED = re.compile(rb"(?:(\d\d)>)?(\d\d)")


@dataclass(frozen=True, slots=True)
class SketchWidth:
    """Bits that name a segment's sketch buckets, and ``former_bits`` while a rehash moves entries."""

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


# At 16 keys per look-up at most 16 * 24 entries of the article's own keys are read in a segment.
FULL_KEY_ENTRIES = 24
KEPT_KEY_ENTRIES = 16


def trim_writes(
    bucket_keys: Sequence[bytes], sketch_keys: Sequence[int], values: Mapping[bytes, bytes | None]
) -> Iterator[Put]:
    """The writes that make room under full keys, before the article's entries are appended.

    ``values``: what the insert read; buckets that are missing there are not trimmed.
    """
    trimmed: dict[bytes, bytes] = {}
    for bucket, sketch_key in zip(bucket_keys, sketch_keys, strict=True):
        value = trimmed.get(bucket) or values.get(bucket)
        if value is None or len(value) < FULL_KEY_ENTRIES * SKETCH_POSTING_BYTES:
            continue
        remainder = sketch_key >> SKETCH_BUCKET_BITS
        # Counts no fewer than there are, since no match overlaps two entries: 0.3 us instead of 5.
        if value.count(remainder.to_bytes(SKETCH_REMAINDER_BYTES, "little")) >= FULL_KEY_ENTRIES:
            kept = trim_sketch_key(value, remainder, FULL_KEY_ENTRIES, KEPT_KEY_ENTRIES)
            if kept is not value:
                trimmed[bucket] = kept
    return (Put(bucket, value) for bucket, value in trimmed.items())


def unchanged_checks(bucket_keys: Sequence[bytes], values: Sequence[bytes | None]) -> Iterator[Check]:
    """Checks that the content of these sketch buckets is still ``values``."""
    limit = KEPT_KEY_ENTRIES * SKETCH_POSTING_BYTES
    by_value = [value is not None and len(value) >= limit for value in values]
    if not all(by_value):
        by_length = [not flag for flag in by_value]
        yield LengthsUnchanged(tuple(compress(bucket_keys, by_length)), tuple(compress(values, by_length)))
    yield from map(ValueEquals, compress(bucket_keys, by_value), compress(values, by_value))
