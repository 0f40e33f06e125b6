"""Plots of evaluations as image files: threshold curves of scores.

matplotlib is not a dependency of the package; the dependency group ``test`` installs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aggregator.errors import InvalidInput
from aggregator_archive.optional_imports import import_optional
from aggregator_lab.evaluation.calibration import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MATPLOTLIB = ("matplotlib.figure", "matplotlib", "--plot")  # arguments of import_optional
RESOLUTION_DPI = 110
GREEN, ORANGE, BLUE = "#1a7f37", "#c2410c", "#7a8ba8"


def check_plot(path: str | Path) -> None:
    """Raise InvalidInput for a file name of another format, ConfigurationError without matplotlib."""
    if Path(path).suffix not in (".png", ".svg"):
        raise InvalidInput(f"--plot {path}: the name must end in .png or .svg.")
    import_optional(*MATPLOTLIB)


def draw_curves(curves: Sequence[Curve], path: str | Path) -> None:
    """Draw one panel per score into ``path``, a .png or .svg file; raises as ``check_plot``."""
    check_plot(path)
    width_inches = 4.6 * len(curves)
    figure = import_optional(*MATPLOTLIB).Figure(figsize=(width_inches, 3.4), layout="constrained")
    for position, curve in enumerate(curves, 1):
        _draw_curve(figure.add_subplot(1, len(curves), position), curve)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=RESOLUTION_DPI)


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
