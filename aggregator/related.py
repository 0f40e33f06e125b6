"""What else is about this? The recommendation team's question, for stored ids and for any text.

Neighbours are what stands within ``related_bits`` of the fingerprint, what shares distinctive terms, and
what belongs to the same breaking event: reports in quite other words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from aggregator.domain import Analysis, Article, Record, RelatedItem
from aggregator.errors import AggregatorError
from aggregator.index import Index, Stored
from aggregator.similarity import rank
from aggregator.verdict import Candidate

MAX_IDS = 20
MAX_STORY = 64
# Terms in common make a neighbour from this cosine on: there people's judgement of pairs and ours agree
# best (``aggregator evaluate pairs``).
MIN_SIMILARITY = 0.15

# First number of an article's group -> ids of the articles of its event, oldest first; () without one.
StoryOf = Callable[[int], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Filter:
    """Which neighbours may be shown; ``since_ms`` compares with published_at, else with the arrival."""

    since_ms: int | None = None
    source: str | None = None
    exclude_source: str | None = None
    lang: str | None = None

    def admits(self, record: Record) -> bool:
        when = record.published_at_ms if record.published_at_ms is not None else record.arrived_ms
        if self.since_ms is not None and when < self.since_ms:
            return False
        if self.source is not None and record.source != self.source:
            return False
        if self.lang is not None and record.lang != self.lang:
            return False
        return self.exclude_source is None or record.source != self.exclude_source


ANY = Filter()


class Related:
    """Related articles of what is stored, or of a text that is not."""

    def __init__(
        self,
        index: Index,
        analyse_many: Callable[[Sequence[Article]], Awaitable[list[Analysis | AggregatorError]]],
        *,
        clock: Callable[[], int],
        related_bits: int = 7,
        min_similarity: float = MIN_SIMILARITY,
        story_of: StoryOf | None = None,
    ) -> None:
        self._index = index
        self._analyse_many = analyse_many
        self._clock = clock
        self._related_bits = related_bits
        self._min_similarity = min_similarity
        self._story_of = story_of

    async def of_id(
        self,
        id_: str,
        *,
        limit: int = 10,
        wanted: Filter = ANY,
    ) -> list[RelatedItem]:
        """Neighbours of a stored article, its own copies left out. Raises NotFound."""
        stored = await self._index.get(id_)
        return await self._of(_as_analysis(stored), id_, _group_of(stored), limit, wanted)

    async def of_ids(
        self,
        ids: Sequence[str],
        *,
        limit: int = 10,
        wanted: Filter = ANY,
    ) -> list[RelatedItem]:
        """Neighbours of several articles just read, none of them among the answers; best similarity first.

        Raises NotFound for the first id that is not stored.
        """
        read = set(ids)
        best: dict[str, RelatedItem] = {}
        answers = (self.of_id(id_, limit=limit + len(read), wanted=wanted) for id_ in dict.fromkeys(ids))
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
        wanted: Filter = ANY,
    ) -> list[RelatedItem]:
        """Neighbours of a text that is not stored. Raises NoText."""
        analysis = (await self._analyse_many([article]))[0]
        if isinstance(analysis, AggregatorError):
            raise analysis
        return await self._of(analysis, "", None, limit, wanted)

    async def _of(
        self, analysis: Analysis, id_: str, group: int | None, limit: int, wanted: Filter
    ) -> list[RelatedItem]:
        found, story = await asyncio.gather(
            self._index.neighbours(analysis, id_, self._clock()), self._of_its_story(analysis, id_, group)
        )
        near = [c for c in found if c.distance <= self._related_bits or c.similarity >= self._min_similarity]
        shown = [c for c in (*near, *story) if wanted.admits(c.record)]
        return list(rank(shown, without_group=group, limit=limit))

    async def _of_its_story(self, analysis: Analysis, id_: str, group: int | None) -> list[Candidate]:
        """The newest articles of the event it belongs to: they tell of one matter, at whatever distance."""
        if self._story_of is None or group is None:
            return []
        ids = await self._story_of(group)
        return await self._index.among(analysis, id_, ids[-MAX_STORY:])


def _group_of(stored: Stored) -> int:
    match = stored.outcome.match
    return match.canonical_first if match else stored.record.first


def _as_analysis(stored: Stored) -> Analysis:
    record = stored.record
    return Analysis(
        lang=record.lang,
        space=record.space,
        fingerprint=record.fingerprint,
        text_hash=record.text_hash,
        short=record.short,
        sketch=record.sketch,
        terms=record.terms,
        figures=record.figures,
    )
