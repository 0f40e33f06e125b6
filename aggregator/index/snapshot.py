"""Snapshot: values read from the live segments of some spaces, plus what the current batch has decided. Pure.

A space is a **stack** of segments: frozen ones, which nobody writes to, and one writable segment on top. A
key may be present in several; **the newest segment that has a value for it is right**
(``Snapshot.newest_value``), and ``keys.ABSENT`` means "deleted", whatever older segments say. All writes go
to the writable segment, so a check of its values, together with the check that it is still open, covers the
whole stack.

Keys without their segment's tag are called **suffixes**.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from aggregator.domain import ArticleRecord
from aggregator.index import keys
from aggregator.index.codec.record_codec import CandidateRecord
from aggregator.index.sketch_buckets import INITIAL_WIDTH, SketchWidth
from aggregator.store.base import (
    AdvanceVersion,
    Append,
    AppendMany,
    Delete,
    Put,
    Transaction,
    ValueEquals,
    next_version,
)


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
    """

    stacks: dict[str, SegmentStack] = field(default_factory=dict)
    values: dict[bytes, bytes | None] = field(default_factory=dict)
    appended: dict[bytes, bytes] = field(default_factory=dict)
    buckets: dict[str, list[SegmentBuckets]] = field(default_factory=dict)
    records: dict[int, CandidateRecord] = field(default_factory=dict)
    writers: dict[bytes, frozenset[bytes]] = field(default_factory=dict)
    applied: list[AppliedTransaction] = field(default_factory=list)

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

    def newest_values(self, space: str, suffixes: Sequence[bytes]) -> list[bytes | None]:
        """``newest_value`` of each; without frozen segments this saves a call per candidate (up to 64)."""
        stack = self.stacks[space]
        if stack.first != stack.last:
            return [self.newest_value(space, suffix) for suffix in suffixes]
        tag, get = stack.writable_tag, self.values.get
        return [None if (value := get(tag + suffix)) == keys.ABSENT else value for suffix in suffixes]

    def values_in_all_segments(self, space: str, suffixes: Sequence[bytes]) -> list[bytes | None]:
        """The values of append-only keys, segment by segment: such a value is the sum over its segments."""
        return [self.values[tag + suffix] for tag in self.stacks[space].tags for suffix in suffixes]

    def writable_key(self, space: str, suffix: bytes) -> bytes:
        """The key in the writable segment."""
        return self.stacks[space].writable_tag + suffix

    def unchanged_check(self, space: str, suffix: bytes) -> ValueEquals:
        """Holds while nobody has written the key since; frozen segments do not change."""
        key = self.writable_key(space, suffix)
        return ValueEquals(key, self.values.get(key))

    def changed_buckets(self, id_: str) -> set[bytes]:
        """Keys of the article's buckets that the batch has appended to."""
        return self.writers.keys() & self.buckets[id_][-1].keys if self.writers else set()

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
            elif isinstance(write, Append):
                changed = self._append((write.key,), (write.value,), 0)
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
