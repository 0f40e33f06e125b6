"""What one commit changes in the event log: new versions of events, told in the stream of changes.

A draft is begun from what the log holds, gathers versions, and becomes writes. Whoever commits them checks
that position and desk are still those that were read before (``eventlog.py``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from aggregator.events.detection import ChangeKind, EditorOverrides, Event, EventChange
from aggregator.events.detection.edits import carry_forward, remove_item
from aggregator.events.repository import (
    CHANGES_KEY,
    INDEX_KEY,
    ChangeRecord,
    ChangeRecordKind,
    EventRepository,
    EventSummary,
    event_key,
    number_key,
)
from aggregator.store.base import Delete, Put, StreamAdd, Write

encode_msgpack = msgspec.msgpack.Encoder().encode
_encode_json = msgspec.json.Encoder().encode


class EventUnitOfWork:
    """New versions of events over the ``index`` of the log. ``taken``: what is told of the detector's changes."""

    def __init__(self, repository: EventRepository, summaries: dict[str, EventSummary]) -> None:
        self._repository = repository
        self.summaries = summaries
        self.events: dict[str, Event] = {}
        self.published: list[EventChange] = []
        self._stored: dict[str, Event] = {}
        self._changes: list[tuple[ChangeRecordKind, int, str]] = []
        self._extra_writes: list[Write] = []

    async def get(self, event_id: str) -> Event | None:
        """The event as this draft has it, else as it is saved."""
        if event_id not in self.events and event_id not in self._stored:
            self._stored |= await self._repository.get_many([event_id])
        return self.events.get(event_id) or self._stored.get(event_id)

    def put(self, event: Event, kind: ChangeRecordKind | None, at_ms: int) -> None:
        """A new version, told as ``kind`` (None: not told); its revision is one more than the saved one's."""
        if event.id not in self.events:
            event = replace(event, revision=event.revision + 1)
        self.events[event.id] = event
        if kind is not None:
            self._changes.append((kind, at_ms, event.id))

    async def add_detector_changes(self, changes: Iterable[EventChange], overrides: EditorOverrides) -> None:
        """Versions of the detector, in order, with what editors did to the saved ones."""
        changes = list(changes)
        self._stored |= await self._repository.get_many([change.event.id for change in changes])
        for change in changes:
            before = self.summaries.get(change.event.id)
            event = await self._with_editor_state(change.event, overrides)
            kind = None if _was_published(change, before) else _published_kind(change, event)
            self.put(event, kind, change.at_ms)
            if kind is not None:
                self.published.append(replace(change, kind=kind, event=event))
            ttl_ms = self._repository.retention_ms
            self._extra_writes += [
                Put(number_key(n), event.id.encode(), ttl_ms) for n in change.article_numbers
            ]

    async def remove_article(self, first_version: int, article_id: str, now_ms: int) -> None:
        """An article is gone: from its event, from those that this one took over, and its number."""
        event_id = (await self._repository.event_ids_of([first_version])).get(first_version)
        if event_id is None:
            return
        event = await self.get(event_id)
        for id_ in [event_id, *(event.absorbed if event else ())]:
            holder = await self.get(id_)
            if holder is not None and article_id in holder.items:
                self.put(remove_item(holder, article_id), "updated", now_ms)
        self._extra_writes.append(Delete(number_key(first_version)))

    def drop_expired(self, now_ms: int) -> None:
        """Forget closed events that were last seen before the retention."""
        oldest_ms = now_ms - self._repository.retention_ms
        for id_ in [
            i for i, e in self.summaries.items() if e.status == "closed" and e.last_seen_ms < oldest_ms
        ]:
            del self.summaries[id_]
            self.events.pop(id_, None)
            self._extra_writes.append(Delete(event_key(id_)))

    def writes(self) -> list[Write]:
        """The draft as writes of one commit; empty when nothing changed."""
        if not (self.events or self._extra_writes):
            return []
        for event in self.events.values():
            self.summaries[event.id] = _summary_of(event)
        told = [
            ChangeRecord(kind, at_ms, id_, self.events[id_].revision)
            for kind, at_ms, id_ in self._changes
            if id_ in self.events
        ]
        return [
            *(Put(event_key(event.id), _encode_json(event)) for event in self.events.values()),
            *(StreamAdd(CHANGES_KEY, _encode_json(record)) for record in told),
            *self._extra_writes,
            Put(INDEX_KEY, encode_msgpack(self.summaries)),
        ]

    async def _with_editor_state(self, detected: Event, overrides: EditorOverrides) -> Event:
        """The detector's version with what editors did; a new one that is like a muted one is muted."""
        saved = await self.get(detected.id)
        if saved is None:
            return replace(detected, muted=overrides.mute_scope(detected.profile, detected.detected_at_ms))
        by_editors = [id_ for id_ in saved.absorbed if id_ not in detected.absorbed]
        lost = (await self._repository.get_many(by_editors)).values() if by_editors else ()
        return carry_forward(detected, saved, lost)


def _summary_of(event: Event) -> EventSummary:
    return EventSummary(event.status, event.detected_at_ms, event.last_seen_ms, event.merged_into)


def _was_published(change: EventChange, entry: EventSummary | None) -> bool:
    """Told before: the stream was read again after a state was lost."""
    if entry is None:
        return False
    return change.kind == "fired" or entry.status == "closed"


def _published_kind(change: EventChange, event: Event) -> ChangeKind:
    """Of a muted event nobody is alarmed."""
    return "updated" if event.muted and change.kind in ("fired", "doubled") else change.kind
