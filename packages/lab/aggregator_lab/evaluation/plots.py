"""Plots of evaluations as image files: threshold curves of scores, and windows with known events.

matplotlib is not a dependency of the package; the dependency group ``test`` installs it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from aggregator.errors import InvalidInput
from aggregator.time_units import DAY_MS, MINUTE_MS
from aggregator_lab.evaluation.calibration import Curve
from aggregator_lab.evaluation.event_metrics import EventReport, WindowResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BIN_MS = 10 * MINUTE_MS
RESOLUTION_DPI = 110
GREEN, ORANGE, BLUE, GRAY = "#1a7f37", "#c2410c", "#7a8ba8", "#a3a3a3"


def draw_curves(curves: Sequence[Curve], path: Path) -> None:
    """Draw one panel per score into ``path``, a .png or .svg file. Raises InvalidInput without matplotlib."""
    if path.suffix not in (".png", ".svg"):
        raise InvalidInput(f"--plot {path}: the name must end in .png or .svg.")
    figure = _new_figure(4.6 * len(curves), 3.4)
    for position, curve in enumerate(curves, 1):
        _draw_curve(figure.add_subplot(1, len(curves), position), curve)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=RESOLUTION_DPI)


def draw_windows(report: EventReport, directory: Path) -> list[Path]:
    """Write ``<event>-<rule>.png`` for every window of the report and return the files.

    Each shows the matching headlines over time, the time ``t16`` and the alerts. Raises InvalidInput without
    matplotlib.
    """
    directory.mkdir(parents=True, exist_ok=True)
    files = []
    for window in report.windows:
        figure = _new_figure(10, 3.2)
        _draw_window(figure.add_subplot(), window, report.label)
        name = re.sub(r"[^a-z0-9]+", "-", f"{window.known_event.name} {report.label}".lower()).strip("-")
        files.append(directory / f"{name}.png")
        figure.savefig(files[-1], dpi=RESOLUTION_DPI)
    return files


def _new_figure(width_inches: float, height_inches: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InvalidInput(
            "--plot needs matplotlib, which is not installed; run `pip install matplotlib`."
        ) from None
    return Figure(figsize=(width_inches, height_inches), layout="constrained")


def _draw_curve(axes: Axes, curve: Curve) -> None:
    thresholds = [point.threshold for point in curve.points]
    axes.plot(thresholds, [point.precision for point in curve.points], label="precision", color=GREEN)
    axes.plot(thresholds, [point.recall for point in curve.points], label="recall", color=ORANGE)
    axes.plot(thresholds, [point.f1 for point in curve.points], label="F1", color=BLUE, linestyle=":")
    axes.axvline(curve.best_f1_point.threshold, color="black", linewidth=0.8, linestyle="--")
    axes.set_ylim(0, 1.02)
    is_distance = curve.score == "distance"
    axes.set_xlabel("distance, at most (bits)" if is_distance else f"{curve.score}, at least")
    axes.legend(fontsize="small", loc="lower left" if is_distance else "best")


def _draw_window(axes: Axes, window: WindowResult, label: str) -> None:
    counts = Counter(at_ms // BIN_MS for at_ms in window.matching_times_ms)
    axes.bar(
        [_utc_datetime(bin_ * BIN_MS) for bin_ in counts],  # type: ignore[arg-type]  # stubs lack datetime
        list(counts.values()),
        width=BIN_MS / DAY_MS,
        align="edge",
        color=BLUE,
        label="matching titles in 10 minutes",
    )
    if window.known_event.t16_ms is not None:
        _draw_time(axes, window.known_event.t16_ms, "t16", color="black", linestyle=":")
    for alert in window.alerts:
        if alert is window.hit:
            _draw_time(axes, alert.detected_at_ms, "alert on this event", color=GREEN)
        elif alert.is_routine:
            _draw_time(axes, alert.detected_at_ms, "alert on a routine", color=ORANGE)
        else:
            _draw_time(axes, alert.detected_at_ms, "other alert", color=GRAY)
    axes.set_title(f"{window.known_event.name}, {label}", loc="left")
    axes.set_xlabel("UTC")
    handle_by_label = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    axes.legend(handle_by_label.values(), handle_by_label.keys(), fontsize="small", loc="upper left")


def _draw_time(axes: Axes, at_ms: int, label: str, *, color: str, linestyle: str = "-") -> None:
    at = _utc_datetime(at_ms)
    axes.axvline(at, color=color, linestyle=linestyle, label=label)  # type: ignore[arg-type]  # as above


def _utc_datetime(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
