"""What was read of a space's live segments, and what a batch has decided since. Pure.

A space lies in **layers**: frozen segments, which nobody writes to, and one writable segment on top. A
key may be present in several; **the newest that says anything about it is right** (``Snapshot.newest``),
and ``keys.ABSENT`` says that there is nothing, whatever lies below. All writes go to the top. So a check
of the top's own values, together with the check that it is still open, is a check of all layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aggregator.domain import Record
from aggregator.index import keys
from aggregator.store.base import (
    Append,
    Appends,
    Chain,
    Delete,
    Equals,
    Put,
    Transaction,
    link,
)


@dataclass(frozen=True, slots=True)
class Layers:
    """The live segments of one space, numbers ``first`` to ``last``; only ``last`` is written to.

    ``floor``: article numbers below it have outlived their retention, whoever asks.
    """

    space: str
    first: int = 0
    last: int = 0
    floor: int = 0
    tags: tuple[bytes, ...] = field(init=False, repr=False, compare=False)
    top: bytes = field(init=False, repr=False, compare=False)  # tag of the writable segment

    def __post_init__(self) -> None:
        tags = tuple(keys.tag(self.space, number) for number in range(self.first, self.last + 1))
        object.__setattr__(self, "tags", tags)
        object.__setattr__(self, "top", tags[-1])

    @property
    def alone(self) -> bool:
        """Whether there are no frozen segments."""
        return self.first == self.last


@dataclass(frozen=True, slots=True)
class Applied:
    """A transaction that a snapshot took as done: who is bound by it, and the segment's version around it."""

    transaction: Transaction
    binding: bytes
    record: Record | None
    version: bytes
    before: bytes | None
    after: bytes | None


@dataclass(slots=True)
class Snapshot:
    """Values of keys at one instant, plus what this batch has decided since.

    ``values`` are by full key. Methods take a ``key`` without its tag, and look under the tags of the
    space's layers. ``changed``: keys that the batch will change, each with the bindings of the articles
    that do. ``applied``: how it came to that, in order. ``named`` and ``answers`` have per tag the full keys and
    the values as they were read, in that order, of which those of one look-up stand at its ``places``.
    """

    layers: dict[str, Layers] = field(default_factory=dict)
    values: dict[bytes, bytes | None] = field(default_factory=dict)
    records: dict[int, Record] = field(default_factory=dict)
    changed: dict[bytes, frozenset[bytes]] = field(default_factory=dict)
    applied: list[Applied] = field(default_factory=list)
    named: Mapping[bytes, list[bytes]] = field(default_factory=dict)
    answers: Mapping[bytes, list[bytes | None]] = field(default_factory=dict)
    places: Mapping[str, slice] = field(default_factory=dict)

    def everywhere(self, space: str, wanted: Sequence[bytes]) -> list[bytes | None]:
        """The values of keys that only grow, in all layers: a bucket is the sum of its layers."""
        return [self.values[tag + key] for tag in self.layers[space].tags for key in wanted]

    def looked_up(self, space: str, whose: str) -> list[list[bytes | None]]:
        """What the look-up of this id read, layer by layer."""
        tags, place = self.layers[space].tags, self.places[whose]
        if not self.changed:
            return [self.answers[tag][place] for tag in tags]
        return [list(map(self.values.__getitem__, self.named[tag][place])) for tag in tags]

    def newest(self, space: str, key: bytes) -> bytes | None:
        """What the newest layer says that says anything. A key that was not read counts as absent."""
        for tag in reversed(self.layers[space].tags):
            value = self.values.get(tag + key)
            if value is not None:
                return None if value == keys.ABSENT else value
        return None

    def top(self, space: str, key: bytes) -> bytes:
        """The key in the writable segment."""
        return self.layers[space].top + key

    def newest_each(self, space: str, wanted: Sequence[bytes]) -> list[bytes | None]:
        """``newest`` of each."""
        layers = self.layers[space]
        if not layers.alone:
            return [self.newest(space, key) for key in wanted]
        top, get = layers.top, self.values.get
        return [None if (value := get(top + key)) == keys.ABSENT else value for key in wanted]

    def unchanged(self, space: str, key: bytes) -> Equals:
        """Holds while nobody wrote this key since: lower layers do not change."""
        top = self.top(space, key)
        return Equals(top, self.values.get(top))

    def unwritten(self, space: str) -> Equals:
        """Holds while the writable segment took exactly the commits that were applied here, in their order."""
        return self.unchanged(space, keys.version(b""))

    def tops(self, space: str, whose: str) -> list[bytes]:
        """The keys of this id's look-up in the writable segment."""
        return self.named[self.layers[space].top][self.places[whose]]

    def touched(self, tops: Sequence[bytes]) -> set[bytes]:
        """Which of these keys, as ``tops`` gives them, this batch changed."""
        return self.changed.keys() & tops if self.changed else set()

    def grown(self, space: str, whose: str, touched: set[bytes]) -> dict[int, bytes]:
        """What was appended to those of ``tops`` that were ``touched``, by their place among them."""
        top, place = self.layers[space].top, self.places[whose]
        return {
            i: (self.values[key] or b"")[len(before or b"") :]
            for i, (key, before) in enumerate(
                zip(self.named[top][place], self.answers[top][place], strict=True)
            )
            if key in touched
        }

    def at_tops(self, space: str, whose: str, touched: set[bytes]) -> list[bytes | None]:
        """The values of ``tops``, of which ``touched`` were changed since."""
        if touched:
            return list(map(self.values.__getitem__, self.tops(space, whose)))
        return self.answers[self.layers[space].top][self.places[whose]]

    def apply(self, transaction: Transaction, binding: bytes, record: Record | None) -> None:
        """Change the snapshot as the commit of the article bound at ``binding`` will change the store."""
        values, changed, own = self.values, self.changed, frozenset((binding,))
        version = keys.version(keys.tag_of(binding))
        known = values.get(version)
        for write in transaction.writes:
            touched: Sequence[bytes]
            if isinstance(write, Appends):
                touched = self._append(write.keys, write.values, write.limit)
            elif isinstance(write, Put):
                values[write.key], touched = write.value, (write.key,)
            elif isinstance(write, Append):
                touched = self._append((write.key,), (write.value,), write.limit)
            elif isinstance(write, Delete):
                values[write.key], touched = None, (write.key,)
            else:
                if isinstance(write, Chain):
                    values[write.key] = link(values.get(write.key), write.token)
                continue  # others are not read by decisions
            for key in touched:
                others = changed.get(key)
                changed[key] = own if others is None else others | own
        if record is not None:
            self.records[record.number] = record
        self.applied.append(Applied(transaction, binding, record, version, known, values.get(version)))

    def _append(self, to: Sequence[bytes], what: Sequence[bytes], limit: int) -> list[bytes]:
        """Those of the keys that were read; nobody looks at the others here."""
        values = self.values
        touched: list[bytes] = []
        if values.keys().isdisjoint(to):
            return touched
        for key, value in zip(to, what, strict=True):
            if key in values:
                before = values[key] or b""
                if not limit or len(before) + len(value) <= limit:
                    values[key] = before + value
                touched.append(key)
        return touched

    def catch_up(self, applied: Sequence[Applied]) -> bool:
        """Apply those of our commits that were not done yet when this was read.

        A segment's version names its history, so it says which ones. False when it names another history, or
        another segment is written to by now: then some commit failed, or a stranger's came between.
        """
        missing: list[Applied] = []
        for version in dict.fromkeys(one.version for one in applied):
            ours = [one for one in applied if one.version == version]
            histories = [*(one.before for one in ours), ours[-1].after]
            if version not in self.values or self.values[version] not in histories:
                return False
            missing += ours[histories.index(self.values[version]) :]
        for one in missing:
            self.apply(one.transaction, one.binding, one.record)
        return True
