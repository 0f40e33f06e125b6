"""Real English articles with texts (development data), interleaved by source, and their analyses.

The analyses are kept in a cache file in the directory for temporary files; texts are read again when they are
needed, so none is copied.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import xxhash

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.domain import Analysis, Article
from aggregator_archive.rows import read_rows
from tests.support.development_data import DATA

SOURCES = ("allsides", "reuters21578", "spotsigs", "yahoo_finance", "ecbplus", "lee_background300")
MAX_CHARACTERS = 20_000
CHUNK = 500


def read_articles(sources: Sequence[str] = SOURCES) -> list[Article]:
    """All articles of these sources, interleaved, each source in its order."""
    found: list[tuple[float, str, Article]] = []
    for source in sources:
        rows = [row for row in read_rows([str(DATA / f"{source}_dev.jsonl.gz")]) if row.get("text")]
        for i, row in enumerate(rows):
            article = Article(
                id=f"{source}:{row['id']}", title=(row.get("title") or "")[:500], lang="en",
                text=row["text"][:MAX_CHARACTERS], url=row.get("url") or "",
                source=row.get("source") or source,
            )  # fmt: skip
            found.append((i / len(rows), source, article))
    return [article for *_, article in sorted(found, key=lambda item: item[:2])]


def analyze(articles: Sequence[Article], cache: Path | None = None) -> list[tuple[Article, Analysis]]:
    """Articles and analyses, both without texts; those that cannot be analyzed are left out.

    ``cache``: a file that is read if it was written for the same articles and models, else written.
    """
    analyzer = Analyzer(load_models())
    key = xxhash.xxh3_64_hexdigest(repr([analyzer.spaces, [article.id for article in articles]]))
    cache = cache or Path(tempfile.gettempdir()) / f"aggregator-scale-{key}.pickle"
    if cache.exists():
        stored_key, stored = pickle.loads(cache.read_bytes())
        if stored_key == key:
            return list(stored)
    found = list(_analyze_all(analyzer, articles))
    partial = cache.with_suffix(".partial")
    partial.write_bytes(pickle.dumps([key, found]))
    partial.rename(cache)
    return found


def _analyze_all(analyzer: Analyzer, articles: Sequence[Article]) -> Iterator[tuple[Article, Analysis]]:
    for start in range(0, len(articles), CHUNK):
        chunk = articles[start : start + CHUNK]
        for article, analysis in zip(chunk, analyzer.analyze_many(chunk), strict=True):
            if isinstance(analysis, Analysis):
                yield replace(article, text=""), replace(analysis, text="")
