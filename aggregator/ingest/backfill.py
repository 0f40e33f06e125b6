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

from aggregator.domain import Article, Record
from aggregator.index import Index, keys
from aggregator.ingest.dual_write import Beside, Posted
from aggregator.ingest.throttle import Pace, piece_of
from aggregator.store.base import Put

BATCH = 64


@dataclass(slots=True)
class Filled:
    """What a run came across.

    seen     articles looked at: those that are stored still
    missing  ... that could not be brought in: no text is at hand, or another one than is stored
    unknown  lines of a file that are not stored under their id
    """

    seen: int = 0
    missing: int = 0
    unknown: int = 0


async def fill_from_store(
    index: Index, beside: Beside, told: Callable[[Filled], None], pace: Pace | None = None
) -> Filled:
    """All articles in the order in which they came, by their kept texts; goes on where it was interrupted."""
    filled, place = Filled(), keys.filling(index.beside)
    saved = (await index.store.read([place]))[0]
    positions: dict[bytes, bytes] = msgspec.msgpack.decode(saved, type=dict[bytes, bytes]) if saved else {}
    while True:
        items, positions = await index.stream(positions, BATCH)
        if not items:
            return filled
        ids = list(dict.fromkeys(item.id for item in items if item.kind == "article"))
        posted = [Posted(await _kept(index, record), record) for record in await _stored(index, ids)]
        filled.seen += len(posted)
        filled.missing += await _brought(beside, posted, pace)
        if filled.missing == 0:  # what is missing now may be at hand when this runs again
            await index.store.put([Put(place, msgspec.msgpack.encode(positions))])
        told(filled)


async def fill_from_articles(
    index: Index,
    beside: Beside,
    articles: Iterator[Article],
    told: Callable[[Filled], None],
    pace: Pace | None = None,
) -> Filled:
    """The articles of a file, as far as they are stored with this very text."""
    filled = Filled()
    batch: dict[str, Article] = {}
    for article in articles:
        if article.id in batch or len(batch) == BATCH:
            await _fill(index, beside, batch, filled, pace)
            told(filled)
            batch = {}
        batch[article.id] = article
    await _fill(index, beside, batch, filled, pace)
    told(filled)
    return filled


async def _fill(
    index: Index, beside: Beside, batch: dict[str, Article], filled: Filled, pace: Pace | None
) -> None:
    records = await _stored(index, list(batch))
    filled.unknown += len(batch) - len(records)
    filled.seen += len(records)
    posted = [Posted(batch[record.id], record) for record in records]
    filled.missing += await _brought(beside, posted, pace)


async def _brought(beside: Beside, posted: Sequence[Posted], pace: Pace | None) -> int:
    """Bring them in step; how many cannot be."""
    missing = done = 0
    while done < len(posted):
        async with piece_of(pace, len(posted) - done) as count:
            missing += len(await beside.follow(posted[done : done + count]))
        done += count
    return missing


async def _stored(index: Index, ids: Sequence[str]) -> list[Record]:
    return [found.record for found in (await index.get_many(ids)).values()]


async def _kept(index: Index, record: Record) -> Article | None:
    data = await index.text_of(record.number)
    if data is None:
        return None
    text = zlib.decompress(data).decode("utf-8", "surrogatepass")
    return Article(id=record.id, title=record.title, text=text, lang=record.lang)
