"""What else is about this? The recommendation team's question, for stored ids and for any text.

Neighbours are what stands within ``related_bits`` of the fingerprint, what shares distinctive terms, and
what belongs to the same breaking event: reports in quite other words.

Two round trips answer. The first time an id is asked for, two more tell what it stands for; that is kept, and held
to be right only while the id's binding, which every answer reads too, is what it was. The members of an event are
kept for some seconds, as long as the detector takes between two looks at the stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from aggregator.dedup.similarity import rank
from aggregator.domain import NO_SKETCH, Analysis, Article, ArticleRecord, Outcome, RelatedItem
from aggregator.errors import AggregatorError
from aggregator.index import Index, StoredArticle

MAX_IDS = 20
MAX_EVENT_MEMBERS = 64
# Terms in common make a neighbour from this cosine on: there people's judgement of pairs and ours agree
# best (``aggregator evaluate pairs``).
MIN_SIMILARITY = 0.15
# What the ids asked for last stand for, some 3 kB each, and who is in their events.
CACHE_ENTRIES = 4096
EVENT_MEMBERS_TTL_MS = 5_000

K = TypeVar("K")
V = TypeVar("V")
# First number of an article's group -> ids of the articles of its event, oldest first; () without one.
EventMembersOf = Callable[[int], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class RelatedFilter:
    """Which neighbours may be shown; ``since_ms`` compares with published_at, else with the arrival."""

    since_ms: int | None = None
    source: str | None = None
    exclude_source: str | None = None
    lang: str | None = None

    def matches(self, record: ArticleRecord) -> bool:
        when = record.published_at_ms if record.published_at_ms is not None else record.arrived_ms
        if self.since_ms is not None and when < self.since_ms:
            return False
        if self.source is not None and record.source != self.source:
            return False
        if self.lang is not None and record.lang != self.lang:
            return False
        return self.exclude_source is None or record.source != self.exclude_source


NO_FILTER = RelatedFilter()


@dataclass(frozen=True, slots=True)
class Subject:
    """What neighbours are looked for. Of a stored article also its group, and the version and outcome it is bound to."""

    id: str
    analysis: Analysis
    group: int | None = None
    binding: tuple[int, Outcome] | None = None


class RelatedArticles:
    """Related articles of what is stored, or of a text that is not."""

    def __init__(
        self,
        index: Index,
        analyze_many: Callable[[Sequence[Article]], Awaitable[list[Analysis | AggregatorError]]],
        *,
        clock: Callable[[], int],
        related_bits: int = 7,
        min_similarity: float = MIN_SIMILARITY,
        members_of_event: EventMembersOf | None = None,
    ) -> None:
        self._index = index
        self._analyze_many = analyze_many
        self._clock = clock
        self._related_bits = related_bits
        self._min_similarity = min_similarity
        self._members_of_event = members_of_event
        self._subject_cache: dict[str, Subject] = {}
        self._event_members_cache: dict[
            int, tuple[int, Sequence[int]]
        ] = {}  # group -> (read when, article numbers)

    async def of_id(
        self,
        id_: str,
        *,
        limit: int = 10,
        related_filter: RelatedFilter = NO_FILTER,
    ) -> list[RelatedItem]:
        """Neighbours of a stored article, its own copies left out. Raises NotFound."""
        subject = self._subject_cache.get(id_)
        found = await self._find(subject, limit, related_filter) if subject is not None else None
        if found is None:
            subject = _build_subject(await self._index.get(id_))
            _cache_put(self._subject_cache, id_, subject)
            found = await self._find(replace(subject, binding=None), limit, related_filter)
        return found or []

    async def of_ids(
        self,
        ids: Sequence[str],
        *,
        limit: int = 10,
        related_filter: RelatedFilter = NO_FILTER,
    ) -> list[RelatedItem]:
        """Neighbours of several articles just read, none of them among the answers; best similarity first.

        Raises NotFound for the first id that is not stored.
        """
        read = set(ids)
        best: dict[str, RelatedItem] = {}
        answers = (
            self.of_id(id_, limit=limit + len(read), related_filter=related_filter)
            for id_ in dict.fromkeys(ids)
        )
        for found in await asyncio.gather(*answers):
            for item in found:
                if item.id not in read and item.similarity > getattr(best.get(item.id), "similarity", -1.0):
                    best[item.id] = item
        return sorted(best.values(), key=lambda i: -i.similarity)[:limit]

    async def of_article(
        self,
        article: Article,
        *,
        limit: int = 10,
        related_filter: RelatedFilter = NO_FILTER,
    ) -> list[RelatedItem]:
        """Neighbours of a text that is not stored. Raises NoText."""
        analysis = (await self._analyze_many([article]))[0]
        if isinstance(analysis, AggregatorError):
            raise analysis
        return await self._find(Subject("", analysis), limit, related_filter) or []

    async def _find(
        self, subject: Subject, limit: int, related_filter: RelatedFilter
    ) -> list[RelatedItem] | None:
        """None when the subject's id is no longer bound as it was."""
        now_ms = self._clock()
        around, story = await asyncio.gather(
            self._index.find_related(subject.analysis, subject.id, now_ms),
            self._event_members(subject, now_ms),
        )
        if subject.binding is not None and (
            around.own_binding is None
            or subject.binding != (around.own_binding.number, around.own_binding.outcome)
        ):
            return None
        shown = [
            candidate
            for candidate in await self._index.load_candidates(around, story)
            if related_filter.matches(candidate.record)
            and (
                candidate.distance <= self._related_bits
                or candidate.similarity >= self._min_similarity
                or candidate.record.number in story
            )
        ]
        return list(rank(shown, exclude_group=subject.group, limit=limit))

    async def _event_members(self, subject: Subject, now_ms: int) -> Sequence[int]:
        """The newest articles of the event it belongs to: they tell of one matter, at whatever distance."""
        group = subject.group
        if self._members_of_event is None or group is None:
            return ()
        read_ms, numbers = self._event_members_cache.get(group, (now_ms - EVENT_MEMBERS_TTL_MS, ()))
        if now_ms - read_ms >= EVENT_MEMBERS_TTL_MS:
            ids = await self._members_of_event(group)
            space = subject.analysis.space
            numbers = await self._index.article_numbers_of(space, ids[-MAX_EVENT_MEMBERS:]) if ids else ()
            _cache_put(self._event_members_cache, group, (now_ms, numbers))
        return numbers


def _cache_put(cache: dict[K, V], key: K, value: V) -> None:
    """Under ``key``; the one that was written longest ago makes room."""
    cache.pop(key, None)
    cache[key] = value
    if len(cache) > CACHE_ENTRIES:
        del cache[next(iter(cache))]


def _build_subject(stored: StoredArticle) -> Subject:
    record = stored.record
    analysis = Analysis(
        lang=record.lang,
        space=record.space,
        fingerprint=record.fingerprint,
        text_hash=record.text_hash,
        short=record.short,
        sketch=NO_SKETCH,  # terms rank neighbours, wording does not
        terms=record.terms,
    )
    return Subject(record.id, analysis, stored.group, (record.number, stored.outcome))
