"""Who takes over when an article leaves its group of copies? Pure.

A group is one canonical article and its copies, which point at it. When the canonical one goes, the earliest copy
is promoted; when a text goes that exact copies lean on, one of them must stand in the index itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from aggregator.domain import Outcome
from aggregator.index import keys
from aggregator.index.codec.records import Binding
from aggregator.store.base import Check


@dataclass(frozen=True, slots=True)
class BindingSnapshot:
    """A binding as it was read, with what an ``Equals`` check needs.

    ``key`` is in the writable segment and ``raw`` its bytes there: None when an older segment says it.
    """

    key: bytes
    raw: bytes | None
    binding: Binding

    @property
    def space(self) -> str:
        """The space it is bound in."""
        return keys.space_of(self.key)


@dataclass(frozen=True, slots=True)
class DuplicateGroup:
    """The copies of one canonical article as they were read; without ``members`` it stands alone.

    ``unchanged`` holds while nobody in it joined, left, was re-pointed or rewritten since: the list of
    copies is compared as a whole (it shrinks too, so its length is no version), and so are the canonical
    binding and every one the list led to.
    """

    first_number: int
    members: tuple[BindingSnapshot, ...]
    unchanged_checks: tuple[Check, ...]


def repoint(binding: Binding, removed: Binding, new_canonical: Binding | None) -> Binding:
    """A group member's binding after ``gone`` left: the heir becomes new, the rest point at it."""
    match = binding.outcome.match
    if match is None:
        return binding
    if new_canonical is None:  # the canonical article has expired: its name stays
        if match.id != removed.id:
            return binding
        named = dataclasses.replace(match, id=match.canonical_id, number=match.canonical_first)
        return _with_outcome(binding, dataclasses.replace(binding.outcome, match=named))
    if binding.first_version == new_canonical.first_version:
        return _with_outcome(binding, Outcome("new"))
    moved = dataclasses.replace(
        match, canonical_id=new_canonical.id, canonical_first=new_canonical.first_version
    )
    if match.id == removed.id:
        moved = dataclasses.replace(moved, id=new_canonical.id, number=new_canonical.number)
    return _with_outcome(binding, dataclasses.replace(binding.outcome, match=moved))


def _with_outcome(binding: Binding, outcome: Outcome) -> Binding:
    return Binding(binding.number, binding.first_version, binding.text_hash, binding.id, outcome)


def next_canonical(removed: Binding, group: DuplicateGroup) -> BindingSnapshot | None:
    """Who is canonical once ``gone`` left its group: the earliest copy, by number of its first version."""
    left = [m for m in group.members if m.binding.id != removed.id]
    return min(left, key=lambda m: _arrival_order(m.binding), default=None)


def bindings_to_index(
    removed: Binding, remaining: Sequence[Binding], new_canonical: Binding | None = None
) -> list[Binding]:
    """Which of those ``left`` in the group must stand in the index themselves once ``gone`` left it.

    Only a version matched as an exact copy may lean on another one's entries. So the earliest that leans
    on the text of ``gone`` enters, unless one that surely stands has that text too; and an ``heir`` that is
    promoted to canonical enters. Who stands already may enter again: a number counts once.
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
