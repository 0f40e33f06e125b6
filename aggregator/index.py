"""Which stored articles are near this one, and how is a decision recorded?

Everything the service knows of stored articles goes through here: look-ups of many articles in one
round trip, records by number, bindings by id, groups of copies. The rules are elsewhere
(``verdict.py``); what a change consists of is in ``changes.py``; this module reads and commits.

A **snapshot** holds the values of all keys that one batch looked at. Decisions for the batch are made
in order against the snapshot, each one's writes applied to it before the next is made; so a batch
gives the verdicts of posting its articles one by one, in two reads instead of two per article.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np

from aggregator.blocks import PLANS, BlockPlan
from aggregator.changes import Group, Known, Segment, carriers_of, heir_of
from aggregator.domain import Analysis, Outcome, Record, StreamItem, number_of
from aggregator.errors import Contention, NotFound
from aggregator.fingerprint import hamming_distance
from aggregator.overlap import bands, compare_many
from aggregator.store import keys
from aggregator.store.base import Append, Check, Delete, Equals, Length, Put, Store, Transaction
from aggregator.store.entries import ArticleNumbers, Distances, sharing, within
from aggregator.store.records import (
    Binding,
    decode_binding,
    decode_pointer,
    decode_record,
    decode_stream_row,
    encode_record,
    stream_number,
)
from aggregator.verdict import Candidate

RADIUS_BITS = 7
# How many proposals are examined per article: the nearest and those sharing most bands come first.
MAX_CANDIDATES = 64
ATTEMPTS = 24


@dataclass(frozen=True, slots=True)
class Stored:
    """An article as it is stored now."""

    record: Record
    outcome: Outcome


@dataclass(slots=True)
class Snapshot:
    """Values of keys at one instant, plus what this batch has decided since.

    ``changed``: keys that the batch will change, each with the bindings of the articles that do.
    """

    values: dict[bytes, bytes | None] = field(default_factory=dict)
    records: dict[int, Record] = field(default_factory=dict)
    changed: dict[bytes, set[bytes]] = field(default_factory=dict)

    def apply(self, transaction: Transaction, binding: bytes) -> None:
        """Change the snapshot as the commit of the article bound at ``binding`` will change the store."""
        for write in transaction.writes:
            if isinstance(write, Append | Put | Delete):
                self.changed.setdefault(write.key, set()).add(binding)
            if isinstance(write, Append):
                before = self.values.get(write.key) or b""
                if not write.limit or len(before) + len(write.value) <= write.limit:
                    self.values[write.key] = before + write.value
            elif isinstance(write, Put):
                self.values[write.key] = write.value
            elif isinstance(write, Delete):
                self.values[write.key] = None


@dataclass(frozen=True, slots=True)
class Probe:
    """The keys that one article's look-up reads in its own space."""

    analysis: Analysis
    id: str
    buckets: tuple[bytes, ...]
    bands: tuple[bytes, ...]

    @property
    def keys(self) -> tuple[bytes, ...]:
        return self.buckets + self.bands


class Index:
    """The fingerprint index of all spaces over one store.

    ``spaces``: those that are served, e.g. ("en.3f2a", "zh.91c0", "xx.0001"). ``retention_ms``: how
    long articles are kept (None: for ever).
    """

    def __init__(
        self,
        store: Store,
        spaces: Sequence[str],
        *,
        retention_ms: int | None = None,
        plan: BlockPlan = PLANS["4x16"],
    ) -> None:
        self.store = store
        self.spaces = tuple(spaces)
        self.retention_ms = retention_ms
        self._plan = plan

    # -- look-ups ------------------------------------------------------------------------------

    def probe(self, analysis: Analysis, id_: str, radius: int = RADIUS_BITS) -> Probe:
        """What to read for one article: 68 buckets at radius 7 under 4x16, and its bands."""
        tag = self._tag(analysis.space)
        return Probe(
            analysis,
            id_,
            tuple(keys.bucket(tag, b, v) for b, v in self._plan.probes(analysis.fingerprint, radius)),
            tuple(keys.band(tag, b) for b in bands(analysis.sketch)),
        )

    async def snapshot(self, probes: Sequence[Probe]) -> Snapshot:
        """Read all that the probes ask for, and their ids in every space, in one round trip."""
        wanted = dict.fromkeys(
            key for probe in probes for key in (*probe.keys, *self._binding_keys(probe.id))
        )
        values = await self.store.read(list(wanted))
        return Snapshot(dict(zip(wanted, values, strict=True)))

    def candidate_numbers(self, snapshot: Snapshot, probe: Probe, now_ms: int) -> list[int]:
        """The nearest article numbers and those sharing most bands, at most ``MAX_CANDIDATES``.

        Equally good ones are ranked by number, so the earlier come first.
        """
        floor = self._floor(now_ms)
        near, distances = within(
            (snapshot.values[k] for k in probe.buckets), probe.analysis.fingerprint, RADIUS_BITS, floor
        )
        alike, shared = sharing(
            (snapshot.values[k] for k in probe.bands), bands(probe.analysis.sketch), floor
        )
        by_distance = near[np.lexsort((near, distances))][:MAX_CANDIDATES].tolist()
        by_bands = alike[np.lexsort((alike, -shared))][:MAX_CANDIDATES].tolist()
        # Turn and turn about: a crowd of near fingerprints must not hide a copy that only its wording
        # betrays, nor common wording a near fingerprint.
        turns = (n for pair in zip_longest(by_distance, by_bands) for n in pair if n is not None)
        return list(dict.fromkeys(turns))[:MAX_CANDIDATES]

    async def fetch(self, snapshot: Snapshot, wanted: Mapping[int, str]) -> None:
        """Add records and states of article numbers (with their spaces) to the snapshot."""
        missing = [n for n in wanted if n not in snapshot.records]
        if not missing:
            return
        states = [keys.state(self._tag(wanted[n]), n) for n in missing]
        values = await self.store.read([*map(keys.record, missing), *states])
        for number, data in zip(missing, values, strict=False):
            if data is not None:
                snapshot.records[number] = decode_record(data)
        for key, value in zip(states, values[len(missing) :], strict=True):
            snapshot.values.setdefault(key, value)

    def candidates(self, snapshot: Snapshot, probe: Probe, numbers: Sequence[int]) -> list[Candidate]:
        """The live ones among ``numbers``, examined: distance, overlap, canonical article."""
        tag = self._tag(probe.analysis.space)
        live: list[tuple[Record, tuple[str, int]]] = []
        for number in numbers:
            record = snapshot.records.get(number)
            state = snapshot.values.get(keys.state(tag, number))
            if record is None or state == keys.DEAD or record.id == probe.id:
                continue
            pointer = decode_pointer(state) if state else None
            live.append((record, (pointer.id, pointer.first) if pointer else (record.id, record.first)))
        overlaps = compare_many(probe.analysis.sketch, [record.sketch for record, _ in live])
        return [
            Candidate(
                record, canonical, hamming_distance(probe.analysis.fingerprint, record.fingerprint), overlap
            )
            for (record, canonical), overlap in zip(live, overlaps, strict=True)
        ]

    async def near(
        self, space: str, fingerprint: int, radius: int, now_ms: int
    ) -> tuple[ArticleNumbers, Distances]:
        """Article numbers within ``radius`` bits, ascending, and their distances; both (n,), one round trip.

        By bits alone, and as the buckets have it: deleted articles are still among them.
        """
        tag = self._tag(space)
        wanted = [keys.bucket(tag, b, v) for b, v in self._plan.probes(fingerprint, radius)]
        return within(await self.store.read(wanted), fingerprint, radius, self._floor(now_ms))

    async def neighbours(self, analysis: Analysis, id_: str, now_ms: int) -> list[Candidate]:
        """Look-up alone, for reading: candidates of one article, its own id left out."""
        probe = self.probe(analysis, id_)
        snapshot = await self.snapshot([probe])
        numbers = self.candidate_numbers(snapshot, probe, now_ms)
        await self.fetch(snapshot, dict.fromkeys(numbers, analysis.space))
        return self.candidates(snapshot, probe, numbers)

    async def among(self, analysis: Analysis, id_: str, ids: Sequence[str]) -> list[Candidate]:
        """The stored articles with these ids in the same space, examined as candidates; others are left out."""
        bound = await self.store.read([self.binding_key(analysis.space, i) for i in ids])
        numbers = [decode_binding(raw).number for raw in bound if raw]
        snapshot = Snapshot()
        await self.fetch(snapshot, dict.fromkeys(numbers, analysis.space))
        return self.candidates(snapshot, self.probe(analysis, id_), numbers)

    # -- bindings and records ------------------------------------------------------------------

    def known(self, snapshot: Snapshot, id_: str) -> list[Known]:
        """The bindings of an id in a snapshot, newest first: one, while it does not change its space."""
        return _bound([(key, snapshot.values.get(key)) for key in self._binding_keys(id_)])

    def binding_key(self, space: str, id_: str) -> bytes:
        """Where an id is bound when it is in this space."""
        return keys.binding(self._tag(space), keys.id_hash(id_))

    async def find(self, id_: str) -> Known:
        """The binding of an id. Raises NotFound."""
        return (await self._find_all(id_))[0]

    async def _find_all(self, id_: str) -> list[Known]:
        wanted = self._binding_keys(id_)
        known = _bound(list(zip(wanted, await self.store.read(wanted), strict=True)))
        if not known:
            raise _not_found(id_)
        return known

    async def get(self, id_: str) -> Stored:
        """The stored article. Raises NotFound."""
        known = await self.find(id_)
        record = (await self.records([known.binding.number])).get(known.binding.number)
        if record is None:
            raise NotFound(f"The article {id_[:200]!r} has expired.")
        return Stored(record, known.binding.outcome)

    async def records(self, numbers: Sequence[int]) -> dict[int, Record]:
        """Records by number; those that are gone are left out."""
        values = await self.store.read([keys.record(n) for n in numbers])
        return {n: decode_record(v) for n, v in zip(numbers, values, strict=True) if v is not None}

    async def copies(self, id_: str) -> list[Record]:
        """All stored articles of the group ``id_`` belongs to, the canonical one first, then by arrival."""
        known = await self.find(id_)
        group, canonical = await self._group(known)
        members = [m.binding for m in (canonical, *group.members) if m is not None]
        ordered = sorted({m.id: m for m in members}.values(), key=lambda m: m.first)
        ordered.sort(key=lambda m: m.outcome.match is not None)
        records = await self.records([m.number for m in ordered])
        return [records[m.number] for m in ordered if m.number in records]

    # -- changes -------------------------------------------------------------------------------

    def segment(self, space: str) -> Segment:
        """Builds transactions for the writable segment of a space."""
        return Segment(self._tag(space), self._plan, self.retention_ms)

    def seen(self, snapshot: Snapshot, probe: Probe, numbers: Sequence[int]) -> list[Check]:
        """The checks that what was looked at is as it was seen: no bucket has grown since the snapshot.

        Where an earlier article of the batch was seen, it must have been committed just so: a stranger's
        entry in its place would give the same length.
        """
        tag = self._tag(probe.analysis.space)
        looked_at = (*probe.keys, *(keys.state(tag, n) for n in numbers))
        relied_on = {b for k in looked_at for b in snapshot.changed.get(k, ())}
        return [
            *(Length(k, len(snapshot.values[k] or b"")) for k in probe.keys),
            *(Equals(b, snapshot.values[b]) for b in sorted(relied_on)),
        ]

    async def put_records(self, records: Sequence[Record], texts: Mapping[int, bytes]) -> set[int]:
        """Write records (and compressed texts) under fresh numbers; returns numbers that were taken already."""
        items = [Put(keys.record(r.number), encode_record(r), self.retention_ms) for r in records]
        written = await self.store.put(items, only_if_absent=True)
        taken = {r.number for r, ok in zip(records, written, strict=True) if not ok}
        kept = [Put(keys.text(n), t, self.retention_ms) for n, t in texts.items() if n not in taken]
        if kept:
            await self.store.put(kept)
        return taken

    async def rewrite_record(self, known: Known, record: Record) -> None:
        """Replace the metadata of a stored version (title, url, source, date): its text is the same.

        When the version left meanwhile (a delete, an update), what was written goes at once.
        """
        await self.store.put([Put(keys.record(record.number), encode_record(record), self.retention_ms)])
        raw = (await self.store.read([known.key]))[0]
        if raw is None or decode_binding(raw).number != record.number:
            await self.forget_records([record.number])

    async def forget_records(self, numbers: Sequence[int]) -> None:
        """Remove records and texts of versions that are no longer, or never came to be, in the index."""
        await self.store.delete([key for n in numbers for key in (keys.record(n), keys.text(n))])

    async def text_of(self, number: int) -> bytes | None:
        """The compressed text, when texts are kept."""
        return (await self.store.read([keys.text(number)]))[0]

    async def update_transaction(self, known: Known, record: Record) -> Transaction:
        """New content for ``known`` in the space it already is in."""
        group, canonical = await self._group(known)
        carriers = carriers_of(known.binding, _left(known, group, canonical))
        return self.segment(record.space).update(known, record, group, await self._carriers(carriers))

    async def delete(self, id_: str) -> None:
        """Take an article down; its copies are re-pointed to the earliest one left. Raises NotFound."""
        for _ in range(ATTEMPTS):
            if any([await self.leave(known) for known in await self._find_all(id_)]):
                return
        raise _contention(id_)

    async def leave(self, known: Known, *, below: int | None = None) -> bool:
        """Take an id out of one space, in whatever version; False when somebody else did.

        ``below``: only versions with smaller numbers. So of two that change an id's language at the same
        moment the one with the larger number stays.
        """
        for _ in range(ATTEMPTS):
            if below is not None and known.binding.number >= below:
                return False
            if await self._retire(known):
                return True
            raw = (await self.store.read([known.key]))[0]
            if raw is None:
                return False
            known = Known(known.key, raw, decode_binding(raw))
        raise _contention(known.binding.id)

    async def _retire(self, known: Known) -> bool:
        """One attempt to take out this binding; False when something changed meanwhile."""
        group, canonical = await self._group(known)
        is_canonical = known.binding.outcome.match is None
        heir = heir_of(known.binding, group) if is_canonical else canonical
        promoted = heir.binding if is_canonical and heir else None
        carriers = carriers_of(known.binding, _left(known, group, canonical), promoted)
        segment = self.segment(known.space)
        transaction = segment.delete(known, group, heir, await self._carriers(carriers))
        if await self.store.commit(transaction):
            return False
        await self.forget_records([known.binding.number])
        return True

    async def _group(self, known: Known) -> tuple[Group, Known | None]:
        """The group a binding belongs to, and its canonical binding (itself, when it is canonical)."""
        tag = keys.tag_of(known.key)
        match = known.binding.outcome.match
        first = match.canonical_first if match else known.binding.first
        canonical_key = keys.binding(tag, keys.id_hash(match.canonical_id)) if match else known.key
        copies_key = keys.copies(tag, first)
        rows, raw = await self.store.read([copies_key, canonical_key])
        canonical = Known(canonical_key, raw, decode_binding(raw)) if raw else None
        hashes = dict.fromkeys((rows or b"")[i : i + 16] for i in range(0, len(rows or b""), 16))
        wanted = [keys.binding(tag, h) for h in hashes]
        values = await self.store.read(wanted) if wanted else []
        found = [Known(k, v, decode_binding(v)) for k, v in zip(wanted, values, strict=True) if v]
        members = [
            m for m in found if m.binding.outcome.match and m.binding.outcome.match.canonical_first == first
        ]
        unchanged = [Equals(copies_key, rows), Equals(canonical_key, raw)]
        unchanged += [Equals(k, v) for k, v in zip(wanted, values, strict=True)]
        return Group(first, tuple(members), tuple(unchanged)), canonical

    async def _carriers(self, bindings: Sequence[Binding]) -> list[Record]:
        return list((await self.records([b.number for b in bindings])).values()) if bindings else []

    # -- the article stream --------------------------------------------------------------------

    async def recent(self, limit: int) -> list[StreamItem]:
        """The newest articles of all spaces, newest first."""
        tails = await asyncio.gather(
            *(self.store.stream_tail(keys.stream(self._tag(s)), limit) for s in self.spaces)
        )
        payloads = [payload for tail in tails for _, payload in tail]
        payloads.sort(key=stream_number, reverse=True)
        return await self._items(payloads[:limit])

    async def stream(
        self, positions: Mapping[bytes, bytes], count: int
    ) -> tuple[list[StreamItem], dict[bytes, bytes]]:
        """Up to ``count`` articles per space behind ``positions``, in commit order per space, and the new positions."""
        streams = [keys.stream(self._tag(s)) for s in self.spaces]
        read = await self.store.stream_read(streams, [positions.get(s, b"") for s in streams], count)
        moved = dict(positions)
        for stream, entries in zip(streams, read, strict=True):
            if entries:
                moved[stream] = entries[-1][0]
        payloads = [payload for entries in read for _, payload in entries]
        payloads.sort(key=stream_number)
        return await self._items(payloads), moved

    async def _items(self, payloads: Sequence[bytes]) -> list[StreamItem]:
        records = await self.records([stream_number(p) for p in payloads])
        return [decode_stream_row(p, records.get(stream_number(p))) for p in payloads]

    # -- small ---------------------------------------------------------------------------------

    def _tag(self, space: str) -> bytes:
        return keys.tag(space, 0)

    def _floor(self, now_ms: int) -> int:
        return 0 if self.retention_ms is None else number_of(max(0, now_ms - self.retention_ms))

    def _binding_keys(self, id_: str) -> list[bytes]:
        hashed = keys.id_hash(id_)
        return [keys.binding(self._tag(s), hashed) for s in self.spaces]


def _not_found(id_: str) -> NotFound:
    return NotFound(f"No article is stored under the id {id_[:200]!r}.")


def _contention(id_: str) -> Contention:
    return Contention(f"The article {id_[:200]!r} kept changing while it was deleted; try again.")


def _bound(read: Sequence[tuple[bytes, bytes | None]]) -> list[Known]:
    found = [Known(key, raw, decode_binding(raw)) for key, raw in read if raw]
    return sorted(found, key=lambda k: k.binding.number, reverse=True)


def _left(known: Known, group: Group, canonical: Known | None) -> list[Binding]:
    """Who stays in the group when ``known`` leaves it."""
    members = (canonical, *group.members)
    return [m.binding for m in members if m is not None and m.binding.id != known.binding.id]
