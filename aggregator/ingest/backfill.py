"""Filling the spaces beside those that serve: from kept texts, or from a file of the articles themselves.

While it runs, new articles are written to both (``beside.py``), so it only has to go once through what was
there before; while they come one by one, it gives way (``pacing.py``). From kept texts it follows the article
streams and notes its place after each batch; from a file it goes by the file's lines. What stands beside already
is passed over, so it can be interrupted and started again, and ends the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from aggregator.domain import Article, ArticleRecord
from aggregator.index import Index, keys
from aggregator.ingest.dual_write import DualWriter, PostedArticle
from aggregator.ingest.throttle import BulkThrottle, throttled_slice
from aggregator.store.base import Put

BATCH_ARTICLES = 64


@dataclass(slots=True)
class BackfillStats:
    """What a run came across.

    seen     articles looked at: those that are stored still
    missing  ... that could not be brought in: no text is at hand, or another one than is stored
    unknown  lines of a file that are not stored under their id
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
    """All articles in the order in which they came, by their kept texts; goes on where it was interrupted."""
    filled, place = BackfillStats(), keys.backfill_position(index.shadow_spaces)
    saved = (await index.store.read([place]))[0]
    positions: dict[bytes, bytes] = msgspec.msgpack.decode(saved, type=dict[bytes, bytes]) if saved else {}
    while True:
        items, positions = await index.read_stream(positions, BATCH_ARTICLES)
        if not items:
            return filled
        ids = list(dict.fromkeys(item.id for item in items if item.kind == "article"))
        posted = [
            PostedArticle(await _stored_article(index, record), record)
            for record in await _stored_records(index, ids)
        ]
        filled.examined += len(posted)
        filled.not_copied += await _replicate_throttled(dual_writer, posted, throttle)
        if filled.not_copied == 0:  # what is missing now may be at hand when this runs again
            await index.store.put([Put(place, msgspec.msgpack.encode(positions))])
        on_progress(filled)


async def backfill_from_articles(
    index: Index,
    dual_writer: DualWriter,
    articles: Iterator[Article],
    on_progress: Callable[[BackfillStats], None],
    throttle: BulkThrottle | None = None,
) -> BackfillStats:
    """The articles of a file, as far as they are stored with this very text."""
    filled = BackfillStats()
    batch: dict[str, Article] = {}
    for article in articles:
        if article.id in batch or len(batch) == BATCH_ARTICLES:
            await _backfill_batch(index, dual_writer, batch, filled, throttle)
            on_progress(filled)
            batch = {}
        batch[article.id] = article
    await _backfill_batch(index, dual_writer, batch, filled, throttle)
    on_progress(filled)
    return filled


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
    """Bring them in step; how many cannot be."""
    missing = done = 0
    while done < len(posted):
        async with throttled_slice(throttle, len(posted) - done) as count:
            missing += len(await dual_writer.replicate(posted[done : done + count]))
        done += count
    return missing


async def _stored_records(index: Index, ids: Sequence[str]) -> list[ArticleRecord]:
    return [found.record for found in (await index.get_many(ids)).values()]


async def _stored_article(index: Index, record: ArticleRecord) -> Article | None:
    data = await index.read_text(record.number)
    if data is None:
        return None
    text = zlib.decompress(data).decode("utf-8", "surrogatepass")
    return Article(id=record.id, title=record.title, text=text, lang=record.lang)
