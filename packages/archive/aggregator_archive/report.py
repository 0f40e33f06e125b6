"""HTML pages of a run: ``report.html`` (tables, examples) and ``review.html`` (manual review)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from aggregator.analysis.shingles import distinct
from aggregator_archive.arrays import Rows, unpack_pairs, write_bytes
from aggregator_archive.pipeline import DedupeResult
from aggregator_archive.summary import format_date

MAX_EXAMPLES = 12
OPENING_CHARS = 280
# As in the manual check of Zhang (2023): five random clusters of each size from 2 to 10, one of each from
# 11 to 30.
REVIEW_CLUSTERS_PER_SIZE = {**dict.fromkeys(range(2, 11), 5), **dict.fromkeys(range(11, 31), 1)}


def load_templates(directory: Path) -> jinja2.Environment:
    """The templates of ``directory``: escaped, and a name without a value is an error."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(directory),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


_TEMPLATES = load_templates(Path(__file__).parent / "pages")


def example_pairs(result: DedupeResult) -> list[tuple[int, int, int]]:
    """(position, row, row) of confirmed pairs, evenly spaced in ascending order of containment."""
    a, b = unpack_pairs(result.confirmed.pairs)
    if not len(a):
        return []
    order = np.argsort(result.confirmed.overlaps.containment, kind="stable")
    order = order[~result.confirmed.undecided[order]]
    chosen = order[distinct(np.linspace(0, len(order) - 1, MAX_EXAMPLES).astype(int))]
    return [(int(at), int(a[at]), int(b[at])) for at in chosen]


def sample_review_clusters(result: DedupeResult, seed: int) -> list[list[int]]:
    """Rows of randomly chosen clusters, smallest clusters first; the same for the same seed."""
    labels = result.labels
    sizes = np.bincount(labels, minlength=max(1, len(labels)))
    rng = random.Random(seed)
    clusters = []
    for size, count in REVIEW_CLUSTERS_PER_SIZE.items():
        of_size = np.flatnonzero(sizes == size).tolist()
        for label in sorted(rng.sample(of_size, min(count, len(of_size)))):
            clusters.append(np.flatnonzero(labels == label).tolist())
    return clusters


def write_report(
    out: Path,
    result: DedupeResult,
    copy_of: Rows,
    summary: Mapping[str, Any],
    articles_by_row: Mapping[int, dict[str, Any]],
) -> None:
    """Write ``report.html``: the summary as tables, and the openings of example pairs."""
    overlaps = result.confirmed.overlaps
    examples = [
        {
            "containment": float(overlaps.containment[at]),
            "shared": float(overlaps.shared[at]),
            "distance": int(result.confirmed.distance[at]),
            "articles": [_article_context(row, result, copy_of, articles_by_row) for row in pair],
        }
        for at, *pair in example_pairs(result)
    ]
    page = _TEMPLATES.get_template("report.html").render(summary=summary, examples=examples)
    write_bytes(out / "report.html", page.encode())


def write_review(
    out: Path,
    result: DedupeResult,
    copy_of: Rows,
    clusters: Sequence[Sequence[int]],
    articles_by_row: Mapping[int, dict[str, Any]],
) -> None:
    """Write ``review.html``: the chosen clusters, with a checkbox per article that is not a duplicate."""
    page = _TEMPLATES.get_template("review.html").render(
        clusters=[[_article_context(row, result, copy_of, articles_by_row) for row in c] for c in clusters]
    )
    write_bytes(out / "review.html", page.encode())


def _article_context(
    row: int, result: DedupeResult, copy_of: Rows, articles_by_row: Mapping[int, dict[str, Any]]
) -> dict[str, str]:
    given = articles_by_row.get(row, {})
    text = str(given.get("text") or given.get("html") or "")
    return {
        "id": result.columns.id_of(row),
        "title": str(given.get("title") or ""),
        "source": str(given.get("source") or ""),
        "day": format_date(int(result.columns.date_ms[row])),
        "opening": text[:OPENING_CHARS],
        "fate": "kept" if copy_of[row] == row else f"removed: a copy of {result.columns.id_of(copy_of[row])}",
    }
