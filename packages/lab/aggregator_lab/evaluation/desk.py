"""Alerts of a desk that receives several streams (``desk_streams.py``), per stream.

An alert is an event that fired and is no translation of an earlier one, also if another one absorbed it
later. It belongs to the stream and the story (``cluster``), or is about the known event, of at least 60 % of
its first 16 items.

* **found**: known events with an alert between 00:00 UTC of their date and 24 h after they are due;
  **delay**: minutes from *due* to that alert, negative if before;
* **extra**: alerts beyond the first about one known event in that time; **absorbed**: alerts that became part
  of another one; **impure**: a quarter of the first items each is of two stories;
* **place** of the event on the front page 30 minutes after it is due, and its severity there;
* **stories** of 20 or more items, if rows have a ``cluster``: found ones; purity, the share of items that
  have the story of their event; completeness, the share of the items of found stories in their events;
* **marks**: what readers said of alerts; a mark belongs to the alerts that hold its article;
* **developments**, apart from alerts, and **other** ones a day: at no later peak that is a new fact. A later
  peak of a known event is **met** by a development of an event about it, from 4 h before to 1 h after it; a
  new fact also by an alert. "9 of 12 new fact, 1 of 14 same": met ones by their marks.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aggregator.events.detection.model import BurstRule
from aggregator.events.event import Event, title_of
from aggregator.events.selection import Severity, severity, sort_events
from aggregator.time_units import DAY_MS, HOUR_MS, MINUTE_MS
from aggregator_archive.replay import changed_events, parse_time_ms, rfc3339
from aggregator_lab.evaluation.desk_streams import Row, Stream, mix
from aggregator_lab.evaluation.event_metrics import KnownEvent
from aggregator_lab.evaluation.events import JUDGED_ITEMS, MIN_MATCHING_SHARE

ORDER_AFTER_MS = 30 * MINUTE_MS
STORY_ITEMS = 20
IMPURE_SHARE = 0.25
Marks = dict[tuple[str, str], str]  # by file and article id
PEAK_BEFORE_MS, PEAK_AFTER_MS = 4 * HOUR_MS, HOUR_MS
NEW_FACT = "new fact"
_Order = tuple[tuple[str, Severity], ...]  # open events of the front page, the first one first


@dataclass(frozen=True, slots=True)
class Alert:
    """Last version of an event, rows of its items; numbers of its stream and known events; "": no story."""

    event: Event
    rows: tuple[Row, ...]
    stream: int
    known: tuple[int, ...]
    story: str
    is_impure: bool
    mark: str


@dataclass(frozen=True, slots=True)
class Peak:
    """A later peak of a known event (``name``), at a time in its own stream, and what a reader said of it."""

    file: str
    name: str
    at_ms: int
    mark: str


@dataclass(frozen=True, slots=True)
class Desk:
    """Alerts in order of detection; events that are due, and the front page 30 minutes after each."""

    streams: Sequence[Stream]
    known: Sequence[KnownEvent]
    alerts: Sequence[Alert]
    orders: Sequence[_Order]
    peaks: Sequence[Peak] = ()

    def as_json(self) -> dict[str, Any]:
        """All measures."""
        return {
            "streams": [self._stream_json(n) for n in range(len(self.streams))],
            "known": [self._known_json(n) for n in range(len(self.known))],
        }

    def _known_json(self, number: int) -> dict[str, Any]:
        known = self.known[number]
        due_ms = known.t16_ms or known.day_ms
        about = [
            a.event
            for a in self.alerts
            if number in a.known and known.day_ms <= a.event.detected_at_ms <= due_ms + DAY_MS
        ]
        ids = {event.id for event in about}
        places = [(n, word) for n, (id_, word) in enumerate(self.orders[number], 1) if id_ in ids]
        place, word = places[0] if places else (None, None)
        return {
            "name": known.name,
            "file": known.window_file,
            "delay_min": round((about[0].detected_at_ms - due_ms) / MINUTE_MS, 1) if about else None,
            "alerts": len(about),
            "place": place,
            "open": len(self.orders[number]),
            "severity": word,
        }

    def _stream_json(self, number: int) -> dict[str, Any]:
        stream, alerts = self.streams[number], [a for a in self.alerts if a.stream == number]
        known = [self._known_json(n) for n, k in enumerate(self.known) if k.window_file == stream.name]
        langs = Counter(row["analyzed"][0] for row in stream.rows)
        delays = [k["delay_min"] for k in known if k["alerts"]]
        days = (stream.times_ms[-1] - stream.times_ms[0]) / DAY_MS if stream.rows else 0.0
        return (
            {
                "file": stream.name,
                "lang": max(langs, key=langs.__getitem__, default=""),
                "items": len(stream.rows),
                "days": round(days, 2),
                "alerts": len(alerts),
                "alerts_a_day": round(len(alerts) / (days or 1.0), 3),
                "known": len(known),
                "found": len(delays),
                "median_delay_min": statistics.median(delays) if delays else None,
                "extra": sum(max(0, k["alerts"] - 1) for k in known),
                "absorbed": sum(a.event.merged_into is not None for a in alerts),
                "impure": sum(a.is_impure for a in alerts),
                "first_or_second": sum(k["place"] in (1, 2) for k in known),
                "marks": dict(Counter(a.mark for a in alerts if a.mark).most_common()),
            }
            | _story_json(stream, alerts)
            | self._developments_json(stream, alerts, days or 1.0)
        )

    def _developments_json(self, stream: Stream, alerts: Sequence[Alert], days: float) -> dict[str, Any]:
        events = [a for a in alerts if a.event.merged_into is None]
        times = [(at_ms, a.known) for a in events for at_ms, _ in a.event.developments]
        fired = [(a.event.detected_at_ms, a.known) for a in alerts]
        met, others = Counter[str](), dict.fromkeys(range(len(times)))
        peaks = [peak for peak in self.peaks if peak.file == stream.name]
        for peak in peaks:
            known = {n for n, k in enumerate(self.known) if (k.window_file, k.name) == (peak.file, peak.name)}
            at_ms = peak.at_ms + stream.shift_ms
            found = [
                n
                for n, (ms, about) in enumerate(times + fired * (peak.mark == NEW_FACT))
                if at_ms - PEAK_BEFORE_MS <= ms <= at_ms + PEAK_AFTER_MS and known.intersection(about)
            ]
            met[peak.mark] += bool(found)
            for number in found if peak.mark == NEW_FACT else ():
                others.pop(number, None)
        totals = Counter(peak.mark for peak in peaks)
        return {
            "developments": len(times),
            "other_a_day": round(len(others) / days, 3),
            "peaks_met": ", ".join(
                f"{met[mark]} of {count} {mark}" for mark, count in sorted(totals.items())
            ),
        }

    def alert_json(self, alert: Alert) -> dict[str, Any]:
        """An alert to be judged by hand; ``at``: time in its own stream. Holds headlines of others."""
        event, stream = alert.event, self.streams[alert.stream]
        by_source = {row.get("source"): row["title"] for row in reversed(alert.rows[:JUDGED_ITEMS])}
        return {
            "file": stream.name,
            "id": alert.rows[0]["id"].partition(":")[2],
            "at": rfc3339(event.detected_at_ms - stream.shift_ms),
            "mixed_at": rfc3339(event.detected_at_ms),
            "title": title_of(event),
            **{name: getattr(event, name) for name in ("size", "expected", "languages", "merged_into")},
            "sources": len(event.sources),
            "headlines": list(reversed(by_source.values()))[:3],
            "known": [self.known[n].name for n in alert.known],
            "story": alert.story,
            "mark": alert.mark,
            "developments": [
                (rfc3339(at_ms - stream.shift_ms), *terms) for at_ms, terms in event.developments
            ],
        }


def run(
    streams: Sequence[Stream],
    rule: BurstRule,
    known: Sequence[KnownEvent] = (),
    marks: Marks | None = None,
    peaks: Sequence[Peak] = (),
) -> Desk:
    """Replay the mix of ``streams``. Known events of other files, or not due in the mix, are left out."""
    shifted = [
        replace(k, day_ms=k.day_ms + stream.shift_ms, t16_ms=k.t16_ms + stream.shift_ms)
        for stream in streams
        for k in known
        if k.window_file == stream.name
        and k.t16_ms
        and stream.times_ms
        and stream.times_ms[0] <= k.t16_ms + stream.shift_ms <= stream.times_ms[-1]
    ]
    rows: dict[str, Row] = {}
    states: dict[str, Event] = {}
    orders: dict[int, _Order] = {}
    waiting = sorted(((k.t16_ms or 0) + ORDER_AFTER_MS, n) for n, k in enumerate(shifted))[::-1]

    def observed() -> Iterator[Row]:
        for row in mix(streams):
            while waiting and waiting[-1][0] <= (parse_time_ms(row["published_at"]) or 0):
                at_ms, number = waiting.pop()
                orders[number] = _front_page(states.values(), at_ms)
            rows[row["id"]] = row
            yield row

    for event, _ in changed_events(observed(), rule, lambda row: row["analyzed"]):
        states[event.id] = event
    orders |= {number: _front_page(states.values(), at_ms) for at_ms, number in waiting}
    fired = sorted(states.values(), key=lambda event: (event.detected_at_ms, event.id))
    alerts = [
        _alert(event, [rows[id_] for id_ in event.items], streams, shifted, marks or {})
        for event in fired
        if event.items and event.translation_of is None
    ]
    return Desk(streams, shifted, alerts, [orders[n] for n in range(len(shifted))], peaks)


def _front_page(events: Iterable[Event], now_ms: int) -> _Order:
    shown = [event for event in events if event.status != "closed" and event.translation_of is None]
    return tuple((event.id, severity(event, now_ms)) for event in sort_events(shown, "surprise", now_ms))


def _alert(
    event: Event, rows: Sequence[Row], streams: Sequence[Stream], known: Sequence[KnownEvent], marks: Marks
) -> Alert:
    first = [(streams[int(row["id"].partition(":")[0])].name, row) for row in rows[:JUDGED_ITEMS]]
    needed = MIN_MATCHING_SHARE * len(first)
    files = Counter(file for file, _ in first)
    stories = Counter(str(row["cluster"]) for _, row in first if row.get("cluster"))
    story, items = stories.most_common(1)[0] if stories else ("", 0)
    names = [stream.name for stream in streams]
    keys = [(names[int(number)], id_) for number, _, id_ in (row["id"].partition(":") for row in rows)]
    return Alert(
        event,
        tuple(rows),
        stream=names.index(files.most_common(1)[0][0]),
        known=tuple(
            number
            for number, k in enumerate(known)
            if sum(file == k.window_file and k.is_about(row["title"]) for file, row in first) >= needed
        ),
        story=story if items >= needed else "",
        is_impure=sum(count >= IMPURE_SHARE * len(first) for count in stories.values()) > 1,
        mark=next((marks[key] for key in keys if key in marks), ""),
    )


def _story_json(stream: Stream, alerts: Sequence[Alert]) -> dict[str, Any]:
    sizes = Counter(str(row["cluster"]) for row in stream.rows if row.get("cluster"))
    large = {story for story, items in sizes.items() if items >= STORY_ITEMS}
    if not large:
        return {}
    right: Counter[str] = Counter()
    listed, events = 0, [alert for alert in alerts if alert.event.merged_into is None]
    for alert in events:
        counts = Counter(str(row["cluster"]) for row in alert.rows if row.get("cluster"))
        story, count = counts.most_common(1)[0]
        right[story] += count
        listed += counts.total()
    found = large & right.keys()
    return {
        "stories": len(large),
        "stories_found": len(found),
        "purity": round(right.total() / max(1, listed), 4),
        "completeness": round(sum(right[s] for s in found) / max(1, sum(sizes[s] for s in found)), 4),
        "extra_events": len(events) - len(right),
        "alerts_per_story": round(len(alerts) / max(1, len(right)), 3),
    }
