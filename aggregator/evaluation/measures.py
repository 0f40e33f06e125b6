"""Published measures of pairings and clusterings, over plain label lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from math import comb


def b_cubed(truth: Sequence[Hashable], found: Sequence[Hashable]) -> tuple[float, float, float]:
    """B-cubed precision, recall and F1 (Bagga & Baldwin 1998), each 0..1; empty input gives ones."""
    if not truth:
        return 1.0, 1.0, 1.0
    both, wanted, given = Counter(zip(truth, found, strict=True)), Counter(truth), Counter(found)
    pairs = list(zip(truth, found, strict=True))
    precision = sum(both[t, f] / given[f] for t, f in pairs) / len(pairs)
    recall = sum(both[t, f] / wanted[t] for t, f in pairs) / len(pairs)
    return precision, recall, 2 * precision * recall / (precision + recall)


def adjusted_rand(truth: Sequence[Hashable], found: Sequence[Hashable]) -> float:
    """Adjusted Rand index (Hubert & Arabie 1985): 1 for equal partitions, about 0 for random ones."""
    both = sum(comb(n, 2) for n in Counter(zip(truth, found, strict=True)).values())
    wanted = sum(comb(n, 2) for n in Counter(truth).values())
    given = sum(comb(n, 2) for n in Counter(found).values())
    pairs = comb(len(truth), 2)
    if not pairs:
        return 1.0
    expected = wanted * given / pairs
    largest = (wanted + given) / 2
    return (both - expected) / (largest - expected) if largest != expected else 1.0
