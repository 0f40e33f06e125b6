"""Measures of replayed windows with known events, defined in ``events.py``, and their table."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aggregator.time_units import MINUTE_MS
from aggregator_archive.replay import rfc3339

MIN_ROUTINE_TITLES = 8


@dataclass(frozen=True, slots=True)
class KnownEvent:
    """One labeled event.

    day_ms           00:00 UTC of the day of the event
    pattern          matches the titles about it
    t16_ms           time at which 16 matching titles were within 4 hours; None: never
    t16_is_late      the source lacks the day of the event, so ``t16_ms`` is too late to measure a delay
    """

    name: str
    day_ms: int
    pattern: re.Pattern[str]
    window_file: str
    t16_ms: int | None
    t16_is_late: bool = False

    def is_about(self, title: str) -> bool:
        """Whether a headline matches."""
        return self.pattern.search(title) is not None


@dataclass(frozen=True, slots=True)
class Alert:
    """One event that the detector reported in the judged part of a window.

    matching_share  share of its first 16 titles that match the known event
    routine_titles  number of routine announcements among its first 16 titles
    """

    detected_at_ms: int
    title: str
    size: int
    peak: int
    expected: float
    terms: tuple[str, ...]
    matching_share: float
    routine_titles: int

    @property
    def is_routine(self) -> bool:
        """Whether at least ``MIN_ROUTINE_TITLES`` of its first 16 titles are routine announcements."""
        return self.routine_titles >= MIN_ROUTINE_TITLES


@dataclass(frozen=True, slots=True)
class WindowResult:
    """Alerts of one window.

    alerts             of the judged part, which has ``judged_days`` days
    hit                the alert that detected the known event
    """

    known_event: KnownEvent
    alerts: tuple[Alert, ...]
    judged_days: float
    hit: Alert | None

    @property
    def delay_min(self) -> float | None:
        """Minutes from ``t16`` to the hit, negative if before; None without a hit or without a ``t16``."""
        if self.hit is None or self.known_event.t16_ms is None:
            return None
        return (self.hit.detected_at_ms - self.known_event.t16_ms) / MINUTE_MS


@dataclass(frozen=True, slots=True)
class EventReport:
    """All windows under one rule."""

    label: str
    windows: tuple[WindowResult, ...]

    @property
    def windows_with_t16(self) -> int:
        """Number of windows with a ``t16``."""
        return sum(w.known_event.t16_ms is not None for w in self.windows)

    @property
    def detected(self) -> int:
        """Number of windows with a hit."""
        return sum(w.hit is not None for w in self.windows)

    @property
    def median_delay_min(self) -> float | None:
        """Median delay over the hits, except where ``t16`` is late."""
        delays = [
            w.delay_min for w in self.windows if w.delay_min is not None and not w.known_event.t16_is_late
        ]
        return statistics.median(delays) if delays else None

    @property
    def alert_count(self) -> int:
        """Number of alerts in the judged parts of all windows."""
        return sum(len(w.alerts) for w in self.windows)

    @property
    def alerts_per_day(self) -> float:
        """Alerts per day of the judged parts."""
        return self.alert_count / (sum(w.judged_days for w in self.windows) or 1.0)

    @property
    def routine_alerts(self) -> int:
        """Number of routine alerts."""
        return sum(a.is_routine for w in self.windows for a in w.alerts)

    @property
    def jackknife(self) -> list[EventReport]:
        """One report per window, without that window: shows measures that depend on a single window."""
        return [
            EventReport(self.label, tuple(w for w in self.windows if w is not out)) for out in self.windows
        ]

    def as_json(self) -> dict[str, Any]:
        """The measures, and every alert of every window."""
        return {
            "rule": self.label,
            "asked": self.windows_with_t16,
            "detected": self.detected,
            "median_delay_min": self.median_delay_min,
            "alerts": self.alert_count,
            "alerts_a_day": round(self.alerts_per_day, 3),
            "routine_alerts": self.routine_alerts,
            "windows": [_window_json(w) for w in self.windows],
        }


def format_table(reports: Sequence[EventReport]) -> str:
    """Table for a terminal: measures per rule, ranges without one window, and each window."""
    lines = [f"{'rule':<14}{'detected':>10}{'median delay':>14}{'alerts a day':>14}{'routine':>10}"]
    lines += [_report_line(report) for report in reports]
    lines += [
        "",
        f"{'without any one window':<26}{'missed':>8}{'median delay':>14}{'alerts a day':>14}{'routine':>10}",
    ]
    lines += [_jackknife_line(report) for report in reports]
    lines += ["", f"{'window':<22}" + "".join(f"{report.label:>26}" for report in reports)]
    for results in zip(*(report.windows for report in reports), strict=True):
        name = results[0].known_event.name
        lines.append(f"{name:<22}" + "".join(f"{_window_cell(result):>26}" for result in results))
    return "\n".join(lines)


def _report_line(report: EventReport) -> str:
    detected = f"{report.detected} of {report.windows_with_t16}"
    delay = "-" if report.median_delay_min is None else f"{report.median_delay_min:.0f} min"
    routine = f"{report.routine_alerts / report.alert_count:.0%}" if report.alert_count else "-"
    return f"{report.label:<14}{detected:>10}{delay:>14}{report.alerts_per_day:>14.2f}{routine:>10}"


def _jackknife_line(report: EventReport) -> str:
    parts = report.jackknife
    delays = [p.median_delay_min for p in parts if p.median_delay_min is not None]
    delay = f"{min(delays):.0f}..{max(delays):.0f} min" if delays else "-"
    missed = sorted(p.windows_with_t16 - p.detected for p in parts)
    a_day = sorted(p.alerts_per_day for p in parts)
    routine = sorted(p.routine_alerts / p.alert_count for p in parts if p.alert_count) or [0.0]
    return (
        f"{report.label:<26}{f'{missed[0]}..{missed[-1]}':>8}{delay:>14}"
        f"{f'{a_day[0]:.2f}..{a_day[-1]:.2f}':>14}{f'{routine[0]:.0%}..{routine[-1]:.0%}':>10}"
    )


def _window_cell(window: WindowResult) -> str:
    if window.known_event.t16_ms is None:
        outcome = "not asked"
    else:
        outcome = "missed" if window.delay_min is None else f"{window.delay_min:+.0f} min"
    return f"{outcome}, {len(window.alerts)} alerts"


def _window_json(window: WindowResult) -> dict[str, Any]:
    return {
        "name": window.known_event.name,
        "t16": None if window.known_event.t16_ms is None else rfc3339(window.known_event.t16_ms),
        "detected": window.hit is not None,
        "delay_min": window.delay_min,
        "days": round(window.judged_days, 3),
        "alerts": [
            {
                "detected_at": rfc3339(a.detected_at_ms),
                **{name: getattr(a, name) for name in ("title", "size", "peak", "expected", "terms")},
                "matching": round(a.matching_share, 3),
                "routine": a.is_routine,
                "hit": a is window.hit,
            }
            for a in window.alerts
        ],
    }
