"""Unit of work over the stored events: new versions, change records and editor overrides of one commit.

Used by the leader's checkpoint (``consumer.py``) and by an editor's action (``editor_actions.py``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from aggregator.events.detection.model import ChangeKind, DetectedEvent, EventChange
from aggregator.events.event import Event, EventSummary
from aggregator.events.newsroom import merge_newsroom_state, rejoin, remove_item
from aggregator.events.repository import (
    CHANGES_KEY,
    INDEX_FORMAT,
    INDEX_KEY,
    OVERRIDES_FORMAT,
    OVERRIDES_KEY,
    POSITION_KEY,
    STORYLINES_KEY,
    ChangeRecord,
    ChangeRecordKind,
    EventRepository,
    event_key,
    number_key,
)
from aggregator.events.storylines import Storylines
from aggregator.store.base import Delete, Put, StreamAdd, Transaction, ValueEquals, Write

encode_msgpack = msgspec.msgpack.Encoder().encode
_encode_json = msgspec.json.Encoder().encode


class EventUnitOfWork:
    """New versions of events, collected and then committed together.

    ``summaries``: the stored index of events; ``position``, ``overrides_value``: the stored values that must
    not have changed at the commit. ``storylines``: required for changes of the detector. ``published``: the
    detector's changes that readers of the change stream see.
    """

    def __init__(
        self,
        repository: EventRepository,
        summaries: dict[str, EventSummary],
        *,
        position: bytes | None = None,
        overrides_value: bytes | None = None,
        storylines: Storylines | None = None,
    ) -> None:
        self._repository = repository
        self._guards = (ValueEquals(POSITION_KEY, position), ValueEquals(OVERRIDES_KEY, overrides_value))
        self.summaries = summaries
        self._storylines = storylines or Storylines()
        self.overrides = OVERRIDES_FORMAT.decode(overrides_value)
        self.events: dict[str, Event] = {}
        self.published: list[EventChange] = []
        self._stored: dict[str, Event] = {}
        self._changes: list[tuple[ChangeRecordKind, int, str]] = []
        self._extra_writes: list[Write] = []

    @classmethod
    async def begin(cls, repository: EventRepository) -> EventUnitOfWork:
        """A unit of work over what is stored now. Raises StoreUnavailable."""
        keys = [POSITION_KEY, OVERRIDES_KEY, INDEX_KEY]
        position, overrides_value, index = await repository.store.read(keys)
        return cls(repository, INDEX_FORMAT.decode(index), position=position, overrides_value=overrides_value)

    @property
    def has_changes(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.events or self._extra_writes)

    async def get(self, event_id: str) -> Event | None:
        """The new version of an event if there is one, else the stored one."""
        if event_id not in self.events and event_id not in self._stored:
            self._stored |= await self._repository.get_many([event_id])
        return self.events.get(event_id) or self._stored.get(event_id)

    def put(self, event: Event, kind: ChangeRecordKind | None, at_ms: int) -> None:
        """Add a new version, with a change record of this kind (None: without one).

        Its revision is the stored one's plus 1, also when several versions are put.
        """
        if event.id not in self.events:
            event = replace(event, revision=event.revision + 1)
        self.events[event.id] = event
        if kind is not None:
            self._changes.append((kind, at_ms, event.id))

    async def add_detector_changes(self, changes: Iterable[EventChange]) -> None:
        """Put the detector's versions, in order, merged with what editors did to the stored ones."""
        changes = list(changes)
        self._stored |= await self._repository.get_many([change.event.id for change in changes])
        # Before the links of those that joined: what left one event may have joined another.
        self._extra_writes += [Delete(number_key(n)) for c in changes for n in c.released_numbers]
        if changes:
            self._storylines.follow({id_: summary.story_id for id_, summary in self.summaries.items()})
        for change in changes:
            before = self.summaries.get(change.event.id)
            event = self._storylines.place(await self._with_newsroom_half(change.event))
            kind = _published_kind(change, event, before)
            self.put(event, kind, change.at_ms)
            if kind is not None:
                self.published.append(replace(change, kind=kind, event=event))
            self._extra_writes += [Put(number_key(n), event.id.encode()) for n in change.article_numbers]
        if changes:
            self._extra_writes.append(Put(STORYLINES_KEY, encode_msgpack(self._storylines.entries)))

    async def remove_article(self, first_version: int, article_id: str, now_ms: int) -> None:
        """Remove a deleted article from its event and from the events merged into that one."""
        event_id = (await self._repository.event_ids_of([first_version])).get(first_version)
        if event_id is None:
            return
        event = await self.get(event_id)
        for id_ in [event_id, *(event.absorbed if event else ())]:
            holder = await self.get(id_)
            if holder is not None and article_id in holder.items:
                self.put(remove_item(holder, article_id), "updated", now_ms)
        self.unlink_article(first_version)

    def unlink_article(self, first_version: int) -> None:
        """Delete the key that leads from an article to its event."""
        self._extra_writes.append(Delete(number_key(first_version)))

    def drop_expired(self, now_ms: int) -> None:
        """Delete closed events last seen before the retention period."""
        oldest_ms = now_ms - self._repository.retention_ms
        for id_ in [
            i for i, e in self.summaries.items() if e.status == "closed" and e.last_seen_ms < oldest_ms
        ]:
            del self.summaries[id_]
            self.events.pop(id_, None)
            self._extra_writes.append(Delete(event_key(id_)))

    def writes(self) -> list[Write]:
        """Everything collected, as writes of one transaction; empty when nothing changed."""
        if not self.has_changes:
            return []
        fields = EventSummary.__struct_fields__
        for event in self.events.values():
            self.summaries[event.id] = EventSummary(**{name: getattr(event, name) for name in fields})
        records = [
            ChangeRecord(kind, at_ms, id_, self.events[id_].revision)
            for kind, at_ms, id_ in self._changes
            if id_ in self.events
        ]
        return [
            *(Put(event_key(event.id), _encode_json(event)) for event in self.events.values()),
            *(StreamAdd(CHANGES_KEY, _encode_json(record)) for record in records),
            *self._extra_writes,
            Put(INDEX_KEY, encode_msgpack(self.summaries)),
        ]

    async def commit(self, *more: Write) -> frozenset[bytes]:
        """Commit everything collected and ``more`` in one transaction. Raises StoreUnavailable.

        Returns the guarded keys (POSITION_KEY, OVERRIDES_KEY) that another writer has changed.
        """
        failed = await self._repository.store.commit(Transaction(self._guards, (*more, *self.writes())))
        return frozenset(self._guards[i].key for i in failed)

    async def _with_newsroom_half(self, detected: DetectedEvent) -> Event:
        saved = await self.get(detected.id)
        if saved is None:
            scope = self.overrides.mute_scope(detected.profile, detected.detected_at_ms)
            event = replace(Event.of(detected), muted=scope)
        else:
            by_editors = [id_ for id_ in saved.absorbed if id_ not in detected.absorbed]
            event = rejoin(detected, saved, (await self._repository.get_many(by_editors)).values())
        for id_ in detected.absorbed:
            if saved is None or id_ not in saved.absorbed:
                absorbed = await self.get(id_)
                event = merge_newsroom_state(event, absorbed) if absorbed is not None else event
        return event


def _published_kind(change: EventChange, event: Event, before: EventSummary | None) -> ChangeKind | None:
    """The kind of the change record: a muted event and a translation never cause an alert.

    None if a record exists: the article stream is read again after the state was lost.
    """
    if before is not None and (change.kind == "fired" or before.status == "closed"):
        return None
    is_silent = event.muted or event.translation_of
    return "updated" if is_silent and change.kind in ("fired", "doubled") else change.kind
