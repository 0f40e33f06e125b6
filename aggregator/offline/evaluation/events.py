"""How many known events does the detector find in a real wire, how soon, and at what price in false alarms?

For every window of ``events_dev.json`` the stream is replayed. With ``date`` the day of the event and
``t16`` the time at which 16 titles that match its pattern lay within 4 hours:

* **detected**: an alert between 00:00 UTC of ``date`` and 24 h after ``t16``, at least 60 % of whose first
  16 items match; windows without a ``t16`` are not asked;
* **delay**: minutes from ``t16`` to that alert (negative: before);
* **alerts a day**: alerts from 24 h before ``date`` to the window's end, over that time (earlier: history);
* **routine**: alerts 8 of whose first 16 titles are routine announcements (``ROUTINE``: what editors of
  a wire never want to be woken for; it judges here and stands nowhere in the detector).

``event_figures.py`` makes the figures of what is found here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

from aggregator.errors import InvalidInput
from aggregator.events.detection import BurstRule, Event
from aggregator.offline.evaluation.event_metrics import Alert, EventReport, KnownEvent, WindowResult
from aggregator.offline.jsonl import read_rows as read_rows
from aggregator.offline.replay import changed_events, parse_time_ms
from aggregator.time_units import DAY_MS

JUDGED_ITEMS = 16
MIN_MATCHING_SHARE = 0.6
ROUTINE_PATTERN = re.compile(
    r"net asset value|FRN variable|dividend|conference call|form 8|holding\(s\)|own shares"
    r"|to (report|release|announce|host)|earnings",
    re.IGNORECASE,
)


def read_known_events(path: Path) -> list[KnownEvent]:
    """The labelled events of an ``events_dev.json``. Raises BadInput when it is not one."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
    try:
        listed = json.loads(text)
        return [_parse_known_event(entry) for entry in listed]
    except (ValueError, KeyError, TypeError, re.error) as error:
        raise InvalidInput(f"{path}: not a list of known events ({type(error).__name__}: {error}).") from None


def evaluate(
    windows: Path, events: Path, rule: BurstRule, *, label: str = "", executor: Executor | None = None
) -> EventReport:
    """Replay every window file (in directory ``windows``) that ``events`` names under ``rule``.

    ``executor`` (processes) runs windows side by side; the figures do not depend on it.
    """
    known = read_known_events(events)
    missing = [k.window_file for k in known if not (windows / k.window_file).is_file()]
    if missing:
        raise InvalidInput(f"{windows} lacks {', '.join(missing)}, which {events} names.")
    run = partial(evaluate_window, windows, rule)
    results = executor.map(run, known) if executor else map(run, known)
    return EventReport(label or rule.mode, tuple(results))


def evaluate_window(windows: Path, rule: BurstRule, known_event: KnownEvent) -> WindowResult:
    """Replay one window and judge its alerts."""
    rows = list(read_rows([str(windows / known_event.window_file)]))
    return judge_window(rows, (event for event, _ in changed_events(rows, rule)), known_event)


def judge_window(
    rows: Sequence[dict[str, Any]], events: Iterable[Event], known_event: KnownEvent
) -> WindowResult:
    """Compare events (later states of one id replace earlier ones) with what is known."""
    titles = {row["id"]: row["title"] for row in rows}
    since_ms = known_event.day_ms - DAY_MS
    end_ms = max((parse_time_ms(row.get("published_at")) or 0 for row in rows), default=since_ms)
    # An alert is judged by what an editor saw first: the items in order of joining do not change.
    last = {event.id: event for event in events}
    alerts = tuple(
        _build_alert(event, titles, known_event)
        for event in sorted(last.values(), key=lambda e: (e.detected_at_ms, e.id))
        if event.detected_at_ms >= since_ms
    )
    times = ((parse_time_ms(row.get("published_at")), row["title"]) for row in rows)
    matching = tuple(ms for ms, title in times if ms and ms >= since_ms and known_event.pattern.search(title))
    return WindowResult(
        known_event, alerts, (end_ms - since_ms) / DAY_MS, _find_hit(alerts, known_event), matching
    )


def _parse_known_event(entry: dict[str, Any]) -> KnownEvent:
    day_ms = parse_time_ms(entry["date"])
    if day_ms is None:
        raise ValueError(f"no date: {entry['date']!r}")
    first_ms, t16_ms = parse_time_ms(entry.get("first")), parse_time_ms(entry["t16"])
    # The day itself is missing at the source when not one title of that day matches.
    late = first_ms is not None and first_ms >= day_ms + DAY_MS
    pattern = re.compile(entry["regex"], re.IGNORECASE)
    return KnownEvent(
        entry["name"], day_ms, pattern, entry["window_file"], t16_ms, late, int(entry.get("matches", 0))
    )


def _build_alert(event: Event, titles: dict[str, str], known_event: KnownEvent) -> Alert:
    first = [titles.get(id_, "") for id_ in event.items[:JUDGED_ITEMS]]
    return Alert(
        detected_at_ms=event.detected_at_ms,
        title=event.title,
        size=event.size,
        peak=event.peak,
        expected=event.expected,
        terms=event.terms,
        timeline=event.timeline,
        matching_share=sum(bool(known_event.pattern.search(t)) for t in first) / JUDGED_ITEMS,
        routine_titles=sum(bool(ROUTINE_PATTERN.search(t)) for t in first),
    )


def _find_hit(alerts: Sequence[Alert], known_event: KnownEvent) -> Alert | None:
    if known_event.t16_ms is None:
        return None
    until_ms = known_event.t16_ms + DAY_MS
    return next(
        (
            a
            for a in alerts
            if known_event.day_ms <= a.detected_at_ms <= until_ms and a.matching_share >= MIN_MATCHING_SHARE
        ),
        None,
    )
