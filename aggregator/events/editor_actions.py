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

from aggregator.errors import Conflict, Contention, NotFound
from aggregator.events.detection import Action, Event, Mute, Orders
from aggregator.events.detection.edits import edited, merged
from aggregator.events.detection.overrides import STORY_MS
from aggregator.events.detection.profile import is_alike
from aggregator.events.repository import (
    DESK,
    INDEX,
    POSITION,
    EventLog,
    decode_index,
    decode_orders,
    heirs,
    number_key,
)
from aggregator.events.unit_of_work import Draft, pack
from aggregator.index import Stored
from aggregator.store.base import Delete, Equals, Put, Transaction, Write

ATTEMPTS = 32


class Articles(Protocol):
    """What is asked of the index: ``Index`` has it."""

    async def get(self, id_: str) -> Stored: ...


class Actions:
    """Editors' actions on the events of ``log``."""

    def __init__(self, log: EventLog, articles: Articles) -> None:
        self._log = log
        self._articles = articles
        self._turn = asyncio.Lock()  # those of one process need not race each other

    async def act(self, action: Action) -> Event:
        """Carry it out; returns the event as it stands then: the one that goes on, when it was merged.

        What has been done already is not done, nor recorded, again. Raises NotFound (event, or item in
        it), Conflict (a merge that cannot be), StoreUnavailable.
        """
        first = await self._first_of(action.item) if action.action == "remove_item" else None
        async with self._turn:
            for _ in range(ATTEMPTS):
                position, desk, raw = await self._log.store.read([POSITION, DESK, INDEX])
                draft, orders = Draft(self._log, decode_index(raw)), decode_orders(desk)
                event, orders = await self._drafted(draft, orders, action, first)
                writes = draft.writes()
                if not writes:
                    return event
                if first is not None:
                    writes.append(Delete(number_key(first)))
                orders = orders.next(action.at_ms)
                if await self._commit(position, desk, [*writes, Put(DESK, pack(orders))]):
                    return draft.events[event.id]
        raise Contention("events: too many editors act at once; try again.")

    async def take_down(self, first: int, article_id: str, now_ms: int) -> None:
        """An article was deleted: its id and headline leave its event at once, not with the detector's next tick."""
        async with self._turn:
            for _ in range(ATTEMPTS):
                position, desk, raw = await self._log.store.read([POSITION, DESK, INDEX])
                draft, orders = Draft(self._log, decode_index(raw)), decode_orders(desk)
                await draft.take_down(first, article_id, now_ms)
                writes = draft.writes()
                if not writes:
                    return
                orders = orders.next(now_ms, removed={**orders.removed, article_id: first})
                if await self._commit(position, desk, [*writes, Put(DESK, pack(orders))]):
                    return
        raise Contention("events: too many editors act at once; try again.")

    async def _commit(self, position: bytes | None, desk: bytes | None, writes: list[Write]) -> bool:
        checks = (Equals(POSITION, position), Equals(DESK, desk))
        return not await self._log.store.commit(Transaction(checks, tuple(writes)))

    async def _drafted(
        self, draft: Draft, orders: Orders, action: Action, first: int | None
    ) -> tuple[Event, Orders]:
        """The action as new versions in ``draft`` and new orders; neither when nothing is to be done."""
        event = await _saved(draft, action.event, "id")
        if action.action == "merge":
            return await _merge(draft, orders, action, event)
        event = await _saved(draft, heirs(draft.index, event.id)[-1], "id")
        item = action.item or ""
        if action.action == "remove_item" and item not in event.items and item not in event.removed:
            raise NotFound(f"item: there is no article {item[:200]!r} in event {event.id}.")
        changed = edited(event, action)
        if changed is event:
            return event, orders
        draft.put(changed, "action", action.at_ms)
        return changed, _ordered(orders, changed, action, first)

    async def _first_of(self, item: str | None) -> int | None:
        """The first number of an article; None when it is not stored any more."""
        try:
            return (await self._articles.get(item or "")).record.first
        except NotFound:
            return None


async def _merge(draft: Draft, orders: Orders, action: Action, lost: Event) -> tuple[Event, Orders]:
    """The event that was asked about goes into another one, which has to be able to go on."""
    into = await _saved(draft, action.into or "", "into")
    into = await _saved(draft, heirs(draft.index, into.id)[-1], "into")
    goes_on = heirs(draft.index, lost.id)[-1]
    if lost.id != goes_on and goes_on == into.id:
        return into, orders
    if lost.id != goes_on:
        raise Conflict(f"id: event {lost.id} was merged into {goes_on} already; merge that one.")
    if lost.id == into.id:
        raise Conflict(f"into: event {lost.id} cannot be merged into itself.")
    if lost.status != "closed" and into.status == "closed":
        raise Conflict(f"into: event {into.id} is closed and {lost.id} is not; merge it the other way round.")
    action = replace(action, into=into.id)
    for event in merged(into, lost, action):
        draft.put(event, "merged" if event.id == lost.id else "action", action.at_ms)
    by = (into.id, action.at_ms)
    return into, msgspec.structs.replace(orders, merged={**orders.merged, lost.id: by})


def _ordered(orders: Orders, event: Event, action: Action, first: int | None) -> Orders:
    """The orders with what the detector must know of this action."""
    if action.action == "remove_item" and first is not None:
        return msgspec.structs.replace(orders, removed={**orders.removed, action.item or "": first})
    if action.action not in ("mute", "unmute", "false_alarm"):
        return orders
    mutes = tuple(m for m in orders.mutes if m.event != event.id and not is_alike(m.profile, event.profile))
    if event.muted is not None and event.profile:
        until_ms = None if event.muted == "routine" else action.at_ms + STORY_MS
        mutes = (*mutes, Mute(event.id, event.muted, event.profile, until_ms))
    return msgspec.structs.replace(orders, mutes=mutes)


async def _saved(draft: Draft, event_id: str, field: str) -> Event:
    event = await draft.saved(event_id)
    if event is None:
        raise NotFound(f"{field}: there is no event {event_id[:200]!r}; it may have expired.")
    return event
