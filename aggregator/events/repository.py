"""Repository of stored events, read by every replica.

{events}e:<id> is one event, {events}top-stories the largest stories of the last hours (``detection/
top_stories.py``); the other keys: docs/design/data-model.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Literal

import msgspec

from aggregator.errors import DamagedValue, NotFound
from aggregator.events import selection
from aggregator.events.detection.model import ChangeKind, EditorOverrides, LearnedHistory, LearningStatus
from aggregator.events.detection.numbers import items_within
from aggregator.events.detection.top_stories import TopStory
from aggregator.events.event import Event, EventSummary
from aggregator.events.selection import PAGED_ORDERS, EventFilter, EventOrder, PageKey, page_key, sort_events
from aggregator.store.base import Store, parse_position
from aggregator.store.decoding import decode_value
from aggregator.store.optimistic import ValueFormat
from aggregator.time_units import DAY_MS

EVENT_RETENTION_MS = 90 * DAY_MS
CHANGE_RETENTION_MS = 2 * DAY_MS
POSITION_KEY = b"{events}position"
OVERRIDES_KEY = b"{events}desk"
INDEX_KEY = b"{events}index"
STORYLINES_KEY = b"{events}storylines"
LEARNING_KEY = b"{events}learning"
TOP_STORIES_KEY = b"{events}top-stories"
CHANGES_KEY = b"{events}changes"
NUMBER_KEY_PREFIX = b"{events}n:"
MAX_MERGE_HOPS = 64  # limit for chains of merges of merged events
MAX_STORY_EVENTS = 100
EVENTS_PER_READ = 200  # events that a filtered list reads at a time, until it has enough

ChangeRecordKind = ChangeKind | Literal["action"]


class ChangeRecord(msgspec.Struct, frozen=True):
    """One change, without a headline, which may be deleted. "action": by an editor."""

    kind: ChangeRecordKind
    at_ms: int
    event_id: str
    revision: int = 0


_stories_decoder = msgspec.json.Decoder(list[TopStory])
_history_decoder = msgspec.msgpack.Decoder(LearnedHistory)
EVENT_DECODER = msgspec.json.Decoder(Event)
CHANGE_DECODER = msgspec.json.Decoder(ChangeRecord)
INDEX_FORMAT = ValueFormat(msgspec.msgpack.Decoder(dict[str, EventSummary]), "The index of events", dict)
_overrides_decoder = msgspec.msgpack.Decoder(EditorOverrides)
OVERRIDES_FORMAT = ValueFormat(_overrides_decoder, "The list of editor overrides", EditorOverrides)


class EventRepository:
    """Stored events. ``retention_ms``: how long closed events are kept after they were last seen."""

    def __init__(self, store: Store, *, retention_ms: int = EVENT_RETENTION_MS) -> None:
        self.store = store
        self.retention_ms = retention_ms

    async def list_events(
        self,
        status: str | None = None,
        since_ms: int | None = None,
        limit: int = 50,
        event_filter: EventFilter | None = None,
        after: PageKey | None = None,
        order: EventOrder = "time",
        now_ms: int = 0,
        until_ms: int | None = None,
    ) -> list[Event]:
        """Stored events behind ``after`` in an order; without page keys open ones, as of ``now_ms``.

        ``since_ms``: seen then or later; ``until_ms``: with items in that period, and not merged.
        """

        def matches(event: Event) -> bool:
            has_items = until_ms is None or items_within(event, since_ms or 0, until_ms) > 0
            return has_items and (event_filter is None or event_filter.matches(event))

        candidates = {
            id_: e
            for id_, e in (await self.summaries()).items()
            if (status is None or e.status == status)
            and (since_ms is None or e.last_seen_ms >= since_ms)
            and (until_ms is None or (e.first_seen_ms < until_ms and e.merged_into is None))
        }
        if order not in PAGED_ORDERS:
            ids = [id_ for id_, e in candidates.items() if e.status != "closed"]
            return sort_events(await self._first_matching(ids, len(ids), matches), order, now_ms)[:limit]
        keys = sorted((page_key(e, id_, order) for id_, e in candidates.items()), reverse=True)
        ids = [key[2] for key in keys if after is None or key < after]
        return await self._first_matching(ids, limit, matches)

    async def _first_matching(
        self, ids: Sequence[str], limit: int, matches: Callable[[Event], bool]
    ) -> list[Event]:
        found: list[Event] = []
        while ids and len(found) < limit:
            batch, ids = ids[:EVENTS_PER_READ], ids[EVENTS_PER_READ:]
            events = await self.get_many(batch)
            found += [e for i in batch if (e := events.get(i)) and matches(e)]
        return found[:limit]

    async def get_many(self, event_ids: Sequence[str]) -> dict[str, Event]:
        """Stored events by id, in one read; unknown and expired ids are left out."""
        values = await self.store.read([event_key(id_) for id_ in event_ids]) if event_ids else []
        return {
            id_: decode_value(EVENT_DECODER, value, f"The event {id_!r}")
            for id_, value in zip(event_ids, values, strict=True)
            if value is not None
        }

    async def get(self, event_id: str) -> Event:
        """The event with this id; merges are not followed. Raises NotFound."""
        event = (await self.get_many([event_id])).get(event_id)
        if event is None:
            raise NotFound(f"There is no event {event_id[:200]!r}; it may have expired.")
        return event

    async def story_events(self, story_id: str) -> list[Event]:
        """The newest events of a storyline in order of detection, without merged ones. Raises NotFound."""
        ids = story_event_ids(await self.summaries(), story_id)[-MAX_STORY_EVENTS:]
        events = await self.get_many(ids)
        if not events:
            raise NotFound(f"There is no storyline {story_id[:200]!r}; its events may have expired.")
        return [events[id_] for id_ in ids if id_ in events]

    async def story_neighbors(self, event: Event) -> tuple[Event | None, Event | None]:
        """The events of the same storyline before and after an event; None at its ends."""
        ids = ["", *story_event_ids(await self.summaries(), event.story_id or event.id), ""]
        if event.id not in ids:
            return None, None
        before, after = ids[ids.index(event.id) - 1], ids[ids.index(event.id) + 1]
        found = await self.get_many([before, after])
        return found.get(before), found.get(after)

    async def event_ids_of(self, numbers: Sequence[int]) -> dict[int, str]:
        """Event id by article number (of the first version), where there is one; a merge is followed."""
        values = await self.store.read([number_key(n) for n in numbers]) if numbers else []
        found = {n: value.decode() for n, value in zip(numbers, values, strict=True) if value is not None}
        events = await self.get_many(sorted(set(found.values())))  # a merge leads to its survivor at once
        return {n: events[id_].merged_into or id_ for n, id_ in found.items() if id_ in events}

    async def event_article_ids(self, number: int) -> tuple[str, ...]:
        """Article ids of the event that an article belongs to, oldest first; () without an event."""
        found = await self.get_many([*(await self.event_ids_of([number])).values()])
        return next((event.items for event in found.values()), ())

    async def learned_history(self) -> LearnedHistory | None:
        """What the detector knew at its last checkpoint; None without one."""
        value = (await self.store.read([LEARNING_KEY]))[0]
        with suppress(DamagedValue):
            return decode_value(_history_decoder, value, "The learned history") if value else None
        return None

    async def learning(self, now_ms: int) -> LearningStatus | None:
        """How much of the last seven days the detector knows; None as for ``learned_history``."""
        history = await self.learned_history()
        return history.status(now_ms) if history is not None else None

    async def top_stories(self, event_filter: EventFilter, since_ms: int) -> list[selection.RankedStory]:
        """The largest stories of the window with items since a time, as of about a minute ago."""
        value = (await self.store.read([TOP_STORIES_KEY]))[0]
        stories = decode_value(_stories_decoder, value, "The top stories") if value else []
        return selection.largest_stories(stories, event_filter, since_ms)

    async def changes(self, after: bytes = b"", count: int = 100) -> Sequence[tuple[bytes, ChangeRecord]]:
        """Up to ``count`` (position, change) after a position, oldest first; b"": from the oldest stored."""
        read = (await self.store.stream_read([CHANGES_KEY], [after], count))[0]
        return [(at, decode_value(CHANGE_DECODER, payload, "A change of an event")) for at, payload in read]

    async def latest_position(self) -> bytes:
        """Position of the newest change; b"" when there is none."""
        tail = await self.store.stream_tail(CHANGES_KEY, 1)
        return tail[0][0] if tail else b""

    async def trim_changes(self, trusted_ms: int) -> None:
        """Delete old changes; positions are times of the store's clock, which may be ahead."""
        newest_ms = parse_position(await self.latest_position())[0]
        before_ms = max(0, min(newest_ms, trusted_ms) - CHANGE_RETENTION_MS)
        await self.store.stream_trim(CHANGES_KEY, b"%d-0" % before_ms)

    async def summaries(self) -> dict[str, EventSummary]:
        """The index of events: a summary of every stored event by id."""
        return INDEX_FORMAT.decode((await self.store.read([INDEX_KEY]))[0])


def merge_chain(summaries: Mapping[str, EventSummary], event_id: str) -> list[str]:
    """The event, then the events it was merged into one after another; the last one survives."""
    chain = [event_id]
    while len(chain) < MAX_MERGE_HOPS and (summary := summaries.get(chain[-1])) and summary.merged_into:
        chain.append(summary.merged_into)
    return chain


def story_event_ids(summaries: Mapping[str, EventSummary], story_id: str) -> list[str]:
    """Ids of the events of a storyline in order of detection, without those merged into others."""
    found = [
        (summary.detected_at_ms, summary.first_seen_ms, id_)
        for id_, summary in summaries.items()
        if (summary.story_id or id_) == story_id and summary.merged_into is None
    ]
    return [id_ for *_, id_ in sorted(found)]


def event_key(event_id: str) -> bytes:
    """Store key of an event."""
    return b"{events}e:" + event_id.encode("utf-8", "surrogatepass")


def number_key(number: int) -> bytes:
    """Store key that leads from an article (number of its first version) to its event."""
    return b"%s%016x" % (NUMBER_KEY_PREFIX, number)
