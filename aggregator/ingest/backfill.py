"""Backfill of shadow spaces with the articles stored before the migration began.

New articles are dual-written (``dual_write.py``), so one pass over the older ones suffices. It runs under
the bulk throttle. Backfill from kept texts reads the article streams and saves its position after each batch;
backfill from a file reads the file from the start. Articles that are in the shadow spaces already are
skipped, so a backfill can be interrupted and restarted, with the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from aggregator.domain import Article, ArticleRecord
from aggregator.index import Index, keys
from aggregator.index.codec.stored_text import decompress_text
from aggregator.ingest.dual_write import DualWriter, PostedArticle
from aggregator.ingest.throttle import BulkThrottle, throttled_slice
from aggregator.store.base import Put

BATCH_ARTICLES = 64


@dataclass(slots=True)
class BackfillStats:
    """Counts of one run.

    examined    articles that are still stored
    not_copied  ... that could not be copied: no text is available, or it is not the stored one
    not_stored  articles of a file that are not stored under their id
    """

    examined: int = 0
    not_copied: int = 0
    not_stored: int = 0


async def backfill_from_store(
    index: Index,
    dual_writer: DualWriter,
    on_progress: Callable[[BackfillStats], None],
    throttle: BulkThrottle | None = None,
) -> BackfillStats:
    """Copy all articles in order of arrival, from their kept texts; resumes where it was interrupted."""
    stats, position_key = BackfillStats(), keys.backfill_position(index.shadow_spaces)
    saved = (await index.store.read([position_key]))[0]
    positions: dict[bytes, bytes] = msgspec.msgpack.decode(saved, type=dict[bytes, bytes]) if saved else {}
    while True:
        items, positions = await index.stream.read(positions, BATCH_ARTICLES)
        if not items:
            return stats
        ids = list(dict.fromkeys(item.id for item in items if item.kind == "article"))
        posted = [
            PostedArticle(await _stored_article(index, record), record)
            for record in await _stored_records(index, ids)
        ]
        stats.examined += len(posted)
        stats.not_copied += await _replicate_throttled(dual_writer, posted, throttle)
        if stats.not_copied == 0:  # otherwise keep the position, so that the next run tries again
            await index.store.put([Put(position_key, msgspec.msgpack.encode(positions))])
        on_progress(stats)


async def backfill_from_articles(
    index: Index,
    dual_writer: DualWriter,
    articles: Iterator[Article],
    on_progress: Callable[[BackfillStats], None],
    throttle: BulkThrottle | None = None,
) -> BackfillStats:
    """Copy the articles of a file that are stored under their id with the same text."""
    stats = BackfillStats()
    batch: dict[str, Article] = {}
    for article in articles:
        if article.id in batch or len(batch) == BATCH_ARTICLES:
            await _backfill_batch(index, dual_writer, batch, stats, throttle)
            on_progress(stats)
            batch = {}
        batch[article.id] = article
    await _backfill_batch(index, dual_writer, batch, stats, throttle)
    on_progress(stats)
    return stats


async def _backfill_batch(
    index: Index,
    dual_writer: DualWriter,
    batch: dict[str, Article],
    stats: BackfillStats,
    throttle: BulkThrottle | None,
) -> None:
    records = await _stored_records(index, list(batch))
    stats.not_stored += len(batch) - len(records)
    stats.examined += len(records)
    posted = [PostedArticle(batch[record.id], record) for record in records]
    stats.not_copied += await _replicate_throttled(dual_writer, posted, throttle)


async def _replicate_throttled(
    dual_writer: DualWriter, posted: Sequence[PostedArticle], throttle: BulkThrottle | None
) -> int:
    """Copy the articles; return how many cannot be copied."""
    not_copied = done = 0
    while done < len(posted):
        async with throttled_slice(throttle, len(posted) - done) as count:
            not_copied += len(await dual_writer.replicate(posted[done : done + count]))
        done += count
    return not_copied


async def _stored_records(index: Index, ids: Sequence[str]) -> list[ArticleRecord]:
    return [stored.record for stored in (await index.articles.get_many(ids)).values()]


async def _stored_article(index: Index, record: ArticleRecord) -> Article | None:
    """The article as posted, if its text is kept."""
    data = await index.records.read_text(record.number)
    if data is None:
        return None
    return Article(id=record.id, title=record.title, text=decompress_text(data), lang=record.lang)
