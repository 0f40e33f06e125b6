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
class Known:
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
class Group:
    """The copies of one canonical article as they were read; without ``members`` it stands alone.

    ``unchanged`` holds while nobody in it joined, left, was re-pointed or rewritten since: the list of
    copies is compared as a whole (it shrinks too, so its length is no version), and so are the canonical
    binding and every one the list led to.
    """

    first: int
    members: tuple[Known, ...]
    unchanged: tuple[Check, ...]


def repointed(binding: Binding, gone: Binding, heir: Binding | None) -> Binding:
    """A group member's binding after ``gone`` left: the heir becomes new, the rest point at it."""
    match = binding.outcome.match
    if match is None:
        return binding
    if heir is None:  # the canonical article has expired: its name stays
        if match.id != gone.id:
            return binding
        named = dataclasses.replace(match, id=match.canonical_id, number=match.canonical_first)
        return _with(binding, dataclasses.replace(binding.outcome, match=named))
    if binding.first == heir.first:
        return _with(binding, Outcome("new"))
    moved = dataclasses.replace(match, canonical_id=heir.id, canonical_first=heir.first)
    if match.id == gone.id:
        moved = dataclasses.replace(moved, id=heir.id, number=heir.number)
    return _with(binding, dataclasses.replace(binding.outcome, match=moved))


def _with(binding: Binding, outcome: Outcome) -> Binding:
    return Binding(binding.number, binding.first, binding.text_hash, binding.id, outcome)


def heir_of(gone: Binding, group: Group) -> Known | None:
    """Who is canonical once ``gone`` left its group: the earliest copy, by number of its first version."""
    left = [m for m in group.members if m.binding.id != gone.id]
    return min(left, key=lambda m: _age(m.binding), default=None)


def carriers_of(gone: Binding, left: Sequence[Binding], heir: Binding | None = None) -> list[Binding]:
    """Which of those ``left`` in the group must stand in the index themselves once ``gone`` left it.

    Only a version matched as an exact copy may lean on another one's entries. So the earliest that leans
    on the text of ``gone`` enters, unless one that surely stands has that text too; and an ``heir`` that is
    promoted to canonical enters. Who stands already may enter again: a number counts once.
    """
    entering = [heir] if heir is not None and _leans(heir) else []
    same = sorted((b for b in left if b.text_hash == gone.text_hash), key=_age)
    if same and all(map(_leans, same)) and not any(b.id == e.id for b in same for e in entering):
        entering.append(same[0])
    return entering


def _leans(binding: Binding) -> bool:
    return binding.outcome.match is not None and binding.outcome.match.rule == "exact"


def _age(binding: Binding) -> tuple[int, str]:
    return binding.first, binding.id
