"""``report.html`` with tables, plots and examples, and ``review.html``, clusters to check by hand."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from aggregator.offline.archive import plots
from aggregator.offline.archive.checkpoint import write
from aggregator.offline.archive.pairs import rows_of
from aggregator.offline.archive.pipeline import Result

EXAMPLES = 12
OPENING_CHARS = 280
# Zhang (2023) checked by hand: five random clusters of each size 2-10, one of each size 11-30.
REVIEW = {**dict.fromkeys(range(2, 11), 5), **dict.fromkeys(range(11, 31), 1)}

_PAGES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "pages"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)


def style() -> str:
    """The style sheet that these pages share."""
    return (Path(__file__).parent / "pages" / "style.html").read_text(encoding="utf-8")


def examples(result: Result) -> list[tuple[int, int, int]]:
    """(position, row, row) of confirmed pairs from the least to the most overlap."""
    a, b = rows_of(result.confirmed.pairs)
    if not len(a):
        return []
    order = np.argsort(result.confirmed.overlaps.containment, kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, EXAMPLES).astype(int))]
    return [(int(at), int(a[at]), int(b[at])) for at in chosen]


def review_clusters(result: Result, seed: int) -> list[list[int]]:
    """Rows of randomly chosen clusters, smallest clusters first; the same for the same seed."""
    labels = result.labels
    sizes = np.bincount(labels, minlength=max(1, len(labels)))
    chosen = random.Random(seed)
    found = []
    for size, count in REVIEW.items():
        of_size = np.flatnonzero(sizes == size).tolist()
        for label in sorted(chosen.sample(of_size, min(count, len(of_size)))):
            found.append(np.flatnonzero(labels == label).tolist())
    return found


def write_report(
    out: Path, result: Result, summary: Mapping[str, Any], texts: Mapping[int, dict[str, Any]]
) -> None:
    """Everything that ``figures.summary`` found, drawn, and the examples with their openings."""
    found = result.confirmed.overlaps
    shown = [
        {
            "containment": float(found.containment[at]),
            "shared": float(found.shared[at]),
            "distance": int(result.confirmed.distance[at]),
            "articles": [_shown(row, result, texts) for row in (one, other)],
        }
        for at, one, other in examples(result)
    ]
    page = _PAGES.get_template("report.html").render(s=summary, plots=_plots(summary), examples=shown)
    write(out / "report.html", page.encode())


def write_review(
    out: Path, result: Result, clusters: Sequence[Sequence[int]], texts: Mapping[int, dict[str, Any]]
) -> None:
    """The chosen clusters, each article with a box to tick when it does not belong."""
    shown = [[_shown(row, result, texts) for row in cluster] for cluster in clusters]
    page = _PAGES.get_template("review.html").render(clusters=shown)
    write(out / "review.html", page.encode())


def _plots(s: Mapping[str, Any]) -> list[str]:
    sizes = [row for row in s["cluster_sizes"] if row["size"] != "1"]
    names = [row["size"] for row in sizes]
    drawn = [
        plots.bars("Clusters per size", names, [row["clusters"] for row in sizes], logarithmic=True),
        plots.bars("Confirmed pairs per Hamming distance", [str(d) for d in range(65)], s["distances"]),
        plots.bars(
            "Confirmed pairs per containment", [f"{k / 20:.2f}" for k in range(20)], s["containments"]
        ),
        plots.bars("Seconds per stage", list(s["seconds"]), list(s["seconds"].values())),
    ]
    if len(s["sources"]) > 1:
        names = [row["source"][:12] for row in s["sources"]]
        drawn.append(plots.bars("Copies per source", names, [row["copies"] for row in s["sources"]]))
    if len(s["months"]) > 1:
        months = [row["month"] for row in s["months"]]
        drawn.append(plots.bars("Articles per month", months, [row["articles"] for row in s["months"]]))
        drawn.append(plots.bars("Copies per month", months, [row["copies"] for row in s["months"]]))
    return drawn


def _shown(row: int, result: Result, texts: Mapping[int, dict[str, Any]]) -> dict[str, str]:
    from aggregator.offline.archive.summary import day_of

    given = texts.get(row, {})
    text = str(given.get("text") or given.get("html") or "")
    return {
        "id": result.columns.id_of(row),
        "title": str(given.get("title") or ""),
        "source": str(given.get("source") or ""),
        "day": day_of(int(result.columns.date_ms[row])),
        "opening": text[:OPENING_CHARS],
    }
