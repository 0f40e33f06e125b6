"""Which events a desk reports, and when. Pure.

An event is reported once per desk: when it first meets the filter and all thresholds, at whichever change of
it. Until it may be sent (pause between two notifications, quiet hours) it is held; all held events are sent
as one notification, so that a flood of events is one message.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from aggregator.events.desks.model import Desk, is_quiet, items_in_last_hour, meets_thresholds, view_filter
from aggregator.events.detection.model import Event
from aggregator.time_units import MINUTE_MS

MAX_HELD = 200
# Open events that were reported; the oldest are forgotten above it, and may be reported again.
MAX_NOTIFIED = 2000


class DeskState(msgspec.Struct, frozen=True):
    """What a desk has to remember.

    held      ids of events to report, oldest first; ``dropped``: how many were left out above MAX_HELD
    notified  ids of open events that were reported, oldest first
    sent_ms   time of the last notification
    """

    held: tuple[str, ...] = ()
    notified: tuple[str, ...] = ()
    sent_ms: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Alert:
    """One notification of a desk: its events, the largest first, and how many more there were."""

    desk: Desk
    events: tuple[Event, ...]
    dropped: int = 0


def plan(
    desks: Collection[Desk],
    active: Collection[str],
    states: Mapping[str, DeskState],
    changed: Sequence[str],
    events: Mapping[str, Event],
    now_ms: int,
) -> tuple[dict[str, DeskState], list[Alert]]:
    """The new states of the desks, and the notifications to send now.

    active   ids of the desks that send notifications; the others hold nothing, and remember what was reported
    changed  ids of changed events, oldest change first
    events   the present version of every changed and every held event that is still stored
    """
    new_states, alerts = {}, []
    for desk in desks:
        if desk.id not in active:
            if desk.id in states:
                new_states[desk.id] = msgspec.structs.replace(states[desk.id], held=(), dropped=0)
            continue
        state = observe(desk, states.get(desk.id, DeskState()), changed, events, now_ms)
        due = due_events(desk, state, events, now_ms)
        if due:
            alerts.append(Alert(desk, tuple(sorted(due, key=lambda e: -e.size)), state.dropped))
            state = _mark_sent(state, [event.id for event in due], now_ms)
        new_states[desk.id] = state
    return new_states, alerts


def observe(
    desk: Desk, state: DeskState, changed: Sequence[str], events: Mapping[str, Event], now_ms: int
) -> DeskState:
    """The state after some events changed, and without those that must not be reported any more."""
    held, notified = dict.fromkeys(state.held), dict.fromkeys(state.notified)
    wanted = view_filter(desk)
    for id_ in dict.fromkeys(changed):
        event = events.get(id_)
        if event is None or event.status == "closed":
            was_notified = id_ in notified
            notified.pop(id_, None)
            if event is not None and event.merged_into is not None and was_notified:
                notified[event.merged_into] = None  # the same news under another id
        elif id_ in notified or id_ in held:
            continue
        elif not notified.keys().isdisjoint(event.absorbed):
            notified[id_] = None
        elif (
            is_reportable(event)
            and wanted.matches(event)
            and meets_thresholds(desk, event, items_in_last_hour(event, now_ms))
        ):
            held[id_] = None
    remaining = [id_ for id_ in held if id_ in events and is_reportable(events[id_]) and id_ not in notified]
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
    return (
        event.muted is None
        and not event.false_alarm
        and event.merged_into is None
        and event.translation_of is None
    )


def _mark_sent(state: DeskState, sent: Sequence[str], now_ms: int) -> DeskState:
    return DeskState(
        held=tuple(id_ for id_ in state.held if id_ not in sent),
        notified=(*state.notified, *sent)[-MAX_NOTIFIED:],
        sent_ms=now_ms,
    )
