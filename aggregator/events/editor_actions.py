"""Editor actions on events: acknowledge, mute, merge, remove an item, note, assign, choose a headline, ...

An action changes the stored events in one optimistic commit (``unit_of_work.py``) and adds an editor
override, which the detector applies before its own next commit, so no later version of the event undoes the
action. Every event that an action changed carries it in its audit trail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import msgspec

from aggregator.errors import Conflict, NotFound
from aggregator.events.detection.model import STORY_MUTE_MS, EditorOverrides, Mute, is_same_story
from aggregator.events.event import EditorAction, Event
from aggregator.events.newsroom import apply_action, merge_events
from aggregator.events.repository import OVERRIDES_KEY, EventRepository, merge_chain
from aggregator.events.unit_of_work import EventUnitOfWork, encode_msgpack
from aggregator.index import StoredArticle
from aggregator.store.base import Put
from aggregator.store.optimistic import commit_attempts

MAX_COMMIT_ATTEMPTS = 32

T = TypeVar("T")


class EditorActions:
    """Applies editors' actions to events. ``get_article``: raises NotFound for an unknown id."""

    def __init__(
        self, repository: EventRepository, get_article: Callable[[str], Awaitable[StoredArticle]]
    ) -> None:
        self._repository, self._get_article = repository, get_article
        self._lock = asyncio.Lock()  # actions of one process need not conflict with each other

    async def apply(self, action: EditorAction) -> Event:
        """Carry out one action. Returns the event as it is then; after a merge, the surviving one.

        An action without effect is not recorded again. Raises NotFound (event, or item or note in it),
        Conflict (an impossible merge, too many notes), CommitConflict, StoreUnavailable.
        """
        first_version = await self._first_version_of(action.item) if action.action == "remove_item" else None
        headline = await self._headline_of(action.item) if action.action == "choose_headline" else ""

        async def plan(unit: EventUnitOfWork) -> Event:
            if action.action == "merge":
                return await _plan_merge(unit, action)
            return await _plan(unit, action, first_version, headline)

        unit, event = await self._commit(plan, action.at_ms)
        return unit.events.get(event.id, event)

    async def remove_article(self, first_version: int, article_id: str, now_ms: int) -> None:
        """Remove a deleted article from its event at once. Raises CommitConflict, StoreUnavailable."""

        async def plan(unit: EventUnitOfWork) -> None:
            await unit.remove_article(first_version, article_id, now_ms)
            unit.overrides = _with_removed_item(unit.overrides, article_id, first_version)

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
                overrides = unit.overrides.next_revision(at_ms)
                if not await unit.commit(Put(OVERRIDES_KEY, encode_msgpack(overrides))):
                    break
            return unit, result

    async def _first_version_of(self, item: str | None) -> int | None:
        try:
            return (await self._get_article(item or "")).record.first_version
        except NotFound:
            return None

    async def _headline_of(self, item: str | None) -> str:
        title = (await self._get_article(item)).record.title if item is not None else ""
        if item is not None and not title:
            raise NotFound(f"item: the article {item[:200]!r} has no headline.")
        return title


async def _plan(
    unit: EventUnitOfWork, action: EditorAction, first_version: int | None, headline: str
) -> Event:
    event = await _require_event(unit, action.event, "id")
    event = await _require_event(unit, merge_chain(unit.summaries, event.id)[-1], "id")
    item = action.item or ""
    needs_item = action.action == "remove_item" and item not in event.removed
    needs_item |= action.action == "choose_headline" and action.item is not None
    if needs_item and item not in event.items:
        raise NotFound(f"item: there is no article {item[:200]!r} in event {event.id}.")
    changed = apply_action(event, action, headline)
    if changed is event:
        return event
    unit.put(changed, "action", action.at_ms)
    if action.action in ("mute", "unmute", "false_alarm"):
        unit.overrides = _with_mute(unit.overrides, changed, action.at_ms)
    elif action.action == "remove_item" and first_version is not None:
        unit.overrides = _with_removed_item(unit.overrides, item, first_version)
        unit.unlink_article(first_version)
    return changed


async def _plan_merge(unit: EventUnitOfWork, action: EditorAction) -> Event:
    absorbed = await _require_event(unit, action.event, "id")
    into = await _require_event(unit, action.into or "", "into")
    into = await _require_event(unit, merge_chain(unit.summaries, into.id)[-1], "into")
    survivor = merge_chain(unit.summaries, absorbed.id)[-1]
    if absorbed.id != survivor and survivor == into.id:
        return into
    if absorbed.id != survivor:
        raise Conflict(f"id: event {absorbed.id} was merged into {survivor} already; merge that one.")
    if absorbed.id == into.id:
        raise Conflict(f"into: event {absorbed.id} cannot be merged into itself.")
    if absorbed.status != "closed" and into.status == "closed":
        raise Conflict(
            f"into: event {into.id} is closed and {absorbed.id} is not; merge it the other way round."
        )
    action = replace(action, into=into.id)
    for event in merge_events(into, absorbed, action):
        unit.put(event, "merged" if event.id == absorbed.id else "action", action.at_ms)
    merges = {**unit.overrides.merges, absorbed.id: (into.id, action.at_ms)}
    unit.overrides = msgspec.structs.replace(unit.overrides, merges=merges)
    return into


def _with_mute(overrides: EditorOverrides, event: Event, at_ms: int) -> EditorOverrides:
    mutes = tuple(
        m for m in overrides.mutes if m.event_id != event.id and not is_same_story(m.profile, event.profile)
    )
    if event.muted is not None and event.profile:
        until_ms = None if event.muted == "routine" else at_ms + STORY_MUTE_MS
        mutes = (*mutes, Mute(event.id, event.muted, event.profile, until_ms))
    return msgspec.structs.replace(overrides, mutes=mutes)


def _with_removed_item(overrides: EditorOverrides, article_id: str, first_version: int) -> EditorOverrides:
    removed_items = {**overrides.removed_items, article_id: first_version}
    return msgspec.structs.replace(overrides, removed_items=removed_items)


async def _require_event(unit: EventUnitOfWork, event_id: str, field: str) -> Event:
    event = await unit.get(event_id)
    if event is None:
        raise NotFound(f"{field}: there is no event {event_id[:200]!r}; it may have expired.")
    return event
