"""What was read of a space's live segments, and what a batch has decided since. Pure.

A space lies in **layers**: frozen segments, which nobody writes to, and one writable segment on top. A
key may be present in several; **the newest that says anything about it is right** (``Snapshot.newest``),
and ``keys.ABSENT`` says that there is nothing, whatever lies below. All writes go to the top. So a check
of the top's own values, together with the check that it is still open, is a check of all layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from aggregator.domain import Record
from aggregator.store import keys
from aggregator.store.base import Append, Chain, Delete, Equals, Put, Transaction, link


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

    def __post_init__(self) -> None:
        tags = tuple(keys.tag(self.space, number) for number in range(self.first, self.last + 1))
        object.__setattr__(self, "tags", tags)

    @property
    def top(self) -> bytes:
        """Tag of the writable segment."""
        return self.tags[-1]

    @property
    def alone(self) -> bool:
        """Whether there are no frozen segments."""
        return self.first == self.last


@dataclass(slots=True)
class Snapshot:
    """Values of keys at one instant, plus what this batch has decided since.

    ``values`` are by full key. Methods take a ``key`` without its tag, and look under the tags of the
    space's layers. ``changed``: keys that the batch will change, each with the bindings of the articles
    that do.
    """

    layers: dict[str, Layers] = field(default_factory=dict)
    values: dict[bytes, bytes | None] = field(default_factory=dict)
    records: dict[int, Record] = field(default_factory=dict)
    changed: dict[bytes, set[bytes]] = field(default_factory=dict)

    def everywhere(self, space: str, wanted: Sequence[bytes]) -> list[bytes | None]:
        """The values of keys that only grow, in all layers: a bucket is the sum of its layers."""
        return [self.values[tag + key] for tag in self.layers[space].tags for key in wanted]

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

    def unchanged(self, space: str, key: bytes) -> Equals:
        """Holds while nobody wrote this key since: lower layers do not change."""
        top = self.top(space, key)
        return Equals(top, self.values.get(top))

    def unwritten(self, space: str) -> Equals:
        """Holds while the writable segment took exactly the commits that were applied here, in their order."""
        return self.unchanged(space, keys.version(b""))

    def tops(self, space: str, wanted: Sequence[bytes]) -> list[bytes]:
        """The keys in the writable segment."""
        top = self.layers[space].top
        return [top + key for key in wanted]

    def touches(self, tops: Sequence[bytes]) -> bool:
        """Whether this batch changed one of these keys, as ``tops`` gives them."""
        return bool(self.changed) and not self.changed.keys().isdisjoint(tops)

    def apply(self, transaction: Transaction, binding: bytes) -> None:
        """Change the snapshot as the commit of the article bound at ``binding`` will change the store."""
        values = self.values
        for write in transaction.writes:
            if isinstance(write, Append):
                before = values.get(write.key) or b""
                if not write.limit or len(before) + len(write.value) <= write.limit:
                    values[write.key] = before + write.value
            elif isinstance(write, Put):
                values[write.key] = write.value
            elif isinstance(write, Delete):
                values[write.key] = None
            elif isinstance(write, Chain):
                values[write.key] = link(values.get(write.key), write.token)
                continue
            else:  # nothing that look-ups read
                continue
            self.changed.setdefault(write.key, set()).add(binding)
