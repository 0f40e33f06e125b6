"""What is an id bound to, who belongs together, and how does an article leave?

A binding, a state or a list of copies is changed in the writable segment only, wherever the article was
written: what is said there overrides the frozen segments (``snapshot.py``). So an article of a frozen
segment can be matched, updated, deleted and promoted like any other, in one commit of one segment.
Lists of copies add up over the segments, and a row whose binding no longer belongs is skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from aggregator.domain import ArticleRecord, Outcome
from aggregator.errors import CommitConflict, Expired, NotFound
from aggregator.index import keys
from aggregator.index.base import MAX_COMMIT_ATTEMPTS, IndexBase
from aggregator.index.codec.records import Binding, decode_binding, decode_record, encode_record
from aggregator.index.duplicate_groups import (
    BindingSnapshot,
    DuplicateGroup,
    bindings_to_index,
    next_canonical,
)
from aggregator.index.snapshot import Snapshot
from aggregator.store.base import Put, Transaction

RECENT_DEAD_LIMIT = 1024  # of a segment: whoever repeats a delete does so soon


@dataclass(frozen=True, slots=True)
class StoredArticle:
    """An article as it is stored now."""

    record: ArticleRecord
    outcome: Outcome

    @property
    def group(self) -> int:
        """The first number of the group it is in."""
        return self.outcome.group(self.record.first_version)


class Bindings(IndexBase):
    """Bindings, records and groups of copies."""

    # -- bindings and records ------------------------------------------------------------------

    def bindings_of_id(self, snapshot: Snapshot, id_: str) -> list[BindingSnapshot]:
        """The bindings of an id in a snapshot, newest first: one, while it does not change its space."""
        return _bindings_under(snapshot, keys.binding_by_id(b"", id_))

    def live_bindings(self, snapshot: Snapshot, key: bytes, now_ms: int) -> list[BindingSnapshot]:
        """``known``, by the key of a binding, without what has outlived its retention by now: look-ups find it no more, so its id is free.

        (The floor of the head, which reading by id goes by, rises in steps.)
        """
        known = _bindings_under(snapshot, key)
        return [k for k in known if k.binding.number >= self.floor(snapshot.stacks[k.space], now_ms)]

    def bindings_of_hash(self, snapshot: Snapshot, hashed_id: bytes) -> list[BindingSnapshot]:
        """As ``known``, by the hash of the id."""
        return _bindings_under(snapshot, keys.binding_by_hash(b"", hashed_id))

    async def bindings_in_other_spaces(
        self, spaces_by_id: Mapping[str, str]
    ) -> dict[str, list[BindingSnapshot]]:
        """What ids, given with their spaces, are bound to in the other spaces now."""
        bound = {id_: keys.binding_by_id(b"", id_) for id_ in spaces_by_id}
        wanted = {
            space: [bound[id_] for id_, own in spaces_by_id.items() if own != space] for space in self.spaces
        }
        snapshot = await self.segments.read({space: some for space, some in wanted.items() if some})
        return {id_: _bindings_under(snapshot, key) for id_, key in bound.items()}

    async def find_binding(self, id_: str) -> BindingSnapshot:
        """The binding of an id. Raises NotFound."""
        return (await self._find_bindings(id_))[1][0]

    async def _find_bindings(self, id_: str) -> tuple[Snapshot, list[BindingSnapshot]]:
        bound = keys.binding_by_id(b"", id_)
        snapshot = await self.segments.read({space: [bound] for space in self.spaces})
        known = self.bindings_of_id(snapshot, id_)
        if not known:
            # Bindings outlive their articles by a while, so for so long we can tell "no longer" from "never".
            if any(snapshot.newest_value(space, bound) for space in snapshot.stacks):
                raise _expired_error(id_)
            raise NotFound(f"No article is stored under the id {id_[:200]!r}.")
        return snapshot, known

    async def get(self, id_: str) -> StoredArticle:
        """The stored article. Raises NotFound, Gone when it has expired (for a while, then NotFound)."""
        known = await self.find_binding(id_)
        number = known.binding.number
        record = (await self.read_records({number: known.space})).get(number)
        if record is None:
            raise _expired_error(id_)
        return StoredArticle(record, known.binding.outcome)

    async def get_many(self, ids: Sequence[str]) -> dict[str, StoredArticle]:
        """The stored articles among these ids, in two reads."""
        wanted = [keys.binding_by_id(b"", id_) for id_ in dict.fromkeys(ids)]
        snapshot = await self.segments.read(dict.fromkeys(self.spaces, wanted))
        found = {id_: known[0] for id_ in ids if (known := self.bindings_of_id(snapshot, id_))}
        records = await self.read_records({known.binding.number: known.space for known in found.values()})
        return {
            id_: StoredArticle(records[known.binding.number], known.binding.outcome)
            for id_, known in found.items()
            if known.binding.number in records
        }

    async def read_records(self, spaces_by_number: Mapping[int, str]) -> dict[int, ArticleRecord]:
        """Records of article numbers, given with their spaces; those that are gone are left out."""
        values = await self.store.read([keys.record(space, n) for n, space in spaces_by_number.items()])
        return {
            number: decode_record(data, space, number)
            for (number, space), data in zip(spaces_by_number.items(), values, strict=True)
            if data is not None
        }

    async def read_text(self, number: int) -> bytes | None:
        """The compressed text, when texts are kept."""
        return (await self.store.read([keys.text(number)]))[0]

    async def put_records(self, records: Sequence[ArticleRecord], texts: Mapping[int, bytes]) -> set[int]:
        """Write records (and compressed texts) under fresh numbers; returns numbers that were taken already."""
        items = [Put(keys.record(r.space, r.number), encode_record(r), self.ttl_ms) for r in records]
        written = await self.store.put(items, only_if_absent=True)
        taken = {r.number for r, ok in zip(records, written, strict=True) if not ok}
        kept = [Put(keys.text(n), t, self.ttl_ms) for n, t in texts.items() if n not in taken]
        if kept:
            await self.store.put(kept)
        return taken

    async def update_record_metadata(self, known: BindingSnapshot, record: ArticleRecord) -> None:
        """Replace the metadata of a stored version (title, url, source, date): its text is the same.

        When the version left meanwhile (a delete, an update), what was written goes at once.
        """
        key = keys.record(record.space, record.number)
        await self.store.put([Put(key, encode_record(record), self.ttl_ms)])
        bound = keys.binding_by_id(b"", record.id)
        snapshot = await self.segments.read({known.space: [bound]})
        now = _binding_in_space(snapshot, known.space, bound)
        if now is None or now.binding.number != record.number:
            await self.delete_records({record.number: record.space})

    # -- groups --------------------------------------------------------------------------------

    async def group_members(self, id_: str) -> list[ArticleRecord]:
        """All stored articles of the group ``id_`` belongs to, the canonical one first, then by arrival."""
        snapshot, found = await self._find_bindings(id_)
        group, canonical = await self._read_group(snapshot, found[0])
        members = [m.binding for m in (canonical, *group.members) if m is not None]
        ordered = sorted(
            {m.id: m for m in (*members, found[0].binding)}.values(), key=lambda m: m.first_version
        )
        ordered.sort(key=lambda m: m.outcome.match is not None)
        records = await self.read_records({m.number: found[0].space for m in ordered})
        return [records[m.number] for m in ordered if m.number in records]

    async def update_transaction(
        self, snapshot: Snapshot, known: BindingSnapshot, record: ArticleRecord
    ) -> Transaction:
        """New content for ``known``, which was read in ``snapshot``, in the space it already is in."""
        group, canonical = await self._read_group(snapshot, known)
        carriers = bindings_to_index(known.binding, _remaining_members(known, group, canonical))
        segment = self.transactions(snapshot, record.space)
        return segment.update(
            known, record, group, list((await self._read_records_of(record.space, carriers)).values())
        )

    async def delete(self, id_: str) -> list[BindingSnapshot]:
        """Take an article down; its copies are re-pointed to the earliest one left. Raises NotFound.

        Returns what it was bound to in every space it was in. Their records are for the caller to forget, last
        of all that is to be done about them: while they are there, ``unfinished`` finds them.
        """
        for _ in range(MAX_COMMIT_ATTEMPTS):
            snapshot, found = await self._find_bindings(id_)
            left = [await self._remove_binding(snapshot, known) for known in found]
            if any(left):
                return [known for known in left if known is not None]
        raise _conflict_error(id_)

    async def orphaned_records(self, id_: str) -> list[ArticleRecord]:
        """Records of versions of this id that left the writable segments: somebody died over their removal.

        (Those of frozen segments go with compaction.)
        """
        tops = {space: (await self.segments.stack(space)).writable_tag for space in self.spaces}
        lists = await self.store.read([keys.dead_numbers(top) for top in tops.values()])
        gone: dict[int, str] = {}
        for space, listed in zip(tops, lists, strict=True):
            latest = np.frombuffer(listed or b"", "<u8")[-RECENT_DEAD_LIMIT:]
            gone.update(dict.fromkeys(latest.tolist(), space))
        left = await self.read_records(gone) if gone else {}
        return [record for record in left.values() if record.id == id_]

    async def remove_older(self, space: str, id_: str, *, below_number: int) -> bool:
        """Take an id out of one space, while its number is smaller; False when there was nothing to take.

        So of two that change an id's language at the same moment the one with the larger number stays.
        """
        bound = keys.binding_by_id(b"", id_)
        snapshot = await self.segments.read({space: [bound]})
        known = _binding_in_space(snapshot, space, bound)
        left = (
            await self._remove_binding(snapshot, known, below_number=below_number)
            if known is not None
            else None
        )
        if left is None:
            return False
        await self.delete_records({left.binding.number: space})
        return True

    async def _remove_binding(
        self, snapshot: Snapshot, known: BindingSnapshot, *, below_number: int | None = None
    ) -> BindingSnapshot | None:
        """As ``leave``, from what was read already; gives what it was bound to at last. Its record is still there."""
        space, bound = known.space, keys.binding_by_id(b"", known.binding.id)
        for _ in range(MAX_COMMIT_ATTEMPTS):
            if below_number is not None and known.binding.number >= below_number:
                return None
            if await self._try_remove(snapshot, known):
                return known
            snapshot = await self.segments.read({space: [bound]})
            now = _binding_in_space(snapshot, space, bound)
            if now is None:
                return None
            known = now
        raise _conflict_error(known.binding.id)

    async def _try_remove(self, snapshot: Snapshot, known: BindingSnapshot) -> bool:
        """One attempt to take out this binding; False when something changed meanwhile."""
        group, canonical = await self._read_group(snapshot, known)
        is_canonical = known.binding.outcome.match is None
        heir = next_canonical(known.binding, group) if is_canonical else canonical
        promoted = heir.binding if is_canonical and heir else None
        carriers = bindings_to_index(known.binding, _remaining_members(known, group, canonical), promoted)
        records = await self._read_records_of(known.space, [*carriers, promoted] if promoted else carriers)
        segment = self.transactions(snapshot, known.space)
        transaction = segment.delete(
            known,
            group,
            heir,
            [records[b.number] for b in carriers if b.number in records],
            records.get(promoted.number) if promoted else None,
        )
        return not await self.store.commit(transaction)

    async def _read_group(
        self, snapshot: Snapshot, known: BindingSnapshot
    ) -> tuple[DuplicateGroup, BindingSnapshot | None]:
        """The group a binding belongs to, and its canonical binding (itself, when it is canonical)."""
        space, match = known.space, known.binding.outcome.match
        first = known.binding.group
        copies = keys.duplicate_ids(b"", first)
        leads = keys.binding_by_id(b"", match.canonical_id if match else known.binding.id)
        seen = await self.segments.read_more(snapshot, space, [copies, leads])
        canonical = _binding_in_space(seen, space, leads)
        if canonical is not None and canonical.binding.first_version != first:  # expired, and stored anew
            canonical = None
        hashes = dict.fromkeys(_split_id_hashes(seen.values_in_all_segments(space, [copies])))
        wanted = [keys.binding_by_hash(b"", hashed) for hashed in hashes]
        rest = await self.segments.read_more(snapshot, space, wanted)
        found = [_binding_in_space(rest, space, key) for key in wanted]
        members = [m for m in found if m is not None and _canonical_first(m.binding) == first]
        unchanged = [seen.unchanged_check(space, copies), seen.unchanged_check(space, leads)]
        unchanged += [rest.unchanged_check(space, key) for key in wanted]
        return DuplicateGroup(first, tuple(members), tuple(unchanged)), canonical

    async def _read_records_of(self, space: str, bindings: Sequence[Binding]) -> dict[int, ArticleRecord]:
        return await self.read_records(dict.fromkeys((b.number for b in bindings), space)) if bindings else {}


def _bindings_under(snapshot: Snapshot, key: bytes) -> list[BindingSnapshot]:
    """What an id, by the key of its binding, is bound to in all spaces that were read; newest first."""
    found = [known for space in snapshot.stacks if (known := _binding_in_space(snapshot, space, key))]
    if len(found) > 1:
        found.sort(key=lambda k: k.binding.number, reverse=True)
    return found


def _binding_in_space(snapshot: Snapshot, space: str, key: bytes) -> BindingSnapshot | None:
    """What an id, by the key of its binding, is bound to in a space; expired bindings are none."""
    value = snapshot.newest_value(space, key)
    if value is None:
        return None
    binding = decode_binding(value)
    if binding.number < snapshot.stacks[space].floor:
        return None
    top = snapshot.writable_key(space, key)
    return BindingSnapshot(top, snapshot.values[top], binding)


def _split_id_hashes(values: Iterable[bytes | None]) -> Iterable[bytes]:
    for rows in values:
        yield from ((rows or b"")[i : i + 16] for i in range(0, len(rows or b""), 16))


def _canonical_first(binding: Binding) -> int | None:
    return binding.outcome.match.canonical_first if binding.outcome.match else None


def _remaining_members(
    known: BindingSnapshot, group: DuplicateGroup, canonical: BindingSnapshot | None
) -> list[Binding]:
    """Who stays in the group when ``known`` leaves it."""
    members = (canonical, *group.members)
    return [m.binding for m in members if m is not None and m.binding.id != known.binding.id]


def _expired_error(id_: str) -> Expired:
    return Expired(f"The article {id_[:200]!r} has expired; it is older than the retention of the index.")


def _conflict_error(id_: str) -> CommitConflict:
    return CommitConflict(f"The article {id_[:200]!r} kept changing while it was deleted; try again.")
