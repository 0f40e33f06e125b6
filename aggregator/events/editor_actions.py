"""What editors do to events: acknowledge, mute, merge, take an item out, call it a false alarm.

An action changes what is saved at once, in one commit that holds only while neither the detector nor another
editor has saved anything since it was read; who loses reads and decides again. It also leaves a standing order
(``bursts/orders.py``) that the detector follows before its own next commit, so that no later version of the
event undoes it. Every event that an action changed carries it in its audit trail, with who and when.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Protocol

import msgspec

from aggregator.errors import CommitConflict, Conflict, NotFound
from aggregator.events.detection import EditorAction, EditorOverrides, Event, Mute
from aggregator.events.detection.edits import apply_action, merge_events
from aggregator.events.detection.overrides import STORY_MUTE_MS
from aggregator.events.detection.profile import is_same_story
from aggregator.events.repository import (
    INDEX_KEY,
    OVERRIDES_KEY,
    POSITION_KEY,
    EventRepository,
    decode_index,
    decode_overrides,
    merge_chain,
    number_key,
)
from aggregator.events.unit_of_work import EventUnitOfWork, encode_msgpack
from aggregator.index import StoredArticle
from aggregator.store.base import Delete, Put, Transaction, ValueEquals, Write

MAX_COMMIT_ATTEMPTS = 32


class ArticleLookup(Protocol):
    """What is asked of the index: ``Index`` has it."""

    async def get(self, id_: str) -> StoredArticle: ...


class EditorActions:
    """Editors' actions on the events of ``log``."""

    def __init__(self, repository: EventRepository, articles: ArticleLookup) -> None:
        self._repository = repository
        self._articles = articles
        self._lock = asyncio.Lock()  # those of one process need not race each other

    async def apply(self, action: EditorAction) -> Event:
        """Carry it out; returns the event as it stands then: the one that goes on, when it was merged.

        What has been done already is not done, nor recorded, again. Raises NotFound (event, or item in
        it), Conflict (a merge that cannot be), StoreUnavailable.
        """
        first = await self._first_version_of(action.item) if action.action == "remove_item" else None
        async with self._lock:
            for _ in range(MAX_COMMIT_ATTEMPTS):
                position, desk, raw = await self._repository.store.read(
                    [POSITION_KEY, OVERRIDES_KEY, INDEX_KEY]
                )
                draft, orders = EventUnitOfWork(self._repository, decode_index(raw)), decode_overrides(desk)
                event, orders = await self._plan(draft, orders, action, first)
                writes = draft.writes()
                if not writes:
                    return event
                if first is not None:
                    writes.append(Delete(number_key(first)))
                orders = orders.next_revision(action.at_ms)
                if await self._commit(position, desk, [*writes, Put(OVERRIDES_KEY, encode_msgpack(orders))]):
                    return draft.events[event.id]
        raise CommitConflict("events: too many editors act at once; try again.")

    async def remove_article(self, first_version: int, article_id: str, now_ms: int) -> None:
        """An article was deleted: its id and headline leave its event at once, not with the detector's next tick."""
        async with self._lock:
            for _ in range(MAX_COMMIT_ATTEMPTS):
                position, desk, raw = await self._repository.store.read(
                    [POSITION_KEY, OVERRIDES_KEY, INDEX_KEY]
                )
                draft, orders = EventUnitOfWork(self._repository, decode_index(raw)), decode_overrides(desk)
                await draft.remove_article(first_version, article_id, now_ms)
                writes = draft.writes()
                if not writes:
                    return
                orders = orders.next_revision(
                    now_ms, removed_items={**orders.removed_items, article_id: first_version}
                )
                if await self._commit(position, desk, [*writes, Put(OVERRIDES_KEY, encode_msgpack(orders))]):
                    return
        raise CommitConflict("events: too many editors act at once; try again.")

    async def _commit(
        self, position: bytes | None, overrides_value: bytes | None, writes: list[Write]
    ) -> bool:
        checks = (ValueEquals(POSITION_KEY, position), ValueEquals(OVERRIDES_KEY, overrides_value))
        return not await self._repository.store.commit(Transaction(checks, tuple(writes)))

    async def _plan(
        self,
        unit: EventUnitOfWork,
        overrides: EditorOverrides,
        action: EditorAction,
        first_version: int | None,
    ) -> tuple[Event, EditorOverrides]:
        """The action as new versions in ``draft`` and new orders; neither when nothing is to be done."""
        event = await _require_event(unit, action.event, "id")
        if action.action == "merge":
            return await _plan_merge(unit, overrides, action, event)
        event = await _require_event(unit, merge_chain(unit.summaries, event.id)[-1], "id")
        item = action.item or ""
        if action.action == "remove_item" and item not in event.items and item not in event.removed:
            raise NotFound(f"item: there is no article {item[:200]!r} in event {event.id}.")
        changed = apply_action(event, action)
        if changed is event:
            return event, overrides
        unit.put(changed, "action", action.at_ms)
        return changed, _with_override(overrides, changed, action, first_version)

    async def _first_version_of(self, item: str | None) -> int | None:
        """The first number of an article; None when it is not stored any more."""
        try:
            return (await self._articles.get(item or "")).record.first_version
        except NotFound:
            return None


async def _plan_merge(
    unit: EventUnitOfWork, overrides: EditorOverrides, action: EditorAction, absorbed: Event
) -> tuple[Event, EditorOverrides]:
    """The event that was asked about goes into another one, which has to be able to go on."""
    into = await _require_event(unit, action.into or "", "into")
    into = await _require_event(unit, merge_chain(unit.summaries, into.id)[-1], "into")
    goes_on = merge_chain(unit.summaries, absorbed.id)[-1]
    if absorbed.id != goes_on and goes_on == into.id:
        return into, overrides
    if absorbed.id != goes_on:
        raise Conflict(f"id: event {absorbed.id} was merged into {goes_on} already; merge that one.")
    if absorbed.id == into.id:
        raise Conflict(f"into: event {absorbed.id} cannot be merged into itself.")
    if absorbed.status != "closed" and into.status == "closed":
        raise Conflict(
            f"into: event {into.id} is closed and {absorbed.id} is not; merge it the other way round."
        )
    action = replace(action, into=into.id)
    for event in merge_events(into, absorbed, action):
        unit.put(event, "merged" if event.id == absorbed.id else "action", action.at_ms)
    by = (into.id, action.at_ms)
    return into, msgspec.structs.replace(overrides, merges={**overrides.merges, absorbed.id: by})


def _with_override(
    overrides: EditorOverrides, event: Event, action: EditorAction, first_version: int | None
) -> EditorOverrides:
    """The orders with what the detector must know of this action."""
    if action.action == "remove_item" and first_version is not None:
        return msgspec.structs.replace(
            overrides, removed_items={**overrides.removed_items, action.item or "": first_version}
        )
    if action.action not in ("mute", "unmute", "false_alarm"):
        return overrides
    mutes = tuple(
        m for m in overrides.mutes if m.event_id != event.id and not is_same_story(m.profile, event.profile)
    )
    if event.muted is not None and event.profile:
        until_ms = None if event.muted == "routine" else action.at_ms + STORY_MUTE_MS
        mutes = (*mutes, Mute(event.id, event.muted, event.profile, until_ms))
    return msgspec.structs.replace(overrides, mutes=mutes)


async def _require_event(unit: EventUnitOfWork, event_id: str, field: str) -> Event:
    event = await unit.get(event_id)
    if event is None:
        raise NotFound(f"{field}: there is no event {event_id[:200]!r}; it may have expired.")
    return event
