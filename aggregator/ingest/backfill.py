"""Backfill: copies stored articles into other spaces, for a migration or after a change of the settings.

``backfill_from_store`` examines every record of the serving spaces. An article that is missing in the shadow
spaces is analyzed from its stored text; where only the block plan differs, its record suffices. Articles that
are there already cost a read, so a backfill can be interrupted and repeated, with the same result.
``backfill_from_articles`` takes the texts from files instead. Both run under the bulk throttle.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from aggregator.domain import Article, ArticleRecord
from aggregator.index import Index
from aggregator.index.codec.record_codec import decompress_text
from aggregator.ingest.dual_write import DualWriter, PostedArticle
from aggregator.ingest.load_control import BulkThrottle, throttled_slice

BATCH_ARTICLES = 64
STREAM_ITEMS_PER_READ = 512

T = TypeVar("T")


@dataclass(slots=True)
class BackfillStats:
    """Articles of one run: still stored, impossible to copy for want of their text, and only in the file."""

    examined: int = 0
    not_copied: int = 0
    not_stored: int = 0


class Retry(Protocol):
    """Runs one step, which may be repeated, until it succeeds or the caller gives up."""

    async def __call__(self, step: Callable[[], Awaitable[T]], /) -> T:
        """Return the result of ``step``."""


async def run_once(step: Callable[[], Awaitable[T]]) -> T:
    """Run ``step`` without retries."""
    return await step()


async def backfill_from_store(
    index: Index,
    dual_writer: DualWriter,
    on_progress: Callable[[BackfillStats], None],
    throttle: BulkThrottle | None = None,
    retry: Retry = run_once,
) -> BackfillStats:
    """Copy all articles of the serving spaces, each in order of arrival, from their stored texts."""
    stats = BackfillStats()
    for space in index.spaces:
        numbers = await retry(partial(index.records.stored_numbers, space))
        for start in range(0, len(numbers), BATCH_ARTICLES):
            some = numbers[start : start + BATCH_ARTICLES]
            await retry(partial(_copy_stored, index, dual_writer, space, some, stats, throttle))
            on_progress(stats)
    return stats


async def count_without_text(index: Index, dual_writer: DualWriter) -> int:
    """How many articles ``backfill_from_store`` cannot copy: not copied yet, and their text is not stored."""
    count = 0
    for space in index.spaces:
        numbers = await index.records.stored_numbers(space)
        for start in range(0, len(numbers), BATCH_ARTICLES):
            records = await _current_records(index, space, numbers[start : start + BATCH_ARTICLES])
            missing = await dual_writer.find_missing([PostedArticle(None, record) for record in records])
            wanted = [item.record.number for item in missing if not dual_writer.can_convert(item.record)]
            count += len(wanted) - len(await index.records.read_texts(wanted))
    return count


async def remove_deleted(index: Index, dual_writer: DualWriter) -> None:
    """Remove articles from the shadow spaces that were deleted in the serving ones since they were copied."""
    positions: dict[bytes, bytes] = {}
    while True:
        items, positions = await index.stream.read(positions, STREAM_ITEMS_PER_READ)
        if not items:
            return
        await dual_writer.remove_deleted({item.id: item.number for item in items if item.kind == "deleted"})


async def backfill_from_articles(
    index: Index,
    dual_writer: DualWriter,
    articles: Iterator[Article],
    on_progress: Callable[[BackfillStats], None],
    throttle: BulkThrottle | None = None,
    retry: Retry = run_once,
) -> BackfillStats:
    """Copy the articles of a file that are stored under their id with the same text."""
    stats = BackfillStats()
    batch: dict[str, Article] = {}
    for article in articles:
        if article.id in batch or len(batch) == BATCH_ARTICLES:
            await retry(partial(_backfill_batch, index, dual_writer, batch, stats, throttle))
            on_progress(stats)
            batch = {}
        batch[article.id] = article
    await retry(partial(_backfill_batch, index, dual_writer, batch, stats, throttle))
    on_progress(stats)
    return stats


async def _backfill_batch(
    index: Index,
    dual_writer: DualWriter,
    batch: dict[str, Article],
    stats: BackfillStats,
    throttle: BulkThrottle | None,
) -> None:
    records = [stored.record for stored in (await index.articles.get_many(list(batch))).values()]
    posted = [PostedArticle(batch[record.id], record) for record in records]
    await _replicate_throttled(dual_writer, posted, stats, throttle)
    stats.not_stored += len(batch) - len(records)


async def _copy_stored(
    index: Index,
    dual_writer: DualWriter,
    space: str,
    numbers: npt.NDArray[np.uint64],
    stats: BackfillStats,
    throttle: BulkThrottle | None,
) -> None:
    records = await _current_records(index, space, numbers)
    posted = [PostedArticle(None, record) for record in records]
    missing = {item.record.number for item in await dual_writer.find_missing(posted)}
    posted = [
        PostedArticle(await _stored_article(index, record), record, is_stored_text=True)
        if record.number in missing
        else PostedArticle(None, record)
        for record in records
    ]
    await _replicate_throttled(dual_writer, posted, stats, throttle)


async def _replicate_throttled(
    dual_writer: DualWriter,
    posted: Sequence[PostedArticle],
    stats: BackfillStats,
    throttle: BulkThrottle | None,
) -> None:
    not_copied = done = 0
    while done < len(posted):
        async with throttled_slice(throttle, len(posted) - done) as count:
            not_copied += len(await dual_writer.replicate(posted[done : done + count]))
        done += count
    stats.examined += len(posted)
    stats.not_copied += not_copied


async def _current_records(index: Index, space: str, numbers: npt.NDArray[np.uint64]) -> list[ArticleRecord]:
    records = await index.records.read(dict.fromkeys(numbers.tolist(), space))
    bound = await index.bindings.find_many([record.id for record in records.values()])
    return [
        record
        for record in records.values()
        if (known := bound.get(record.id)) is not None and known.binding.number == record.number
    ]


async def _stored_article(index: Index, record: ArticleRecord) -> Article | None:
    data = await index.records.read_text(record.number)
    if data is None:
        return None
    return Article(id=record.id, title=record.title, text=decompress_text(data), lang=record.lang)
