"""What was read of a space's live segments, and what a batch has decided since. Pure.

A space lies in **layers**: frozen segments, which nobody writes to, and one writable segment on top. A
key may be present in several; **the newest that says anything about it is right** (``Snapshot.newest``),
and ``keys.ABSENT`` says that there is nothing, whatever lies below. All writes go to the top. So a check
of the top's own values, together with the check that it is still open, is a check of all layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aggregator.domain import ArticleRecord
from aggregator.index import keys
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
    """The live segments of one space, numbers ``first`` to ``last``; only ``last`` is written to.

    ``floor``: article numbers below it have outlived their retention, whoever asks.
    """

    space: str
    first: int = 0
    last: int = 0
    floor: int = 0
    tags: tuple[bytes, ...] = field(init=False, repr=False, compare=False)
    writable_tag: bytes = field(init=False, repr=False, compare=False)  # tag of the writable segment

    def __post_init__(self) -> None:
        tags = tuple(keys.tag(self.space, number) for number in range(self.first, self.last + 1))
        object.__setattr__(self, "tags", tags)
        object.__setattr__(self, "writable_tag", tags[-1])

    @property
    def has_single_segment(self) -> bool:
        """Whether there are no frozen segments."""
        return self.first == self.last


@dataclass(frozen=True, slots=True)
class AppliedTransaction:
    """A transaction that a snapshot took as done: who is bound by it, and the segment's version around it."""

    transaction: Transaction
    binding_key: bytes
    record: ArticleRecord | None
    version_key: bytes
    version_before: bytes | None
    version_after: bytes | None


@dataclass(slots=True)
class Snapshot:
    """Values of keys at one instant, plus what this batch has decided since.

    ``values`` are by full key. Methods take a ``key`` without its tag, and look under the tags of the
    space's layers. ``changed``: keys that the batch will change, each with the bindings of the articles
    that do. ``applied``: how it came to that, in order. ``named`` and ``answers`` have per tag the full keys and
    the values as they were read, in that order, of which those of one look-up stand at its ``places``.
    """

    stacks: dict[str, SegmentStack] = field(default_factory=dict)
    values: dict[bytes, bytes | None] = field(default_factory=dict)
    records: dict[int, ArticleRecord] = field(default_factory=dict)
    writers_by_key: dict[bytes, frozenset[bytes]] = field(default_factory=dict)
    applied: list[AppliedTransaction] = field(default_factory=list)
    keys_by_tag: Mapping[bytes, list[bytes]] = field(default_factory=dict)
    values_by_tag: Mapping[bytes, list[bytes | None]] = field(default_factory=dict)
    lookup_slices: Mapping[str, slice] = field(default_factory=dict)

    def values_in_all_segments(self, space: str, suffixes: Sequence[bytes]) -> list[bytes | None]:
        """The values of keys that only grow, in all layers: a bucket is the sum of its layers."""
        return [self.values[tag + key] for tag in self.stacks[space].tags for key in suffixes]

    def lookup_values(self, space: str, id_: str) -> list[list[bytes | None]]:
        """What the look-up of this id read, layer by layer."""
        tags, place = self.stacks[space].tags, self.lookup_slices[id_]
        if not self.writers_by_key:
            return [self.values_by_tag[tag][place] for tag in tags]
        return [list(map(self.values.__getitem__, self.keys_by_tag[tag][place])) for tag in tags]

    def newest_value(self, space: str, key: bytes) -> bytes | None:
        """What the newest layer says that says anything. A key that was not read counts as absent."""
        for tag in reversed(self.stacks[space].tags):
            value = self.values.get(tag + key)
            if value is not None:
                return None if value == keys.ABSENT else value
        return None

    def writable_key(self, space: str, key: bytes) -> bytes:
        """The key in the writable segment."""
        return self.stacks[space].writable_tag + key

    def newest_values(self, space: str, suffixes: Sequence[bytes]) -> list[bytes | None]:
        """``newest`` of each."""
        layers = self.stacks[space]
        if not layers.has_single_segment:
            return [self.newest_value(space, key) for key in suffixes]
        top, get = layers.writable_tag, self.values.get
        return [None if (value := get(top + key)) == keys.ABSENT else value for key in suffixes]

    def unchanged_check(self, space: str, key: bytes) -> ValueEquals:
        """Holds while nobody wrote this key since: lower layers do not change."""
        top = self.writable_key(space, key)
        return ValueEquals(top, self.values.get(top))

    def no_foreign_commit(self, space: str) -> ValueEquals:
        """Holds while the writable segment took exactly the commits that were applied here, in their order."""
        return self.unchanged_check(space, keys.version(b""))

    def writable_keys(self, space: str, id_: str) -> list[bytes]:
        """The keys of this id's look-up in the writable segment."""
        return self.keys_by_tag[self.stacks[space].writable_tag][self.lookup_slices[id_]]

    def changed_keys(self, writable_keys: Sequence[bytes]) -> set[bytes]:
        """Which of these keys, as ``tops`` gives them, this batch changed."""
        return self.writers_by_key.keys() & writable_keys if self.writers_by_key else set()

    def appended(self, space: str, id_: str, changed_keys: set[bytes]) -> dict[int, bytes]:
        """What was appended to those of ``tops`` that were ``touched``, by their place among them."""
        top, place = self.stacks[space].writable_tag, self.lookup_slices[id_]
        return {
            i: (self.values[key] or b"")[len(before or b"") :]
            for i, (key, before) in enumerate(
                zip(self.keys_by_tag[top][place], self.values_by_tag[top][place], strict=True)
            )
            if key in changed_keys
        }

    def writable_values(self, space: str, id_: str, changed_keys: set[bytes]) -> list[bytes | None]:
        """The values of ``tops``, of which ``touched`` were changed since."""
        if changed_keys:
            return list(map(self.values.__getitem__, self.writable_keys(space, id_)))
        return self.values_by_tag[self.stacks[space].writable_tag][self.lookup_slices[id_]]

    def apply(self, transaction: Transaction, binding_key: bytes, record: ArticleRecord | None) -> None:
        """Change the snapshot as the commit of the article bound at ``binding`` will change the store."""
        values, changed, own = self.values, self.writers_by_key, frozenset((binding_key,))
        version = keys.version(keys.tag_of(binding_key))
        known = values.get(version)
        for write in transaction.writes:
            touched: Sequence[bytes]
            if isinstance(write, AppendMany):
                touched = self._append(write.keys, write.values, write.max_bytes)
            elif isinstance(write, Put):
                values[write.key], touched = write.value, (write.key,)
            elif isinstance(write, Append):
                touched = self._append((write.key,), (write.value,), 0)
            elif isinstance(write, Delete):
                values[write.key], touched = None, (write.key,)
            else:
                if isinstance(write, AdvanceVersion):
                    values[write.key] = next_version(values.get(write.key), write.token)
                continue  # others are not read by decisions
            for key in touched:
                others = changed.get(key)
                changed[key] = own if others is None else others | own
        if record is not None:
            self.records[record.number] = record
        self.applied.append(
            AppliedTransaction(transaction, binding_key, record, version, known, values.get(version))
        )

    def _append(self, target_keys: Sequence[bytes], payloads: Sequence[bytes], limit: int) -> list[bytes]:
        """Those of the keys that were read; nobody looks at the others here."""
        values = self.values
        touched: list[bytes] = []
        if values.keys().isdisjoint(target_keys):
            return touched
        for key, value in zip(target_keys, payloads, strict=True):
            if key in values:
                before = values[key] or b""
                if not limit or len(before) + len(value) <= limit:
                    values[key] = before + value
                touched.append(key)
        return touched

    def catch_up(self, applied: Sequence[AppliedTransaction]) -> bool:
        """Apply those of our commits that were not done yet when this was read.

        A segment's version names its history, so it says which ones. False when it names another history, or
        another segment is written to by now: then some commit failed, or a stranger's came between.
        """
        missing: list[AppliedTransaction] = []
        for version in dict.fromkeys(one.version_key for one in applied):
            ours = [one for one in applied if one.version_key == version]
            histories = [*(one.version_before for one in ours), ours[-1].version_after]
            if version not in self.values or self.values[version] not in histories:
                return False
            missing += ours[histories.index(self.values[version]) :]
        for one in missing:
            self.apply(one.transaction, one.binding_key, one.record)
        return True
