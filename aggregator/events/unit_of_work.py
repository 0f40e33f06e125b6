"""What one commit changes in the event log: new versions of events, told in the stream of changes.

A draft is begun from what the log holds, gathers versions, and becomes writes. Whoever commits them checks
that position and desk are still those that were read before (``eventlog.py``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from aggregator.events.detection import Change, Event, Kind, Orders
from aggregator.events.detection.edits import carried, without
from aggregator.events.repository import (
    CHANGES,
    INDEX,
    ChangeKind,
    ChangeRecord,
    Entry,
    EventLog,
    event_key,
    number_key,
)
from aggregator.store.base import Delete, Put, StreamAdd, Write

pack = msgspec.msgpack.Encoder().encode
_json = msgspec.json.Encoder().encode


class Draft:
    """New versions of events over the ``index`` of the log. ``taken``: what is told of the detector's changes."""

    def __init__(self, log: EventLog, index: dict[str, Entry]) -> None:
        self._log = log
        self.index = index
        self.events: dict[str, Event] = {}
        self.taken: list[Change] = []
        self._saved: dict[str, Event] = {}
        self._told: list[tuple[ChangeKind, int, str]] = []
        self._more: list[Write] = []

    async def saved(self, event_id: str) -> Event | None:
        """The event as this draft has it, else as it is saved."""
        if event_id not in self.events and event_id not in self._saved:
            self._saved |= await self._log.get_many([event_id])
        return self.events.get(event_id) or self._saved.get(event_id)

    def put(self, event: Event, kind: ChangeKind | None, at_ms: int) -> None:
        """A new version, told as ``kind`` (None: not told); its revision is one more than the saved one's."""
        if event.id not in self.events:
            event = replace(event, revision=event.revision + 1)
        self.events[event.id] = event
        if kind is not None:
            self._told.append((kind, at_ms, event.id))

    async def take(self, changes: Iterable[Change], orders: Orders) -> None:
        """Versions of the detector, in order, with what editors did to the saved ones."""
        changes = list(changes)
        self._saved |= await self._log.get_many([change.event.id for change in changes])
        for change in changes:
            before = self.index.get(change.event.id)
            event = await self._continued(change.event, orders)
            kind = None if _is_known(change, before) else _told_as(change, event)
            self.put(event, kind, change.at_ms)
            if kind is not None:
                self.taken.append(replace(change, kind=kind, event=event))
            ttl_ms = self._log.retention_ms
            self._more += [Put(number_key(n), event.id.encode(), ttl_ms) for n in change.numbers]

    async def take_down(self, first: int, article_id: str, now_ms: int) -> None:
        """An article is gone: from its event, from those that this one took over, and its number."""
        event_id = (await self._log.event_of([first])).get(first)
        if event_id is None:
            return
        event = await self.saved(event_id)
        for id_ in [event_id, *(event.absorbed if event else ())]:
            holder = await self.saved(id_)
            if holder is not None and article_id in holder.items:
                self.put(without(holder, article_id), "updated", now_ms)
        self._more.append(Delete(number_key(first)))

    def expire(self, now_ms: int) -> None:
        """Forget closed events that were last seen before the retention."""
        oldest_ms = now_ms - self._log.retention_ms
        for id_ in [i for i, e in self.index.items() if e.status == "closed" and e.last_seen_ms < oldest_ms]:
            del self.index[id_]
            self.events.pop(id_, None)
            self._more.append(Delete(event_key(id_)))

    def writes(self) -> list[Write]:
        """The draft as writes of one commit; empty when nothing changed."""
        if not (self.events or self._more):
            return []
        for event in self.events.values():
            self.index[event.id] = _entry(event)
        told = [
            ChangeRecord(kind, at_ms, id_, self.events[id_].revision)
            for kind, at_ms, id_ in self._told
            if id_ in self.events
        ]
        return [
            *(Put(event_key(event.id), _json(event)) for event in self.events.values()),
            *(StreamAdd(CHANGES, _json(record)) for record in told),
            *self._more,
            Put(INDEX, pack(self.index)),
        ]

    async def _continued(self, fresh: Event, orders: Orders) -> Event:
        """The detector's version with what editors did; a new one that is like a muted one is muted."""
        saved = await self.saved(fresh.id)
        if saved is None:
            return replace(fresh, muted=orders.scope_of(fresh.profile, fresh.detected_at_ms))
        by_editors = [id_ for id_ in saved.absorbed if id_ not in fresh.absorbed]
        lost = (await self._log.get_many(by_editors)).values() if by_editors else ()
        return carried(fresh, saved, lost)


def _entry(event: Event) -> Entry:
    return Entry(event.status, event.detected_at_ms, event.last_seen_ms, event.merged_into)


def _is_known(change: Change, entry: Entry | None) -> bool:
    """Told before: the stream was read again after a state was lost."""
    if entry is None:
        return False
    return change.kind == "fired" or entry.status == "closed"


def _told_as(change: Change, event: Event) -> Kind:
    """Of a muted event nobody is alarmed."""
    return "updated" if event.muted and change.kind in ("fired", "doubled") else change.kind
