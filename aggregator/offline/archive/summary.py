"""What is worth knowing of a finished run: counts, sizes, distances, sources, times."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from aggregator.offline.archive.encode import UNDATED
from aggregator.offline.archive.pairs import rows_of
from aggregator.offline.archive.pipeline import Result
from aggregator.offline.archive.representatives import Choice

# Rows of Zhang's (2023) table of cluster sizes, widened at the top.
SIZES = (
    (1, 1),
    (2, 2),
    (3, 3),
    (4, 4),
    (5, 5),
    (6, 10),
    (11, 20),
    (21, 50),
    (51, 100),
    (101, 1000),
    (1001, 2**62),
)
TOP_SOURCES = 15


def summary(result: Result, choice: Choice, bad: int) -> dict[str, Any]:
    """Plain values, ready for JSON."""
    rows = len(result.columns)
    sizes = np.bincount(result.labels, minlength=max(1, rows))
    sizes = sizes[sizes > 0]
    groups = sizes[sizes > 1]
    return {
        "articles": rows,
        "bad_rows": bad,
        "distinct_texts": len(result.distinct.rows),
        "candidate_pairs": result.candidates,
        "confirmed_pairs": len(result.confirmed.pairs),
        "pairs_left_out_of_large_buckets": result.left_out,
        "clusters": len(groups),
        "articles_in_clusters": int(groups.sum()),
        "largest_cluster": int(groups.max(initial=0)),
        "mean_cluster_size": round(float(groups.mean()), 3) if len(groups) else 0.0,
        "kept": int(choice.stays.sum()),
        "removed": int((~choice.stays).sum()),
        "cluster_sizes": size_table(sizes),
        "cuts": [
            {
                "articles": cut.articles,
                "links_cut": cut.links_cut,
                "strongest_cut": round(cut.strongest_cut, 4),
            }
            for cut in result.clustering.cuts
        ],
        "distances": _distances(result),
        "containments": _containments(result),
        "sources": _sources(result, choice),
        "source_pairs": _source_pairs(result),
        "months": _months(result, choice),
        "seconds": {stage: round(seconds, 2) for stage, seconds in result.seconds.items()},
    }


def size_table(sizes: Any) -> list[dict[str, Any]]:
    """Clusters and articles per range of cluster sizes."""
    found = []
    for low, high in SIZES:
        some = sizes[(sizes >= low) & (sizes <= high)]
        name = str(low) if low == high else f"over {low - 1}" if high > 10**9 else f"{low}-{high}"
        found.append({"size": name, "clusters": len(some), "articles": int(some.sum())})
    return found


def _distances(result: Result) -> list[int]:
    """Confirmed pairs of one space per Hamming distance, 0 to 64."""
    distance = result.confirmed.distance
    found: list[int] = np.bincount(distance[distance <= 64], minlength=65).tolist()
    return found


def _containments(result: Result) -> list[int]:
    """Confirmed pairs per twentieth of containment."""
    counts: list[int] = np.histogram(result.confirmed.overlaps.containment, 20, (0, 1))[0].tolist()
    return counts


def _sources(result: Result, choice: Choice) -> list[dict[str, Any]]:
    """The sources with most articles, and how many of those leave."""
    names = result.columns.sources
    source = np.asarray(result.columns.source)
    total = np.bincount(source, minlength=len(names))
    gone = np.bincount(source[~choice.stays], minlength=len(names))
    return [
        {"source": names[at] or "(none)", "articles": int(total[at]), "copies": int(gone[at])}
        for at in np.argsort(-total, kind="stable")[:TOP_SOURCES].tolist()
    ]


def _source_pairs(result: Result) -> list[dict[str, Any]]:
    """Which sources carry the same texts most often, by confirmed pairs."""
    names: Sequence[str] = result.columns.sources
    if len(names) < 2:
        return []
    a, b = rows_of(result.confirmed.pairs)
    one, other = (np.asarray(result.columns.source)[rows].astype(np.int64) for rows in (a, b))
    keys, counts = np.unique(np.minimum(one, other) * len(names) + np.maximum(one, other), return_counts=True)
    return [
        {
            "sources": [names[int(keys[at]) // len(names)], names[int(keys[at]) % len(names)]],
            "pairs": int(counts[at]),
        }
        for at in np.argsort(-counts, kind="stable")[:TOP_SOURCES].tolist()
    ]


def _months(result: Result, choice: Choice) -> list[dict[str, Any]]:
    """Articles and copies per calendar month."""
    date = np.asarray(result.columns.date_ms)
    dated = date != UNDATED
    month = date[dated].astype("datetime64[ms]").astype("datetime64[M]").astype(np.int64)
    if not len(month):
        return []
    low = int(month.min())
    total = np.bincount(month - low)
    gone = np.bincount((month - low)[~choice.stays[dated]], minlength=len(total))
    return [
        {
            "month": f"{1970 + (low + at) // 12}-{(low + at) % 12 + 1:02}",
            "articles": n,
            "copies": int(gone[at]),
        }
        for at, n in enumerate(total.tolist())
        if n
    ]


def day_of(ms: int) -> str:
    """The date of a time, for people; empty when undated."""
    return "" if ms == UNDATED else datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d")
