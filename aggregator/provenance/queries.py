"""Provenance of stored articles and of events: lineage of their texts and what each copy changed."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Literal

from aggregator.analysis.source import outlet_key
from aggregator.domain import ArticleRecord
from aggregator.index import Index
from aggregator.index.codec.record_codec import decompress_text
from aggregator.provenance.directory import SourceDirectory
from aggregator.provenance.lineage import Changes, Lineage, Publication, Step, changes_between, trace

MAX_COPIES = 100  # articles of one text that are compared
MAX_EVENT_ITEMS = 400  # articles of an event that are read, the first ones
MAX_DIFFED = 20  # copies whose stored texts are compared word by word; the others are estimated

OutletKind = Literal["first", "own", "copy", "same time", "headline", "doubtful"]


@dataclass(frozen=True, slots=True)
class OutletEntry:
    """The first article of one outlet on an event; "own": its text was not published before.

    "headline": only headlines are known; "doubtful": all are.
    ``original``: the first publication of its text or headline, if that is another outlet's.
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
    texts: tuple[Lineage, ...]
    articles: int
    truncated: bool


class ProvenanceQueries:
    """Answers who published a text or an event first."""

    def __init__(self, index: Index) -> None:
        self._index, self._sources = index, SourceDirectory(index.store)

    async def of_article(self, id_: str) -> Lineage:
        """The lineage of the text of a stored article. Raises NotFound, Expired, StoreUnavailable."""
        records = await self._index.articles.group_members(id_, MAX_COPIES + 1)
        shown = records[:MAX_COPIES]
        if all(record.id != id_ for record in shown):
            shown += [record for record in records if record.id == id_]
        believed_ms = await self._sources.believed_ms()
        found = [Publication.of(record, believed_ms(record.source)) for record in shown]
        lineage = await asyncio.to_thread(trace, found)
        return await self._with_changes(replace(lineage, truncated=len(records) > MAX_COPIES))

    async def of_event(
        self, times: Mapping[str, int], first_id: str = "", doubtful: Collection[str] = ()
    ) -> EventProvenance:
        """Who had the event first, by the times of its articles in order of joining. Raises StoreUnavailable.

        ``first_id``: of the first article about it, "" if unknown. Outlets of ``doubtful`` ones are last.
        """
        stored = await self._index.articles.get_many(list(times)[:MAX_EVENT_ITEMS])
        by_time, believed_ms = attrgetter("order"), await self._sources.believed_ms()
        groups: dict[int, list[Publication]] = {}
        for id_, article in stored.items():
            publication = Publication.of(article.record, believed_ms(article.record.source))
            groups.setdefault(article.group, []).append(publication.at(times[id_]))
        lineages = await asyncio.to_thread(lambda: list(map(trace, groups.values())))
        publications = sorted((step.publication for text in lineages for step in text.steps), key=by_time)
        sure = [p for p in publications if p.record.id not in doubtful]
        first = next((p for p in sure[:1] if p.record.id == first_id), None)
        first_of_text = {step.record.number: text.first for text in lineages for step in text.steps}
        outlets = _outlet_entries(sure, first_of_text, sure)
        if outlets and not first:
            outlets[0] = replace(outlets[0], kind="own" if outlets[0].publication.has_text else "headline")
        known = {outlet_key(entry.publication.source) for entry in outlets}
        rest = [p for p in publications if p.record.id in doubtful and outlet_key(p.source) not in known]
        outlets += [replace(e, kind="doubtful") for e in _outlet_entries(rest, first_of_text, sure or rest)]
        several = [text for text in lineages if len(text.sources) > 1]
        several.sort(key=lambda text: (-len(text.sources), text.first.order))
        texts = [await self._with_changes(text) for text in several]
        return EventProvenance(
            first,
            tuple(outlets),
            tuple(texts),
            len(publications),
            len(times) > MAX_EVENT_ITEMS,
        )

    async def repeats(self, ids: Sequence[str]) -> list[ArticleRecord]:
        """Other stored copies of these articles, by outlets that have one of them."""
        stored = await self._index.articles.get_many(ids[:MAX_EVENT_ITEMS])
        outlets = {outlet_key(article.record.source) for article in stored.values()}
        heads = {article.group: id_ for id_, article in stored.items()}.values()
        groups = [await self._index.articles.group_members(id_, MAX_COPIES) for id_ in heads]
        return [r for each in groups for r in each if r.id not in ids and outlet_key(r.source) in outlets]

    async def _with_changes(self, lineage: Lineage) -> Lineage:
        steps = lineage.steps
        copies = [step for step in steps if step.parent is not None][:MAX_DIFFED]
        numbers = {s.record.number for c in copies for s in (c, steps[c.parent or 0])}
        values = await self._index.records.read_texts(sorted(numbers))
        texts = {number: decompress_text(value) for number, value in values.items()}
        compared = await asyncio.to_thread(
            lambda: tuple(replace(step, changes=_changes_of(step, steps, texts)) for step in steps)
        )
        return replace(lineage, steps=compared)


def _changes_of(step: Step, steps: Sequence[Step], texts: dict[int, str]) -> Changes | None:
    if step.parent is None:
        return None
    parent = steps[step.parent].record
    before = texts.get(parent.number), texts.get(step.record.number)
    both = (before[0] or parent.title, before[1] or step.record.title)
    return changes_between(parent, step.record, None if None in before else both)


def _outlet_entries(
    publications: Sequence[Publication], first_of_text: dict[int, Publication], since: Sequence[Publication]
) -> list[OutletEntry]:
    """One entry per outlet, in order of its first article, with lags ``since`` the first of those."""
    by_source: dict[str, list[Publication]] = {}
    for publication in publications:
        by_source.setdefault(outlet_key(publication.source), []).append(publication)
    firsts = ((own, first_of_text[own[0].record.number]) for own in by_source.values())
    return [_outlet_entry(own, since[0], original) for own, original in firsts]


def _outlet_entry(own: Sequence[Publication], first: Publication, original: Publication) -> OutletEntry:
    publication, lag_ms = own[0], own[0].at_ms - first.at_ms
    if outlet_key(original.source) == outlet_key(publication.source):
        kind: OutletKind = "own" if publication.has_text else "headline"
        return OutletEntry(publication, lag_ms, len(own), "first" if publication is first else kind)
    kind = "copy" if original.at_ms < publication.at_ms else "same time"
    has_texts = publication.has_text and original.has_text
    return OutletEntry(publication, lag_ms, len(own), kind if has_texts else "headline", original)
