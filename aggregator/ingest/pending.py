"""An article on its way: what is held of it between its arrival and its answer, and what is written of it.

Pure values and the record they become; what happens to them is told in ``ingest.py``.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from aggregator.domain import NO_SKETCH, Analysis, Answer, Article, Match, Record
from aggregator.errors import AggregatorError
from aggregator.index.duplicate_groups import Known
from aggregator.index.lookup import NOTHING, Found
from aggregator.store.base import Transaction


@dataclass(slots=True)
class Arrival:
    """An article and its analysis; its number and record stay the same however often it is decided again.

    Unless the record would say something else: ``first`` is the first version it was written for.
    """

    position: int
    article: Article
    analysis: Analysis
    number: int = 0
    first: int = 0
    written: bool = False
    found: Found = NOTHING
    numbers: list[int] = field(default_factory=list)  # of ``found``
    answer: Answer | AggregatorError | None = None


@dataclass(slots=True)
class Step:
    """What was decided for one article, and what must be committed for it (None: nothing)."""

    pending: Arrival
    answer: Answer
    transaction: Transaction | None = None
    record: Record | None = None
    superseded: int | None = None
    version: int = 0  # the id's newest number afterwards ...
    elsewhere: tuple[Known, ...] = ()  # ... and its older ones in other languages' spaces, to be taken out
    groups: tuple[int, ...] = field(default=())
    standing: Record | None = None  # what the id is bound to afterwards


def bare(one: Arrival) -> Arrival:
    """All of it that the paper's rule needs: id, fingerprint and the hash of its text. Nothing else is stored."""
    analysis = replace(one.analysis, sketch=NO_SKETCH, terms=(), figures=(), title="", text="")
    return replace(one, article=Article(id=one.article.id), analysis=analysis)


def chunks(pending: Sequence[Arrival], size: int) -> Iterator[list[Arrival]]:
    """Up to ``size`` articles at a time, in order. No id twice: its second post is a repeat or update
    of what is stored, so the first must be stored before."""
    chunk: dict[str, Arrival] = {}
    for one in pending:
        if len(chunk) == size or one.article.id in chunk:
            yield list(chunk.values())
            chunk = {}
        chunk[one.article.id] = one
    if chunk:
        yield list(chunk.values())


def with_metadata(record: Record, article: Article) -> Record:
    """Title, url, source and date as posted now; what the article does not say stays as it is stored."""
    return replace(
        record,
        title=article.title or record.title,
        url=article.url or record.url,
        source=article.source or record.source,
        published_at_ms=record.published_at_ms
        if article.published_at_ms is None
        else article.published_at_ms,
    )


def metadata(record: Record) -> tuple[str, str, str, int | None]:
    """What ``with_metadata`` may change."""
    return record.title, record.url, record.source, record.published_at_ms


def record_of(one: Arrival) -> Record:
    """What is kept of it."""
    article, analysis = one.article, one.analysis
    return Record(
        number=one.number,
        first=one.first,
        id=article.id,
        space=analysis.space,
        lang=analysis.lang,
        fingerprint=analysis.fingerprint,
        text_hash=analysis.text_hash,
        short=analysis.short,
        title=article.title or analysis.title,
        url=article.url,
        source=article.source,
        published_at_ms=article.published_at_ms,
        sketch=analysis.sketch,
        terms=analysis.terms,
        figures=analysis.figures,
    )


def own_group(match: Match | None, record: Record | None) -> int | None:
    """The group it is in: that of its match, else its own."""
    if match is not None:
        return match.canonical_first
    return record.first if record is not None else None


def compress(text: str) -> bytes:
    """A kept text as it is stored (zlib)."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 6)
