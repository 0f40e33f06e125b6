"""Coherence: clusters that hold two topics are divided, and items that joined by drift leave.

One word can connect two topics: headlines about one bank join the cluster of another bank while "bank" is
most of what both hold. A cluster is divided when the items with one of its key terms and the items without it
have no key terms in common but the connecting one (``key_terms.py``)::

    cluster of 130 items   key terms "bank" (97 %), "clothier" (48 %), "governor" (22 %)
    with "clothier"      bank, clothier, offer, suit
    without it           bank, governor, rates, pound       only "bank" in common: two clusters

A term is the cluster's own if 0.9 of the documents of the window that hold it are in the cluster. *Outliers*,
items that hold none of the own terms, leave the event.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import Counter
from collections.abc import Callable, Sequence
from operator import itemgetter, mul, neg

from aggregator.events.detection.clustering import MAX_TERM_WEIGHT, Cluster, TermWeigher, WindowItem
from aggregator.events.detection.key_terms import KEY_TERMS_PER_CLUSTER, heaviest_terms, terms_support_merge

# A part below this share of the items is a side of the topic, not a topic.
MIN_PART_ITEMS = 5
MIN_PART_SHARE = 0.15
# Fewer items do not show two topics.
MIN_CLUSTER_ITEMS = 16
# Cosine of the two parts without the connecting term up to which they are two topics.
MAX_PARTS_COSINE = 0.1

# A term is own to a cluster that has this share of its documents in the window, and at least three of them.
OWN_TERM_SHARE = 0.9
MIN_OWN_TERM_ITEMS = 3
# More items without an own term are not outliers: the cluster has no subject of its own.
MAX_STRAY_SHARE = 0.25


def find_division(
    cluster: Cluster, top_terms: Sequence[str], weigh: TermWeigher, expected: Callable[[str], float]
) -> list[WindowItem] | None:
    """Return the smaller of the two topics of ``cluster``, in order of joining; None if it has one topic.

    ``expected``: documents per window that usually hold a term.
    """
    members = list(cluster.members.values())
    min_items = max(MIN_PART_ITEMS, MIN_PART_SHARE * len(members))
    ordered: list[tuple[float, str]] = []
    for term in top_terms:
        if cluster.term_sums[term] > MAX_TERM_WEIGHT * (len(members) - min_items):
            continue  # too many items hold it, without counting them
        inside = [member for member in members if term in member.terms]
        if not min_items <= len(inside) <= len(members) - min_items:
            continue
        outside = [member for member in members if term not in member.terms]
        part = min(outside, inside, key=len)
        sums = _term_sums(part)
        ordered = ordered or _heaviest_first(cluster.term_sums, weigh)
        top_part, top_rest = heaviest_terms(sums, weigh), _heaviest_of_rest(cluster, sums, ordered, weigh)
        if terms_support_merge(set(top_part).intersection(top_rest), expected):
            continue
        rest = {t: total - sums.get(t, 0) for t, total in cluster.term_sums.items() if total != sums.get(t)}
        connecting = set(top_part) & set(top_rest)
        if _cosine(_weighted(sums, weigh), _weighted(rest, weigh), connecting) <= MAX_PARTS_COSINE:
            return part
    return None


def _heaviest_first(sums: dict[str, int], weigh: TermWeigher) -> list[tuple[float, str]]:
    weighted = zip(map(neg, map(mul, sums.values(), map(weigh, sums))), sums, strict=True)
    return sorted(weighted, key=itemgetter(0))  # comparing numbers takes half as long as comparing tuples


def _heaviest_of_rest(
    cluster: Cluster, part: dict[str, int], ordered: list[tuple[float, str]], weigh: TermWeigher
) -> list[str]:
    """The heaviest terms of the cluster without ``part``, the sums of some of its items.

    ``ordered``: (negative weight, term) of the cluster. A term has no more weight in the rest, so that few
    of hundreds are examined.
    """
    found: list[tuple[float, str]] = []
    for bound, term in ordered:
        if len(found) == KEY_TERMS_PER_CLUSTER and found[-1][0] < bound:
            break
        if remaining := cluster.term_sums[term] - part.get(term, 0):
            insort(found, (-(remaining * weigh(term)), term))
            del found[KEY_TERMS_PER_CLUSTER:]
    return [term for _, term in found]


def find_outliers(cluster: Cluster, window_count: Callable[[str], int]) -> list[WindowItem]:
    """Return the items without an own term, in order of joining; none if they are too many."""
    counts = Counter(term for member in cluster.members.values() for term in member.terms)
    own = {
        term
        for term, count in counts.items()
        if count >= MIN_OWN_TERM_ITEMS and count >= OWN_TERM_SHARE * window_count(term)
    }
    outliers = [member for member in cluster.members.values() if own.isdisjoint(member.terms)]
    return outliers if len(outliers) <= MAX_STRAY_SHARE * len(cluster.members) else []


def _term_sums(members: Sequence[WindowItem]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for member in members:
        for term, weight in member.terms.items():
            if term in sums:
                sums[term] += weight
            else:
                sums[term] = weight
    return sums


def _weighted(sums: dict[str, int], weigh: TermWeigher) -> dict[str, float]:
    return {term: weight * weigh(term) for term, weight in sums.items()}


def _cosine(a: dict[str, float], b: dict[str, float], without: set[str]) -> float:
    squares_a = sum(w * w for t, w in a.items() if t not in without)
    squares_b = sum(w * w for t, w in b.items() if t not in without)
    dot = sum(w * b[t] for t, w in a.items() if t in b and t not in without)
    return dot / math.sqrt(squares_a * squares_b) if dot else 0.0
