"""Bindings: the current version, first version and verdict of an id, in each space.

Two first posts of an id in two languages at the same moment leave two: the newest one counts, and the next
post of the id removes the other. The source of a stored version never changes (``ingest/decide.py``), so a
commit that checks the binding it read also checks the owner.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from aggregator.domain import Outcome
from aggregator.errors import Expired, Forbidden, NotFound
from aggregator.index import keys
from aggregator.index.codec.binding_codec import Binding, decode_binding, source_hash
from aggregator.index.segments import Segments
from aggregator.index.snapshot import Snapshot
from aggregator.store.base import Check


@dataclass(frozen=True, slots=True)
class BindingSnapshot:
    """A binding, its key in the writable segment, and its bytes there; None if it is in an older segment."""

    key: bytes
    raw: bytes | None
    binding: Binding

    @property
    def space(self) -> str:
        """The space of the binding."""
        return keys.space_of(self.key)


@dataclass(frozen=True, slots=True)
class DuplicateGroup:
    """The duplicates of one canonical article as they were read; ``first_number`` is the group number.

    ``unchanged_checks`` hold while no article joined, left, was repointed or rewritten since. They compare
    the whole list: it shrinks too, so its length is not a version.
    """

    first_number: int
    members: tuple[BindingSnapshot, ...]
    unchanged_checks: tuple[Check, ...]


def repoint(binding: Binding, removed: Binding, new_canonical: Binding | None) -> Binding:
    """A member's binding after ``removed`` left: "new" if it becomes canonical, else pointing to that."""
    match = binding.outcome.match
    if match is None:
        return binding
    if new_canonical is None:  # the canonical article has expired; the group keeps its id
        if match.id != removed.id:
            return binding
        moved = dataclasses.replace(match, id=match.canonical_id, number=match.canonical_first)
        return _with_outcome(binding, dataclasses.replace(binding.outcome, match=moved))
    if binding.first_version == new_canonical.first_version:
        return _with_outcome(binding, Outcome("new"))
    moved = dataclasses.replace(
        match, canonical_id=new_canonical.id, canonical_first=new_canonical.first_version
    )
    if match.id == removed.id:
        moved = dataclasses.replace(moved, id=new_canonical.id, number=new_canonical.number)
    return _with_outcome(binding, dataclasses.replace(binding.outcome, match=moved))


def _with_outcome(binding: Binding, outcome: Outcome) -> Binding:
    return msgspec.structs.replace(binding, outcome=outcome)


def next_canonical(removed: Binding, group: DuplicateGroup) -> BindingSnapshot | None:
    """The canonical article after ``removed`` left: the duplicate with the earliest first version."""
    left = [m for m in group.members if m.binding.id != removed.id]
    return min(left, key=lambda m: _arrival_order(m.binding), default=None)


def bindings_to_index(
    removed: Binding, remaining: Sequence[Binding], new_canonical: Binding | None = None
) -> list[Binding]:
    """The ``remaining`` members that must be indexed themselves after ``removed`` left the group.

    Exact copies may share another one's entries: the earliest one of the removed text is indexed, unless a
    member with own entries has the same text; and so is a promoted ``new_canonical``. Indexing twice is
    harmless.
    """
    entering = [new_canonical] if new_canonical is not None and _shares_entries(new_canonical) else []
    same = sorted((b for b in remaining if b.text_hash == removed.text_hash), key=_arrival_order)
    if same and all(map(_shares_entries, same)) and not any(b.id == e.id for b in same for e in entering):
        entering.append(same[0])
    return entering


def _shares_entries(binding: Binding) -> bool:
    return binding.outcome.match is not None and binding.outcome.match.rule == "exact"


def _arrival_order(binding: Binding) -> tuple[int, str]:
    return binding.first_version, binding.id


class Bindings:
    """Finds the bindings of ids, in a snapshot or in the store."""

    def __init__(self, segments: Segments, spaces: Sequence[str]) -> None:
        self._segments = segments
        self.spaces = tuple(spaces)

    def of_hash(self, snapshot: Snapshot, id_hash: bytes) -> list[BindingSnapshot]:
        """The bindings of an id in all spaces of a snapshot, newest first."""
        return bindings_under(snapshot, keys.binding_by_hash(b"", id_hash))

    async def find(self, id_: str) -> BindingSnapshot:
        """The newest binding of an id. Raises NotFound, Expired."""
        return (await self.find_all(id_))[1][0]

    async def find_all(self, id_: str) -> tuple[Snapshot, list[BindingSnapshot]]:
        """The bindings of an id, newest first, and their snapshot. Raises NotFound, Expired."""
        key = keys.binding_by_id(b"", id_)
        snapshot = await self._segments.read({space: [key] for space in self.spaces})
        found = bindings_under(snapshot, key)
        if not found:
            # A binding outlives its article for some time: an id with one is expired, not unknown.
            if any(snapshot.newest_value(space, key) for space in snapshot.stacks):
                raise expired_error(id_)
            raise NotFound(f"No article is stored under the id {id_[:200]!r}.")
        return snapshot, found

    async def find_many(self, ids: Sequence[str]) -> dict[str, BindingSnapshot]:
        """The newest bindings of those of the ids that are stored: one round trip."""
        keys_by_id = {id_: keys.binding_by_id(b"", id_) for id_ in ids}
        snapshot = await self._segments.read(dict.fromkeys(self.spaces, tuple(keys_by_id.values())))
        return {id_: found[0] for id_, key in keys_by_id.items() if (found := bindings_under(snapshot, key))}


def bindings_under(snapshot: Snapshot, key: bytes) -> list[BindingSnapshot]:
    """The bindings under ``key`` (without a tag) in all spaces of a snapshot, newest first."""
    found = [known for space in snapshot.stacks if (known := binding_in_space(snapshot, space, key))]
    if len(found) > 1:
        found.sort(key=lambda known: known.binding.number, reverse=True)
    return found


def binding_in_space(snapshot: Snapshot, space: str, key: bytes) -> BindingSnapshot | None:
    """The binding under ``key`` (without a tag) in one space; None if absent or below the saved floor."""
    value = snapshot.newest_value(space, key)
    if value is None:
        return None
    binding = decode_binding(value)
    if binding.number < snapshot.stacks[space].floor:
        return None
    writable_key = snapshot.writable_key(space, key)
    return BindingSnapshot(writable_key, snapshot.values[writable_key], binding)


def expired_error(id_: str) -> Expired:
    """The error for an id whose article has expired."""
    return Expired(f"The article {id_[:200]!r} has expired; it is older than the retention of the index.")


def is_owned(binding: Binding, sources: Sequence[str]) -> bool:
    """Whether a caller bound to ``sources`` (empty: to none) may replace and delete the version."""
    return not sources or binding.source in map(source_hash, sources)


def foreign_article_error(id_: str, sources: Sequence[str]) -> Forbidden:
    """The error for an id whose stored article is of another source, which the message does not name."""
    return Forbidden(
        f"id: the article {id_[:200]!r} is not one of {', '.join(sources)}, to which this key is restricted; "
        "post yours under another id."
    )
