"""Published measures of pairings, clusterings and rankings, over plain lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from math import comb, log, log2
from typing import Any


def precision_recall_f1(correct: int, predicted: int, relevant: int) -> tuple[float, float, float]:
    """Precision, recall and F1, each 0..1, of ``called``, of which ``right`` are among the ``wanted``.

    Where nothing is called, or nothing wanted, there is nothing to get wrong: one.
    """
    return (
        correct / predicted if predicted else 1.0,
        correct / relevant if relevant else 1.0,
        2 * correct / (predicted + relevant) if predicted or relevant else 1.0,
    )


def b_cubed(truth: Sequence[Hashable], predicted: Sequence[Hashable]) -> tuple[float, float, float]:
    """B-cubed precision, recall and F1 (Bagga & Baldwin 1998), each 0..1; empty input gives ones."""
    if not truth:
        return 1.0, 1.0, 1.0
    both, wanted, given = Counter(zip(truth, predicted, strict=True)), Counter(truth), Counter(predicted)
    pairs = list(zip(truth, predicted, strict=True))
    precision = sum(both[t, f] / given[f] for t, f in pairs) / len(pairs)
    recall = sum(both[t, f] / wanted[t] for t, f in pairs) / len(pairs)
    return precision, recall, 2 * precision * recall / (precision + recall)


def adjusted_rand(truth: Sequence[Hashable], predicted: Sequence[Hashable]) -> float:
    """Adjusted Rand index (Hubert & Arabie 1985): 1 for equal partitions, about 0 for random ones."""
    both = sum(comb(n, 2) for n in Counter(zip(truth, predicted, strict=True)).values())
    wanted = sum(comb(n, 2) for n in Counter(truth).values())
    given = sum(comb(n, 2) for n in Counter(predicted).values())
    pairs = comb(len(truth), 2)
    if not pairs:
        return 1.0
    expected = wanted * given / pairs
    largest = (wanted + given) / 2
    return (both - expected) / (largest - expected) if largest != expected else 1.0


def v_measure(truth: Sequence[Hashable], predicted: Sequence[Hashable]) -> tuple[float, float, float]:
    """Homogeneity, completeness and V-measure (Rosenberg & Hirschberg 2007), each 0..1."""
    if not truth:
        return 1.0, 1.0, 1.0
    both, wanted, given = Counter(zip(truth, predicted, strict=True)), Counter(truth), Counter(predicted)
    of_truth, of_found = _entropy(wanted), _entropy(given)
    joint = _entropy(both)
    shared = of_truth + of_found - joint
    homogeneity = shared / of_truth if of_truth else 1.0
    completeness = shared / of_found if of_found else 1.0
    total = homogeneity + completeness
    return homogeneity, completeness, 2 * homogeneity * completeness / total if total else 0.0


def _entropy(counts: Counter[Any]) -> float:
    total = counts.total()
    return -sum(n / total * log(n / total) for n in counts.values())


def roc_auc(truth: Sequence[bool], scores: Sequence[float]) -> float:
    """Area under the ROC curve: how often a true item scores above a false one, ties counting half.

    The rank form (Mann & Whitney 1947). One half when either kind is missing.
    """
    order = sorted(range(len(scores)), key=lambda at: scores[at])
    ranks = [0.0] * len(scores)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and scores[order[end]] == scores[order[start]]:
            end += 1
        for at in order[start:end]:
            ranks[at] = (start + end + 1) / 2
        start = end
    positive = sum(truth)
    negative = len(truth) - positive
    if not positive or not negative:
        return 0.5
    above = sum(rank for rank, true in zip(ranks, truth, strict=True) if true)
    return (above - positive * (positive + 1) / 2) / (positive * negative)


def recall_at(ranked: Sequence[Hashable], relevant: Collection[Hashable], k: int) -> float:
    """Share of the relevant ones among the first ``k``; ``k`` of them are all that can be asked for."""
    if not relevant:
        return 1.0
    return len(set(ranked[:k]) & set(relevant)) / min(k, len(relevant))


def ndcg_at(ranked: Sequence[Hashable], relevant: Collection[Hashable], k: int) -> float:
    """Normalised discounted cumulative gain of the first ``k`` (Jaervelin & Kekaelaeinen 2002), gains 0 or 1."""
    wanted = set(relevant)
    ideal = sum(1 / log2(at + 2) for at in range(min(k, len(wanted))))
    gained = sum(1 / log2(at + 2) for at, one in enumerate(ranked[:k]) if one in wanted)
    return gained / ideal if ideal else 1.0
