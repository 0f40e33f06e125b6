"""Snapshot: values read from the live segments of some spaces, plus what the current batch has decided. Pure.

A space is a **stack** of segments: frozen ones, which nobody writes to, and one writable segment on top. A
key may be present in several; **the newest segment that has a value for it is right**
(``Snapshot.newest_value``), and ``keys.ABSENT`` means "deleted", whatever older segments say. All writes go
to the writable segment, so a check of its values, together with the check that it is still open, covers the
whole stack.

The sketch width (docs/design/segments.md, "Sketch buckets") is read together with the buckets and checked by
every commit, so no decision misses an entry that was moved. A full sketch key loses its older entries
(docs/decisions/0039-bounded-sketch-keys.md), so its length may come back, and it is compared by value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import compress

from aggregator.domain import ArticleRecord
from aggregator.index import keys
from aggregator.index.codec.postings import SKETCH_POSTING_BYTES, SKETCH_REMAINDER_BYTES, trim_sketch_key
from aggregator.index.codec.record_codec import CandidateRecord
from aggregator.index.keys import MAX_SKETCH_BUCKET_BITS, SKETCH_BUCKET_BITS
from aggregator.store.base import (
    AdvanceVersion,
    AppendMany,
    Check,
    Delete,
    LengthsUnchanged,
    Put,
    Transaction,
    ValueEquals,
    next_version,
)
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


@dataclass(frozen=True, slots=True)
class SegmentStack:
    """The live segments ``first`` to ``last`` of one space; below ``floor`` articles have expired."""

    space: str
    first: int = 0
    last: int = 0
    floor: int = 0
    sketch_widths: tuple[SketchWidth, ...] = ()
    tags: tuple[bytes, ...] = field(init=False, repr=False, compare=False)
    writable_tag: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        tags = tuple(keys.tag(self.space, number) for number in range(self.first, self.last + 1))
        object.__setattr__(self, "tags", tags)
        object.__setattr__(self, "writable_tag", tags[-1])
        object.__setattr__(self, "sketch_widths", self.sketch_widths or (INITIAL_WIDTH,) * len(tags))


@dataclass(slots=True)
class SegmentBuckets:
    """The buckets that one lookup read in one segment: full keys, and values as they were read."""

    keys: list[bytes]
    values: list[bytes | None]


@dataclass(frozen=True, slots=True)
class AppliedTransaction:
    """A transaction applied to a snapshot, and the segment's version before and after it."""

    transaction: Transaction
    binding_key: bytes
    record: ArticleRecord | None
    version_key: bytes
    version_before: bytes | None
    version_after: bytes | None


@dataclass(slots=True)
class Snapshot:
    """Values of keys at one instant, with the transactions of the current batch applied to them.

    ``values``           current value by full key
    ``writers``          by each key that the batch changes, the binding keys of the articles that change it
    ``appended``         by key, what the batch appended to it; a value may have lost older entries since
    ``buckets``          by article id, what its lookup read in each segment, the writable one last
    ``records``          records of the candidates, by article number
    ``applied``          the transactions of the batch, in order
    ``unlike``           by article id, candidates that cannot matter to it (``candidates.py``)
    ``taken_down``       ids of the articles whose text was taken down (``takedowns.py``)
    """

    stacks: dict[str, SegmentStack] = field(default_factory=dict)
    values: dict[bytes, bytes | None] = field(default_factory=dict)
    appended: dict[bytes, bytes] = field(default_factory=dict)
    buckets: dict[str, list[SegmentBuckets]] = field(default_factory=dict)
    records: dict[int, CandidateRecord] = field(default_factory=dict)
    writers: dict[bytes, frozenset[bytes]] = field(default_factory=dict)
    applied: list[AppliedTransaction] = field(default_factory=list)
    unlike: dict[str, set[int]] = field(default_factory=dict)
    taken_down: frozenset[str] = frozenset()

    def record(self, number: int) -> ArticleRecord | None:
        """The record of an article number; None if it was not read or is not stored."""
        found = self.records.get(number)
        return None if found is None else found.record

    def newest_value(self, space: str, suffix: bytes) -> bytes | None:
        """The value in the newest segment that has one; None if absent, deleted or not read."""
        for tag in reversed(self.stacks[space].tags):
            value = self.values.get(tag + suffix)
            if value is not None:
                return None if value == keys.ABSENT else value
        return None

    def values_in_all_segments(self, space: str, suffixes: Sequence[bytes]) -> list[bytes | None]:
        """The values of append-only keys, segment by segment: such a value is the sum over its segments."""
        return [self.values[tag + suffix] for tag in self.stacks[space].tags for suffix in suffixes]

    def unchanged_check(self, space: str, suffix: bytes) -> ValueEquals:
        """Holds while nobody has written the key since; frozen segments do not change."""
        key = self.stacks[space].writable_tag + suffix
        return ValueEquals(key, self.values.get(key))

    def changed_buckets(self, id_: str) -> set[bytes]:
        """Keys of the article's buckets that the batch has appended to."""
        return self.writers.keys() & self.buckets[id_][-1].keys

    def appended_to(self, id_: str, changed: set[bytes]) -> dict[int, bytes]:
        """What the batch appended to the ``changed`` buckets of the article, by their position."""
        read = self.buckets[id_][-1]
        return {i: self.appended.get(key, b"") for i, key in enumerate(read.keys) if key in changed}

    def apply(self, transaction: Transaction, binding_key: bytes, record: ArticleRecord | None) -> None:
        """Change the values as the commit of this transaction will change the store."""
        values, writers, own = self.values, self.writers, frozenset((binding_key,))
        version_key, version_before = b"", None
        for write in transaction.writes:
            changed: Sequence[bytes]
            if isinstance(write, AppendMany):
                changed = self._append(write.keys, write.values, write.max_bytes)
            elif isinstance(write, Put):
                values[write.key], changed = write.value, (write.key,)
            elif isinstance(write, Delete):
                values[write.key], changed = None, (write.key,)
            else:
                if isinstance(write, AdvanceVersion):
                    version_key, version_before = write.key, values.get(write.key)
                    values[write.key] = next_version(version_before, write.token)
                continue  # decisions do not read the others
            for key in changed:
                others = writers.get(key)
                writers[key] = own if others is None else others | own
        if record is not None:
            self.records[record.number] = CandidateRecord.of(record)
        self.applied.append(
            AppliedTransaction(
                transaction, binding_key, record, version_key, version_before, values.get(version_key)
            )
        )

    def catch_up(self, applied: Sequence[AppliedTransaction]) -> bool:
        """Apply those of this process's commits that the store had not taken when the snapshot was read.

        A segment's version identifies its history of commits. Returns False if the history is another one, or
        if another segment is writable now.
        """
        missing: list[AppliedTransaction] = []
        for version_key in dict.fromkeys(commit.version_key for commit in applied):
            commits = [commit for commit in applied if commit.version_key == version_key]
            history = [*(commit.version_before for commit in commits), commits[-1].version_after]
            if version_key not in self.values or self.values[version_key] not in history:
                return False
            missing += commits[history.index(self.values[version_key]) :]
        for commit in missing:
            self.apply(commit.transaction, commit.binding_key, commit.record)
        return True

    def _append(self, target_keys: Sequence[bytes], payloads: Sequence[bytes], max_bytes: int) -> list[bytes]:
        """Append to those of the keys that were read, and return them."""
        values = self.values
        changed: list[bytes] = []
        if values.keys().isdisjoint(target_keys):
            return changed
        for key, payload in zip(target_keys, payloads, strict=True):
            if key in values:
                before = values[key] or b""
                if not max_bytes or len(before) + len(payload) <= max_bytes:
                    values[key] = before + payload
                    self.appended[key] = self.appended.get(key, b"") + payload
                changed.append(key)
        return changed


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
