"""Desks: saved views of the events with their own thresholds, quiet hours and notification targets.

Targets are entries of ``webhooks/subscriptions.py`` with the id of the desk. An event is reported once per
desk, when it first meets the filter and all thresholds. Until it may be sent (pause between two
notifications, quiet hours) it is held; all held events are one notification, so that a flood is one message.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import msgspec

from aggregator.errors import InvalidInput
from aggregator.events.event import Event
from aggregator.events.selection import EventFilter, growth, is_settled
from aggregator.store.base import Store
from aggregator.store.optimistic import VersionedMap
from aggregator.time_units import MINUTE_MS

MAX_DESKS = 1000
DEFAULT_PAUSE_MINUTES = 5
MAX_HELD = 200
MAX_NOTIFIED = 2000  # open events that were reported; above it the oldest may be reported again
FOLLOW_UPS = ("development", "doubled", "closed")


class Desk(msgspec.Struct, frozen=True):
    """One desk; see ``DeskIn`` of the contract for its fields.

    Quiet hours are "HH:MM" in ``time_zone`` or "".
    ``owner``: id of the key that created it, or "". ``edited_by``: name of the key that changed it last.
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
    digest_at: str = ""
    edited_ms: int = 0
    edited_by: str = ""


class Desks(VersionedMap[Desk]):
    """The desks of a store, at most 1000, of which one key creates at most half."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, b"{events}desks", Desk, "desk", MAX_DESKS)

    async def create(self, desk: Desk) -> tuple[Desk, bool]:
        """Store a desk under a new id, unless one with this name exists. Raises Conflict."""
        new = msgspec.structs.replace(desk, id=secrets.token_hex(6))
        return await self.add_once(new.id, new, lambda a, b: a.name == b.name, lambda known: known.owner)

    async def change(self, id_: str, transform: Callable[[Desk], Desk]) -> Desk:
        """Change a desk; its id, creation and owner stay. Raises NotFound."""

        def apply(stored: Desk) -> Desk:
            kept = {name: getattr(stored, name) for name in ("id", "created_ms", "owner")}
            return msgspec.structs.replace(transform(stored), **kept)

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


def meets_thresholds(desk: Desk, event: Event, hourly: int) -> bool:
    """Whether an event with ``hourly`` items within the last hour reaches all thresholds of the desk."""
    reached = event.size >= desk.alert_size and len(event.sources) >= desk.alert_sources
    return reached and hourly >= desk.alert_hourly


def is_quiet(desk: Desk, now_ms: int) -> bool:
    """Whether it is within the quiet hours, which may include midnight."""
    if not desk.quiet_from or not desk.quiet_until or desk.quiet_from == desk.quiet_until:
        return False
    now = f"{datetime.fromtimestamp(now_ms / 1000, time_zone(desk.time_zone)):%H:%M}"
    parts = desk.quiet_from <= now, now < desk.quiet_until
    return all(parts) if desk.quiet_from < desk.quiet_until else any(parts)


def time_zone(name: str) -> tzinfo:
    """The time zone of an IANA name. Raises InvalidInput if this machine does not know it."""
    if name == "UTC":
        return UTC  # also without a database of time zones
    try:
        return ZoneInfo(name)
    except (OSError, KeyError, ValueError) as error:  # unknown is a KeyError, a directory an OSError
        raise InvalidInput(
            f"time_zone: unknown time zone {name[:60]!r}; expected a name such as Europe/Berlin.",
            field="time_zone",
            reason="not_allowed",
        ) from error


class DeskState(msgspec.Struct, frozen=True):
    """What a desk remembers: ids of events to report (and how many more), and of open events reported."""

    held: tuple[str, ...] = ()
    notified: tuple[str, ...] = ()
    sent_ms: int = 0
    dropped: int = 0
    digest_ms: int = 0  # end of the last digest


@dataclass(frozen=True, slots=True)
class Alert:
    """One notification of a desk: its events, the largest first, and how many more there were."""

    desk: Desk
    events: tuple[Event, ...]
    dropped: int = 0
    kind: str = "alert"  # or that of a later change of one event; "digest"
    sections: Mapping[str, int] = field(default_factory=dict)  # of a digest: sizes of its lists


def plan_alerts(
    desks: Collection[Desk],
    active: Collection[str],
    states: Mapping[str, DeskState],
    changed: Sequence[str],
    events: Mapping[str, Event],
    now_ms: int,
    later: Sequence[tuple[str, str]] = (),
) -> tuple[dict[str, DeskState], list[Alert]]:
    """The new states of the desks, and the notifications to send now; only ``active`` desks hold and send.

    ``changed``: ids, oldest change first; ``events``: every changed and held event that is still stored.
    ``later``: kinds of changes and their events; those that follow an alert are not sent in quiet hours.
    """
    new_states, alerts = {}, []
    for desk in desks:
        if desk.id not in active:
            if desk.id in states:
                new_states[desk.id] = msgspec.structs.replace(states[desk.id], held=(), dropped=0)
            continue
        former = states.get(desk.id, DeskState())
        known = [(kind, events.get(id_)) for kind, id_ in later if id_ in former.notified]
        if not is_quiet(desk, now_ms):
            followed = ((kind, e) for kind, e in known if kind in FOLLOW_UPS and e and is_reportable(e))
            alerts += [Alert(desk, (e,), kind=kind) for kind, e in followed]
        state = observe(desk, former, changed, events, now_ms)
        due = due_events(desk, state, events, now_ms)
        if due:
            alerts.append(Alert(desk, tuple(sorted(due, key=lambda e: -e.size)), state.dropped))
            sent = [event.id for event in due]
            held = tuple(id_ for id_ in state.held if id_ not in sent)
            notified = (*state.notified, *sent)[-MAX_NOTIFIED:]
            state = DeskState(held, notified, now_ms, digest_ms=state.digest_ms)
        new_states[desk.id] = state
    return new_states, alerts


def observe(
    desk: Desk, state: DeskState, changed: Sequence[str], events: Mapping[str, Event], now_ms: int
) -> DeskState:
    """The state after some events changed, and without those that must not be reported any more."""
    held, notified = dict.fromkeys(state.held), dict.fromkeys(state.notified)
    wanted = view_filter(desk)
    new = {id_ for id_, event in events.items() if is_reportable(event) and not is_settled(event)}
    for id_ in dict.fromkeys(changed):
        event = events.get(id_)
        if event is not None and event.merged_into is not None:  # the same news under another id; both stay
            notified |= {event.merged_into: None} if id_ in notified else {}  # known: it may be undone
        elif event is None or event.status == "closed":
            for ended in (id_, *(event.absorbed if event else ())):
                notified.pop(ended, None)
        elif id_ in notified or id_ in held:
            continue
        elif not notified.keys().isdisjoint(event.absorbed):
            notified[id_] = None
        elif (
            id_ in new
            and wanted.matches(event)
            and meets_thresholds(desk, event, growth(event, now_ms).last_hour)
        ):
            held[id_] = None
    remaining = [id_ for id_ in held if id_ in new and id_ not in notified]
    return msgspec.structs.replace(
        state,
        held=tuple(remaining[-MAX_HELD:]),
        notified=tuple(notified)[-MAX_NOTIFIED:],
        dropped=state.dropped + max(0, len(remaining) - MAX_HELD),
    )


def due_events(desk: Desk, state: DeskState, events: Mapping[str, Event], now_ms: int) -> list[Event]:
    """The held events that are sent now."""
    if 0 <= now_ms - state.sent_ms < desk.pause_minutes * MINUTE_MS:
        return []
    held = [events[id_] for id_ in state.held if id_ in events]
    if is_quiet(desk, now_ms):
        return [event for event in held if 0 < desk.quiet_size <= event.size]
    return held


def is_reportable(event: Event) -> bool:
    """Whether editors and the detector want it reported: not muted, merged, or told in another language."""
    return not (event.muted or event.false_alarm or event.merged_into or event.translation_of)
