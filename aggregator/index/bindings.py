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

from aggregator.domain import Outcome, Record
from aggregator.errors import Contention, Gone, NotFound
from aggregator.index import keys
from aggregator.index.base import ATTEMPTS, IndexBase
from aggregator.index.codec.records import Binding, decode_binding, decode_record, encode_record
from aggregator.index.duplicate_groups import Group, Known, carriers_of, heir_of
from aggregator.index.snapshot import Snapshot
from aggregator.store.base import Put, Transaction

LATEST_GRAVES = 1024  # of a segment: whoever repeats a delete does so soon


@dataclass(frozen=True, slots=True)
class Stored:
    """An article as it is stored now."""

    record: Record
    outcome: Outcome

    @property
    def group(self) -> int:
        """The first number of the group it is in."""
        return self.outcome.group(self.record.first)


class Groups(IndexBase):
    """Bindings, records and groups of copies."""

    # -- bindings and records ------------------------------------------------------------------

    def known(self, snapshot: Snapshot, id_: str) -> list[Known]:
        """The bindings of an id in a snapshot, newest first: one, while it does not change its space."""
        return _bound_under(snapshot, keys.binding_of(b"", id_))

    def standing(self, snapshot: Snapshot, key: bytes, now_ms: int) -> list[Known]:
        """``known``, by the key of a binding, without what has outlived its retention by now: look-ups find it no more, so its id is free.

        (The floor of the head, which reading by id goes by, rises in steps.)
        """
        known = _bound_under(snapshot, key)
        return [k for k in known if k.binding.number >= self.floor(snapshot.layers[k.space], now_ms)]

    def bound(self, snapshot: Snapshot, hashed_id: bytes) -> list[Known]:
        """As ``known``, by the hash of the id."""
        return _bound_under(snapshot, keys.binding(b"", hashed_id))

    async def elsewhere(self, ids: Mapping[str, str]) -> dict[str, list[Known]]:
        """What ids, given with their spaces, are bound to in the other spaces now."""
        bound = {id_: keys.binding_of(b"", id_) for id_ in ids}
        wanted = {space: [bound[id_] for id_, own in ids.items() if own != space] for space in self.spaces}
        snapshot = await self.segments.read({space: some for space, some in wanted.items() if some})
        return {id_: _bound_under(snapshot, key) for id_, key in bound.items()}

    async def find(self, id_: str) -> Known:
        """The binding of an id. Raises NotFound."""
        return (await self._find(id_))[1][0]

    async def _find(self, id_: str) -> tuple[Snapshot, list[Known]]:
        bound = keys.binding_of(b"", id_)
        snapshot = await self.segments.read({space: [bound] for space in self.spaces})
        known = self.known(snapshot, id_)
        if not known:
            # Bindings outlive their articles by a while, so for so long we can tell "no longer" from "never".
            if any(snapshot.newest(space, bound) for space in snapshot.layers):
                raise _expired(id_)
            raise NotFound(f"No article is stored under the id {id_[:200]!r}.")
        return snapshot, known

    async def get(self, id_: str) -> Stored:
        """The stored article. Raises NotFound, Gone when it has expired (for a while, then NotFound)."""
        known = await self.find(id_)
        number = known.binding.number
        record = (await self.records({number: known.space})).get(number)
        if record is None:
            raise _expired(id_)
        return Stored(record, known.binding.outcome)

    async def get_many(self, ids: Sequence[str]) -> dict[str, Stored]:
        """The stored articles among these ids, in two reads."""
        wanted = [keys.binding_of(b"", id_) for id_ in dict.fromkeys(ids)]
        snapshot = await self.segments.read(dict.fromkeys(self.spaces, wanted))
        found = {id_: known[0] for id_ in ids if (known := self.known(snapshot, id_))}
        records = await self.records({known.binding.number: known.space for known in found.values()})
        return {
            id_: Stored(records[known.binding.number], known.binding.outcome)
            for id_, known in found.items()
            if known.binding.number in records
        }

    async def records(self, numbers: Mapping[int, str]) -> dict[int, Record]:
        """Records of article numbers, given with their spaces; those that are gone are left out."""
        values = await self.store.read([keys.record(space, n) for n, space in numbers.items()])
        return {
            number: decode_record(data, space, number)
            for (number, space), data in zip(numbers.items(), values, strict=True)
            if data is not None
        }

    async def text_of(self, number: int) -> bytes | None:
        """The compressed text, when texts are kept."""
        return (await self.store.read([keys.text(number)]))[0]

    async def put_records(self, records: Sequence[Record], texts: Mapping[int, bytes]) -> set[int]:
        """Write records (and compressed texts) under fresh numbers; returns numbers that were taken already."""
        items = [Put(keys.record(r.space, r.number), encode_record(r), self.ttl_ms) for r in records]
        written = await self.store.put(items, only_if_absent=True)
        taken = {r.number for r, ok in zip(records, written, strict=True) if not ok}
        kept = [Put(keys.text(n), t, self.ttl_ms) for n, t in texts.items() if n not in taken]
        if kept:
            await self.store.put(kept)
        return taken

    async def rewrite_record(self, known: Known, record: Record) -> None:
        """Replace the metadata of a stored version (title, url, source, date): its text is the same.

        When the version left meanwhile (a delete, an update), what was written goes at once.
        """
        key = keys.record(record.space, record.number)
        await self.store.put([Put(key, encode_record(record), self.ttl_ms)])
        bound = keys.binding_of(b"", record.id)
        snapshot = await self.segments.read({known.space: [bound]})
        now = _bound(snapshot, known.space, bound)
        if now is None or now.binding.number != record.number:
            await self.forget_records({record.number: record.space})

    # -- groups --------------------------------------------------------------------------------

    async def copies(self, id_: str) -> list[Record]:
        """All stored articles of the group ``id_`` belongs to, the canonical one first, then by arrival."""
        snapshot, found = await self._find(id_)
        group, canonical = await self._group(snapshot, found[0])
        members = [m.binding for m in (canonical, *group.members) if m is not None]
        ordered = sorted({m.id: m for m in (*members, found[0].binding)}.values(), key=lambda m: m.first)
        ordered.sort(key=lambda m: m.outcome.match is not None)
        records = await self.records({m.number: found[0].space for m in ordered})
        return [records[m.number] for m in ordered if m.number in records]

    async def update_transaction(self, snapshot: Snapshot, known: Known, record: Record) -> Transaction:
        """New content for ``known``, which was read in ``snapshot``, in the space it already is in."""
        group, canonical = await self._group(snapshot, known)
        carriers = carriers_of(known.binding, _left(known, group, canonical))
        segment = self.segment(snapshot, record.space)
        return segment.update(
            known, record, group, list((await self._carriers(record.space, carriers)).values())
        )

    async def delete(self, id_: str) -> list[Known]:
        """Take an article down; its copies are re-pointed to the earliest one left. Raises NotFound.

        Returns what it was bound to in every space it was in. Their records are for the caller to forget, last
        of all that is to be done about them: while they are there, ``unfinished`` finds them.
        """
        for _ in range(ATTEMPTS):
            snapshot, found = await self._find(id_)
            left = [await self._leave(snapshot, known) for known in found]
            if any(left):
                return [known for known in left if known is not None]
        raise _contention(id_)

    async def unfinished(self, id_: str) -> list[Record]:
        """Records of versions of this id that left the writable segments: somebody died over their removal.

        (Those of frozen segments go with compaction.)
        """
        tops = {space: (await self.segments.layers(space)).top for space in self.spaces}
        lists = await self.store.read([keys.graves(top) for top in tops.values()])
        gone: dict[int, str] = {}
        for space, listed in zip(tops, lists, strict=True):
            latest = np.frombuffer(listed or b"", "<u8")[-LATEST_GRAVES:]
            gone.update(dict.fromkeys(latest.tolist(), space))
        left = await self.records(gone) if gone else {}
        return [record for record in left.values() if record.id == id_]

    async def leave(self, space: str, id_: str, *, below: int) -> bool:
        """Take an id out of one space, while its number is smaller; False when there was nothing to take.

        So of two that change an id's language at the same moment the one with the larger number stays.
        """
        bound = keys.binding_of(b"", id_)
        snapshot = await self.segments.read({space: [bound]})
        known = _bound(snapshot, space, bound)
        left = await self._leave(snapshot, known, below=below) if known is not None else None
        if left is None:
            return False
        await self.forget_records({left.binding.number: space})
        return True

    async def _leave(self, snapshot: Snapshot, known: Known, *, below: int | None = None) -> Known | None:
        """As ``leave``, from what was read already; gives what it was bound to at last. Its record is still there."""
        space, bound = known.space, keys.binding_of(b"", known.binding.id)
        for _ in range(ATTEMPTS):
            if below is not None and known.binding.number >= below:
                return None
            if await self._retire(snapshot, known):
                return known
            snapshot = await self.segments.read({space: [bound]})
            now = _bound(snapshot, space, bound)
            if now is None:
                return None
            known = now
        raise _contention(known.binding.id)

    async def _retire(self, snapshot: Snapshot, known: Known) -> bool:
        """One attempt to take out this binding; False when something changed meanwhile."""
        group, canonical = await self._group(snapshot, known)
        is_canonical = known.binding.outcome.match is None
        heir = heir_of(known.binding, group) if is_canonical else canonical
        promoted = heir.binding if is_canonical and heir else None
        carriers = carriers_of(known.binding, _left(known, group, canonical), promoted)
        records = await self._carriers(known.space, [*carriers, promoted] if promoted else carriers)
        segment = self.segment(snapshot, known.space)
        transaction = segment.delete(
            known,
            group,
            heir,
            [records[b.number] for b in carriers if b.number in records],
            records.get(promoted.number) if promoted else None,
        )
        return not await self.store.commit(transaction)

    async def _group(self, snapshot: Snapshot, known: Known) -> tuple[Group, Known | None]:
        """The group a binding belongs to, and its canonical binding (itself, when it is canonical)."""
        space, match = known.space, known.binding.outcome.match
        first = known.binding.group
        copies = keys.copies(b"", first)
        leads = keys.binding_of(b"", match.canonical_id if match else known.binding.id)
        seen = await self.segments.read_at(snapshot, space, [copies, leads])
        canonical = _bound(seen, space, leads)
        if canonical is not None and canonical.binding.first != first:  # expired, and stored anew
            canonical = None
        hashes = dict.fromkeys(_rows(seen.everywhere(space, [copies])))
        wanted = [keys.binding(b"", hashed) for hashed in hashes]
        rest = await self.segments.read_at(snapshot, space, wanted)
        found = [_bound(rest, space, key) for key in wanted]
        members = [m for m in found if m is not None and _canonical_first(m.binding) == first]
        unchanged = [seen.unchanged(space, copies), seen.unchanged(space, leads)]
        unchanged += [rest.unchanged(space, key) for key in wanted]
        return Group(first, tuple(members), tuple(unchanged)), canonical

    async def _carriers(self, space: str, bindings: Sequence[Binding]) -> dict[int, Record]:
        return await self.records(dict.fromkeys((b.number for b in bindings), space)) if bindings else {}


def _bound_under(snapshot: Snapshot, key: bytes) -> list[Known]:
    """What an id, by the key of its binding, is bound to in all spaces that were read; newest first."""
    found = [known for space in snapshot.layers if (known := _bound(snapshot, space, key))]
    if len(found) > 1:
        found.sort(key=lambda k: k.binding.number, reverse=True)
    return found


def _bound(snapshot: Snapshot, space: str, key: bytes) -> Known | None:
    """What an id, by the key of its binding, is bound to in a space; expired bindings are none."""
    value = snapshot.newest(space, key)
    if value is None:
        return None
    binding = decode_binding(value)
    if binding.number < snapshot.layers[space].floor:
        return None
    top = snapshot.top(space, key)
    return Known(top, snapshot.values[top], binding)


def _rows(values: Iterable[bytes | None]) -> Iterable[bytes]:
    for rows in values:
        yield from ((rows or b"")[i : i + 16] for i in range(0, len(rows or b""), 16))


def _canonical_first(binding: Binding) -> int | None:
    return binding.outcome.match.canonical_first if binding.outcome.match else None


def _left(known: Known, group: Group, canonical: Known | None) -> list[Binding]:
    """Who stays in the group when ``known`` leaves it."""
    members = (canonical, *group.members)
    return [m.binding for m in members if m is not None and m.binding.id != known.binding.id]


def _expired(id_: str) -> Gone:
    return Gone(f"The article {id_[:200]!r} has expired; it is older than the retention of the index.")


def _contention(id_: str) -> Contention:
    return Contention(f"The article {id_[:200]!r} kept changing while it was deleted; try again.")
