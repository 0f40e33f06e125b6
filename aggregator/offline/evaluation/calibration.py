"""Which thresholds should a site set, going by its own labels? Precision and recall against each of our scores.

Two kinds of labels, one kind of curve:

* labelled articles, one after another in a seeded order: an article is called a copy when its *nearest* earlier
  article is near enough, rightly if that has the same label; wanted are those whose label came before
  (the online protocol of ``near_duplicates``, with one score alone deciding);
* judged pairs: a pair is called alike when its score is high enough.

Scores: **distance** in bits (lower is nearer), **overlap** (containment) and **similarity** (cosine of the stored
terms). Advice names, per score, the threshold of the highest F1 and the laxest one that keeps a wanted precision.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregator.analysis.shingles import estimate_overlaps
from aggregator.dedup.similarity import cosine_to
from aggregator.domain import Analysis
from aggregator.errors import InvalidInput
from aggregator.offline.evaluation.metrics import precision_recall_f1

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TARGET_PRECISION = 0.99
MAX_ARTICLES = 3000  # every one is compared with all before it
SHARE_THRESHOLDS = tuple(step / 20 for step in range(1, 20))
DISTANCE_THRESHOLDS_BITS = tuple(float(bits) for bits in range(33))
# Which setting a score's threshold goes into.
SETTING_OF_SCORE = {
    "distance": "duplicate_bits",
    "overlap": "min_containment",
    "similarity": "related_min_cosine",
}


@dataclass(frozen=True, slots=True)
class Point:
    """What calling everything from ``threshold`` on (distance: up to it) a copy would mean; each 0..1."""

    threshold: float
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class Curve:
    """One score over its thresholds."""

    score: str
    points: tuple[Point, ...]

    @property
    def best_f1_point(self) -> Point:
        """Of the highest F1, the first."""
        return max(self.points, key=lambda point: point.f1)

    def high_precision_point(self, target_precision: float = TARGET_PRECISION) -> Point | None:
        """The one of the highest recall that has the wanted precision; None when none finds anything so."""
        sure = [point for point in self.points if point.precision >= target_precision and point.recall > 0]
        return max(sure, key=lambda point: point.recall, default=None)


def build_curve(score: str, scored: Iterable[tuple[float, bool]], relevant_count: int) -> Curve:
    """From (score, rightly so) of everything that could be called; ``wanted`` should be."""
    pairs = list(scored)
    values = np.array([value for value, _ in pairs], float)
    right = np.array([so for _, so in pairs], bool)
    points = []
    for threshold in DISTANCE_THRESHOLDS_BITS if score == "distance" else SHARE_THRESHOLDS:
        called = values <= threshold if score == "distance" else values >= threshold
        points.append(
            Point(
                threshold,
                *precision_recall_f1(int((called & right).sum()), int(called.sum()), relevant_count),
            )
        )
    return Curve(score, tuple(points))


def duplicate_curves(analyses: Sequence[Analysis], labels: Sequence[str], seed: int = 0) -> list[Curve]:
    """Curves of labelled articles in one random order. Raises BadInput above ``MAX_ARTICLES``."""
    if len(analyses) > MAX_ARTICLES:
        raise InvalidInput(f"Curves compare all pairs: give at most {MAX_ARTICLES} labelled articles.")
    order = list(range(len(analyses)))
    random.Random(seed).shuffle(order)
    found: dict[str, list[tuple[float, bool]]] = {"distance": [], "overlap": []}
    wanted = 0
    for at in range(1, len(order)):
        own, before = order[at], order[:at]
        wanted += labels[own] in {labels[other] for other in before}
        for score, values in _scores_against(analyses[own], [analyses[other] for other in before]).items():
            nearest = int(np.argmin(values) if score == "distance" else np.argmax(values))
            found[score].append((float(values[nearest]), labels[before[nearest]] == labels[own]))
    return [build_curve(score, scored, wanted) for score, scored in found.items()]


def event_curves(analyses: Sequence[Analysis], labels: Sequence[str]) -> list[Curve]:
    """Curves of all pairs of labelled articles: are they about the same event? Raises BadInput as above."""
    if len(analyses) > MAX_ARTICLES:
        raise InvalidInput(f"Curves compare all pairs: give at most {MAX_ARTICLES} labelled articles.")
    found: dict[str, list[tuple[float, bool]]] = {"distance": [], "overlap": [], "similarity": []}
    for at, own in enumerate(analyses):
        same = [label == labels[at] for label in labels[:at]]
        scores = _scores_against(own, analyses[:at])
        similar_to = cosine_to(own.terms)
        scores["similarity"] = np.array([similar_to(other.terms) for other in analyses[:at]])
        for score, values in scores.items():
            found[score] += zip(values.tolist(), same, strict=True)
    return [build_curve(score, scored, sum(so for _, so in scored)) for score, scored in found.items()]


def threshold_advice(curves: Sequence[Curve]) -> str:
    """What to set, in one line per score."""
    return "\n".join(_curve_advice(one) for one in curves)


def as_json(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    """Every point, and what is advised."""
    shown = []
    for one in curves:
        precise = one.high_precision_point()
        shown.append({
            "score": one.score, "setting": SETTING_OF_SCORE[one.score],
            "best_f1_at": one.best_f1_point.threshold, "precise_at": precise.threshold if precise else None,
            "points": [{k: round(v, 4) for k, v in asdict(point).items()} for point in one.points],
        })  # fmt: skip
    return shown


def draw_curves(curves: Sequence[Curve], path: Path) -> None:
    """One panel per score, into a PNG or SVG by the name of ``path``. Raises BadInput without matplotlib."""
    if path.suffix not in (".png", ".svg"):
        raise InvalidInput(f"--plot {path}: the name must end in .png or .svg.")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InvalidInput(
            "--plot needs matplotlib, which is not installed; the test group has it."
        ) from None
    figure = Figure(figsize=(4.6 * len(curves), 3.4), layout="constrained")
    for at, one in enumerate(curves, 1):
        _draw_panel(figure.add_subplot(1, len(curves), at), one)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _scores_against(analysis: Analysis, others: Sequence[Analysis]) -> dict[str, np.ndarray[Any, Any]]:
    fingerprints = np.array([other.fingerprint for other in others], np.uint64)
    distances = np.bitwise_count(fingerprints ^ np.uint64(analysis.fingerprint)).astype(float)
    foreign = np.array([other.space != analysis.space for other in others], bool)
    distances[foreign] = 65.0  # bits of different spaces say nothing of one another
    overlaps = np.array(
        [one.containment for one in estimate_overlaps(analysis.sketch, [o.sketch for o in others])]
    )
    return {"distance": distances, "overlap": overlaps}


def _curve_advice(score_curve: Curve) -> str:
    best, precise = score_curve.best_f1_point, score_curve.high_precision_point()
    sign, setting = (
        ("<=", SETTING_OF_SCORE[score_curve.score])
        if score_curve.score == "distance"
        else (">=", SETTING_OF_SCORE[score_curve.score])
    )
    said = (
        f"{score_curve.score:10} alone: best F1 {best.f1:.3f} at {sign} {best.threshold:g} "
        f"(P {best.precision:.3f}, R {best.recall:.3f}; {setting})"
    )
    if precise is None:
        return f"{said}; no threshold has P {TARGET_PRECISION:g}"
    return f"{said}; P {precise.precision:.3f} with R {precise.recall:.3f} at {sign} {precise.threshold:g}"


def _draw_panel(axes: Axes, score_curve: Curve) -> None:
    thresholds = [point.threshold for point in score_curve.points]
    axes.plot(
        thresholds, [point.precision for point in score_curve.points], label="precision", color="#1a7f37"
    )
    axes.plot(thresholds, [point.recall for point in score_curve.points], label="recall", color="#c2410c")
    axes.plot(
        thresholds, [point.f1 for point in score_curve.points], label="F1", color="#7a8ba8", linestyle=":"
    )
    axes.axvline(score_curve.best_f1_point.threshold, color="black", linewidth=0.8, linestyle="--")
    axes.set_ylim(0, 1.02)
    axes.set_xlabel(
        "distance, at most (bits)" if score_curve.score == "distance" else f"{score_curve.score}, at least"
    )
    axes.legend(fontsize="small", loc="lower left" if score_curve.score == "distance" else "best")
