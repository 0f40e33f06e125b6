"""Known events in recorded headlines: how many the detector finds, how soon, and at which rate of alerts.

Every window of the given lists (``events_dev.json``) is replayed. With ``date`` the day of the event and
*due* the time at which 16 titles that match its pattern were within 4 hours (``t16``; where given ``t16d``,
which counts titles that repeat another one once, as the detector does):

* **detected**: an alert between 00:00 UTC of ``date`` and 24 h after *due*, at least 60 % of whose first
  16 items match; windows without a ``t16`` do not count;
* **delay**: minutes from *due* to that alert (negative: before);
* **alerts a day**: alerts from 24 h before ``date`` to the end of the window, per day; earlier is history;
* **routine**: alerts 8 of whose first 16 titles are routine announcements (``ROUTINE_PATTERN``), about which
  an editor never wants an alert. The pattern is used for judging only; the detector does not know it.

``event_metrics.py`` computes the measures.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

from aggregator.analysis.analyzer import Analyzer
from aggregator.errors import InvalidInput
from aggregator.events.detection.model import BurstRule
from aggregator.events.event import Event
from aggregator.time_units import DAY_MS
from aggregator_archive.replay import changed_events, parse_time_ms
from aggregator_archive.rows import read_rows
from aggregator_lab.evaluation import literal_rule
from aggregator_lab.evaluation.event_metrics import Alert, EventReport, KnownEvent, WindowResult
from aggregator_lab.evaluation.literal_rule import LiteralEvent, literal_events

JUDGED_ITEMS = 16
MIN_MATCHING_SHARE = 0.6
ROUTINE_PATTERN = re.compile(
    r"net asset value|FRN variable|dividend|conference call|form 8|holding\(s\)|own shares"
    r"|to (report|release|announce|host)|earnings",
    re.IGNORECASE,
)


def read_known_events(path: Path) -> list[KnownEvent]:
    """The labeled events of an ``events_dev.json``. Raises InvalidInput if the file has another format."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
    try:
        return [_parse_known_event(entry) for entry in json.loads(text)]
    except (ValueError, KeyError, TypeError, re.error) as error:
        raise InvalidInput(f"{path}: not a list of known events ({type(error).__name__}: {error}).") from None


def evaluate(
    windows: Path,
    lists: Sequence[Path],
    rule: BurstRule,
    *,
    label: str = "stories",
    executor: Executor | None = None,
    models_dir: str = "",
) -> EventReport:
    """Replay under ``rule`` every window file (in directory ``windows``) that the files ``lists`` name.

    ``executor`` (processes) replays windows in parallel; results do not depend on it. ``label``: "literal"
    for the rule of ``literal_rule.py``, with the models in ``models_dir``. Raises InvalidInput.
    """
    known_events = [known for path in lists for known in read_known_events(path)]
    missing = [k.window_file for k in known_events if not (windows / k.window_file).is_file()]
    if missing:
        raise InvalidInput(f"{windows} lacks {', '.join(missing)}, which {', '.join(map(str, lists))} name.")
    analyzer = literal_rule.load_analyzer(models_dir) if label == "literal" else None
    run = partial(evaluate_window, windows, rule, analyzer)
    results = executor.map(run, known_events) if executor else map(run, known_events)
    return EventReport(label, tuple(results))


def evaluate_window(
    windows: Path, rule: BurstRule, analyzer: Analyzer | None, known_event: KnownEvent
) -> WindowResult:
    """Replay one window under ``rule``, or the literal one with ``analyzer``, and judge its alerts."""
    rows = list(read_rows([str(windows / known_event.window_file)]))
    if analyzer is not None:
        return judge_window(rows, literal_events(rows, rule, analyzer), known_event)
    return judge_window(rows, (event for event, _ in changed_events(rows, rule)), known_event)


def judge_window(
    rows: Sequence[dict[str, Any]], events: Iterable[Event | LiteralEvent], known_event: KnownEvent
) -> WindowResult:
    """Judge the reported events; later states of an event replace earlier ones."""
    titles = {row["id"]: row["title"] for row in rows}
    since_ms = known_event.day_ms - DAY_MS
    end_ms = max((parse_time_ms(row.get("published_at")) or 0 for row in rows), default=since_ms)
    # The last state also has the items that an editor saw first: items are only appended.
    last_states = {event.id: event for event in events}
    alerts = tuple(
        _build_alert(event, titles, known_event)
        for event in sorted(last_states.values(), key=lambda e: (e.detected_at_ms, e.id))
        if event.detected_at_ms >= since_ms
    )
    return WindowResult(known_event, alerts, (end_ms - since_ms) / DAY_MS, _find_hit(alerts, known_event))


def _parse_known_event(entry: dict[str, Any]) -> KnownEvent:
    day_ms = parse_time_ms(entry["date"])
    if day_ms is None:
        raise ValueError(f"no date: {entry['date']!r}")
    due = entry.get("due") or entry.get("t16d") or entry["t16"]
    first_ms, t16_ms = parse_time_ms(entry.get("first")), parse_time_ms(due)
    # No title of the day itself matches: the source lacks that day.
    t16_is_late = first_ms is not None and first_ms >= day_ms + DAY_MS
    pattern = re.compile(entry["regex"], re.IGNORECASE)
    file = entry.get("window_file") or entry["file"]
    return KnownEvent(entry["name"], day_ms, pattern, file, t16_ms, t16_is_late)


def _build_alert(event: Event | LiteralEvent, titles: dict[str, str], known_event: KnownEvent) -> Alert:
    first_titles = [titles.get(id_, "") for id_ in event.items[:JUDGED_ITEMS]]
    return Alert(
        detected_at_ms=event.detected_at_ms,
        title=event.title,
        size=event.size,
        peak=event.peak,
        expected=event.expected,
        terms=event.terms,
        matching_share=sum(map(known_event.is_about, first_titles)) / max(1, len(first_titles)),
        routine_titles=sum(bool(ROUTINE_PATTERN.search(t)) for t in first_titles),
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
