"""``report.html`` with tables, plots and examples, and ``review.html``, clusters to check by hand."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from aggregator.offline.archive import plots
from aggregator.offline.archive.checkpoint import write_bytes
from aggregator.offline.archive.pairs import unpack_pairs
from aggregator.offline.archive.pipeline import DedupeResult

MAX_EXAMPLES = 12
OPENING_CHARS = 280
# Zhang (2023) checked by hand: five random clusters of each size 2-10, one of each size 11-30.
REVIEW_CLUSTERS_PER_SIZE = {**dict.fromkeys(range(2, 11), 5), **dict.fromkeys(range(11, 31), 1)}

_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "pages"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)


def style_sheet() -> str:
    """The style sheet that these pages share."""
    return (Path(__file__).parent / "pages" / "style.html").read_text(encoding="utf-8")


def example_pairs(result: DedupeResult) -> list[tuple[int, int, int]]:
    """(position, row, row) of confirmed pairs from the least to the most overlap."""
    a, b = unpack_pairs(result.confirmed.pairs)
    if not len(a):
        return []
    order = np.argsort(result.confirmed.overlaps.containment, kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, MAX_EXAMPLES).astype(int))]
    return [(int(at), int(a[at]), int(b[at])) for at in chosen]


def sample_review_clusters(result: DedupeResult, seed: int) -> list[list[int]]:
    """Rows of randomly chosen clusters, smallest clusters first; the same for the same seed."""
    labels = result.labels
    sizes = np.bincount(labels, minlength=max(1, len(labels)))
    chosen = random.Random(seed)
    found = []
    for size, count in REVIEW_CLUSTERS_PER_SIZE.items():
        of_size = np.flatnonzero(sizes == size).tolist()
        for label in sorted(chosen.sample(of_size, min(count, len(of_size)))):
            found.append(np.flatnonzero(labels == label).tolist())
    return found


def write_report(
    out: Path, result: DedupeResult, summary: Mapping[str, Any], articles_by_row: Mapping[int, dict[str, Any]]
) -> None:
    """Everything that ``figures.summary`` found, drawn, and the examples with their openings."""
    found = result.confirmed.overlaps
    shown = [
        {
            "containment": float(found.containment[at]),
            "shared": float(found.shared[at]),
            "distance": int(result.confirmed.distance[at]),
            "articles": [_article_context(row, result, articles_by_row) for row in (one, other)],
        }
        for at, one, other in example_pairs(result)
    ]
    page = _TEMPLATES.get_template("report.html").render(s=summary, plots=_plots(summary), examples=shown)
    write_bytes(out / "report.html", page.encode())


def write_review(
    out: Path,
    result: DedupeResult,
    clusters: Sequence[Sequence[int]],
    articles_by_row: Mapping[int, dict[str, Any]],
) -> None:
    """The chosen clusters, each article with a box to tick when it does not belong."""
    shown = [[_article_context(row, result, articles_by_row) for row in cluster] for cluster in clusters]
    page = _TEMPLATES.get_template("review.html").render(clusters=shown)
    write_bytes(out / "review.html", page.encode())


def _plots(summary: Mapping[str, Any]) -> list[str]:
    sizes = [row for row in summary["cluster_sizes"] if row["size"] != "1"]
    names = [row["size"] for row in sizes]
    drawn = [
        plots.bar_chart("Clusters per size", names, [row["clusters"] for row in sizes], logarithmic=True),
        plots.bar_chart(
            "Confirmed pairs per Hamming distance", [str(d) for d in range(65)], summary["distances"]
        ),
        plots.bar_chart(
            "Confirmed pairs per containment", [f"{k / 20:.2f}" for k in range(20)], summary["containments"]
        ),
        plots.bar_chart("Seconds per stage", list(summary["seconds"]), list(summary["seconds"].values())),
    ]
    if len(summary["sources"]) > 1:
        names = [row["source"][:12] for row in summary["sources"]]
        drawn.append(
            plots.bar_chart("Copies per source", names, [row["copies"] for row in summary["sources"]])
        )
    if len(summary["months"]) > 1:
        months = [row["month"] for row in summary["months"]]
        drawn.append(
            plots.bar_chart("Articles per month", months, [row["articles"] for row in summary["months"]])
        )
        drawn.append(
            plots.bar_chart("Copies per month", months, [row["copies"] for row in summary["months"]])
        )
    return drawn


def _article_context(
    row: int, result: DedupeResult, articles_by_row: Mapping[int, dict[str, Any]]
) -> dict[str, str]:
    from aggregator.offline.archive.summary import format_date

    given = articles_by_row.get(row, {})
    text = str(given.get("text") or given.get("html") or "")
    return {
        "id": result.columns.id_of(row),
        "title": str(given.get("title") or ""),
        "source": str(given.get("source") or ""),
        "day": format_date(int(result.columns.date_ms[row])),
        "opening": text[:OPENING_CHARS],
    }
