"""What is saved of events, and how every replica reads it.

{events}position     how far the detector is (``events.py``): changed by every commit of a leader
{events}desk         the standing orders of editors: changed by every action
{events}index        id -> (status, detected, last seen, merged into) of all events that are kept
{events}e:<id>       one event, JSON
{events}n:<number>   event id of an article (its first number, hex), expiring
{events}changes      stream of changes, append-only, for SSE and webhooks; the last ``CHANGES_KEPT_MS`` of it

All of this is written by two: the leader's checkpoint (``events.py``) and an editor's action
(``actions.py``), each in one commit (``eventdraft.py``) that holds only while position and desk are what
it read. So all versions of all events have one order, and none is overwritten by somebody who did not see it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from aggregator.errors import NotFound
from aggregator.events.detection import ChangeKind, EditorOverrides, Event
from aggregator.events.filter import EventFilter
from aggregator.store.base import Store
from aggregator.store.decoding import decode_value
from aggregator.time_units import DAY_MS

EVENT_RETENTION_MS = 90 * DAY_MS
CHANGE_RETENTION_MS = 2 * DAY_MS
POSITION_KEY = b"{events}position"
OVERRIDES_KEY = b"{events}desk"
INDEX_KEY = b"{events}index"
CHANGES_KEY = b"{events}changes"
# An event that was merged into one that was merged: so many steps are followed.
MAX_MERGE_HOPS = 64
# A filtered list reads so many events at a time until it has enough.
EVENTS_PER_READ = 200

# Where an event stands in the list: last seen, detected (ms), id.
PageKey = tuple[int, int, str]
ChangeRecordKind = ChangeKind | Literal["action"]


class EventSummary(msgspec.Struct, array_like=True):
    """One event in the index of events."""

    status: str
    detected_at_ms: int
    last_seen_ms: int
    merged_into: str | None = None


class ChangeRecord(msgspec.Struct, frozen=True):
    """One entry of the change stream. No headline: that of a text taken down must not stay here.

    kind      fired | updated | doubled | merged | closed by the detector, action by an editor. A muted event
              is never told as fired or doubled, only as updated
    revision  of the event after this change: who has read this revision or a later one knows it
    """

    kind: ChangeRecordKind
    at_ms: int
    event_id: str
    revision: int = 0


_index_decoder = msgspec.msgpack.Decoder(dict[str, EventSummary])
_overrides_decoder = msgspec.msgpack.Decoder(EditorOverrides)
_event_decoder = msgspec.json.Decoder(Event)
_change_decoder = msgspec.json.Decoder(ChangeRecord)


class EventRepository:
    """The saved events of a store. ``retention_ms``: how long closed ones are kept after they were last seen."""

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
    ) -> list[Event]:
        """Saved events, the most recently seen first. ``since_ms``: only those seen then or later.

        ``after``: only what comes behind this place, to go on where a list ended.
        """
        index = await self.summaries()
        places = sorted(
            (
                (e.last_seen_ms, e.detected_at_ms, id_)
                for id_, e in index.items()
                if (status is None or e.status == status) and (since_ms is None or e.last_seen_ms >= since_ms)
            ),
            reverse=True,
        )
        ids = [place[2] for place in places if after is None or place < after]
        found: list[Event] = []
        while ids and len(found) < limit:
            some, ids = ids[:EVENTS_PER_READ], ids[EVENTS_PER_READ:]
            read = await self.get_many(some)
            found += [
                e for i in some if (e := read.get(i)) and (event_filter is None or event_filter.matches(e))
            ]
        return found[:limit]

    async def get_many(self, event_ids: Sequence[str]) -> dict[str, Event]:
        """Saved events by id, in one read; those that are not kept are left out."""
        values = await self.store.read([event_key(id_) for id_ in event_ids]) if event_ids else []
        return {i: decode_event(v, i) for i, v in zip(event_ids, values, strict=True) if v is not None}

    async def get(self, event_id: str) -> Event:
        """One saved event, as it stands under this very id. Raises NotFound."""
        event = (await self.get_many([event_id])).get(event_id)
        if event is None:
            raise NotFound(f"There is no event {event_id[:200]!r}; it may have expired.")
        return event

    async def event_ids_of(self, numbers: Sequence[int]) -> dict[int, str]:
        """Article number (an id's first version) -> id of the event it belongs to, where there is one."""
        if not numbers:
            return {}
        raw, *values = await self.store.read([INDEX_KEY, *(number_key(n) for n in numbers)])
        index = decode_index(raw)
        found = zip(numbers, values, strict=True)
        return {n: merge_chain(index, value.decode())[-1] for n, value in found if value is not None}

    async def event_article_ids(self, number: int) -> tuple[str, ...]:
        """Ids of the articles of the event that an article belongs to, oldest first; () when it is in none."""
        event_id = (await self.event_ids_of([number])).get(number)
        event = (await self.get_many([event_id])).get(event_id) if event_id is not None else None
        return event.items if event is not None else ()

    async def changes(self, after: bytes = b"", count: int = 100) -> Sequence[tuple[bytes, ChangeRecord]]:
        """(position, change) of the change stream behind position ``after``, oldest first.

        ``after`` b"" is the oldest that is kept; a position that was trimmed away goes on with the oldest too.
        """
        read = (await self.store.stream_read([CHANGES_KEY], [after], count))[0]
        return [(position, decode_change(payload)) for position, payload in read]

    async def latest_position(self) -> bytes:
        """Position of the newest change, from which a reader that wants no past goes on; b"" if there is none."""
        tail = await self.store.stream_tail(CHANGES_KEY, 1)
        return tail[0][0] if tail else b""

    async def trim_changes(self) -> None:
        """Forget changes that are ``CHANGES_KEPT_MS`` older than the newest, by the clock of the store."""
        newest_ms = int((await self.latest_position()).partition(b"-")[0] or 0)
        await self.store.stream_trim(CHANGES_KEY, b"%d-0" % max(0, newest_ms - CHANGE_RETENTION_MS))

    # -- for those who write --------------------------------------------------------------------

    async def summaries(self) -> dict[str, EventSummary]:
        """All events that are kept."""
        return decode_index((await self.store.read([INDEX_KEY]))[0])


def page_key_of(event: Event) -> PageKey:
    """Where it stands in the list of events."""
    return event.last_seen_ms, event.detected_at_ms, event.id


def merge_chain(summaries: Mapping[str, EventSummary], event_id: str) -> list[str]:
    """The event and those that took it over one after another; the last one goes on.

    >>> heirs({"a": Entry("closed", 0, 0, "b"), "b": Entry("breaking", 0, 0)}, "a")
    ['a', 'b']
    """
    chain = [event_id]
    while (
        len(chain) < MAX_MERGE_HOPS and (entry := summaries.get(chain[-1])) is not None and entry.merged_into
    ):
        chain.append(entry.merged_into)
    return chain


def decode_index(raw: bytes | None) -> dict[str, EventSummary]:
    return decode_value(_index_decoder, raw, "The index of events") if raw else {}


def decode_event(raw: bytes, event_id: str = "") -> Event:
    return decode_value(_event_decoder, raw, f"The event {event_id!r}")


def decode_change(raw: bytes) -> ChangeRecord:
    return decode_value(_change_decoder, raw, "A change of an event")


def decode_overrides(raw: bytes | None) -> EditorOverrides:
    return decode_value(_overrides_decoder, raw, "The desk of the editors") if raw else EditorOverrides()


def event_key(event_id: str) -> bytes:
    return b"{events}e:" + event_id.encode("utf-8", "surrogatepass")


def number_key(number: int) -> bytes:
    return b"{events}n:%016x" % number
