"""Summary of a finished run: counts, cluster sizes, distances, sources, months, times (``summary.json``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np

from aggregator_archive.arrays import order_pairs, unpack_pairs
from aggregator_archive.confirm import DIFFERENT_SPACES
from aggregator_archive.encode import UNDATED
from aggregator_archive.pipeline import DedupeResult
from aggregator_archive.representatives import RepresentativeChoice

# The ranges of Zhang's (2023) table of cluster sizes, with larger ones added.
CLUSTER_SIZE_RANGES = (
    *((size, size) for size in range(1, 6)),
    *((6, 10), (11, 20), (21, 50), (51, 100), (101, 1000), (1001, 2**62)),
)
# Upper ends of the ranges of article lengths, in words; in languages without spaces a word is a character.
MAX_WORDS_OF_RANGES = (10, 20, 50, 100, 200, 500, 1_000, 2_000)
MAX_SOURCES_LISTED = 15


def summarize(result: DedupeResult, choice: RepresentativeChoice, bad_rows: int) -> dict[str, Any]:
    """The summary as JSON values."""
    rows = len(result.columns)
    sizes = np.bincount(result.labels, minlength=max(1, rows))
    sizes = sizes[sizes > 0]
    groups = sizes[sizes > 1]
    decided = ~result.confirmed.undecided
    distance = result.confirmed.distance[decided]
    return {
        "articles": rows,
        "bad_rows": bad_rows,
        "repeated_ids": result.columns.repeated_ids(),
        "distinct_texts": len(result.distinct_texts.rows),
        "candidate_pairs": result.candidate_count,
        "confirmed_pairs": len(distance),
        "pairs_left_out_of_large_buckets": result.uncompared_pairs,
        "clusters": len(groups),
        "articles_in_clusters": int(groups.sum()),
        "largest_cluster": int(groups.max(initial=0)),
        "mean_cluster_size": round(float(groups.mean()), 3) if len(groups) else 0.0,
        "kept": int(choice.is_kept.sum()),
        "removed": int((~choice.is_kept).sum()),
        "cluster_sizes": cluster_size_table(sizes),
        "lengths": length_table(result, choice),
        "cuts": [
            asdict(cut) | {"strongest_cut": round(cut.strongest_cut, 4)} for cut in result.clustering.cuts
        ],
        "distances": np.bincount(distance[distance != DIFFERENT_SPACES], minlength=65).tolist(),
        "containments": np.histogram(result.confirmed.overlaps.containment[decided], 20, (0, 1))[0].tolist(),
        "sources": _top_sources(result, choice),
        "source_pairs": _top_source_pairs(result),
        "months": _monthly_counts(result, choice),
        "seconds": {stage: round(seconds, 2) for stage, seconds in result.stage_seconds.items()},
    }


def cluster_size_table(sizes: Any) -> list[dict[str, Any]]:
    """Clusters and articles per range of cluster sizes."""
    table = []
    for low, high in CLUSTER_SIZE_RANGES:
        in_range = sizes[(sizes >= low) & (sizes <= high)]
        name = str(low) if low == high else f"over {low - 1}" if high > 10**9 else f"{low}-{high}"
        table.append({"size": name, "clusters": len(in_range), "articles": int(in_range.sum())})
    return table


def length_table(result: DedupeResult, choice: RepresentativeChoice) -> list[dict[str, Any]]:
    """Articles, those in clusters of two or more, and removed ones per range of article lengths in words."""
    words, sizes = np.asarray(result.columns.words), np.bincount(result.labels, minlength=1)
    position = np.searchsorted(MAX_WORDS_OF_RANGES, words)
    selections = {
        "articles": np.ones(len(words), bool),
        "in_clusters": sizes[result.labels] > 1,
        "removed": ~choice.is_kept,
    }
    count = len(MAX_WORDS_OF_RANGES) + 1
    counts = {name: np.bincount(position[chosen], minlength=count) for name, chosen in selections.items()}
    lows = [0, *(limit + 1 for limit in MAX_WORDS_OF_RANGES)]
    names = [f"{low}-{high}" for low, high in zip(lows, MAX_WORDS_OF_RANGES, strict=False)]
    return [
        {"words": range_name, **{name: int(numbers[at]) for name, numbers in counts.items()}}
        for at, range_name in enumerate([*names, f"over {MAX_WORDS_OF_RANGES[-1]}"])
    ]


def _top_sources(result: DedupeResult, choice: RepresentativeChoice) -> list[dict[str, Any]]:
    """The sources with most articles, and how many of these are removed."""
    names = result.columns.sources
    source = np.asarray(result.columns.source)
    total = np.bincount(source, minlength=len(names))
    removed = np.bincount(source[~choice.is_kept], minlength=len(names))
    return [
        {"source": names[at] or "(none)", "articles": int(total[at]), "copies": int(removed[at])}
        for at in np.argsort(-total, kind="stable")[:MAX_SOURCES_LISTED].tolist()
    ]


def _top_source_pairs(result: DedupeResult) -> list[dict[str, Any]]:
    """The pairs of sources that share most texts, by number of confirmed pairs."""
    names: Sequence[str] = result.columns.sources
    if len(names) < 2:
        return []
    a, b = unpack_pairs(result.confirmed.pairs)
    source = np.asarray(result.columns.source).astype(np.int64)
    low, high = order_pairs(source[a], source[b])
    keys, counts = np.unique(low * len(names) + high, return_counts=True)
    return [
        {
            "sources": [names[int(keys[at]) // len(names)], names[int(keys[at]) % len(names)]],
            "pairs": int(counts[at]),
        }
        for at in np.argsort(-counts, kind="stable")[:MAX_SOURCES_LISTED].tolist()
    ]


def _monthly_counts(result: DedupeResult, choice: RepresentativeChoice) -> list[dict[str, Any]]:
    """Number of articles and removed copies per calendar month."""
    date = np.asarray(result.columns.date_ms)
    dated = date != UNDATED
    month = date[dated].astype("datetime64[ms]").astype("datetime64[M]").astype(np.int64)
    if not len(month):
        return []
    low = int(month.min())
    total = np.bincount(month - low)
    removed = np.bincount((month - low)[~choice.is_kept[dated]], minlength=len(total))
    return [
        {
            "month": f"{1970 + (low + at) // 12}-{(low + at) % 12 + 1:02}",
            "articles": n,
            "copies": int(removed[at]),
        }
        for at, n in enumerate(total.tolist())
        if n
    ]


def format_date(ms: int) -> str:
    """ISO date (UTC) of a time in milliseconds; empty if undated."""
    return "" if ms == UNDATED else datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d")
