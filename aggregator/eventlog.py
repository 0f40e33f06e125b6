"""What is saved of events: how every replica reads it, and what a commit of the leader changes in it.

{events}index        id -> (status, detected, last seen) of all events that are kept
{events}e:<id>       one event, JSON
{events}n:<number>   event id of an article (its first number, hex), expiring
{events}changes      stream of changes (kind, time, event id), append-only, for SSE and webhooks
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import msgspec

from aggregator.bursts import Change, Event, Kind
from aggregator.errors import NotFound
from aggregator.event_query import EventQuery
from aggregator.store.base import Delete, Put, Store, StreamAdd, Write

DAY_MS = 86_400_000
RETENTION_MS = 90 * DAY_MS
INDEX = b"{events}index"
CHANGES = b"{events}changes"
# An event that was merged into one that was merged: so many steps are followed.
ATTEMPTS = 8
# A filtered list reads so many events at a time until it has enough.
READ_TOGETHER = 200


class _Entry(msgspec.Struct, array_like=True):
    """One event in the index of events."""

    status: str
    detected_at_ms: int
    last_seen_ms: int


class ChangeRecord(msgspec.Struct, frozen=True):
    """One entry of the change stream. No headline: that of a text taken down must not stay here."""

    kind: Kind
    at_ms: int
    event_id: str


_index = msgspec.msgpack.Decoder(dict[str, _Entry])
_event = msgspec.json.Decoder(Event)
_change = msgspec.json.Decoder(ChangeRecord)
_pack = msgspec.msgpack.Encoder().encode
_json = msgspec.json.Encoder().encode


class EventLog:
    """The saved events of a store. ``retention_ms``: how long closed ones are kept after they were last seen."""

    def __init__(self, store: Store, *, retention_ms: int = RETENTION_MS) -> None:
        self.store = store
        self._retention_ms = retention_ms

    # -- what the leader writes ----------------------------------------------------------------

    async def writes(self, pending: Sequence[Change], deleted: Mapping[int, str], now_ms: int) -> list[Write]:
        """Part of a commit: these changes, in order, and articles taken down (first number -> id)."""
        if not pending and not deleted:
            return []
        raw = (await self.store.read([INDEX]))[0]
        index = _index.decode(raw) if raw else {}
        writes: list[Write] = [
            StreamAdd(CHANGES, _json(ChangeRecord(c.kind, c.at_ms, c.event.id)))
            for c in pending
            if not _is_known(c, index.get(c.event.id))
        ]
        latest = {change.event.id: change.event for change in pending}
        latest.update(await self._without_deleted(deleted, latest))
        for event in latest.values():
            index[event.id] = _Entry(event.status, event.detected_at_ms, event.last_seen_ms)
            writes.append(Put(_event_key(event.id), _json(event)))
        for change in pending:
            writes += [
                Put(_number_key(n), change.event.id.encode(), self._retention_ms) for n in change.numbers
            ]
        for id_ in [i for i, e in index.items() if self._is_over(e, now_ms)]:
            del index[id_]
            writes.append(Delete(_event_key(id_)))
        return [*writes, Put(INDEX, _pack(index))]

    async def _without_deleted(
        self, deleted: Mapping[int, str], latest: Mapping[str, Event]
    ) -> dict[str, Event]:
        """Closed events of articles that were taken down, without them: their titles must go at once."""
        if not deleted:
            return {}
        found = await self.event_of(list(deleted))
        changed: dict[str, Event] = {}
        for first, id_ in found.items():
            if id_ in latest and latest[id_].status != "closed":
                continue
            event = changed.get(id_) or latest.get(id_) or await self._read(id_)
            if event is not None:
                changed[id_] = _without(event, deleted[first])
        return changed

    def _is_over(self, entry: _Entry, now_ms: int) -> bool:
        return entry.status == "closed" and entry.last_seen_ms < now_ms - self._retention_ms

    # -- what every replica reads ---------------------------------------------------------------

    async def list(
        self,
        status: str | None = None,
        since_ms: int | None = None,
        limit: int = 50,
        wanted: EventQuery | None = None,
    ) -> list[Event]:
        """Saved events, the most recently seen first. ``since_ms``: only those seen then or later."""
        raw = (await self.store.read([INDEX]))[0]
        index = _index.decode(raw) if raw else {}
        ids = [
            id_
            for id_, e in index.items()
            if (status is None or e.status == status) and (since_ms is None or e.last_seen_ms >= since_ms)
        ]
        ids.sort(key=lambda id_: (index[id_].last_seen_ms, index[id_].detected_at_ms, id_), reverse=True)
        found: list[Event] = []
        while ids and len(found) < limit:
            some, ids = ids[:READ_TOGETHER], ids[READ_TOGETHER:]
            read = await self.get_many(some)
            found += [e for i in some if (e := read.get(i)) and (wanted is None or wanted.matches(e))]
        return found[:limit]

    async def get_many(self, event_ids: Sequence[str]) -> dict[str, Event]:
        """Saved events by id, in one read; those that are not kept are left out."""
        values = await self.store.read([_event_key(id_) for id_ in event_ids])
        return {i: _event.decode(v) for i, v in zip(event_ids, values, strict=True) if v is not None}

    async def get(self, event_id: str) -> Event:
        """One saved event. Raises NotFound."""
        event = await self._read(event_id)
        if event is None:
            raise NotFound(f"There is no event {event_id[:200]!r}; it may have expired.")
        return event

    async def event_of(self, numbers: Sequence[int]) -> dict[int, str]:
        """Article number (an id's first version) -> id of the event it belongs to, where there is one."""
        if not numbers:
            return {}
        values = await self.store.read([_number_key(n) for n in numbers])
        found = {n: v.decode() for n, v in zip(numbers, values, strict=True) if v is not None}
        return {n: await self._survivor(id_) for n, id_ in found.items()}

    async def story_of(self, number: int) -> tuple[str, ...]:
        """Ids of the articles of the event that an article belongs to, oldest first; () when it is in none."""
        event_id = (await self.event_of([number])).get(number)
        event = await self._read(event_id) if event_id is not None else None
        return event.items if event is not None else ()

    async def changes(self, after: bytes = b"", count: int = 100) -> Sequence[tuple[bytes, ChangeRecord]]:
        """(position, change) of the change stream behind ``after``, oldest first."""
        read = (await self.store.stream_read([CHANGES], [after], count))[0]
        return [(position, _change.decode(payload)) for position, payload in read]

    async def _survivor(self, event_id: str) -> str:
        """The event that ``event_id`` has become."""
        for _ in range(ATTEMPTS):
            event = await self._read(event_id)
            if event is None or event.merged_into is None:
                break
            event_id = event.merged_into
        return event_id

    async def _read(self, event_id: str) -> Event | None:
        value = (await self.store.read([_event_key(event_id)]))[0]
        return None if value is None else _event.decode(value)


def _event_key(event_id: str) -> bytes:
    return b"{events}e:" + event_id.encode("utf-8", "surrogatepass")


def _number_key(number: int) -> bytes:
    return b"{events}n:%016x" % number


def _is_known(change: Change, entry: _Entry | None) -> bool:
    """Told before: the stream was read again after a state was lost."""
    if entry is None:
        return False
    return change.kind == "fired" or entry.status == "closed"


def _without(event: Event, article_id: str) -> Event:
    """A closed event without one article. Its headline may be that article's: the terms stand in for it."""
    kept = [(i, c) for i, c in zip(event.items, event.cosines, strict=True) if i != article_id]
    if len(kept) == len(event.items):
        return event
    return dataclasses.replace(
        event,
        title=", ".join(event.terms),
        size=event.size - 1,
        items=tuple(i for i, _ in kept),
        cosines=tuple(c for _, c in kept),
    )
