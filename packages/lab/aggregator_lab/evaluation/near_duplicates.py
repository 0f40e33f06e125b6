"""Precision, recall and F1 of duplicate verdicts by policy, in the online protocol; seeded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from statistics import mean
from typing import Any

from aggregator.analysis.analyzer import Analyzer
from aggregator.dedup.policy import Policy
from aggregator.domain import Answer, Article
from aggregator.errors import AggregatorError, InvalidInput
from aggregator_lab.evaluation.metrics import adjusted_rand, b_cubed, v_measure
from aggregator_lab.evaluation.online_protocol import (
    analyze_by_id,
    count_decisions,
    decide_in_order,
    duplicate_group,
    wrong_decisions,
)
from aggregator_lab.labeled import MERGED, LabeledArticle, labelings, shuffle

POLICIES: Mapping[str, Policy] = {
    "hamming <= 3": Policy(name="hamming", duplicate_bits=3),
    "hamming <= 7": Policy(name="hamming", duplicate_bits=7),
    "verified": Policy(),
}
MEASURES = ("precision", "recall", "f1", "b_cubed_f1", "adjusted_rand")


@dataclass(frozen=True, slots=True)
class Score:
    """Counts of one order under one labeling, and the measures (0..1)."""

    true_positive: int
    false_positive: int
    false_negative: int
    precision: float  # share of the articles called duplicates that match an article of their label
    recall: float  # share of the copies that were found, without those matched to another label
    f1: float
    b_cubed_f1: float
    adjusted_rand: float


@dataclass(slots=True)
class PolicyResult:
    """One policy under one labeling over all orders."""

    policy: str
    labels: str
    scores: list[Score] = field(default_factory=list)
    wrong: list[tuple[str, str, bool]] = field(default_factory=list)  # of the first order (wrong_decisions)

    def as_json(self) -> dict[str, object]:
        """Means, lowest F1 and counts of each order."""
        columns = {name: [getattr(s, name) for s in self.scores] for name in MEASURES}
        values = {name: round(mean(column), 4) for name, column in columns.items()}
        values |= {f"{name}_lowest": round(min(columns[name]), 4) for name in ("f1", "b_cubed_f1")}
        orders = [asdict(s) for s in self.scores]
        return {"policy": self.policy, "labels": self.labels, **values, "orders": orders}


async def evaluate(
    gold: Sequence[LabeledArticle],
    analyzer: Analyzer,
    *,
    orders: int = 1,
    policies: Mapping[str, Policy] = POLICIES,
    background: Sequence[Article] = (),
    order: Callable[[Sequence[LabeledArticle], int], list[LabeledArticle]] = shuffle,
) -> list[PolicyResult]:
    """One row per policy and labeling. ``background`` articles are stored before the labeled ones.

    "dropped" counts ``keep: false`` alone. ``order``: by seed. Raises InvalidInput if no label occurs twice.
    """
    if len({item.label for item in gold}) == len(gold):
        raise InvalidInput(
            "No label occurs twice in this file: give every article a `cluster`, equal for copies."
        )
    analyses = analyze_by_id(analyzer, [*background, *(item.article for item in gold)])
    labels_by_labeling = labelings(gold)
    rows: list[PolicyResult] = []
    for policy_name, policy in policies.items():
        names = (policy_name, "dropped") if policy.name == "verified" else (policy_name,)
        results = [PolicyResult(name, labeling) for name in names for labeling in labels_by_labeling]
        for seed in range(orders):
            ordered = order(gold, seed)
            answers = await decide_in_order(ordered, background, analyses, policy, analyzer.spaces)
            for result in results:
                counted = list(map(_without_kept, answers)) if result.policy == "dropped" else answers
                label_by_id = labels_by_labeling[result.labels]
                matches = zip((i.article.id for i in ordered), map(_matched_id, counted), strict=True)
                result.wrong = result.wrong if seed else wrong_decisions(matches, label_by_id)
                result.scores.append(_score_order(ordered, counted, label_by_id))
        rows += results
    return rows


def _score_order(
    order: Sequence[LabeledArticle],
    answers: Sequence[Answer | AggregatorError],
    label_by_id: Mapping[str, str],
) -> Score:
    ids = [item.article.id for item in order]
    labels = [label_by_id[id_] for id_ in ids]
    groups = [duplicate_group(id_, answer) for id_, answer in zip(ids, answers, strict=True)]
    counts = count_decisions(zip(ids, map(_matched_id, answers), strict=True), label_by_id)
    measures = *counts.precision_recall_f1, b_cubed(labels, groups)[2], adjusted_rand(labels, groups)
    return Score(*counts, *measures)


def _without_kept(answer: Answer | AggregatorError) -> Answer | AggregatorError:
    if isinstance(answer, Answer) and answer.outcome.keep:
        return replace(answer, outcome=replace(answer.outcome, match=None))
    return answer


def _matched_id(answer: Answer | AggregatorError) -> str | None:
    match = answer.outcome.match if isinstance(answer, Answer) else None
    return None if match is None else match.id


FOOTNOTE = (
    "`dropped` counts only duplicates with keep: false. A copy matched to another label lowers P and is not "
    "counted in R, whose base (TP + FN, see --json) therefore differs between rows."
)
MERGED_FOOTNOTE = f" `{MERGED}` counts labels of SpotSigs that share pages as one."


def format_table(rows: Sequence[PolicyResult]) -> str:
    """Table for a terminal: one line per policy and labeling."""
    heads = ("P", "R", "F1", "lowest", "B3 F1", "lowest", "ARI")
    lines = [f"{'policy':14} {'labels':14} " + " ".join(f"{head:>6}" for head in heads)]
    for row in rows:
        values = row.as_json()
        shown = ("precision", "recall", "f1", "f1_lowest", "b_cubed_f1", "b_cubed_f1_lowest", "adjusted_rand")
        lines.append(f"{row.policy:14} {row.labels:14} " + " ".join(f"{values[k]:6.3f}" for k in shown))
    has_merged = any(row.labels == MERGED for row in rows)
    return "\n".join([*lines, FOOTNOTE + MERGED_FOOTNOTE * has_merged])


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


METRIC_NAMES = tuple(column.name for column in fields(Agreement))[1:]


@dataclass(frozen=True, slots=True)
class LabelingResult:
    """One labeling over all orders. ``clusters``: number of distinct labels."""

    labels: str
    clusters: int
    orders: Sequence[Agreement]

    def values(self, name: str) -> list[float]:
        """A measure in each order."""
        return [getattr(order, name) for order in self.orders]

    def as_json(self) -> dict[str, Any]:
        """Means, lowest values, and each order."""
        means = {name: round(mean(self.values(name)), 4) for name in METRIC_NAMES}
        lowest = {f"{name}_lowest": round(min(self.values(name)), 4) for name in METRIC_NAMES}
        sizes = {"clusters": self.clusters, "groups": round(mean(self.values("groups")), 1)}
        return {"labels": self.labels, **sizes, **means, **lowest, "orders": [*map(asdict, self.orders)]}


def compare_partitions(truth: Sequence[str], predicted: Sequence[str]) -> Agreement:
    """Compare two partitions given as one label per article."""
    return Agreement(
        len(set(predicted)),
        adjusted_rand(truth, predicted),
        *v_measure(truth, predicted),
        *b_cubed(truth, predicted),
    )


async def evaluate_groups(
    gold: Sequence[LabeledArticle],
    analyzer: Analyzer,
    *,
    policy: Policy,
    orders: int = 1,
    background: Sequence[Article] = (),
) -> list[LabelingResult]:
    """One row per labeling: as given, and with overlapping labels merged if the file has such labels.

    ``background`` articles are stored before the labeled ones.
    """
    analyses = analyze_by_id(analyzer, [*background, *(item.article for item in gold)])
    labels_by_labeling = labelings(gold)
    agreements: dict[str, list[Agreement]] = {labeling: [] for labeling in labels_by_labeling}
    for seed in range(orders):
        order = shuffle(gold, seed)
        answers = await decide_in_order(order, background, analyses, policy, analyzer.spaces)
        ids = [item.article.id for item in order]
        groups = [duplicate_group(id_, answer) for id_, answer in zip(ids, answers, strict=True)]
        for labeling, label_by_id in labels_by_labeling.items():
            agreements[labeling].append(compare_partitions([label_by_id[id_] for id_ in ids], groups))
    return [
        LabelingResult(labeling, len(set(label_by_id.values())), agreements[labeling])
        for labeling, label_by_id in labels_by_labeling.items()
    ]


def format_groups_table(rows: Sequence[LabelingResult]) -> str:
    """Table for a terminal: means, and below them the lowest values of all orders."""
    heads = ("ARI", "homog.", "compl.", "V", "B3 P", "B3 R", "B3 F1")
    lines = [f"{'labels':18} {'':7} {'labels':>7} {'groups':>7} " + " ".join(f"{head:>6}" for head in heads)]
    for row in rows:
        means = " ".join(f"{mean(row.values(name)):6.3f}" for name in METRIC_NAMES)
        lowest = " ".join(f"{min(row.values(name)):6.3f}" for name in METRIC_NAMES)
        lines.append(f"{row.labels:18} {'mean':7} {row.clusters:7} {mean(row.values('groups')):7.1f} {means}")
        lines.append(f"{'':18} {'lowest':7} {'':7} {'':7} {lowest}")
    return "\n".join(lines)
