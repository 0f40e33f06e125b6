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
from aggregator.domain import NO_SKETCH, Analysis, Article, Outcome, Record, RelatedItem
from aggregator.errors import AggregatorError
from aggregator.index import Index, Stored

MAX_IDS = 20
MAX_STORY = 64
# Terms in common make a neighbour from this cosine on: there people's judgement of pairs and ours agree
# best (``aggregator evaluate pairs``).
MIN_SIMILARITY = 0.15
# What the ids asked for last stand for, some 3 kB each, and who is in their events.
KEPT_SUBJECTS = 4096
STORY_MS = 5_000

K = TypeVar("K")
V = TypeVar("V")
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


@dataclass(frozen=True, slots=True)
class Subject:
    """What neighbours are looked for. Of a stored article also its group, and the version and outcome it is bound to."""

    id: str
    analysis: Analysis
    group: int | None = None
    bound: tuple[int, Outcome] | None = None


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
        self._subjects: dict[str, Subject] = {}
        self._stories: dict[int, tuple[int, Sequence[int]]] = {}  # group -> (read when, article numbers)

    async def of_id(
        self,
        id_: str,
        *,
        limit: int = 10,
        wanted: Filter = ANY,
    ) -> list[RelatedItem]:
        """Neighbours of a stored article, its own copies left out. Raises NotFound."""
        subject = self._subjects.get(id_)
        found = await self._of(subject, limit, wanted) if subject is not None else None
        if found is None:
            subject = _subject_of(await self._index.get(id_))
            _keep(self._subjects, id_, subject)
            found = await self._of(replace(subject, bound=None), limit, wanted)
        return found or []

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
        return await self._of(Subject("", analysis), limit, wanted) or []

    async def _of(self, subject: Subject, limit: int, wanted: Filter) -> list[RelatedItem] | None:
        """None when the subject's id is no longer bound as it was."""
        now_ms = self._clock()
        around, story = await asyncio.gather(
            self._index.around(subject.analysis, subject.id, now_ms), self._story(subject, now_ms)
        )
        if subject.bound is not None and (
            around.bound is None or subject.bound != (around.bound.number, around.bound.outcome)
        ):
            return None
        shown = [
            candidate
            for candidate in await self._index.examined(around, story)
            if wanted.admits(candidate.record)
            and (
                candidate.distance <= self._related_bits
                or candidate.similarity >= self._min_similarity
                or candidate.record.number in story
            )
        ]
        return list(rank(shown, without_group=subject.group, limit=limit))

    async def _story(self, subject: Subject, now_ms: int) -> Sequence[int]:
        """The newest articles of the event it belongs to: they tell of one matter, at whatever distance."""
        group = subject.group
        if self._story_of is None or group is None:
            return ()
        read_ms, numbers = self._stories.get(group, (now_ms - STORY_MS, ()))
        if now_ms - read_ms >= STORY_MS:
            ids = await self._story_of(group)
            space = subject.analysis.space
            numbers = await self._index.numbers_of(space, ids[-MAX_STORY:]) if ids else ()
            _keep(self._stories, group, (now_ms, numbers))
        return numbers


def _keep(kept: dict[K, V], key: K, value: V) -> None:
    """Under ``key``; the one that was written longest ago makes room."""
    kept.pop(key, None)
    kept[key] = value
    if len(kept) > KEPT_SUBJECTS:
        del kept[next(iter(kept))]


def _subject_of(stored: Stored) -> Subject:
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
