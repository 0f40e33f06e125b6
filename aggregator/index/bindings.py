"""Bindings: the current version, first version and verdict of an id, in each space.

Two first posts of an id in two languages at the same moment leave two: the newest one counts, and the next
post of the id removes the other. The source of a stored version never changes (``ingest/decide.py``), so a
commit that checks the binding it read also checks the owner.

The stored form of a binding is a format byte, MessagePack and a checksum; that of a state has no checksum.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import msgspec
import xxhash

from aggregator.analysis.text.normalization import source_key
from aggregator.domain import Match, MatchRule, Outcome, VerdictName
from aggregator.errors import Expired, Forbidden, NotFound
from aggregator.index import keys
from aggregator.index.segments import Segments
from aggregator.index.snapshot import Snapshot
from aggregator.store.base import Check
from aggregator.store.decoding import PLAIN, append_checksum, decode_checked, decode_formatted
from aggregator_client.wire import KeepReason


class Binding(msgspec.Struct, frozen=True, array_like=True):
    """The current version of an id, its first version, verdict and the ``source_hash`` of its source."""

    number: int
    first_version: int
    text_hash: bytes
    id: str
    outcome: Outcome
    source: int = 0

    @property
    def group(self) -> int:
        """The number of its duplicate group: the first version of the canonical article."""
        return self.outcome.group(self.first_version)


class _MatchRow(msgspec.Struct, frozen=True, array_like=True):
    """The canonical fields are None where the matched article is canonical."""

    id: str
    number: int
    canonical_id: str | None
    canonical_first: int | None
    distance: int
    overlap: float | None
    rule: MatchRule
    words: int = 0


class _BindingRow(msgspec.Struct, frozen=True, array_like=True):
    """``first_version`` is None in a first version."""

    number: int
    first_version: int | None
    text_hash: bytes
    id: str
    verdict: VerdictName
    distance: int | None
    flags: int  # positions in ``_FLAGS``; above them the position in ``_KEEP_REASONS``
    adds: int | None  # in percent
    part_of: str | None
    follows: str | None
    match: _MatchRow | None
    source: int


# Flags of an outcome, lowest bit first.
_FLAGS = ("updated_figures", "reversed", "keep", "fuller", "text_is_article")
_KEEP_REASONS = (None, *get_args(KeepReason))


class CanonicalPointer(msgspec.Struct, frozen=True, array_like=True):
    """State of the number of a duplicate: the canonical article of its group, and whether it is kept."""

    id: str
    first_version: int
    kept: bool = False


_binding_decoder = msgspec.msgpack.Decoder(_BindingRow)
_pointer_decoder = msgspec.msgpack.Decoder(CanonicalPointer)
_encode = msgspec.msgpack.Encoder().encode


def encode_binding(binding: Binding) -> bytes:
    """The stored form of a binding."""
    outcome, match = binding.outcome, binding.outcome.match
    row = _BindingRow(
        number=binding.number,
        first_version=None if binding.first_version == binding.number else binding.first_version,
        text_hash=binding.text_hash,
        id=binding.id,
        verdict=outcome.verdict,
        distance=outcome.distance,
        flags=sum(1 << i for i, name in enumerate(_FLAGS) if getattr(outcome, name))
        + (_KEEP_REASONS.index(outcome.keep_reason) << len(_FLAGS)),
        adds=None if outcome.adds is None else round(100 * outcome.adds),
        part_of=outcome.part_of,
        follows=outcome.follows,
        match=None
        if match is None
        else _MatchRow(
            id=match.id,
            number=match.number,
            canonical_id=None if match.canonical_id == match.id else match.canonical_id,
            canonical_first=None if match.canonical_first == match.number else match.canonical_first,
            distance=match.distance,
            overlap=match.overlap,
            rule=match.rule,
            words=match.words,
        ),
        source=binding.source,
    )
    return append_checksum(_encode(row))


def decode_binding(data: bytes) -> Binding:
    """Decode a binding. Raises StoreUnavailable if it is damaged or has another format."""
    row = decode_checked(_binding_decoder, data, "A binding")
    stored = row.match
    match = None
    if stored is not None:
        match = Match(
            id=stored.id,
            number=stored.number,
            canonical_id=stored.id if stored.canonical_id is None else stored.canonical_id,
            canonical_first=stored.number if stored.canonical_first is None else stored.canonical_first,
            distance=stored.distance,
            overlap=stored.overlap,
            rule=stored.rule,
            words=stored.words,
        )
    first_version = row.number if row.first_version is None else row.first_version
    outcome = Outcome(
        row.verdict,
        row.distance,
        match,
        keep_reason=_KEEP_REASONS[row.flags >> len(_FLAGS)],
        adds=None if row.adds is None else row.adds / 100,
        part_of=row.part_of,
        follows=row.follows,
        **{name: bool(row.flags >> i & 1) for i, name in enumerate(_FLAGS)},
    )
    return Binding(row.number, first_version, row.text_hash, row.id, outcome, row.source)


def encode_pointer(id_: str, first_version: int, *, kept: bool = False) -> bytes:
    """The stored form of the state of a duplicate."""
    return PLAIN + _encode(CanonicalPointer(id_, first_version, kept))


def decode_pointer(data: bytes) -> CanonicalPointer:
    """Decode the state of a duplicate. Raises StoreUnavailable if it is damaged or has another format."""
    return decode_formatted(_pointer_decoder, data, "A state")


def source_hash(source: str) -> int:
    """32 bits that stand for a source in any spelling; 0 for none."""
    return xxhash.xxh32_intdigest(source_key(source).encode("utf-8", "surrogatepass")) if source else 0


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


def repoint(
    binding: Binding, removed: Binding, new_canonical: Binding | None, *, match_left: bool = False
) -> Binding:
    """A member's binding after ``removed`` left: "new" if it becomes canonical, else pointing to that.

    ``match_left``: the article that it was matched to left the group, too.
    """
    match = binding.outcome.match
    if match is None:
        return binding
    if new_canonical is None:  # the canonical article has expired; the group keeps its id
        if match.id != removed.id and not match_left:
            return binding
        moved = dataclasses.replace(match, id=match.canonical_id, number=match.canonical_first)
        return with_outcome(binding, match=moved)
    if binding.first_version == new_canonical.first_version:
        return msgspec.structs.replace(binding, outcome=Outcome("new"))
    moved = dataclasses.replace(
        match, canonical_id=new_canonical.id, canonical_first=new_canonical.first_version
    )
    if match.id == removed.id or match_left:
        moved = dataclasses.replace(moved, id=new_canonical.id, number=new_canonical.number)
    return with_outcome(binding, match=moved)


def join(binding: Binding, link: Match) -> Binding:
    """A binding whose group joins that of ``link``; the canonical article gets the link, not its verdict."""
    match = binding.outcome.match or link
    moved = dataclasses.replace(match, canonical_id=link.canonical_id, canonical_first=link.canonical_first)
    return with_outcome(binding, match=moved)


def with_outcome(binding: Binding, **changes: Any) -> Binding:
    """A binding whose outcome has these changes."""
    return msgspec.structs.replace(binding, outcome=dataclasses.replace(binding.outcome, **changes))


def next_canonical(removed: Binding, group: DuplicateGroup) -> BindingSnapshot | None:
    """The canonical article after ``removed`` left: the earliest kept duplicate, else the earliest."""
    left = [m for m in group.members if m.binding.id != removed.id]
    return min(left, key=lambda m: (not m.binding.outcome.keep, *_arrival_order(m.binding)), default=None)


def split_undone(undone: Binding, group: DuplicateGroup) -> tuple[DuplicateGroup, list[BindingSnapshot]]:
    """The group without those that leave with an article that the crawler did not store, and these.

    They are the copies that it was told to drop since, if that was kept; all of a canonical article.
    """
    staying, leaving = list[BindingSnapshot](), list[BindingSnapshot]()
    for member in group.members:
        is_later = undone.outcome.match is None or member.binding.first_version > undone.first_version
        was_dropped = undone.outcome.keep and not member.binding.outcome.keep
        (leaving if is_later and was_dropped else staying).append(member)
    return dataclasses.replace(group, members=tuple(staying)), leaving


def bindings_to_index(
    removed: Binding, remaining: Sequence[Binding], new_canonical: Binding | None = None
) -> list[Binding]:
    """The ``remaining`` members that must be indexed themselves after ``removed`` left the group.

    Exact copies may share another one's entries: the earliest one of the removed text is indexed, unless a
    member with own entries has the same text; and so is a promoted ``new_canonical``. Indexing twice is
    harmless.
    """
    entering = [new_canonical] if new_canonical is not None and shares_entries(new_canonical) else []
    same = sorted((b for b in remaining if b.text_hash == removed.text_hash), key=_arrival_order)
    if same and all(map(shares_entries, same)) and not any(b.id == e.id for b in same for e in entering):
        entering.append(same[0])
    return entering


def shares_entries(binding: Binding) -> bool:
    """Whether it has no index entries of its own unless it was promoted or reindexed."""
    return binding.outcome.match is not None and binding.outcome.match.rule == "exact"


def _arrival_order(binding: Binding) -> tuple[int, str]:
    return binding.first_version, binding.id


class Bindings:
    """Finds the bindings of ids in the store."""

    def __init__(self, segments: Segments, spaces: Sequence[str]) -> None:
        self._segments = segments
        self.spaces = tuple(spaces)

    async def find(self, id_: str) -> BindingSnapshot:
        """The newest binding of an id. Raises NotFound, Expired."""
        return (await self.find_all(id_))[1][0]

    async def find_all(self, id_: str) -> tuple[Snapshot, list[BindingSnapshot]]:
        """The bindings of an id, newest first, and their snapshot. Raises NotFound, Expired."""
        key = keys.binding(id_)
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
        keys_by_id = {id_: keys.binding(id_) for id_ in ids}
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
    writable_key = snapshot.stacks[space].writable_tag + key
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
