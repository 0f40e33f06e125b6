"""Stored records for provenance tests, analyzed with hashed features."""

from __future__ import annotations

import zlib

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.domain import Analysis, Article, ArticleRecord, article_number_at
from tests.support.factories import START_MS

ANALYZER = Analyzer({"xx": HashedModel()})


def record(
    id_: str,
    text: str,
    *,
    published_min: float | None = None,
    arrived_min: float = 100.0,
    source: str | None = None,
    title: str = "",
) -> ArticleRecord:
    """A record; times in minutes after START_MS. The source is the id unless given."""
    published_ms = None if published_min is None else START_MS + round(published_min * 60_000)
    article = Article(id=id_, title=title, text=text, lang="en")
    analysis = ANALYZER.analyze_many([article])[0]
    assert isinstance(analysis, Analysis)
    number = article_number_at(START_MS + round(arrived_min * 60_000), zlib.crc32(id_.encode()) % 1000)
    return ArticleRecord(
        number=number,
        first_version=number,
        id=id_,
        space=analysis.space,
        lang=analysis.lang,
        fingerprint=analysis.fingerprint,
        text_words=len(text.split()),
        text_hash=analysis.text_hash,
        short=analysis.short,
        title=title,
        url="",
        source=id_ if source is None else source,
        published_at_ms=published_ms,
        sketch=analysis.sketch,
        figures=analysis.figures,
    )
