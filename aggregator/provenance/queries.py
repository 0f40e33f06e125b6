"""Provenance of stored articles and of events: lineage of their texts and what each copy changed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from aggregator.domain import ArticleRecord
from aggregator.index import Index
from aggregator.index.codec.record_codec import decompress_text
from aggregator.provenance.lineage import Changes, Lineage, Step, changes_between, trace
from aggregator.provenance.window import Publication

MAX_COPIES = 100  # articles of one text that are compared
MAX_EVENT_ITEMS = 400  # articles of an event that are read, the first ones
MAX_DIFFED = 20  # copies whose stored texts are compared word by word; the others are estimated

OutletKind = Literal["first", "own", "copy", "same time"]


@dataclass(frozen=True, slots=True)
class TracedStep:
    """A step of a lineage, and what it changed of its parent."""

    step: Step
    changes: Changes | None


@dataclass(frozen=True, slots=True)
class TextProvenance:
    """Lineage of one text. ``truncated``: the group has more articles than the MAX_COPIES read."""

    lineage: Lineage
    steps: tuple[TracedStep, ...]
    truncated: bool = False

    @property
    def outlets(self) -> int:
        """Number of named outlets that published it."""
        return len({step.publication.source for step in self.lineage.steps} - {""})


@dataclass(frozen=True, slots=True)
class OutletEntry:
    """The first article of one outlet on an event.

    ``kind``: "own": its text was not published before; "copy": another outlet had it earlier.
    ``original``: the first publication of its text, if that is another outlet's.
    """

    publication: Publication
    lag_ms: int
    articles: int
    kind: OutletKind
    original: Publication | None = None


@dataclass(frozen=True, slots=True)
class EventProvenance:
    """Who had an event first: outlets in order of their first articles, texts by number of outlets."""

    first: Publication | None
    outlets: tuple[OutletEntry, ...]
    texts: tuple[TextProvenance, ...]
    articles: int
    truncated: bool


class ProvenanceQueries:
    """Answers who published a text or an event first."""

    def __init__(self, index: Index) -> None:
        self._index = index

    async def of_article(self, id_: str) -> TextProvenance:
        """The lineage of the text of a stored article. Raises NotFound, Expired, StoreUnavailable."""
        records = await self._index.articles.group_members(id_, MAX_COPIES + 1)
        shown = records[:MAX_COPIES]
        if all(record.id != id_ for record in shown):
            shown += [record for record in records if record.id == id_]
        lineage = await asyncio.to_thread(trace, shown)
        return await self._with_changes(lineage, truncated=len(records) > MAX_COPIES)

    async def of_event(self, article_ids: Sequence[str]) -> EventProvenance:
        """Who had the event of these articles, in the order of joining, first. Raises StoreUnavailable."""
        stored = await self._index.articles.get_many(article_ids[:MAX_EVENT_ITEMS])
        groups: dict[int, list[ArticleRecord]] = {}
        for article in stored.values():
            groups.setdefault(article.group, []).append(article.record)
        lineages = await asyncio.to_thread(
            lambda: {number: trace(records) for number, records in groups.items()}
        )
        publications = sorted(
            (Publication.of(article.record) for article in stored.values()), key=lambda p: p.order
        )
        first_of_text = {
            step.record.number: lineage.first for lineage in lineages.values() for step in lineage.steps
        }
        several = [lineage for lineage in lineages.values() if len(_sources(lineage)) > 1]
        several.sort(key=lambda lineage: (-len(_sources(lineage)), lineage.first.order))
        texts = [await self._with_changes(lineage, truncated=False) for lineage in several]
        return EventProvenance(
            publications[0] if publications else None,
            tuple(_outlet_entries(publications, first_of_text)),
            tuple(texts),
            len(publications),
            len(article_ids) > MAX_EVENT_ITEMS,
        )

    async def _with_changes(self, lineage: Lineage, *, truncated: bool) -> TextProvenance:
        steps = lineage.steps
        copies = [step for step in steps if step.parent is not None][:MAX_DIFFED]
        numbers = {s.record.number for c in copies for s in (c, steps[c.parent or 0])}
        values = await self._index.records.read_texts(sorted(numbers))
        texts = {number: decompress_text(value) for number, value in values.items()}
        traced = await asyncio.to_thread(
            lambda: tuple(TracedStep(step, _changes_of(step, steps, texts)) for step in steps)
        )
        return TextProvenance(lineage, traced, truncated)


def _changes_of(step: Step, steps: Sequence[Step], texts: dict[int, str]) -> Changes | None:
    if step.parent is None:
        return None
    parent = steps[step.parent].record
    before = texts.get(parent.number), texts.get(step.record.number)
    both = (before[0] or parent.title, before[1] or step.record.title)
    return changes_between(parent, step.record, None if None in before else both)


def _sources(lineage: Lineage) -> set[str]:
    return {step.publication.source for step in lineage.steps}


def _outlet_entries(
    publications: Sequence[Publication], first_of_text: dict[int, Publication]
) -> list[OutletEntry]:
    """One entry per outlet, in order of its first article; ``publications`` in order of time."""
    by_source: dict[str, list[Publication]] = {}
    for publication in publications:
        by_source.setdefault(publication.source, []).append(publication)
    entries = []
    for own in by_source.values():
        publication = own[0]
        original = first_of_text[publication.record.number]
        kind: OutletKind = "first" if publication is publications[0] else "own"
        if original.source == publication.source:
            original_shown = None
        else:
            original_shown = original
            kind = "copy" if original.at_ms < publication.at_ms else "same time"
        lag_ms = publication.at_ms - publications[0].at_ms
        entries.append(OutletEntry(publication, lag_ms, len(own), kind, original_shown))
    return entries
