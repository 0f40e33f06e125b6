"""An article on its way: what is held of it between its arrival and its answer, and what is written of it.

Pure values and the record they become; what happens to them is told in ``ingest.py``.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from aggregator.domain import NO_SKETCH, Analysis, Answer, Article, ArticleRecord, Match
from aggregator.errors import AggregatorError
from aggregator.index.duplicate_groups import BindingSnapshot
from aggregator.index.lookup import EMPTY_RESULT, LookupResult
from aggregator.store.base import Transaction


@dataclass(slots=True)
class PendingArticle:
    """An article and its analysis; its number and record stay the same however often it is decided again.

    Unless the record would say something else: ``first`` is the first version it was written for.
    """

    position: int
    article: Article
    analysis: Analysis
    number: int = 0
    first_version: int = 0
    record_written: bool = False
    matches: LookupResult = EMPTY_RESULT
    candidate_numbers: list[int] = field(default_factory=list)  # of ``found``
    answer: Answer | AggregatorError | None = None


@dataclass(slots=True)
class CommitPlan:
    """What was decided for one article, and what must be committed for it (None: nothing)."""

    pending: PendingArticle
    answer: Answer
    transaction: Transaction | None = None
    record: ArticleRecord | None = None
    superseded_number: int | None = None
    latest_number: int = 0  # the id's newest number afterwards ...
    versions_in_other_spaces: tuple[
        BindingSnapshot, ...
    ] = ()  # ... and its older ones in other languages' spaces, to be taken out
    duplicate_groups: tuple[int, ...] = field(default=())
    bound_record: ArticleRecord | None = None  # what the id is bound to afterwards


def strip_to_fingerprint(pending: PendingArticle) -> PendingArticle:
    """All of it that the paper's rule needs: id, fingerprint and the hash of its text. Nothing else is stored."""
    analysis = replace(pending.analysis, sketch=NO_SKETCH, terms=(), figures=(), title="", text="")
    return replace(pending, article=Article(id=pending.article.id), analysis=analysis)


def split_batches(pending: Sequence[PendingArticle], size: int) -> Iterator[list[PendingArticle]]:
    """Up to ``size`` articles at a time, in order. No id twice: its second post is a repeat or update
    of what is stored, so the first must be stored before."""
    chunk: dict[str, PendingArticle] = {}
    for one in pending:
        if len(chunk) == size or one.article.id in chunk:
            yield list(chunk.values())
            chunk = {}
        chunk[one.article.id] = one
    if chunk:
        yield list(chunk.values())


def merge_metadata(record: ArticleRecord, article: Article) -> ArticleRecord:
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


def metadata_fields(record: ArticleRecord) -> tuple[str, str, str, int | None]:
    """What ``with_metadata`` may change."""
    return record.title, record.url, record.source, record.published_at_ms


def build_record(pending: PendingArticle) -> ArticleRecord:
    """What is kept of it."""
    article, analysis = pending.article, pending.analysis
    return ArticleRecord(
        number=pending.number,
        first_version=pending.first_version,
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


def group_of(match: Match | None, record: ArticleRecord | None) -> int | None:
    """The group it is in: that of its match, else its own."""
    if match is not None:
        return match.canonical_first
    return record.first_version if record is not None else None


def compress_text(text: str) -> bytes:
    """A kept text as it is stored (zlib)."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 6)
