"""Agreement of duplicate groups (``canonical_id``) with labeled ones, in the online protocol.

Compared as partitions: adjusted Rand index, homogeneity, completeness and V-measure, B-cubed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any

from aggregator.analysis.analyzer import Analyzer
from aggregator.dedup.policy import Policy
from aggregator.domain import Article
from aggregator_lab.evaluation.metrics import adjusted_rand, b_cubed, v_measure
from aggregator_lab.evaluation.online_protocol import analyze_by_id, decide_in_order, duplicate_group
from aggregator_lab.labeled import (
    AS_LABELED,
    MERGED,
    SPOTSIGS_LABEL_MERGES,
    LabeledArticle,
    labelings,
    shuffle,
)

METRIC_NAMES = (
    "adjusted_rand", "homogeneity", "completeness", "v_measure",
    "b_cubed_precision", "b_cubed_recall", "b_cubed_f1",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Agreement:
    """One order under one labeling; measures 0..1 (the adjusted Rand index may be below 0)."""

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
    """One labeling over all orders. ``clusters``: number of distinct labels."""

    labels: str
    clusters: int
    orders: Sequence[Agreement]

    def mean(self, name: str) -> float:
        """Mean of a measure over all orders."""
        return float(mean(getattr(order, name) for order in self.orders))

    def lowest(self, name: str) -> float:
        """Lowest value of a measure over all orders."""
        return float(min(getattr(order, name) for order in self.orders))

    def as_json(self) -> dict[str, Any]:
        """Means, lowest values, and each order."""
        means = {name: round(self.mean(name), 4) for name in METRIC_NAMES}
        lowest = {f"{name}_lowest": round(self.lowest(name), 4) for name in METRIC_NAMES}
        return {"labels": self.labels, "clusters": self.clusters, "groups": round(self.mean("groups"), 1),
                **means, **lowest, "orders": [asdict(order) for order in self.orders]}  # fmt: skip


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
    """One row per labeling: as given, and with overlapping labels merged if the file has such labels.

    In that case a last row compares both. ``background`` articles are stored before the labeled ones.
    """
    analyses = analyze_by_id(analyzer, [*background, *(item.article for item in gold)])
    labels_by_labeling = labelings(gold, label_merges)
    agreements: dict[str, list[Agreement]] = {labeling: [] for labeling in labels_by_labeling}
    for seed in range(orders):
        order = shuffle(gold, seed)
        answers = await decide_in_order(order, background, analyses, policy, analyzer.spaces)
        ids = [item.article.id for item in order]
        groups = [duplicate_group(id_, answer) for id_, answer in zip(ids, answers, strict=True)]
        for labeling, label_by_id in labels_by_labeling.items():
            agreements[labeling].append(compare_partitions([label_by_id[id_] for id_ in ids], groups))
    rows = [
        LabelingResult(labeling, len(set(label_by_id.values())), agreements[labeling])
        for labeling, label_by_id in labels_by_labeling.items()
    ]
    if MERGED in labels_by_labeling:
        # Upper bound for groups that are exactly as labeled: a merged label may cover several stories.
        merged, given = (list(labels_by_labeling[name].values()) for name in (MERGED, AS_LABELED))
        rows.append(
            LabelingResult("labels themselves", rows[-1].clusters, [compare_partitions(merged, given)])
        )
    return rows


def format_table(rows: Sequence[LabelingResult]) -> str:
    """Table for a terminal: means, and below them the lowest values of all orders."""
    heads = ("ARI", "homog.", "compl.", "V", "B3 P", "B3 R", "B3 F1")
    lines = [f"{'labels':18} {'':7} {'labels':>7} {'groups':>7} " + " ".join(f"{head:>6}" for head in heads)]
    for row in rows:
        means = " ".join(f"{row.mean(name):6.3f}" for name in METRIC_NAMES)
        lowest = " ".join(f"{row.lowest(name):6.3f}" for name in METRIC_NAMES)
        lines.append(f"{row.labels:18} {'mean':7} {row.clusters:7} {row.mean('groups'):7.1f} {means}")
        lines.append(f"{'':18} {'lowest':7} {'':7} {'':7} {lowest}")
    return "\n".join(lines)
