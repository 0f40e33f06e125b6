"""Precision, recall and F1 of duplicate verdicts by policy, in the online protocol; seeded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import mean

from aggregator.analysis.analyzer import Analyzer
from aggregator.dedup.policy import Policy
from aggregator.domain import Answer, Article
from aggregator.errors import AggregatorError, InvalidInput
from aggregator_lab.evaluation.metrics import adjusted_rand, b_cubed, precision_recall_f1
from aggregator_lab.evaluation.online_protocol import (
    analyze_by_id,
    count_decisions,
    decide_in_order,
    duplicate_group,
)
from aggregator_lab.labeled import SPOTSIGS_LABEL_MERGES, LabeledArticle, labelings, shuffle

POLICIES: Mapping[str, Policy] = {
    "hamming <= 3": Policy(name="hamming", duplicate_bits=3),
    "hamming <= 7": Policy(name="hamming", duplicate_bits=7),
    "verified": Policy(),
}


@dataclass(frozen=True, slots=True)
class Score:
    """Counts of one order under one labeling, and the measures that follow from them (0..1)."""

    true_positive: int
    false_positive: int
    false_negative: int
    b_cubed_f1: float
    adjusted_rand: float

    @property
    def precision(self) -> float:
        """Share of the articles called duplicates that match an article of their label."""
        return self._precision_recall_f1[0]

    @property
    def recall(self) -> float:
        """Share of the copies that were found."""
        return self._precision_recall_f1[1]

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return self._precision_recall_f1[2]

    @property
    def _precision_recall_f1(self) -> tuple[float, float, float]:
        correct = self.true_positive
        return precision_recall_f1(correct, correct + self.false_positive, correct + self.false_negative)


@dataclass(slots=True)
class PolicyResult:
    """One policy under one labeling over all orders."""

    policy: str
    labels: str
    scores: list[Score] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        """Means, lowest F1 and counts of each order."""
        return {
            "policy": self.policy,
            "labels": self.labels,
            "precision": round(mean(s.precision for s in self.scores), 4),
            "recall": round(mean(s.recall for s in self.scores), 4),
            "f1": round(mean(s.f1 for s in self.scores), 4),
            "f1_lowest": round(min(s.f1 for s in self.scores), 4),
            "b_cubed_f1": round(mean(s.b_cubed_f1 for s in self.scores), 4),
            "b_cubed_f1_lowest": round(min(s.b_cubed_f1 for s in self.scores), 4),
            "adjusted_rand": round(mean(s.adjusted_rand for s in self.scores), 4),
            "orders": [asdict(s) for s in self.scores],
        }


async def evaluate(
    gold: Sequence[LabeledArticle],
    analyzer: Analyzer,
    *,
    orders: int = 1,
    policies: Mapping[str, Policy] = POLICIES,
    label_merges: Mapping[str, str] = SPOTSIGS_LABEL_MERGES,
    background: Sequence[Article] = (),
    order: Callable[[Sequence[LabeledArticle], int], list[LabeledArticle]] = shuffle,
) -> list[PolicyResult]:
    """One row per policy and labeling. ``background`` articles are stored before the labeled ones.

    ``order``: of the labeled articles, by seed. Raises InvalidInput if no label occurs twice.
    """
    if len({item.label for item in gold}) == len(gold):
        raise InvalidInput(
            "No label occurs twice in this file: give every article a `cluster`, equal for copies."
        )
    analyses = analyze_by_id(analyzer, [*background, *(item.article for item in gold)])
    labels_by_labeling = labelings(gold, label_merges)
    rows: list[PolicyResult] = []
    for policy_name, policy in policies.items():
        results = {labeling: PolicyResult(policy_name, labeling) for labeling in labels_by_labeling}
        for seed in range(orders):
            ordered = order(gold, seed)
            answers = await decide_in_order(ordered, background, analyses, policy, analyzer.spaces)
            for labeling, label_by_id in labels_by_labeling.items():
                results[labeling].scores.append(_score_order(ordered, answers, label_by_id))
        rows += results.values()
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
    return Score(*counts, b_cubed(labels, groups)[2], adjusted_rand(labels, groups))


def _matched_id(answer: Answer | AggregatorError) -> str | None:
    match = answer.outcome.match if isinstance(answer, Answer) else None
    return None if match is None else match.id


def format_table(rows: Sequence[PolicyResult]) -> str:
    """Table for a terminal: one line per policy and labeling."""
    heads = ("P", "R", "F1", "lowest", "B3 F1", "lowest", "ARI")
    lines = [f"{'policy':14} {'labels':14} " + " ".join(f"{head:>6}" for head in heads)]
    for row in rows:
        values = row.as_json()
        shown = ("precision", "recall", "f1", "f1_lowest", "b_cubed_f1", "b_cubed_f1_lowest", "adjusted_rand")
        lines.append(f"{row.policy:14} {row.labels:14} " + " ".join(f"{values[k]:6.3f}" for k in shown))
    return "\n".join(lines)
