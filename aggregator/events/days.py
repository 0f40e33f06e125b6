"""Days and periods of the newsroom: their limits in a time zone, and what happened to events within. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, tzinfo

from aggregator.errors import InvalidInput
from aggregator.events.desks import Desk, is_reportable, time_zone
from aggregator.events.detection.numbers import arrivals_of
from aggregator.events.event import EditorAction, Event
from aggregator.events.newsroom import is_split
from aggregator.events.selection import SETTLED, since_handled


@dataclass(frozen=True, slots=True)
class Day:
    """A day of the calendar in a time zone: the moments from ``start_ms`` until before ``end_ms``."""

    date: date
    zone: tzinfo

    @classmethod
    def parse(cls, text: str, zone: str, field: str = "date") -> Day:
        """The day of "2026-11-28" and an IANA name, "" for UTC. Raises InvalidInput."""
        try:
            return cls(date.fromisoformat(text), time_zone(zone or "UTC"))
        except ValueError:
            raise InvalidInput(f"{field}: expected a date such as 2026-11-28.", field=field) from None

    @classmethod
    def at(cls, at_ms: int, zone: str) -> Day:
        """The day of a time. Raises InvalidInput for an unknown zone."""
        known = time_zone(zone or "UTC")
        return cls(datetime.fromtimestamp(at_ms / 1000, known).date(), known)

    def shifted(self, days: int) -> Day:
        """The day ``days`` later, or the last or first one of the calendar."""
        ordinal = self.date.toordinal() + days
        return Day(date.fromordinal(min(max(ordinal, 1), date.max.toordinal())), self.zone)

    def at_clock(self, clock: str = "00:00") -> int:
        """The moment at which its clocks show a time, in ms since 1970."""
        return round(datetime.combine(self.date, time.fromisoformat(clock), self.zone).timestamp() * 1000)

    @property
    def start_ms(self) -> int:
        """Its first moment, in ms since 1970."""
        return self.at_clock()

    @property
    def end_ms(self) -> int:
        """The first moment of the next day; a day with a change of clocks has 23 or 25 hours."""
        return self.shifted(1).at_clock()


def digest_period(desk: Desk, now_ms: int) -> tuple[int, int]:
    """The last day of a desk that ended, from ``digest_at`` (else midnight) to the next, in ms."""
    clock, day = desk.digest_at or "00:00", Day.at(now_ms, desk.time_zone)
    day = day if day.at_clock(clock) <= now_ms else day.shifted(-1)
    return day.shifted(-1).at_clock(clock), day.at_clock(clock)


def is_split_off(event: Event) -> bool:
    """Whether an editor made the event of articles of another one, so that it is no news."""
    return any(action.into == event.id and is_split(action) for action in event.actions)


def edited(event: Event) -> list[EditorAction]:
    """What editors changed of an event, in force, but for notes and status, unless they reopened it.

    Of an event that was merged into it only the merge, of headlines the last one, while the event has it; one
    that nobody chose, since an editor was done with it.
    """
    own = [a for a in event.in_force if a.action == "merge" or event.id in (a.event, a.into)]
    decided = [a for a in own if "work_status" in a.before and a.action != "merge"][-1:]
    is_done = event.work_status in SETTLED
    last = [a for a in own if a.action == "choose_headline"][-1:]
    last = [a for a in last if a.item in (None, event.headline_id)]
    last = [a for a in last if a.actor or (is_done and all(a.at_ms >= each.at_ms for each in decided))]
    last += [a for a in decided if a.before["work_status"] in SETTLED and not is_done]
    edits = "merge", "remove_item", "move_items", "unlink", "mute", "false_alarm", "unmute"
    return [a for a in own if a.action in edits or a in last]


def handover(events: Iterable[Event], since_ms: int, until_ms: int) -> dict[str, list[Event]]:
    """What happened to events within a period, and what is left to do; in lists: what needs an editor first.

    "back": with news since an editor was done with it, or dropped and with a new headline, while it runs;
    else "published" or "dropped" by us; else "new": fired; else "developed": items, updates, tolls, notes,
    edits; else open: "unhandled", "taken", or "published" with items since. What is muted, merged or detected
    later is in none; what was split off is not new. Items count when they arrived. In each list events that
    nobody has handled are first, then those with a new toll.
    """
    names = ("back", "new", "developed", "unhandled", "taken", "published", "dropped")
    lists, period = {name: list[Event]() for name in names}, range(since_ms, until_ms)
    ranked = sorted(events, key=lambda e: (e.status_key != "new", not any(t[0] in period for t in e.tolls)))
    for event in filter(is_reportable, ranked):
        edits = edited(event)
        times = [*arrivals_of(event), *(edit.at_ms for edit in edits)]
        times += [toll[0] for toll in event.tolls] + [at_ms for at_ms, _ in event.developments]
        times += [*event.updates.values(), *(note.at_ms for note in event.notes)]
        decided = [action.at_ms for action in event.actions if action.work_status == event.work_status]
        is_running, came = event.status != "closed", since_handled(event)
        renamed = event.work_status == "dropped" and not all(edit.actor for edit in edits)
        is_ours = event.work_status == "published" and came.items + came.updates > 0
        is_open = is_running and (is_ours or event.work_status not in SETTLED)
        left = {"new": "unhandled", "published": "published"}.get(event.status_key, "taken")
        for name, happened in (
            ("back", (*times, *(since_ms,) * is_running) if came.is_back or renamed else ()),
            (event.work_status, decided if event.work_status in SETTLED else ()),
            ("new", () if is_split_off(event) else (event.detected_at_ms,)),
            ("developed", times),
            (left, (max(since_ms, event.detected_at_ms),) * is_open),
        ):
            if any(at_ms in period for at_ms in happened):
                lists[name].append(event)
                break
    return lists
