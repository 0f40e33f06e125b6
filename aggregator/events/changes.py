"""Changes of stored events: a unit of work for one commit, and the actions of editors.

Every event that an action changed carries it in its audit trail; the detector applies its override before
its own next commit (docs/design/event-detection.md, editors and the detector).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from aggregator.errors import Conflict, NotFound
from aggregator.events import newsroom
from aggregator.events.detection.model import (
    HISTORY_MS,
    ChangeKind,
    DetectedEvent,
    EditorOverrides,
    EventChange,
    Mute,
    is_same_story,
)
from aggregator.events.detection.numbers import Item, arrivals_of, items_of
from aggregator.events.event import EditorAction, Event, EventSummary
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
    merge_chain,
    number_key,
)
from aggregator.events.selection import SETTLED
from aggregator.events.storylines import ArticleReader, Storylines, headline_alternatives, headline_items
from aggregator.store.base import Delete, Put, StreamAdd, Transaction, ValueEquals, Write
from aggregator.store.optimistic import commit_attempts

encode_msgpack = msgspec.msgpack.Encoder().encode
_encode_json = msgspec.json.Encoder().encode
MAX_COMMIT_ATTEMPTS = 32

T = TypeVar("T")


class EventUnitOfWork:
    """New versions of events, committed together if ``position`` and ``overrides_value`` are still stored.

    ``storylines``: required for changes of the detector; ``published``: those that readers see.
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
        """Add a version with a change record of this kind (None: without); the revision grows by 1 in all."""
        if event.id not in self.events:
            event = replace(event, revision=event.revision + 1)
        self.events[event.id] = event
        if kind is not None:
            self._changes.append((kind, at_ms, event.id))

    async def add_detector_changes(self, changes: Iterable[EventChange]) -> None:
        """Put the detector's versions, in order, merged with what editors did to the stored ones."""
        changes = list(changes)
        self._stored |= await self._repository.get_many([change.event.id for change in changes])
        if changes:
            self._storylines.follow({id_: summary.story_id for id_, summary in self.summaries.items()})
        for change in changes:
            before = self.summaries.get(change.event.id)
            event = self._storylines.place(await self._with_newsroom_half(change.event, change.at_ms))
            known = self._stored.get(event.id)
            goes_on = known is not None and len(known.developments) < len(event.developments)
            kind = _published_kind(change, event, None if goes_on else before)
            self.put(event, kind, change.at_ms)
            if kind is not None:
                self.published.append(replace(change, kind=kind, event=event))
        if changes:
            self._extra_writes.append(Put(STORYLINES_KEY, encode_msgpack(self._storylines.entries)))

    async def remove_article(self, first_version: int, article_id: str, now_ms: int) -> None:
        """Remove a deleted article from its event and those merged into that; another may have its id."""
        event_id = (await self._repository.event_ids_of([first_version])).get(first_version)
        if event_id is None:
            return
        event = await self.get(event_id)
        for id_ in [event_id, *(event.absorbed if event else ())]:
            holder = await self.get(id_)
            item = items_of(holder).get(article_id) if holder else None
            if holder is not None and item is not None and item.number in (0, first_version):
                kept = replace(newsroom.remove_items(holder, [article_id]), removed=holder.removed)
                self.put(kept, "updated", now_ms)

    def place(self, numbers: Mapping[str, int], into: Event | None) -> None:
        """Record for the detector where articles (``numbers``: of their first versions, by id) belong."""
        to = into.id if into and into.status != "closed" else ""
        placed = self.overrides.placed | {id_: (number, to) for id_, number in numbers.items()}
        self.overrides = msgspec.structs.replace(self.overrides, placed=placed)

    async def close_arranged(self, open_ids: Collection[str], now_ms: int) -> None:
        """Close what editors opened but the detector did not, for it has none of its articles any more."""
        live = {id_ for id_, e in self.summaries.items() if e.status != "closed"}
        for id_ in sorted({to for _, to in self.overrides.placed.values()}.difference(open_ids) & live):
            if (event := await self.get(id_)) and event.status != "closed":
                self.put(replace(event, status="closed"), "closed", now_ms)

    def drop_expired(self, now_ms: int) -> None:
        """Delete closed events last seen before the retention period."""
        oldest_ms = now_ms - self._repository.retention_ms
        for id_, event in [*self.summaries.items()]:
            if event.status == "closed" and event.last_seen_ms < oldest_ms:
                del self.summaries[id_]
                self.events.pop(id_, None)
                self._extra_writes.append(Delete(event_key(id_)))

    def writes(self) -> list[Write]:
        """Everything collected, as writes of one transaction; empty when nothing changed."""
        if not self.has_changes:
            return []
        for event in self.events.values():
            self.summaries[event.id] = msgspec.convert(event, EventSummary, from_attributes=True)
        records = [
            ChangeRecord(kind, at_ms, id_, self.events[id_].revision)
            for kind, at_ms, id_ in self._changes
            if id_ in self.events
        ]
        return [
            *(Put(event_key(event.id), _encode_json(event)) for event in self.events.values()),
            *(StreamAdd(CHANGES_KEY, _encode_json(record)) for record in records),
            *self._links(),
            *self._extra_writes,
            Put(INDEX_KEY, encode_msgpack(self.summaries)),
        ]

    def _links(self) -> Iterator[Write]:
        """What leads articles to the events that have them now, as far as it changed."""
        before = [stored for id_ in self.events if (stored := self._stored.get(id_))]
        known, held = (
            {n: event.id for event in events if event.merged_into is None for n in event.numbers if n}
            for events in (before, self.events.values())
        )
        yield from (Put(number_key(n), id_.encode()) for n, id_ in sorted(held.items() - known.items()))
        yield from (Delete(number_key(n)) for n in sorted(known.keys() - held))

    async def commit(self, *more: Write) -> frozenset[bytes]:
        """Commit everything and ``more``; returns the guarded keys that changed. Raises StoreUnavailable."""
        failed = await self._repository.store.commit(Transaction(self._guards, (*more, *self.writes())))
        return frozenset(self._guards[i].key for i in failed)

    async def _with_newsroom_half(self, detected: DetectedEvent, at_ms: int) -> Event:
        saved = await self.get(detected.id)
        if saved is None:
            scope = self.overrides.mute_scope(detected.profile, detected.detected_at_ms)
            event = replace(Event.of(detected), muted=scope)
        else:
            by_editors = [id_ for id_ in saved.absorbed if id_ not in detected.absorbed]
            absorbed_by_editors = (await self._repository.get_many(by_editors)).values()
            gone = {id_ for id_, (_, to) in self.overrides.placed.items() if to != detected.id}
            others = [newsroom.remove_items(e, gone) for e in absorbed_by_editors if e.merged_into]
            event = newsroom.rejoin(detected, saved, others)
            done = [a.at_ms for a in saved.in_force if a.work_status == saved.work_status in SETTLED]
            is_new = bool(done) and event.headline_id != saved.headline_id
            seen = dict(zip(event.items, arrivals_of(event), strict=False)) | event.updates if is_new else {}
            if is_new and seen.get(event.headline_id, 0) > done[-1]:
                at_ms = max(at_ms, *arrivals_of(event), *(action.at_ms for action in event.actions))
                changed = EditorAction("choose_headline", "", at_ms, event.id, item=event.headline_id)
                event = newsroom.record_action(event, replace(changed, text=saved.work_status))
        for id_ in detected.absorbed:
            if saved is None or id_ not in saved.absorbed:
                absorbed = await self.get(id_)
                event = newsroom.merge_newsroom_state(event, absorbed) if absorbed is not None else event
        return event


def _published_kind(change: EventChange, event: Event, before: EventSummary | None) -> ChangeKind | None:
    """The kind of the change record, without alerts of muted events and translations; None if one exists."""
    if before is not None and (change.kind == "fired" or before.status == "closed"):
        return None
    is_silent = event.muted or event.translation_of
    return "updated" if is_silent and change.kind in ("fired", "doubled", "development") else change.kind


class EditorActions:
    """Applies editors' actions to events. ``get_articles``: those stored, by id."""

    def __init__(self, repository: EventRepository, get_articles: ArticleReader) -> None:
        self._repository, self._get_articles = repository, get_articles
        self._lock = asyncio.Lock()  # actions of one process need not conflict with each other

    async def apply(self, action: EditorAction) -> tuple[Event, int | None]:
        """Carry out one action; the event then, and the action's id (None: no change). See ``_plan``."""
        unit, event = await self._commit(lambda unit: self._plan(unit, action), action.at_ms)
        event = unit.events.get(event.id, event)
        return event, event.actions[-1].id if unit.has_changes else None

    async def remove_article(self, first_version: int, article_id: str, now_ms: int) -> None:
        """Remove a deleted article from its event at once. Raises CommitConflict, StoreUnavailable."""

        async def plan(unit: EventUnitOfWork) -> None:
            await unit.remove_article(first_version, article_id, now_ms)
            if unit.has_changes:
                unit.place({article_id: first_version}, None)

        await self._commit(plan, now_ms)

    async def _commit(
        self, plan: Callable[[EventUnitOfWork], Awaitable[T]], at_ms: int
    ) -> tuple[EventUnitOfWork, T]:
        async with self._lock:
            for _ in commit_attempts("events: too many concurrent actions; try again.", MAX_COMMIT_ATTEMPTS):
                unit = await EventUnitOfWork.begin(self._repository)
                result = await plan(unit)
                if not unit.has_changes:
                    break
                unit.events |= {id_: await self._titled(event) for id_, event in unit.events.items()}
                overrides = unit.overrides.next_revision(at_ms)
                if not await unit.commit(Put(OVERRIDES_KEY, encode_msgpack(overrides))):
                    break
            return unit, result

    async def _titled(self, event: Event) -> Event:
        """The event, under the best headline that is left if it lost its own."""
        if event.headline_id or event.title not in ("", ", ".join(event.terms)):
            return event
        stored = (await self._get_articles([*headline_items(event)])).values()
        best = headline_alternatives([article.record for article in stored], "")[:1]
        return replace(event, headline_id=best[0].id, title=best[0].title) if best else event

    async def _plan(self, unit: EventUnitOfWork, action: EditorAction) -> Event:
        if action.action == "merge":
            return await _plan_merge(unit, action)
        event = await _require_survivor(unit, action.event, "id")
        action = replace(action, event=event.id, id=newsroom.action_id(action, event))
        undone = newsroom.undoable_actions(event).get(action.of or 0) if action.action == "undo" else action
        if undone is None:
            raise Conflict("of: it can no longer be undone, since somebody has changed the event meanwhile.")
        if undone.action in ("merge", "remove_item", "move_items"):
            return await self._move(unit, action, *await _ends_of_move(unit, action, event, undone), undone)
        item = action.item if action.action == "choose_headline" else None
        stored = (await self._get_articles([item])).get(item) if item in event.items and item else None
        if item is not None and (stored is None or not stored.record.title):
            raise NotFound(f"item: there is no article {item[:200]!r} in event {event.id} with a headline.")
        changed = newsroom.apply_action(event, action, stored.record.title if stored else "")
        if changed is not event:
            unit.put(changed, "action", action.at_ms)
            if (changed.muted, changed.false_alarm) != (event.muted, event.false_alarm):
                unit.overrides = _with_mute(unit.overrides, changed, action.at_ms)
        return changed

    async def _move(
        self, unit: EventUnitOfWork, action: EditorAction, source: Event | None, into: Event | None,
        items: Sequence[str], undone: EditorAction,
    ) -> Event:  # fmt: skip
        """Move articles between two events, of which one may be none; returns the event of the action."""
        if source and (missing := [item for item in items if item not in source.items]):
            if action.action == "remove_item" and set(items) <= set(source.removed):
                return source
            raise NotFound(f"item: there is no article {missing[0][:200]!r} in event {source.id}.")
        if into and (into.merged_into or (source and source.id == into.id)):
            raise Conflict(f"into: the articles are in event {into.merged_into or into.id} already.")
        records = [article.record for article in (await self._get_articles(items)).values()]
        if source is None and undone is action:
            numbers = [record.first_version for record in records]
            if len(records) < len(items) or await self._repository.event_ids_of(numbers):
                raise Conflict("items: only stored articles that are in no event can be added to one.")
        number = newsroom.action_id(action, *(event for event in (source, into) if event))
        action = replace(action, items=tuple(items), into=into.id if into else None, id=number)
        held = (items_of(source) if source else {}) | undone.held
        if source is not None:
            headline = source.headline_id, source.title, source.chosen_headline is not None
            lost = {id_: held[id_] for id_ in items if not into or held[id_].doubtful}
            action = replace(action, held=lost, first=source.first, headline=headline)
            source = newsroom.remove_items(source, items)
            if into and not source.items:  # a new event whose articles return
                into = newsroom.merge_into(into, source)
                source = replace(source, status="closed", merged_into=into.id)
                unit.overrides = unit.overrides.with_merge(source.id, into.id, action.at_ms)
            unit.put(newsroom.record_action(source, action), "action", action.at_ms)
        if into is not None:
            new = {r.id: Item(1.0, r.publication_ms, r.source, None, r.first_version) for r in records}
            if action.action != "undo":  # what an editor puts there is not doubtful
                held = {id_: item._replace(doubtful=False) for id_, item in held.items()}
            facts = new | {id_: item for id_, item in held.items() if id_ in new}
            left = replace(undone, first=undone.first or action.first)  # it goes with its article
            into = newsroom.restore_items(into, facts, left)
            if not into.languages:
                into = replace(into, languages=tuple({record.lang for record in records} - {""}))
            unit.put(newsroom.record_action(into, action), "action", action.at_ms)
        unit.place({record.id: record.first_version for record in records}, into)
        return unit.events[action.event]


async def _ends_of_move(
    unit: EventUnitOfWork, action: EditorAction, event: Event, undone: EditorAction
) -> tuple[Event | None, Event | None, Sequence[str]]:
    """From where to where which articles go, by an action or by its undoing."""
    items = action.items or (action.item or "",)
    if undone is not action:
        source = await _require_survivor(unit, undone.into, "of") if undone.into else None
        is_added = undone.event == undone.into
        items, into = undone.items, None if is_added else await _require_event(unit, undone.event, "of")
        if undone.action == "merge" and source is not None and into is not None:
            unit.overrides = unit.overrides.with_merge(into.id, "", action.at_ms)
            items, (source, into) = into.items, newsroom.separate(source, into, undone)
        items = tuple(i for i in items if source is None or i in source.items)
        if not items and undone.action != "merge":
            raise Conflict("of: it can no longer be undone, since what it moved was moved again.")
        return source, into, items
    if action.action == "remove_item":
        return event, None, items
    if action.into == event.id:
        return None, event, items
    if set(event.items) <= set(items):
        raise Conflict(f"items: event {event.id} has no other articles; merge it instead.")
    other = await _require_survivor(unit, action.into, "into") if action.into else None
    return event, other or newsroom.split_off(event, action), items


async def _plan_merge(unit: EventUnitOfWork, action: EditorAction) -> Event:
    absorbed = await _require_event(unit, action.event, "id")
    into = await _require_survivor(unit, action.into, "into")
    survivor = merge_chain(unit.summaries, absorbed.id)[-1]
    if absorbed.id != survivor and survivor == into.id:
        return into
    if absorbed.id != survivor:
        raise Conflict(f"id: event {absorbed.id} was merged into {survivor} already; merge that one.")
    if absorbed.id == into.id:
        raise Conflict(f"into: event {absorbed.id} cannot be merged into itself.")
    if absorbed.status != "closed" and into.status == "closed":
        raise Conflict(
            f"into: event {into.id} is closed, {absorbed.id} is not; merge it the other way round."
        )
    before = dict[str, Any](status=absorbed.status, assignee=into.assignee, work_status=into.work_status)
    action = replace(action, into=into.id, id=newsroom.action_id(action, into, absorbed), before=before)
    for event in newsroom.merge_events(into, absorbed, action):
        unit.put(event, "merged" if event.id == absorbed.id else "action", action.at_ms)
    unit.overrides = unit.overrides.with_merge(absorbed.id, into.id, action.at_ms)
    return into


def _with_mute(overrides: EditorOverrides, event: Event, at_ms: int) -> EditorOverrides:
    others = (mute for mute in overrides.mutes if mute.event_id != event.id)
    mutes = tuple(mute for mute in others if not is_same_story(mute.profile, event.profile))
    if event.muted is not None and event.profile:
        until_ms = None if event.muted == "routine" else at_ms + HISTORY_MS
        mutes = (*mutes, Mute(event.id, event.muted, event.profile, until_ms))
    return msgspec.structs.replace(overrides, mutes=mutes)


async def _require_event(unit: EventUnitOfWork, event_id: str, field: str) -> Event:
    event = await unit.get(event_id)
    if event is None:
        raise NotFound(f"{field}: there is no event {event_id[:200]!r}; it may have expired.")
    return event


async def _require_survivor(unit: EventUnitOfWork, event_id: str | None, field: str) -> Event:
    event = await _require_event(unit, event_id or "", field)
    return await _require_event(unit, merge_chain(unit.summaries, event.id)[-1], field)
