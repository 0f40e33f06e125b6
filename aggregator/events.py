"""Driving the burst detector over the live stream, and the events that readers see.

**The stream is the journal, the state a checkpoint.** ``advance`` reads what came behind the saved
positions, feeds the detector and saves state, positions and changed events together, in one commit that
holds only while the position is still the one that was read. So two leaders can at worst do the same work
twice: the loser drops its own and reads again. A leader that dies is followed by one that reads the stream
again from the last checkpoint and comes to the same events, since their ids depend on their articles
alone. Nothing is lost and nothing told twice: the stream of changes is part of the same commit.

A checkpoint is written when an event fired, merged or closed or an article was taken down, and otherwise
every ``checkpoint_ms``; in between the leader's detector is ahead of what is saved, in memory only.

    {events}position     checkpoint number, mode, positions in the article streams
    {events}state        the detector (``BurstDetector.dump``), compressed
    {events}index        id -> (status, detected, last seen) of all events that are kept
    {events}e:<id>       one event, JSON
    {events}n:<number>   event id of an article (its first number, hex), expiring
    {events}changes      stream of changes (kind, time, event id), append-only, for SSE and webhooks
"""

from __future__ import annotations

import asyncio
import dataclasses
import zlib
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from aggregator.bursts import BurstDetector, BurstRule, Change, Event, Kind
from aggregator.domain import StreamItem
from aggregator.errors import NotFound
from aggregator.store.base import Delete, Equals, Put, Store, StreamAdd, Transaction, Write

DAY_MS = 86_400_000
# The detector is fed on the event loop: so many items at a time, some 50 ms.
BATCH = 250
CHECKPOINT_MS = 10_000
RETENTION_MS = 90 * DAY_MS
POSITION = b"{events}position"
STATE = b"{events}state"
INDEX = b"{events}index"
CHANGES = b"{events}changes"
FORMAT = b"\x01"
ATTEMPTS = 8


class Source(Protocol):
    """What is read of the article stream: ``Index`` has it."""

    async def stream(
        self, positions: Mapping[bytes, bytes], count: int
    ) -> tuple[list[StreamItem], dict[bytes, bytes]]:
        """Up to ``count`` articles per stream behind ``positions``, in commit order, and the new positions."""


class _Position(msgspec.Struct, array_like=True):
    checkpoint: int
    mode: str
    streams: dict[bytes, bytes]


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


_position = msgspec.msgpack.Decoder(_Position)
_index = msgspec.msgpack.Decoder(dict[str, _Entry])
_event = msgspec.json.Decoder(Event)
_change = msgspec.json.Decoder(ChangeRecord)
_pack = msgspec.msgpack.Encoder().encode
_json = msgspec.json.Encoder().encode


class Events:
    """Events over a store. ``advance`` is for one leader at a time, the rest for every replica.

    ``checkpoint_ms``: how much of the stream, in time, a crash makes the next leader read again.
    ``retention_ms``: how long closed events are kept after they were last seen.
    """

    def __init__(
        self,
        store: Store,
        rule: BurstRule,
        *,
        batch: int = BATCH,
        checkpoint_ms: int = CHECKPOINT_MS,
        retention_ms: int = RETENTION_MS,
    ) -> None:
        self.store = store
        self._rule = rule
        self._batch = batch
        self._checkpoint_ms = checkpoint_ms
        self._retention_ms = retention_ms
        self._lead: _Lead | None = None
        self.items_read = 0
        self.commits_lost = 0

    # -- the leader ----------------------------------------------------------------------------

    async def advance(self, index: Source, now_ms: int) -> list[Change]:
        """One tick: read on, decide, save. Returns the changes it saved (none when it lost a race).

        Raises StoreUnavailable; then nothing is half saved and the next call goes on where the save left off.
        """
        lead = self._lead
        saved = (await self.store.read([POSITION]))[0]
        if lead is None or lead.saved != saved:
            lead = await self._resume(saved)
        self._lead = None  # whatever interrupts from here on, the next tick starts from what is saved
        while True:
            items, streams = await index.stream(lead.streams, self._batch)
            self._feed(lead, items, streams, now_ms)
            if len(items) < self._batch:
                break
            if lead.wants_checkpoint(now_ms, self._checkpoint_ms) and not await self._save(lead, now_ms):
                return []
            await asyncio.sleep(0)
        lead.detector.tick(now_ms)
        lead.pending += lead.detector.changes()
        if lead.wants_checkpoint(now_ms, self._checkpoint_ms) and not await self._save(lead, now_ms):
            return []
        self._lead = lead
        done, lead.done = lead.done, []
        return done

    async def checkpoint(self, now_ms: int) -> None:
        """Save what the leader is ahead; on an orderly stop, so that its successor need not read again."""
        lead, self._lead = self._lead, None
        if lead is not None and lead.ahead:
            await self._save(lead, now_ms)

    def _feed(
        self, lead: _Lead, items: Sequence[StreamItem], streams: dict[bytes, bytes], now_ms: int
    ) -> None:
        for item in items:
            # A replica whose clock is ahead must not move time on for all.
            lead.detector.observe(item, min(item.arrived_ms, now_ms))
            if item.kind == "deleted":
                lead.deleted[item.first] = item.id
        self.items_read += len(items)
        lead.ahead += len(items)
        lead.streams = streams
        lead.pending += lead.detector.changes()

    async def _resume(self, saved: bytes | None) -> _Lead:
        """The detector as it was saved.

        A rule with other numbers goes on with the state; one of another mode starts anew at the same
        place. A state that is lost or of another format is built again from the start of the stream;
        events that are known already are then not told again.
        """
        if saved is None or saved[:1] != FORMAT:
            return _Lead(BurstDetector(self._rule), {}, saved)
        position = _position.decode(saved[1:])
        if position.mode != self._rule.mode:
            return _Lead(BurstDetector(self._rule), position.streams, saved, position.checkpoint)
        # State and position are of one commit; if another leader comes in between, our own commit fails.
        state = (await self.store.read([STATE]))[0]
        try:
            detector = BurstDetector.load(zlib.decompress(state or b""), self._rule)
        except (ValueError, zlib.error):
            return _Lead(BurstDetector(self._rule), {}, saved, position.checkpoint)
        return _Lead(detector, position.streams, saved, position.checkpoint)

    async def _save(self, lead: _Lead, now_ms: int) -> bool:
        """State, positions and changed events in one commit; False when another leader was faster."""
        number = lead.checkpoint + 1
        position = FORMAT + _pack(_Position(number, self._rule.mode, lead.streams))
        state = zlib.compress(lead.detector.dump(), 1)
        writes: list[Write] = [Put(POSITION, position), Put(STATE, state)]
        writes += await self._event_writes(lead, now_ms)
        if await self.store.commit(Transaction((Equals(POSITION, lead.saved),), tuple(writes))):
            self.commits_lost += 1
            return False
        lead.saved_as(position, number, now_ms)
        return True

    async def _event_writes(self, lead: _Lead, now_ms: int) -> list[Write]:
        if not lead.pending and not lead.deleted:
            return []
        raw = (await self.store.read([INDEX]))[0]
        index = _index.decode(raw) if raw else {}
        writes: list[Write] = [
            StreamAdd(CHANGES, _json(ChangeRecord(c.kind, c.at_ms, c.event.id)))
            for c in lead.pending
            if not _is_known(c, index.get(c.event.id))
        ]
        latest = {change.event.id: change.event for change in lead.pending}
        latest.update(await self._without_deleted(lead, latest))
        for event in latest.values():
            index[event.id] = _Entry(event.status, event.detected_at_ms, event.last_seen_ms)
            writes.append(Put(_event_key(event.id), _json(event)))
        for change in lead.pending:
            writes += [
                Put(_number_key(n), change.event.id.encode(), self._retention_ms) for n in change.numbers
            ]
        for id_ in [i for i, e in index.items() if self._is_over(e, now_ms)]:
            del index[id_]
            writes.append(Delete(_event_key(id_)))
        return [*writes, Put(INDEX, _pack(index))]

    async def _without_deleted(self, lead: _Lead, latest: Mapping[str, Event]) -> dict[str, Event]:
        """Closed events of articles that were taken down, without them: their titles must go at once."""
        if not lead.deleted:
            return {}
        found = await self.event_of(list(lead.deleted))
        changed: dict[str, Event] = {}
        for first, id_ in found.items():
            if id_ in latest and latest[id_].status != "closed":
                continue
            event = changed.get(id_) or latest.get(id_) or await self._read(id_)
            if event is not None:
                changed[id_] = _without(event, lead.deleted[first])
        return changed

    def _is_over(self, entry: _Entry, now_ms: int) -> bool:
        return entry.status == "closed" and entry.last_seen_ms < now_ms - self._retention_ms

    # -- every replica -------------------------------------------------------------------------

    async def list(
        self, status: str | None = None, since_ms: int | None = None, limit: int = 50
    ) -> list[Event]:
        """Saved events, the most recently seen first. ``since_ms``: only those seen then or later."""
        raw = (await self.store.read([INDEX]))[0]
        index = _index.decode(raw) if raw else {}
        wanted = [
            id_
            for id_, e in index.items()
            if (status is None or e.status == status) and (since_ms is None or e.last_seen_ms >= since_ms)
        ]
        wanted.sort(key=lambda id_: (index[id_].last_seen_ms, index[id_].detected_at_ms, id_), reverse=True)
        values = await self.store.read([_event_key(id_) for id_ in wanted[:limit]])
        return [_event.decode(value) for value in values if value is not None]

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


class _Lead:
    """What the leader holds between two ticks: the detector, and how far it is ahead of the checkpoint."""

    def __init__(
        self, detector: BurstDetector, streams: dict[bytes, bytes], saved: bytes | None, checkpoint: int = 0
    ) -> None:
        self.detector = detector
        self.streams = streams
        self.saved = saved
        self.checkpoint = checkpoint
        self.saved_ms = 0
        self.ahead = 0
        self.pending: list[Change] = []
        self.done: list[Change] = []
        self.deleted: dict[int, str] = {}

    def wants_checkpoint(self, now_ms: int, every_ms: int) -> bool:
        """At once for what people or feeds wait for, else now and then."""
        if self.deleted or any(change.kind != "updated" for change in self.pending):
            return True
        due = not 0 <= now_ms - self.saved_ms < every_ms
        return due and bool(self.ahead or self.pending)

    def saved_as(self, position: bytes, number: int, now_ms: int) -> None:
        self.saved, self.checkpoint, self.saved_ms = position, number, now_ms
        self.done += self.pending
        self.ahead, self.pending, self.deleted = 0, [], {}


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
