"""How many known events does the detector find in a real wire, how soon, and at what price in false alarms?

For every window of ``events_dev.json`` the stream is replayed. With ``date`` the day of the event and
``t16`` the time at which 16 titles that match its pattern lay within 4 hours:

* **detected**: an alert between 00:00 UTC of ``date`` and 24 h after ``t16``, at least 60 % of whose first
  16 items match; windows without a ``t16`` are not asked;
* **delay**: minutes from ``t16`` to that alert (negative: before);
* **alerts a day**: alerts from 24 h before ``date`` to the window's end, over that time (earlier: history);
* **routine**: alerts 8 of whose first 16 titles are routine announcements (``ROUTINE``: what editors of
  a wire never want to be woken for; it judges here and stands nowhere in the detector).

Over 300 lines, so that the definitions and every figure made of them stand in one place.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from aggregator.bursts import BurstRule, Event
from aggregator.errors import BadInput
from aggregator.reading import rows as read_rows
from aggregator.replay import outcomes, rfc3339, when_ms

DAY_MS = 86_400_000
MINUTE_MS = 60_000
FIRST = 16
MATCHING = 0.6
ROUTINE_TITLES = 8
# What Hu & You (MECS 2017) call a big event in their experiment.
BIG = 30
ROUTINE = re.compile(
    r"net asset value|FRN variable|dividend|conference call|form 8|holding\(s\)|own shares"
    r"|to (report|release|announce|host)|earnings",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Known:
    """One labelled event."""

    name: str
    day_ms: int
    pattern: re.Pattern[str]
    file: str
    t16_ms: int | None
    t16_late: bool = False
    matches: int = 0


@dataclass(frozen=True, slots=True)
class Alert:
    """One event that fired in the judged part of a window. ``matching``, ``routine``: of the first 16 titles."""

    at_ms: int
    title: str
    size: int
    peak: int
    expected: float
    terms: tuple[str, ...]
    timeline: tuple[tuple[int, int], ...]
    matching: float
    routine: int

    @property
    def is_routine(self) -> bool:
        return self.routine >= ROUTINE_TITLES


@dataclass(frozen=True, slots=True)
class WindowResult:
    """What came of one window. ``days``: length of its judged part; ``matching_ms``: matching titles in it."""

    known: Known
    alerts: tuple[Alert, ...]
    days: float
    hit: Alert | None
    matching_ms: tuple[int, ...] = ()

    @property
    def delay_min(self) -> float | None:
        if self.hit is None or self.known.t16_ms is None:
            return None
        return (self.hit.at_ms - self.known.t16_ms) / MINUTE_MS


@dataclass(frozen=True, slots=True)
class Report:
    """All windows under one rule."""

    label: str
    windows: tuple[WindowResult, ...]

    @property
    def asked(self) -> int:
        return sum(w.known.t16_ms is not None for w in self.windows)

    @property
    def detected(self) -> int:
        return sum(w.hit is not None for w in self.windows)

    @property
    def median_delay_min(self) -> float | None:
        """Over the detected ones, those whose ``t16`` is known to be late left out."""
        delays = [w.delay_min for w in self.windows if w.delay_min is not None and not w.known.t16_late]
        return statistics.median(delays) if delays else None

    @property
    def alerts(self) -> int:
        return sum(len(w.alerts) for w in self.windows)

    @property
    def alerts_a_day(self) -> float:
        return self.alerts / (sum(w.days for w in self.windows) or 1.0)

    @property
    def routine(self) -> int:
        return sum(a.is_routine for w in self.windows for a in w.alerts)

    @property
    def jackknife(self) -> list[Report]:
        """The report without each of its windows in turn: figures that hang on one window show it."""
        return [Report(self.label, tuple(w for w in self.windows if w is not out)) for out in self.windows]

    @property
    def big(self) -> list[WindowResult]:
        """Known events with over ``BIG`` titles, whether or not 16 of them lie within 4 hours."""
        return [w for w in self.windows if w.known.matches > BIG]

    @property
    def big_detected(self) -> int:
        return sum(w.hit is not None for w in self.big)

    @property
    def big_alerts(self) -> int:
        """Alerts that grew to over ``BIG`` items."""
        return sum(a.size > BIG for w in self.windows for a in w.alerts)

    def as_json(self) -> dict[str, Any]:
        """The figures, and every alert of every window."""
        return {
            "rule": self.label,
            "asked": self.asked,
            "detected": self.detected,
            "median_delay_min": self.median_delay_min,
            "alerts": self.alerts,
            "alerts_a_day": round(self.alerts_a_day, 3),
            "routine_alerts": self.routine,
            "median_delay_min_without_one": [part.median_delay_min for part in self.jackknife],
            "big_events": len(self.big),
            "big_detected": self.big_detected,
            "big_alerts": self.big_alerts,
            "windows": [_window_json(w) for w in self.windows],
        }


def known_events(path: Path) -> list[Known]:
    """The labelled events of an ``events_dev.json``. Raises BadInput when it is not one."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.") from None
    try:
        listed = json.loads(text)
        return [_known(entry) for entry in listed]
    except (ValueError, KeyError, TypeError, re.error) as error:
        raise BadInput(f"{path}: not a list of known events ({type(error).__name__}: {error}).") from None


def evaluate(
    windows: Path, events: Path, rule: BurstRule, *, label: str = "", executor: Executor | None = None
) -> Report:
    """Replay every window file (in directory ``windows``) that ``events`` names under ``rule``.

    ``executor`` (processes) runs windows side by side; the figures do not depend on it.
    """
    known = known_events(events)
    missing = [k.file for k in known if not (windows / k.file).is_file()]
    if missing:
        raise BadInput(f"{windows} lacks {', '.join(missing)}, which {events} names.")
    run = partial(evaluate_window, windows, rule)
    results = executor.map(run, known) if executor else map(run, known)
    return Report(label or rule.mode, tuple(results))


def evaluate_window(windows: Path, rule: BurstRule, known: Known) -> WindowResult:
    """Replay one window and judge its alerts."""
    rows = list(read_rows([str(windows / known.file)]))
    return judge(rows, (event for event, _ in outcomes(rows, rule)), known)


def judge(rows: Sequence[dict[str, Any]], events: Iterable[Event], known: Known) -> WindowResult:
    """Compare events (later states of one id replace earlier ones) with what is known."""
    titles = {row["id"]: row["title"] for row in rows}
    since_ms = known.day_ms - DAY_MS
    end_ms = max((when_ms(row.get("published_at")) or 0 for row in rows), default=since_ms)
    # An alert is judged by what an editor saw first: the items in order of joining do not change.
    last = {event.id: event for event in events}
    alerts = tuple(
        _alert(event, titles, known)
        for event in sorted(last.values(), key=lambda e: (e.detected_at_ms, e.id))
        if event.detected_at_ms >= since_ms
    )
    times = ((when_ms(row.get("published_at")), row["title"]) for row in rows)
    matching = tuple(ms for ms, title in times if ms and ms >= since_ms and known.pattern.search(title))
    return WindowResult(known, alerts, (end_ms - since_ms) / DAY_MS, _hit(alerts, known), matching)


def table(reports: Sequence[Report]) -> str:
    """For people: one line per rule, then each window under each."""
    head = f"{'rule':<14}{'detected':>10}{'median delay':>14}{'alerts a day':>14}{'routine':>10}"
    lines = [head]
    for r in reports:
        delay = "-" if r.median_delay_min is None else f"{r.median_delay_min:.0f} min"
        share = f"{r.routine / r.alerts:.0%}" if r.alerts else "-"
        lines.append(
            f"{r.label:<14}{f'{r.detected} of {r.asked}':>10}{delay:>14}{r.alerts_a_day:>14.2f}{share:>10}"
        )
    lines += ["", f"{f'over {BIG} items (Hu & You)':<26}{'known':>8}{'detected':>10}{'of all alerts':>15}"]
    lines += [
        f"{r.label:<26}{len(r.big):>8}{r.big_detected:>10}{f'{r.big_alerts} of {r.alerts}':>15}"
        for r in reports
    ]
    lines += [
        "",
        f"{'without any one window':<26}{'missed':>8}{'median delay':>14}{'alerts a day':>14}{'routine':>10}",
    ]
    lines += [_jackknife_line(r) for r in reports]
    lines += ["", f"{'window':<22}" + "".join(f"{r.label:>26}" for r in reports)]
    for same in zip(*(r.windows for r in reports), strict=True):
        lines.append(f"{same[0].known.name:<22}" + "".join(f"{_cell(w):>26}" for w in same))
    return "\n".join(lines)


def _jackknife_line(report: Report) -> str:
    parts = report.jackknife
    delays = [p.median_delay_min for p in parts if p.median_delay_min is not None]
    delay = f"{min(delays):.0f}..{max(delays):.0f} min" if delays else "-"
    missed = sorted(p.asked - p.detected for p in parts)
    a_day = sorted(p.alerts_a_day for p in parts)
    routine = sorted(p.routine / p.alerts for p in parts if p.alerts) or [0.0]
    return (
        f"{report.label:<26}{f'{missed[0]}..{missed[-1]}':>8}{delay:>14}"
        f"{f'{a_day[0]:.2f}..{a_day[-1]:.2f}':>14}{f'{routine[0]:.0%}..{routine[-1]:.0%}':>10}"
    )


def _cell(window: WindowResult) -> str:
    if window.known.t16_ms is None:
        found = "not asked"
    else:
        found = "missed" if window.delay_min is None else f"{window.delay_min:+.0f} min"
    return f"{found}, {len(window.alerts)} alerts"


def _known(entry: dict[str, Any]) -> Known:
    day_ms = when_ms(entry["date"])
    if day_ms is None:
        raise ValueError(f"no date: {entry['date']!r}")
    first_ms, t16_ms = when_ms(entry.get("first")), when_ms(entry["t16"])
    # The day itself is missing at the source when not one title of that day matches.
    late = first_ms is not None and first_ms >= day_ms + DAY_MS
    pattern = re.compile(entry["regex"], re.IGNORECASE)
    return Known(
        entry["name"], day_ms, pattern, entry["window_file"], t16_ms, late, int(entry.get("matches", 0))
    )


def _alert(event: Event, titles: dict[str, str], known: Known) -> Alert:
    first = [titles.get(id_, "") for id_ in event.items[:FIRST]]
    return Alert(
        at_ms=event.detected_at_ms,
        title=event.title,
        size=event.size,
        peak=event.peak,
        expected=event.expected,
        terms=event.terms,
        timeline=event.timeline,
        matching=sum(bool(known.pattern.search(t)) for t in first) / FIRST,
        routine=sum(bool(ROUTINE.search(t)) for t in first),
    )


def _hit(alerts: Sequence[Alert], known: Known) -> Alert | None:
    if known.t16_ms is None:
        return None
    until_ms = known.t16_ms + DAY_MS
    return next((a for a in alerts if known.day_ms <= a.at_ms <= until_ms and a.matching >= MATCHING), None)


def _window_json(window: WindowResult) -> dict[str, Any]:
    return {
        "name": window.known.name,
        "t16": None if window.known.t16_ms is None else rfc3339(window.known.t16_ms),
        "detected": window.hit is not None,
        "delay_min": window.delay_min,
        "days": round(window.days, 3),
        "alerts": [
            {
                "detected_at": rfc3339(a.at_ms),
                "title": a.title,
                "size": a.size,
                "peak": a.peak,
                "expected": a.expected,
                "terms": list(a.terms),
                "timeline": [[rfc3339(at_ms), count] for at_ms, count in a.timeline],
                "matching": round(a.matching, 3),
                "routine": a.is_routine,
                "hit": a is window.hit,
            }
            for a in window.alerts
        ],
    }
