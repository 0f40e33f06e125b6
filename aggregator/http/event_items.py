"""The articles of an event for its report and its export: time, outlet, copies and best headlines.

An event lists at most 5,000 articles, whose records take 0.1 ms each to read. So they are read in parts, and
kept for a revision of the event: every reader of a report refreshes it when the event has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from aggregator.app import Service
from aggregator.domain import ArticleRecord
from aggregator.events.detection import Event
from aggregator.events.headline_alternatives import headline_alternatives
from aggregator.index import StoredArticle

ARTICLES_PER_READ = 100
# Articles whose headlines are compared for alternatives, the newest.
MAX_HEADLINES = 300
MAX_KEPT_ARTICLES = 20_000
# Metadata of an article may change without its event.
MAX_AGE_MS = 60_000


@dataclass(frozen=True, slots=True)
class EventItem:
    """One article of an event.

    at_ms       time of publication, or of arrival if the date is missing or implausible
    similarity  to the story when the article joined it, 0..1
    copy_of     id of the article that it duplicates, "" for an original
    """

    id: str
    title: str
    url: str
    source: str
    lang: str
    published_at_ms: int | None
    arrived_ms: int
    at_ms: int
    similarity: float
    copy_of: str = ""


@dataclass(frozen=True, slots=True)
class EventItems:
    """Stored articles of an event in order of time, and headlines that an editor may choose instead."""

    items: tuple[EventItem, ...]
    alternatives: tuple[EventItem, ...]

    @property
    def first(self) -> EventItem | None:
        """The earliest article; None if none is stored any more."""
        return self.items[0] if self.items else None


class EventItemsCache:
    """Articles of the events that were read last, at most ``MAX_KEPT_ARTICLES`` in total."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], tuple[int, EventItems]] = {}

    async def load(self, service: Service, event: Event) -> EventItems:
        """The articles of an event that are still stored. Raises StoreUnavailable."""
        key, now_ms = (event.id, event.revision), service.clock()
        kept = self._kept.get(key)
        if kept is not None and 0 <= now_ms - kept[0] < MAX_AGE_MS:
            return kept[1]
        loaded = await load_event_items(service, event)
        for other in [k for k in self._kept if k[0] == event.id]:
            self._kept.pop(other, None)
        self._kept[key] = now_ms, loaded
        while sum(len(items.items) for _, items in self._kept.values()) > MAX_KEPT_ARTICLES:
            self._kept.pop(next(iter(self._kept)))
        return loaded


async def load_event_items(service: Service, event: Event) -> EventItems:
    """The articles of an event, read now. Raises StoreUnavailable."""
    similarities = dict(zip(event.items, event.cosines, strict=False))
    items: list[EventItem] = []
    records: list[ArticleRecord] = []
    for start in range(0, len(event.items), ARTICLES_PER_READ):
        ids = event.items[start : start + ARTICLES_PER_READ]
        stored = await service.index.articles.get_many(ids)
        found = [stored[id_] for id_ in ids if id_ in stored]
        items += [_item(article, similarities.get(article.record.id, 1.0)) for article in found]
        records = (records + [article.record for article in found])[-MAX_HEADLINES:]
        await asyncio.sleep(0)  # 100 articles are 10 ms of the event loop
    by_id = {item.id: item for item in items}
    alternatives = [by_id[r.id] for r in headline_alternatives(records, event.title)]
    return EventItems(tuple(sorted(items, key=lambda i: (i.at_ms, i.arrived_ms))), tuple(alternatives))


def item_of(record: ArticleRecord, similarity: float = 1.0, copy_of: str = "") -> EventItem:
    """The item of a stored article."""
    return EventItem(
        id=record.id,
        title=record.title,
        url=record.url,
        source=record.source,
        lang=record.lang,
        published_at_ms=record.published_at_ms,
        arrived_ms=record.arrived_ms,
        at_ms=record.publication_ms,
        similarity=similarity,
        copy_of=copy_of,
    )


def first_own(items: Iterable[EventItem], service: Service) -> EventItem | None:
    """The first article of one of the newsroom's own sources."""
    return next((item for item in items if service.own_sources.is_own(item.source)), None)


def _item(article: StoredArticle, similarity: float) -> EventItem:
    match = article.outcome.match
    return item_of(article.record, similarity, match.canonical_id if match else "")
