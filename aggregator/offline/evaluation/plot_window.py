"""One picture per window: matching headlines over time, when 16 of them lay within 4 hours, and the alerts.

matplotlib is no dependency of the package; it comes with the ``test`` group.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from aggregator.errors import InvalidInput
from aggregator.offline.evaluation.event_metrics import EventReport, WindowResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BIN_MS = 600_000
BIN_DAYS = BIN_MS / 86_400_000


def draw_windows(report: EventReport, directory: Path) -> list[Path]:
    """Write ``<event>-<rule>.png`` for every window of the report; returns the files.

    Raises BadInput when matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InvalidInput(
            "--plot needs matplotlib, which is not installed; the test group has it."
        ) from None
    directory.mkdir(parents=True, exist_ok=True)
    files = []
    for window in report.windows:
        figure = Figure(figsize=(10, 3.2), layout="constrained")
        _draw_window(figure.add_subplot(), window, report.label)
        name = re.sub(r"[^a-z0-9]+", "-", f"{window.known_event.name} {report.label}".lower()).strip("-")
        files.append(directory / f"{name}.png")
        figure.savefig(files[-1], dpi=110)
    return files


def _draw_window(axes: Axes, window: WindowResult, label: str) -> None:
    counts = Counter(at_ms // BIN_MS for at_ms in window.matching_times_ms)
    axes.bar(
        [_utc_datetime(slot * BIN_MS) for slot in counts],  # type: ignore[arg-type]
        list(counts.values()),
        width=BIN_DAYS,
        align="edge",
        color="#7a8ba8",
        label="matching titles in 10 minutes",
    )
    if window.known_event.t16_ms is not None:
        axes.axvline(_utc_datetime(window.known_event.t16_ms), color="black", linestyle=":", label="t16")  # type: ignore[arg-type]
    for alert in window.alerts:
        hit, routine = alert is window.hit, alert.is_routine
        colour = "#1a7f37" if hit else "#c2410c" if routine else "#a3a3a3"
        kind = "alert on this event" if hit else "alert on a routine" if routine else "other alert"
        axes.axvline(_utc_datetime(alert.detected_at_ms), color=colour, label=kind)  # type: ignore[arg-type]
    axes.set_title(f"{window.known_event.name}, {label}", loc="left")
    axes.set_xlabel("UTC")
    named = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    axes.legend(named.values(), named.keys(), fontsize="small", loc="upper left")


def _utc_datetime(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
