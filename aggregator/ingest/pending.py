"""State of one article between its arrival and its answer, and the record that is stored of it.

``PendingArticle`` lives as long as the request and keeps the article's number and record across retries.
``CommitPlan`` is the immutable decision of one attempt. ``service.py`` describes the steps in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from aggregator import domain, tracing
from aggregator.dedup.policy import NamedPolicy
from aggregator.domain import Analysis, Answer, Article, ArticleRecord
from aggregator.errors import AggregatorError
from aggregator.index.bindings import BindingSnapshot
from aggregator.store.base import Transaction


@dataclass(slots=True, eq=False)
class PendingArticle:
    """An article with its analysis; ``position`` is its index in the request.

    ``number`` and ``first_version`` are those of its record (0: not assigned), which is stored if
    ``record_written``: a retry after a conflict writes no second record unless its contents differ.
    ``sources``: those whose articles alone the caller may replace; () for all. ``policy`` is selected once,
    so that a retry decides by the same. ``origin``: the span of its request.
    """

    position: int
    article: Article
    analysis: Analysis
    number: int = 0
    first_version: int = 0
    record_written: bool = False
    answer: Answer | AggregatorError | None = None
    sources: tuple[str, ...] = ()
    policy: NamedPolicy = field(default_factory=NamedPolicy)
    origin: object = field(default_factory=tracing.current)


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """The decision on one article, and everything its commit needs.

    ``transaction`` is None for a repeat, ``record`` for a repeat whose record has expired.
    ``older_versions``: bindings in other languages, to be removed. ``duplicate_groups``: first numbers, own
    group first.
    """

    pending: PendingArticle
    answer: Answer
    transaction: Transaction | None
    record: ArticleRecord | None
    latest_number: int
    superseded_number: int | None
    older_versions: tuple[BindingSnapshot, ...]
    duplicate_groups: tuple[int, ...]


def split_batches(pending: Sequence[PendingArticle], size: int) -> Iterator[list[PendingArticle]]:
    """Split into batches of at most ``size`` articles, in order and without a repeated id in one batch."""
    batch: dict[str, PendingArticle] = {}
    for item in pending:
        if len(batch) == size or item.article.id in batch:
            yield list(batch.values())
            batch = {}
        batch[item.article.id] = item
    if batch:
        yield list(batch.values())


def merge_metadata(record: ArticleRecord, article: Article) -> ArticleRecord:
    """The record with the article's title, url, source and date; empty ones keep the stored value."""
    return replace(
        record,
        title=article.title or record.title,
        url=article.url or record.url,
        source=article.source or record.source,
        published_at_ms=record.published_at_ms
        if article.published_at_ms is None
        else article.published_at_ms,
    )


def copy_metadata(source: ArticleRecord, target: ArticleRecord) -> ArticleRecord:
    """``target`` with the metadata of ``source``."""
    return replace(
        target,
        title=source.title,
        url=source.url,
        source=source.source,
        published_at_ms=source.published_at_ms,
    )


def metadata_of(record: ArticleRecord) -> tuple[str, str, str, int | None]:
    """The fields that ``merge_metadata`` may change."""
    return record.title, record.url, record.source, record.published_at_ms


def build_record(pending: PendingArticle) -> ArticleRecord:
    """The record to store, under the assigned number."""
    return domain.build_record(pending.article, pending.analysis, pending.number, pending.first_version)
