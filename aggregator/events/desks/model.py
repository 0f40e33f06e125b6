"""Desks: saved views with their own thresholds, quiet hours and notification targets.

A desk is a view of the events, such as politics or one region: its id is accepted wherever that of a watch
is. Its targets are entries of ``webhooks/subscriptions.py`` with the id of the desk.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import msgspec

from aggregator.events.detection.model import Event
from aggregator.events.detection.open_event import TIMELINE_BUCKET_MS
from aggregator.events.filter import EventFilter
from aggregator.store.base import Store
from aggregator.store.versioned_map import VersionedMap
from aggregator.time_units import HOUR_MS

DESKS_KEY = b"{events}desks"
MAX_DESKS = 50
DEFAULT_PAUSE_MINUTES = 5


class Desk(msgspec.Struct, frozen=True):
    """One desk.

    terms, sources, languages   an event matches one of each that is given; places and topics are terms
    without         terms that an event must not match
    min_size        number of items of an event in the view
    alert_size, alert_sources, alert_hourly   thresholds: an event is notified that has this many items,
                    sources, and items within the last hour; 0 for no condition
    pause_minutes   minimum time between two notifications; events that come in between share the next one
    quiet_from, quiet_until   "HH:MM" in ``time_zone``; "" for no quiet hours. Events are held and reported at
                    their end.
    quiet_size      an event with this many items is notified during quiet hours as well; 0 for none
    paused          no notifications
    owner           id of the key that created it, "" where no key is required
    edited_by       name of the key that changed it last
    """

    id: str
    name: str
    created_ms: int
    owner: str = ""
    terms: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    min_size: int = 0
    alert_size: int = 0
    alert_sources: int = 0
    alert_hourly: int = 0
    pause_minutes: int = DEFAULT_PAUSE_MINUTES
    quiet_from: str = ""
    quiet_until: str = ""
    time_zone: str = "UTC"
    quiet_size: int = 0
    paused: bool = False
    edited_ms: int = 0
    edited_by: str = ""


class Desks(VersionedMap[Desk]):
    """The desks of a store, at most 50, of which one key creates at most half."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, DESKS_KEY, Desk, "desk", MAX_DESKS)

    async def create(self, desk: Desk) -> tuple[Desk, bool]:
        """Store a validated desk under a new id; returns what is stored and whether it is new.

        A desk with this name is returned as it is. Raises Conflict above 50 and above the owner's share.
        """
        new = msgspec.structs.replace(desk, id=secrets.token_hex(6))
        return await self.add_once(
            new.id, new, lambda stored, given: stored.name == given.name, lambda known: known.owner
        )

    async def change(self, id_: str, transform: Callable[[Desk], Desk]) -> Desk:
        """Change a desk; its id, creation and owner stay. Raises NotFound."""

        def apply(stored: Desk) -> Desk:
            return msgspec.structs.replace(
                transform(stored), id=stored.id, created_ms=stored.created_ms, owner=stored.owner
            )

        return await self.update(id_, apply)


def view_filter(desk: Desk) -> EventFilter:
    """The filter of the desk's view."""
    choices = (
        tuple(EventFilter(term=term) for term in desk.terms),
        tuple(EventFilter(source=source) for source in desk.sources),
        tuple(EventFilter(lang=lang) for lang in desk.languages),
    )
    return EventFilter(
        min_size=desk.min_size,
        and_also=tuple(EventFilter(any_of=options) for options in choices if options),
        none_of=tuple(EventFilter(term=term) for term in desk.without),
    )


def items_in_last_hour(event: Event, now_ms: int) -> int:
    """Number of items that joined the event within the last hour, in whole 10 minutes."""
    return event.items_between(now_ms - HOUR_MS - TIMELINE_BUCKET_MS, now_ms)


def busiest_hour(event: Event) -> int:
    """Largest number of items that joined the event within one hour so far."""
    return max(
        (items_in_last_hour(event, at_ms + TIMELINE_BUCKET_MS) for at_ms, _ in event.timeline), default=0
    )


def meets_thresholds(desk: Desk, event: Event, hourly: int) -> bool:
    """Whether an event with ``hourly`` items within the last hour reaches all thresholds of the desk."""
    return (
        event.size >= desk.alert_size
        and len(event.sources) >= desk.alert_sources
        and hourly >= desk.alert_hourly
    )


def is_quiet(desk: Desk, now_ms: int) -> bool:
    """Whether it is within the quiet hours, which may include midnight."""
    if not desk.quiet_from or not desk.quiet_until or desk.quiet_from == desk.quiet_until:
        return False
    now = f"{datetime.fromtimestamp(now_ms / 1000, time_zone(desk.time_zone)):%H:%M}"
    if desk.quiet_from < desk.quiet_until:
        return desk.quiet_from <= now < desk.quiet_until
    return now >= desk.quiet_from or now < desk.quiet_until


def time_zone(name: str) -> tzinfo:
    """The time zone of an IANA name. Raises ValueError if this machine does not know it."""
    if name == "UTC":
        return UTC  # also without a database of time zones
    try:
        return ZoneInfo(name)
    except (OSError, KeyError) as error:  # ZoneInfoNotFoundError is a KeyError; a directory is an OSError
        raise ValueError(name) from error
