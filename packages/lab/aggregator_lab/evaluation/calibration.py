"""Calibration: precision and recall of each score over its thresholds, on a site's own labels.

* labeled articles in a seeded order: an article is called a copy if its *nearest* earlier article is near
  enough, correctly if that has the same label (the online protocol, decided by one score);
* judged pairs: a pair is called alike if its score is high enough.

Scores: **distance** in bits and **overlap** (containment).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from aggregator.analysis.shingles import estimate_overlaps
from aggregator.analysis.simhash import FINGERPRINT_BITS
from aggregator.domain import Analysis
from aggregator.errors import InvalidInput
from aggregator_lab.evaluation.metrics import precision_recall_f1

TARGET_PRECISION = 0.99
MAX_ARTICLES = 3000  # every article is compared with all earlier ones
SHARE_THRESHOLDS = tuple(step / 20 for step in range(1, 20))
DISTANCE_THRESHOLDS_BITS = tuple(float(bits) for bits in range(33))
# Fingerprints of different spaces are not comparable: farther than any threshold.
INCOMPARABLE_DISTANCE_BITS = FINGERPRINT_BITS + 1.0
# Setting that holds the threshold of a score.
SETTING_OF_SCORE = {"distance": "duplicate_bits", "overlap": "min_containment"}
_NOT_THE_RULE = (
    "These are single scores, not the rule of the service: for it parts, quotations and templates are no "
    "duplicates at any overlap (docs/design/duplicate-rules.md), so its table may stay the same. "
    "To compare, run it again with --min-containment or --duplicate-bits; --errors lists the reasons."
)


@dataclass(frozen=True, slots=True)
class Point:
    """Measures, each 0..1, of calling everything from ``threshold`` on (distance: up to it) a copy."""

    threshold: float
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class Curve:
    """One score over its thresholds, ascending."""

    score: str
    points: tuple[Point, ...]

    @property
    def best_f1_point(self) -> Point:
        """The point with the highest F1; of several, the one with the lowest threshold."""
        return max(self.points, key=lambda point: point.f1)

    def high_precision_point(self, target_precision: float = TARGET_PRECISION) -> Point | None:
        """The point with the highest recall (above 0) that reaches the precision; None if no point does."""
        precise = [p for p in self.points if p.precision >= target_precision and p.recall > 0]
        return max(precise, key=lambda point: point.recall, default=None)


def build_curve(score: str, scored: Iterable[tuple[float, bool]], relevant_count: int) -> Curve:
    """Curve from (score, whether calling it is correct) per candidate; recall is of ``relevant_count``."""
    candidates = list(scored)
    values = np.array([value for value, _ in candidates], float)
    is_correct = np.array([correct for _, correct in candidates], bool)
    is_distance = score == "distance"
    points = []
    for threshold in DISTANCE_THRESHOLDS_BITS if is_distance else SHARE_THRESHOLDS:
        called = values <= threshold if is_distance else values >= threshold
        correct = int((called & is_correct).sum())
        points.append(Point(threshold, *precision_recall_f1(correct, int(called.sum()), relevant_count)))
    return Curve(score, tuple(points))


def duplicate_curves(analyses: Sequence[Analysis], labels: Sequence[str], seed: int = 0) -> list[Curve]:
    """Curves of labeled articles in one random order. Raises InvalidInput above ``MAX_ARTICLES``."""
    check_article_count(analyses)
    order = list(range(len(analyses)))
    Random(seed).shuffle(order)
    scored: dict[str, list[tuple[float, bool]]] = {"distance": [], "overlap": []}
    relevant_count = 0
    for position in range(1, len(order)):
        row, earlier = order[position], order[:position]
        relevant_count += labels[row] in {labels[other] for other in earlier}
        for score, values in _scores_against(analyses[row], [analyses[o] for o in earlier]).items():
            nearest = int(np.argmin(values) if score == "distance" else np.argmax(values))
            scored[score].append((float(values[nearest]), labels[earlier[nearest]] == labels[row]))
    return [build_curve(score, candidates, relevant_count) for score, candidates in scored.items()]


def check_article_count(articles: Sequence[object]) -> None:
    """Raise InvalidInput for more than ``MAX_ARTICLES``."""
    if len(articles) > MAX_ARTICLES:
        limit = f"give at most {MAX_ARTICLES} labeled articles, not {len(articles)}"
        raise InvalidInput(f"Curves compare all pairs of articles: {limit}.")


def threshold_advice(curves: Sequence[Curve]) -> str:
    """Recommended thresholds, one line per score, and what they are not."""
    return "\n".join([*map(_curve_advice, curves), _NOT_THE_RULE])


def as_json(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    """Every point of each curve, and the recommended thresholds."""
    results = []
    for curve in curves:
        precise = curve.high_precision_point()
        results.append({
            "score": curve.score, "setting": SETTING_OF_SCORE[curve.score],
            "best_f1_at": curve.best_f1_point.threshold, "precise_at": precise.threshold if precise else None,
            "points": [{k: round(v, 4) for k, v in asdict(point).items()} for point in curve.points],
        })  # fmt: skip
    return results


def _scores_against(analysis: Analysis, others: Sequence[Analysis]) -> dict[str, npt.NDArray[np.float64]]:
    fingerprints = np.array([other.fingerprint for other in others], np.uint64)
    distances = np.bitwise_count(fingerprints ^ np.uint64(analysis.fingerprint)).astype(float)
    is_foreign = np.array([other.space != analysis.space for other in others], bool)
    distances[is_foreign] = INCOMPARABLE_DISTANCE_BITS
    overlaps = estimate_overlaps(analysis.sketch, [other.sketch for other in others])
    return {"distance": distances, "overlap": np.array([overlap.containment for overlap in overlaps])}


def _curve_advice(curve: Curve) -> str:
    best, precise = curve.best_f1_point, curve.high_precision_point()
    sign = "<=" if curve.score == "distance" else ">="
    advice = (
        f"{curve.score:10} alone: best F1 {best.f1:.3f} at {sign} {best.threshold:g} "
        f"(P {best.precision:.3f}, R {best.recall:.3f}; {SETTING_OF_SCORE[curve.score]})"
    )
    if precise is None:
        return f"{advice}; no threshold has P {TARGET_PRECISION:g}"
    return f"{advice}; P {precise.precision:.3f} with R {precise.recall:.3f} at {sign} {precise.threshold:g}"
