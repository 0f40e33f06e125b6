"""Do the groups that ``canonical_id`` makes agree with an editor's?

Labelled articles (``cluster`` each) are shown one after another in seeded random orders, as in
``near_duplicates``; afterwards an article's group is the canonical article it was pointed at. Groups and labels
are compared as partitions: adjusted Rand index, homogeneity, completeness and V-measure, B-cubed.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any

from aggregator.analysis.analyzer import Analyzer
from aggregator.dedup.verdict import Policy
from aggregator.domain import Answer, Article
from aggregator.offline.evaluation.metrics import adjusted_rand, b_cubed, v_measure
from aggregator.offline.evaluation.near_duplicates import (
    SPOTSIGS_LABEL_MERGES,
    LabeledArticle,
    decide_in_order,
)

METRIC_NAMES = (
    "adjusted_rand", "homogeneity", "completeness", "v_measure",
    "b_cubed_precision", "b_cubed_recall", "b_cubed_f1",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Agreement:
    """One order under one labelling; measures 0..1 (the adjusted Rand index may fall below 0)."""

    groups: int
    adjusted_rand: float
    homogeneity: float
    completeness: float
    v_measure: float
    b_cubed_precision: float
    b_cubed_recall: float
    b_cubed_f1: float


@dataclass(frozen=True, slots=True)
class LabelingResult:
    """One labelling over all orders."""

    labels: str
    clusters: int
    orders: Sequence[Agreement]

    def mean(self, name: str) -> float:
        return float(mean(getattr(one, name) for one in self.orders))

    def lowest(self, name: str) -> float:
        return float(min(getattr(one, name) for one in self.orders))

    def as_json(self) -> dict[str, Any]:
        """Means, lowest values, and each order."""
        figures = {name: round(self.mean(name), 4) for name in METRIC_NAMES}
        lowest = {f"{name}_lowest": round(self.lowest(name), 4) for name in METRIC_NAMES}
        return {"labels": self.labels, "clusters": self.clusters, "groups": round(self.mean("groups"), 1),
                **figures, **lowest, "orders": [asdict(one) for one in self.orders]}  # fmt: skip


def compare_partitions(truth: Sequence[str], predicted: Sequence[str]) -> Agreement:
    """Compare two partitions given as one label per article."""
    return Agreement(
        len(set(predicted)),
        adjusted_rand(truth, predicted),
        *v_measure(truth, predicted),
        *b_cubed(truth, predicted),
    )


async def evaluate(
    gold: Sequence[LabeledArticle],
    analyzer: Analyzer,
    *,
    policy: Policy,
    orders: int = 1,
    label_merges: Mapping[str, str] = SPOTSIGS_LABEL_MERGES,
    background: Sequence[Article] = (),
) -> list[LabelingResult]:
    """One row per labelling: as given, and with known overlapping labels merged when the file has them.

    Then a last row says what groups that equal the labels as given would score under the merged ones.
    """
    articles = [g.article for g in gold]
    analysed = dict(zip((a.id for a in articles), analyzer.analyze_many(articles), strict=True))
    before = analyzer.analyze_many(background)
    labellings: dict[str, Mapping[str, str]] = {"as labelled": {}}
    if set(label_merges) & {g.label for g in gold}:
        labellings["groups merged"] = label_merges
    found: dict[str, list[Agreement]] = {name: [] for name in labellings}
    for seed in range(orders):
        shuffled = list(gold)
        random.Random(seed).shuffle(shuffled)
        answers = await decide_in_order(shuffled, analysed, policy, background, before, analyzer.spaces)
        groups = [_canonical_id(one, answer) for one, answer in zip(shuffled, answers, strict=True)]
        for name, merge in labellings.items():
            found[name].append(compare_partitions([merge.get(g.label, g.label) for g in shuffled], groups))
    rows = [
        LabelingResult(name, len({merge.get(g.label, g.label) for g in gold}), found[name])
        for name, merge in labellings.items()
    ]
    if len(rows) > 1:  # the bound that merging sets: pages in one merged label need not tell of one thing
        given, lumped = [g.label for g in gold], [label_merges.get(g.label, g.label) for g in gold]
        rows.append(
            LabelingResult("labels themselves", rows[-1].clusters, [compare_partitions(lumped, given)])
        )
    return rows


def format_table(rows: Sequence[LabelingResult]) -> str:
    """For a terminal: means, and the lowest of all orders below."""
    heads = ("ARI", "homog.", "compl.", "V", "B3 P", "B3 R", "B3 F1")
    lines = [f"{'labels':18} {'':7} {'labels':>7} {'groups':>7} " + " ".join(f"{head:>6}" for head in heads)]
    for row in rows:
        means = " ".join(f"{row.mean(name):6.3f}" for name in METRIC_NAMES)
        lowest = " ".join(f"{row.lowest(name):6.3f}" for name in METRIC_NAMES)
        lines.append(f"{row.labels:18} {'mean':7} {row.clusters:7} {row.mean('groups'):7.1f} {means}")
        lines.append(f"{'':18} {'lowest':7} {'':7} {'':7} {lowest}")
    return "\n".join(lines)


def _canonical_id(labeled: LabeledArticle, answer: object) -> str:
    match = answer.outcome.match if isinstance(answer, Answer) else None
    return match.canonical_id if match is not None else labeled.article.id
