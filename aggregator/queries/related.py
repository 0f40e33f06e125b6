"""Related articles of a stored id or of any text, for recommendations.

An answer takes two round trips. The first request for an id needs two more, to load the article; it is cached
as long as the id's binding, which every request reads, is the same. Event members are cached for
``EVENT_MEMBERS_TTL_MS``, about the interval of the detector.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from aggregator.analysis.text.normalization import source_key
from aggregator.domain import NO_SKETCH, Analysis, AnalyzeMany, Article, ArticleRecord, Outcome, RelatedItem
from aggregator.errors import AggregatorError, NotFound
from aggregator.index import Index
from aggregator.queries.relatedness import (
    MIN_PROBABILITY,
    ScoredArticle,
    best_of_groups,
    probability,
    related_evidence,
)

MAX_EVENT_MEMBERS = 64
# Per cache; a cached article takes about 3 kB.
CACHE_ENTRIES = 4096
EVENT_MEMBERS_TTL_MS = 5_000

K = TypeVar("K")
V = TypeVar("V")
# First number of an article's group -> ids of the articles of its event, oldest first; () without one.
EventMembersOf = Callable[[int], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class RelatedFilter:
    """Restricts related articles; ``since_ms``: published then or later; sources in any case."""

    since_ms: int | None = None
    source: str | None = None
    exclude_source: str | None = None
    lang: str | None = None

    def matches(self, record: ArticleRecord) -> bool:
        """Whether the article may be shown."""
        return (
            (self.since_ms is None or record.publication_ms >= self.since_ms)
            and (self.lang is None or record.lang == self.lang)
            and (not self.source or source_key(record.source) == source_key(self.source))
            and (not self.exclude_source or source_key(record.source) != source_key(self.exclude_source))
        )


NO_FILTER = RelatedFilter()


@dataclass(frozen=True, slots=True)
class Subject:
    """An article without its sketch; if it is stored, with its group and what its id is bound to."""

    id: str
    article: Analysis | ArticleRecord
    group: int | None = None
    binding: tuple[int, Outcome] | None = None


class RelatedArticles:
    """Finds articles of the same subject (``relatedness.py``) or of the same event."""

    def __init__(
        self,
        index: Index,
        analyze_many: AnalyzeMany,
        *,
        clock: Callable[[], int],
        min_score: float = MIN_PROBABILITY,
        members_of_event: EventMembersOf | None = None,
    ) -> None:
        self._index, self._analyze_many, self._clock = index, analyze_many, clock
        self._min_score, self._members_of_event = min_score, members_of_event
        self._subject_cache: dict[str, Subject] = {}
        # Group -> (time read in ms, article numbers).
        self._event_members_cache: dict[int, tuple[int, Sequence[int]]] = {}

    async def of_id(
        self, id_: str, *, limit: int = 10, related_filter: RelatedFilter = NO_FILTER
    ) -> list[RelatedItem]:
        """Related articles of a stored one, without its duplicates, likeliest first. Raises NotFound."""
        subject = self._subject_cache.get(id_)
        found = await self._find(subject, limit, related_filter) if subject is not None else None
        if found is None:
            stored = await self._index.articles.get(id_)
            record = replace(stored.record, sketch=NO_SKETCH)
            subject = Subject(record.id, record, stored.group, (record.number, stored.outcome))
            _cache_put(self._subject_cache, id_, subject)
            found = await self._find(replace(subject, binding=None), limit, related_filter)
        return found or []

    async def of_ids(
        self, ids: Sequence[str], *, limit: int = 10, related_filter: RelatedFilter = NO_FILTER
    ) -> tuple[list[RelatedItem], list[str]]:
        """Related articles of several stored ones, without these, and the ids that are not stored."""
        unique_ids = list(dict.fromkeys(ids))
        excluded = set(unique_ids)
        best: dict[str, RelatedItem] = {}

        async def related(id_: str) -> list[RelatedItem] | None:
            try:
                return await self.of_id(id_, limit=limit + len(excluded), related_filter=related_filter)
            except NotFound:  # a reading history always contains expired articles
                return None

        answers = await asyncio.gather(*map(related, unique_ids))
        for found in answers:
            for item in found or ():
                if item.id not in excluded and item.score > getattr(best.get(item.id), "score", -1.0):
                    best[item.id] = item
        not_found = [id_ for id_, found in zip(unique_ids, answers, strict=True) if found is None]
        return sorted(best.values(), key=lambda i: -i.score)[:limit], not_found

    async def of_article(
        self, article: Article, *, limit: int = 10, related_filter: RelatedFilter = NO_FILTER
    ) -> list[RelatedItem]:
        """Related articles of a text that is not stored, likeliest first. Raises NoText."""
        analysis = (await self._analyze_many([article]))[0]
        if isinstance(analysis, AggregatorError):
            raise analysis
        return await self._find(Subject("", analysis), limit, related_filter) or []

    async def _find(
        self, subject: Subject, limit: int, related_filter: RelatedFilter
    ) -> list[RelatedItem] | None:
        """Related articles; None if the subject was cached and its id is bound to something else by now."""
        now_ms = self._clock()
        candidates, event_numbers = await asyncio.gather(
            self._index.related.find(subject.article, subject.id), self._event_members(subject, now_ms)
        )
        if subject.binding is not None and (
            candidates.own_binding is None
            or subject.binding != (candidates.own_binding.number, candidates.own_binding.outcome)
        ):
            return None
        scored = []
        for candidate in await self._index.related.load_candidates(candidates, event_numbers):
            record, group, found = candidate.record, candidate.canonical[1], candidate.evidence
            if group != subject.group and related_filter.matches(record):
                evidence = related_evidence(subject.article, record, found.similarity, found.distance)
                likely = probability(evidence)
                if record.number in event_numbers:
                    likely = max(likely, self._min_score)
                scored.append(ScoredArticle(record, group, evidence, likely))
        shown = best_of_groups(scored, self._min_score)[:limit]
        copies = await self._index.related.copies_of(candidates, [each.group for each in shown])
        return [_related_item(each, count) for each, count in zip(shown, copies, strict=True)]

    async def _event_members(self, subject: Subject, now_ms: int) -> Sequence[int]:
        """Numbers of the newest articles of the event that the subject belongs to; () without one."""
        group = subject.group
        if self._members_of_event is None or group is None:
            return ()
        read_ms, numbers = self._event_members_cache.get(group, (now_ms - EVENT_MEMBERS_TTL_MS, ()))
        if not 0 <= now_ms - read_ms < EVENT_MEMBERS_TTL_MS:
            ids = await self._members_of_event(group)
            space = subject.article.space
            numbers = (
                await self._index.related.article_numbers_of(space, ids[-MAX_EVENT_MEMBERS:]) if ids else ()
            )
            _cache_put(self._event_members_cache, group, (now_ms, numbers))
        return numbers


def _related_item(scored: ScoredArticle, copies: int) -> RelatedItem:
    record, evidence = scored.record, scored.evidence
    return RelatedItem(
        id=record.id,
        title=record.title,
        url=record.url,
        source=record.source,
        published_at_ms=record.published_at_ms,
        distance=evidence.distance,
        similarity=round(evidence.cosine, 3),
        score=round(scored.probability, 3),
        copies=copies,
    )


def _cache_put(cache: dict[K, V], key: K, value: V) -> None:
    """Set ``cache[key]``; evicts the entry that was written longest ago."""
    cache.pop(key, None)
    cache[key] = value
    if len(cache) > CACHE_ENTRIES:
        del cache[next(iter(cache))]
