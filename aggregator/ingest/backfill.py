"""Backfill: copies stored articles into other spaces, for a migration or after a change of the settings.

``Backfill.from_store`` analyzes the stored texts of the articles that are missing in the shadow spaces,
``Backfill.from_articles`` takes the texts from files. Articles that are there already cost a read, so both
can be interrupted and repeated. They run under the bulk throttle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from aggregator.domain import Article, ArticleRecord
from aggregator.index import Index
from aggregator.index.codec.record_codec import decompress_text
from aggregator.ingest.dual_write import DualWriter, PostedArticle
from aggregator.ingest.load_control import BulkThrottle, throttled_slice
from aggregator_client.retry_forever import until_available

BATCH_ARTICLES = 64
STREAM_ITEMS_PER_READ = 512
NAMED_IDS = 5

Numbers = npt.NDArray[np.uint64]


@dataclass(slots=True)
class BackfillStats:
    """Articles of one run: still stored, impossible to copy for want of their text, and only in the file.

    ``left_ids``: the first ``NAMED_IDS`` of those that cannot be copied.
    """

    examined: int = 0
    not_copied: int = 0
    not_stored: int = 0
    left_ids: list[str] = field(default_factory=list)


class Backfill:
    """Copies the articles of the serving spaces of ``index`` by ``writer``.

    ``on_progress`` is called after each batch; a step is repeated while it raises one of ``retryable``.
    """

    def __init__(
        self,
        index: Index,
        writer: DualWriter,
        on_progress: Callable[[BackfillStats], None],
        throttle: BulkThrottle | None = None,
        retryable: tuple[type[Exception], ...] = (),
    ) -> None:
        self._index, self._writer, self._on_progress = index, writer, on_progress
        self._throttle = throttle
        self._retried = partial(until_available, retryable=retryable)

    async def from_store(self) -> BackfillStats:
        """Copy all articles, each space in order of arrival, from their stored texts."""
        stats = BackfillStats()
        for space in self._index.spaces:
            stored = await self._retried(partial(self._index.records.stored_numbers, space))
            for start in range(0, len(stored), BATCH_ARTICLES):
                numbers = stored[start : start + BATCH_ARTICLES]
                await self._retried(partial(self._copy_stored, space, numbers, stats))
                self._on_progress(stats)
        return stats

    async def from_articles(self, articles: Iterator[Article]) -> BackfillStats:
        """Copy the articles of a file that are stored under their id with the same text."""
        stats = BackfillStats()
        batch: dict[str, Article] = {}
        for article in articles:
            if article.id in batch or len(batch) == BATCH_ARTICLES:
                await self._retried(partial(self._copy_given, batch, stats))
                batch = {}
            batch[article.id] = article
        await self._retried(partial(self._copy_given, batch, stats))
        return stats

    async def _copy_given(self, batch: dict[str, Article], stats: BackfillStats) -> None:
        records = [stored.record for stored in (await self._index.articles.get_many(list(batch))).values()]
        await self._replicate([PostedArticle(batch[record.id], record) for record in records], stats)
        stats.not_stored += len(batch) - len(records)
        self._on_progress(stats)

    async def _copy_stored(self, space: str, numbers: Numbers, stats: BackfillStats) -> None:
        stored = await self._index.articles.current(dict.fromkeys(numbers.tolist(), space))
        records = [article.record for article in stored.values()]
        posted = [PostedArticle(None, record) for record in records]
        missing = {item.record.number for item in await self._writer.find_missing(posted)}
        posted = [
            PostedArticle(await _stored_article(self._index, record), record, is_stored_text=True)
            if record.number in missing
            else PostedArticle(None, record)
            for record in records
        ]
        await self._replicate(posted, stats)

    async def _replicate(self, posted: Sequence[PostedArticle], stats: BackfillStats) -> None:
        left, done = list[PostedArticle](), 0
        while done < len(posted):
            async with throttled_slice(self._throttle, len(posted) - done) as count:
                left += await self._writer.replicate(posted[done : done + count])
            done += count
        stats.examined += len(posted)
        stats.not_copied += len(left)
        stats.left_ids += [item.record.id for item in left][: NAMED_IDS - len(stats.left_ids)]


async def remove_deleted(index: Index, writer: DualWriter) -> None:
    """Remove articles from the shadow spaces that were deleted in the serving ones since they were copied."""
    positions: dict[bytes, bytes] = {}
    while True:
        items, positions = await index.stream.read(positions, STREAM_ITEMS_PER_READ, with_story_terms=False)
        if not items:
            return
        await writer.remove_deleted({item.id: item.number for item in items if item.kind == "deleted"})


async def _stored_article(index: Index, record: ArticleRecord) -> Article | None:
    data = await index.records.read_text(record.number)
    if data is None and record.text_words:  # a headline alone is in the record
        return None
    text = decompress_text(data) if data else ""
    return Article(id=record.id, title=record.title, text=text, lang=record.lang)
