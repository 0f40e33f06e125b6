"""The article stream: all versions and deletions of a space in commit order, over all its segments.

A segment is written only after the previous one was sealed. Reading their streams one after another gives
commit order, provided that a stream counts as finished only if its segment was known to be sealed *before*
the end of the stream was read. An article is announced in the space that decided it, so the streams of
serving and shadow spaces are all read.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from aggregator.analysis.analyzer import group_of
from aggregator.analysis.term_profile import story_terms
from aggregator.domain import ArticleRecord, StreamItem, VerdictName, WeightedTerms, arrival_ms_of
from aggregator.index import keys
from aggregator.index.bindings import Binding
from aggregator.index.codec.record_codec import decode_record_summary_uncached
from aggregator.index.keys import term_hash
from aggregator.index.segments import Segments
from aggregator.store.base import Store, parse_position
from aggregator.store.decoding import PLAIN, decode_formatted
from aggregator.time_units import HOUR_MS, MINUTE_MS

EntryKind = Literal["article", "deleted"]


class StreamEntry(msgspec.Struct, frozen=True, array_like=True):
    """A ``StreamItem`` without the fields of its record."""

    kind: EntryKind
    number: int
    first_version: int
    id: str
    verdict: VerdictName
    matched_number: int | None
    canonical_first: int | None
    exact: bool
    backfill: bool
    problems: int = 0
    deleted_terms: tuple[int, ...] = ()
    keep: bool = False


_entry_decoder = msgspec.msgpack.Decoder(StreamEntry)
_encode = msgspec.msgpack.Encoder().encode


def encode_stream_entry(kind: EntryKind, binding: Binding, record: ArticleRecord | None = None) -> bytes:
    """The stored form of an entry; ``kind``: "article" or "deleted"; ``record``: that of the version."""
    match = binding.outcome.match
    deleted = (*_story_terms(record), (f"\0{record.lang}", 1.0)) if record and kind == "deleted" else ()
    entry = StreamEntry(
        kind=kind,
        number=binding.number,
        first_version=binding.first_version,
        id=binding.id,
        verdict=binding.outcome.verdict,
        matched_number=match.number if match else None,
        canonical_first=match.canonical_first if match else None,
        exact=match is not None and match.rule == "exact",
        keep=binding.outcome.keep,
        backfill=record is not None and record.backfill,
        problems=record.problems | binding.outcome.problems if record else 0,
        deleted_terms=tuple([term_hash(term) for term, _ in deleted]),
    )
    return PLAIN + _encode(entry)


def _story_terms(record: ArticleRecord) -> WeightedTerms:
    return story_terms(record.title, record.lang, record.terms, record.opening_mask)


def decode_stream_entry(data: bytes) -> StreamEntry:
    """Decode an entry. Raises StoreUnavailable if it is damaged or has another format."""
    return decode_formatted(_entry_decoder, data, "A stream entry")


def to_stream_item(
    entry: StreamEntry, space: str, record: bytes | None, *, with_story_terms: bool = True
) -> StreamItem:
    """An entry with the fields of its stored record, empty if that is gone. Raises StoreUnavailable.

    Its terms are the story terms, or those of the record, which takes a third of the time.
    """
    fields: dict[str, Any] = {}
    if record is not None:
        stored = decode_record_summary_uncached(record, space, entry.number)
        fields = record_fields(stored)
        if with_story_terms:
            fields["terms"] = _story_terms(stored)
    fields |= msgspec.structs.asdict(entry)
    return StreamItem(arrived_ms=arrival_ms_of(entry.number), **fields)


def record_fields(record: ArticleRecord) -> dict[str, Any]:
    """The fields of a record that a ``StreamItem`` has, by name."""
    return {
        "title": record.title,
        "url": record.url,
        "source": record.source,
        "lang": record.lang,
        "space": record.space,
        "published_at_ms": record.published_at_ms,
        "terms": record.terms,
    }


class ArticleStream:
    """Reads the article streams of ``spaces``; the event detector uses them as its journal."""

    def __init__(self, store: Store, segments: Segments, spaces: Sequence[str]) -> None:
        self._store = store
        self._segments = segments
        self.spaces = tuple(spaces)
        self._homes = {space: space for space in spaces}  # by stream, which space has the records

    def add_former(self, spaces: Iterable[str]) -> None:
        """Read these, too, with the records that a migration copied to the first space of their group."""
        own = {group_of(space): space for space in reversed(self.spaces)}
        self._homes |= {space: own[group_of(space)] for space in spaces if group_of(space) in own}
        self.spaces = tuple(self._homes)

    async def recent(self, limit: int) -> list[StreamItem]:
        """The newest articles of all spaces, newest first."""
        return await self._load_items(await self._newest_entries(limit))

    async def recent_entries(self, limit: int) -> list[StreamItem]:
        """As ``recent`` without reading records: only times and verdicts."""
        return [to_stream_item(entry, space, None) for space, entry in await self._newest_entries(limit)]

    async def read_older(
        self, positions: Mapping[bytes, bytes] | None, count: int
    ) -> tuple[list[StreamItem], dict[bytes, bytes]]:
        """Up to ``count`` articles per space before ``positions``, and the positions to go on from.

        ``positions`` None is the end. No items: everything has been read. They have no story terms. The
        positions of a first call with a ``count`` of 1 are also those from which ``read`` continues.
        """
        parts = await asyncio.gather(*(self._read_tail(space, count, positions) for space in self.spaces))
        moved = {**(positions or {})}
        for _, read in parts:
            moved |= read
        entries = self._decode(payloads for payloads, _ in parts)
        return await self._load_items(entries, with_story_terms=False), moved

    async def positions_at(self, at_ms: int) -> dict[bytes, bytes]:
        """Positions for ``read`` before what was committed at or after this time in ms of the store."""
        positions = {}
        for space in self.spaces:
            stack = (await self._segments.read({space: ()})).stacks[space]
            stream_keys = [tag + keys.STREAM for tag in stack.tags]
            firsts = await self._store.stream_read(stream_keys, [b""] * len(stream_keys), 1)
            for key, first in zip(reversed(stream_keys), reversed(firsts), strict=True):
                if first and parse_position(first[0][0])[0] < at_ms:
                    positions[key] = b"%d-0" % (at_ms - 1)
                    break
        return positions

    async def read(
        self, positions: Mapping[bytes, bytes], count: int, *, with_story_terms: bool = True
    ) -> tuple[list[StreamItem], dict[bytes, bytes]]:
        """Up to ``count`` articles per space after ``positions`` ({}: the beginning), and new positions."""
        payloads, cursors = await self._read_after(positions, count)
        entries = sorted(self._decode(payloads), key=_entry_number)
        return await self._load_items(entries, with_story_terms), self._moved(positions, cursors)

    async def count(self, positions: Mapping[bytes, bytes], limit: int) -> int:
        """Number of entries that ``read`` would return, of which it decodes none."""
        return sum(map(len, (await self._read_after(positions, limit))[0]))

    async def _read_after(
        self, positions: Mapping[bytes, bytes], count: int
    ) -> tuple[list[list[bytes]], list[tuple[int, bytes]]]:
        """By space: stored entries after ``positions``, and the segment and position of the last one."""
        cursors = [await self._resume_position(space, positions) for space in self.spaces]
        payloads: list[list[bytes]] = [[] for _ in cursors]
        reading = list(range(len(cursors)))
        while reading:
            tags = [keys.tag(self.spaces[i], cursors[i][0]) for i in reading]
            room = [count - len(payloads[i]) for i in reading]
            sealed, read = await self._read_with_sealed(tags, [cursors[i][1] for i in reading], max(room))
            continuing = []
            for i, entries, limit, sealed_ms in zip(reading, read, room, sealed, strict=True):
                segment, position = cursors[i]
                taken = entries[:limit]
                payloads[i] += [payload for _, payload in taken]
                cursors[i] = segment, taken[-1][0] if taken else position
                if sealed_ms is not None and len(taken) == len(entries) < max(room):
                    cursors[i] = segment + 1, b""
                    continuing.append(i)
            reading = [i for i in continuing if len(payloads[i]) < count]
        return payloads, cursors

    def _decode(self, parts: Iterable[Sequence[bytes]]) -> list[tuple[str, StreamEntry]]:
        by_space = zip(self.spaces, parts, strict=True)
        return [(space, decode_stream_entry(payload)) for space, payloads in by_space for payload in payloads]

    def _moved(
        self, positions: Mapping[bytes, bytes], cursors: Sequence[tuple[int, bytes]]
    ) -> dict[bytes, bytes]:
        prefixes = tuple(map(keys.space_prefix, self.spaces))
        moved = {key: position for key, position in positions.items() if not key.startswith(prefixes)}
        for space, (segment, position) in zip(self.spaces, cursors, strict=True):
            if position or segment:
                moved[keys.tag(space, segment) + keys.STREAM] = position
        return moved

    async def _read_with_sealed(
        self, tags: Sequence[bytes], positions: Sequence[bytes], count: int
    ) -> tuple[list[bytes | None], list[list[tuple[bytes, bytes]]]]:
        """Whether the segments are sealed is read first."""
        sealed = await self._store.read([tag + keys.SEALED for tag in tags])
        return sealed, await self._store.stream_read([tag + keys.STREAM for tag in tags], positions, count)

    async def _resume_position(self, space: str, positions: Mapping[bytes, bytes]) -> tuple[int, bytes]:
        """Segment and position to continue from; segments dropped meanwhile are skipped."""
        stack = await self._segments.stack(space)
        prefix = keys.space_prefix(space)
        own = [
            (keys.segment_of(key), position) for key, position in positions.items() if key.startswith(prefix)
        ]
        segment, position = max(own, default=(0, b""))
        return (segment, position) if segment >= stack.first else (stack.first, b"")

    async def _newest_entries(self, limit: int) -> list[tuple[str, StreamEntry]]:
        tails = await asyncio.gather(*(self._read_tail(space, limit, None) for space in self.spaces))
        entries = self._decode(payloads for payloads, _ in tails)
        return sorted(entries, key=_entry_number, reverse=True)[:limit]

    async def _read_tail(
        self, space: str, limit: int, before: Mapping[bytes, bytes] | None
    ) -> tuple[list[bytes], dict[bytes, bytes]]:
        """The newest payloads of a space before these positions, and the oldest position read by stream."""
        found: list[bytes] = []
        read: dict[bytes, bytes] = {}
        stack = (await self._segments.read({space: ()})).stacks[space]
        tags, prefix = stack.tags, keys.space_prefix(space)
        if before is not None:
            newest = max((keys.segment_of(key) for key in before if key.startswith(prefix)), default=-1)
            tags = tuple(tag for tag in tags if keys.segment_of(tag) <= newest)
        for tag in reversed(tags):
            if len(found) < limit:
                key = tag + keys.STREAM
                position = before.get(key, b"") if before is not None else b""
                tail = await self._store.stream_tail(key, limit - len(found), position)
                found += [payload for _, payload in tail]
                if tail:
                    read[key] = tail[-1][0]
        return found, read

    async def _load_items(
        self, entries: Sequence[tuple[str, StreamEntry]], with_story_terms: bool = True
    ) -> list[StreamItem]:
        found = [(self._homes[space], entry) for space, entry in entries]
        records = await self._store.read([keys.record(space, entry.number) for space, entry in found])
        return [
            to_stream_item(entry, space, data, with_story_terms=with_story_terms)
            for (space, entry), data in zip(found, records, strict=True)
        ]


def _entry_number(item: tuple[str, StreamEntry]) -> int:
    return item[1].number


ENTRIES_PER_READ = 1000
# Entries per update and stream: about 0.3 s of work, in parts of 5 ms. The next update continues.
MAX_ENTRIES_PER_UPDATE = 100_000
# Positions are times of the store's clock, which may be ahead of that of the process that set the arrival.
CLOCK_MARGIN_MS = 5 * MINUTE_MS


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Articles of the last hour by minute (its start in ms) and by verdict, if ``is_complete``."""

    by_minute: tuple[tuple[int, int], ...]
    verdicts: dict[VerdictName, int]
    is_complete: bool

    @property
    def total(self) -> int:
        """Articles of the last hour."""
        return sum(count for _, count in self.by_minute)


class ArrivalCounts:
    """Counts of articles per minute of the last hour, exact at any rate, from all of ``stream``.

    The first update starts at the entries of one hour ago, later ones where the previous one ended, so each
    costs what has arrived since.
    """

    def __init__(self, store: Store, segments: Segments, stream: ArticleStream) -> None:
        self._store, self._segments, self._stream = store, segments, stream
        self._positions: dict[bytes, bytes] = {}
        self._counts: Counter[tuple[int, VerdictName]] = Counter()
        self._lock = asyncio.Lock()

    async def update(self, now_ms: int) -> Arrivals:
        """The counts of the hour that ends with the minute of ``now_ms``. Raises StoreUnavailable."""
        from_ms = now_ms // MINUTE_MS * MINUTE_MS - HOUR_MS + MINUTE_MS
        async with self._lock:
            store_ms = await self._store.time_ms()
            start = b"%d-0" % max(0, (now_ms if store_ms is None else store_ms) - HOUR_MS - CLOCK_MARGIN_MS)
            results = [
                await self._read(tag + keys.STREAM, start)
                for space in self._stream.spaces
                for tag in (await self._segments.stack(space)).tags
            ]
            for key in [key for key in self._counts if key[0] < from_ms]:
                del self._counts[key]
            minutes: Counter[int] = Counter()
            verdicts: dict[VerdictName, int] = {"new": 0, "related": 0, "duplicate": 0}
            for (minute_ms, verdict), count in self._counts.items():
                if minute_ms <= now_ms:
                    minutes[minute_ms] += count
                    verdicts[verdict] += count
            return Arrivals(tuple(sorted(minutes.items())), verdicts, all(results))

    async def _read(self, stream: bytes, start: bytes) -> bool:
        for _ in range(0, MAX_ENTRIES_PER_UPDATE, ENTRIES_PER_READ):
            position = self._positions.get(stream, start)
            entries = (await self._store.stream_read([stream], [position], ENTRIES_PER_READ))[0]
            for _, payload in entries:
                entry = decode_stream_entry(payload)
                if entry.kind == "article":
                    minute_ms = arrival_ms_of(entry.number) // MINUTE_MS * MINUTE_MS
                    self._counts[minute_ms, entry.verdict] += 1
            if entries:
                self._positions[stream] = entries[-1][0]
            if len(entries) < ENTRIES_PER_READ:
                return True
            await asyncio.sleep(0)
        return False
