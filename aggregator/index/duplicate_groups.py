"""Duplicate groups: the next canonical article, and new index entries, when an article leaves. Pure.

A group is one canonical article and its duplicates, which point to it. When the canonical article leaves,
the earliest duplicate is promoted; when a text leaves whose index entries exact copies share, one of them is
indexed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from aggregator.domain import Outcome
from aggregator.index import keys
from aggregator.index.codec.bindings import Binding
from aggregator.store.base import Check


@dataclass(frozen=True, slots=True)
class BindingSnapshot:
    """A binding as it was read, with what a ``ValueEquals`` check needs.

    ``key`` is in the writable segment and ``raw`` its bytes there; None if the binding is in an older
    segment.
    """

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

    ``unchanged_checks`` hold while no article joined, left, was repointed or rewritten since: they compare
    the whole duplicate list (it shrinks too, so its length is not a version), the canonical binding, and the
    binding of every id in the list.
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

    Only a version matched as an exact copy may share another one's entries. So the earliest member that
    shares the entries of the removed text is indexed, unless a member with certain entries has the same
    text; and a ``new_canonical`` that is promoted is indexed. Indexing a version twice is harmless: a number
    counts once.
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
