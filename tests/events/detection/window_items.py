"""Items and clusters of the detector's window, built without a detector."""

from __future__ import annotations

from typing import Any

from aggregator.events.detection.clustering import MAX_TERM_WEIGHT, Cluster, WindowItem
from aggregator.events.detection.postings import Postings, columns


def window_item(number: int, words: str = "", **fields: Any) -> WindowItem:
    """An item ``a<number>`` at ``number`` ms with these terms, each of the largest weight."""
    values: dict[str, Any] = {
        "first_version": number,
        "id": f"a{number}",
        "at_ms": number,
        "source": "one.example",
        "title": words,
        "terms": dict.fromkeys(words.split(), MAX_TERM_WEIGHT),
        "is_counted": True,
        "cosine": 1.0,
        "cluster_key": -1,
    }
    return WindowItem(number, **{**values, **fields})


def cluster_of(*members: WindowItem, key: int = 1) -> Cluster:
    """A cluster of these items, with the sums of their terms."""
    sums: dict[str, int] = {}
    for member in members:
        for term, weight in member.terms.items():
            sums[term] = sums.get(term, 0) + weight
    return Cluster(key, f"s{key}", {m.first_version: m for m in members}, sums, len(members))


def sums_by_term(postings: Postings) -> dict[str, dict[int, int]]:
    """Term -> slot -> sum of weights."""
    found = {term: columns(postings.lookup([term])) for term in postings._by_term}
    return {term: dict(zip(s.tolist(), sums.tolist(), strict=True)) for term, (s, sums) in found.items()}
