"""Bounded sketch keys: a full key keeps its newest entries only. Pure.

Some shingles ("one of the") are in every fiftieth article, so without a bound the entries that a look-up
reads grow with what is stored. An insert has read the buckets that it appends to. If one of its sketch keys
has ``FULL_KEY_ENTRIES`` there, the insert first replaces the bucket by one with the key's newest
``KEPT_KEY_ENTRIES``; entries of other keys in the same bucket stay. So the commit must check what is in the
bucket, not only its length, which may come back:

* a bucket of fewer than ``KEPT_KEY_ENTRIES`` entries was never trimmed, so its length is its version;
* a longer one is compared by value: an equal value is an equal basis of the decision, whatever happened
  between.

Updates and reindexed copies append without trimming: they do not read buckets. The next insert trims.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress

from aggregator.index.codec.postings import (
    SKETCH_POSTING_BYTES,
    SKETCH_REMAINDER_BYTES,
    trim_sketch_key,
)
from aggregator.index.keys import SKETCH_BUCKET_BITS
from aggregator.store.base import Check, LengthsUnchanged, Put, ValueEquals

# At 16 keys per look-up at most 16 * 24 entries of the article's own keys are read in a segment.
FULL_KEY_ENTRIES = 24
KEPT_KEY_ENTRIES = 16


def trim_writes(
    bucket_keys: Sequence[bytes], sketch_keys: Sequence[int], values: Mapping[bytes, bytes | None]
) -> Iterator[Put]:
    """The writes that make room under full keys; to be applied before the article's entries are appended.

    ``bucket_keys``: those of ``sketch_keys``, with their tag. ``values``: what the insert read; buckets that
    are missing there are not trimmed.
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
        yield LengthsUnchanged(_selected(bucket_keys, by_length), tuple(compress(values, by_length)))
    yield from map(ValueEquals, compress(bucket_keys, by_value), compress(values, by_value))


def _selected(keys: Iterable[bytes], flags: Iterable[bool]) -> tuple[bytes, ...]:
    return tuple(compress(keys, flags))
