"""Provenance of stored articles and of events: lineage of their texts and what each copy changed."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Literal

from aggregator.domain import ArticleRecord, arrival_ms_of
from aggregator.index import Index, StoredArticle
from aggregator.index.codec.record_codec import decompress_text
from aggregator.provenance.directory import SourceDirectory
from aggregator.provenance.lineage import Changes, Lineage, Publication, Step, changes_between, trace

MAX_COPIES = 100  # articles of one text that are compared
MAX_EVENT_ITEMS = 400  # articles of an event that are read, the first ones
MAX_DIFFED = 20  # copies whose stored texts are compared word by word; the others are estimated

_by_time = attrgetter("order")
OutletKind = Literal["first", "own", "copy", "same time", "headline", "doubtful"]


@dataclass(frozen=True, slots=True)
class OutletEntry:
    """The first article of one outlet on an event; "own": its text was not published before.

    "headline": only headlines are known; "doubtful": all are.
    ``original``: the first publication of its text or headline, if that is another outlet's.
    ``copied_ms``, ``copied_words``: of the version of it that this repeats, as far as known, else 0.
    """

    publication: Publication
    lag_ms: int
    articles: int
    kind: OutletKind
    original: Publication | None = None
    copied_ms: int = 0
    copied_words: int = 0


@dataclass(frozen=True, slots=True)
class EventProvenance:
    """Who had an event first: outlets in order of their first articles, texts by number of outlets.

    ``texts`` have copies that the event does not count too, if they are the outlet's first with that text;
    ``repeats``: the other such copies.
    """

    first: Publication | None
    outlets: tuple[OutletEntry, ...]
    texts: tuple[Lineage, ...]
    repeats: tuple[ArticleRecord, ...]
    articles: int
    truncated: bool


class ProvenanceQueries:
    """Answers who published a text or an event first."""

    def __init__(self, index: Index) -> None:
        self._index, self._sources = index, SourceDirectory(index.store)

    async def of_article(self, id_: str) -> Lineage:
        """The lineage of the text of a stored article. Raises NotFound, Expired, StoreUnavailable."""
        records = await self._index.articles.group_members(id_, MAX_COPIES + 1)
        shown = [record for n, record in enumerate(records) if n < MAX_COPIES or record.id == id_]
        believed_ms = await self._sources.believed_ms()
        found = [Publication.of(record, believed_ms(record.source)) for record in shown]
        lineage = await asyncio.to_thread(trace, found)
        return await self._with_changes(replace(lineage, truncated=len(records) > MAX_COPIES))

    async def of_event(
        self, times: Mapping[str, int], first_id: str = "", doubtful: Collection[str] = (),
        removed: Collection[str] | None = None,
    ) -> EventProvenance:  # fmt: skip
        """Who had the event first, by the times of its articles in order of joining. Raises StoreUnavailable.

        ``first_id``: of the first article about it, "" if unknown. Outlets of ``doubtful`` ones are last.
        ``removed``: what editors took out; None: no further copies are read.
        """
        stored = await self._index.articles.get_many(list(times)[:MAX_EVENT_ITEMS])
        believed_ms = await self._sources.believed_ms()
        groups, counted = dict[int, list[Publication]](), list[Publication]()
        for id_, article in stored.items():
            publication = Publication.of(article.record, believed_ms(article.record.source)).at(times[id_])
            counted.append(publication)  # its text is that of its last version
            since_ms = publication.updated_ms if article.record.first_version != article.group else 0
            version = replace(publication, at_ms=since_ms or publication.at_ms)  # copies have a head's first
            groups.setdefault(article.group, []).append(version)
        texts = [sorted(text, key=_by_time) for text in groups.values()]
        texts_of = {p.record.number: (p, next(filter(p.repeats, text))) for text in texts for p in text}
        in_order = sorted(counted, key=lambda p: (p.record.id in doubtful, p.order))
        by_outlet: dict[str, list[Publication]] = {}
        for publication in in_order:
            by_outlet.setdefault(publication.outlet, []).append(publication)
        is_sure = bool(in_order) and in_order[0].record.id == first_id and first_id not in doubtful
        first, repeats = in_order[0] if is_sure else None, list[ArticleRecord]()
        for text in groups.values() if removed is not None else ():
            head = min([p.record for p in text], key=attrgetter("first_version"))
            members = await self._index.articles.group_members(head.id, MAX_COPIES)
            known, own = {*(removed or ()), *(p.record.id for p in text)}, {p.outlet for p in text}
            later = [r for r in members if r.first_version > head.first_version and r.id not in known]
            for copy in sorted([Publication.of(r, believed_ms(r.source)) for r in later], key=_by_time):
                if copy.outlet in own:
                    repeats.append(copy.record)
                elif copy.outlet in by_outlet:
                    text.append(copy)
                    own.add(copy.outlet)
        lineages = await asyncio.to_thread(lambda: list(map(trace, groups.values())))
        several = [text for text in lineages if len(text.sources) > 1]
        several.sort(key=lambda text: (-len(text.sources), text.first.order))
        return EventProvenance(
            first,
            tuple(
                _outlet_entry(own, in_order[0], first, texts_of, doubtful, stored)
                for own in by_outlet.values()
            ),
            tuple([await self._with_changes(text) for text in several]),
            tuple(repeats),
            len(in_order),
            len(times) > MAX_EVENT_ITEMS,
        )

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


def _outlet_entry(
    own: Sequence[Publication], earliest: Publication, first: Publication | None,
    texts_of: Mapping[int, tuple[Publication, Publication]], doubtful: Collection[str],
    stored: Mapping[str, StoredArticle],
) -> OutletEntry:  # fmt: skip
    """The entry of an outlet with these publications, in order; ``texts_of``: each text and its first."""
    publication, (text, original) = own[0], texts_of[own[0].record.number]
    is_own = original.outlet == publication.outlet or original.at_ms > publication.at_ms  # updated since
    kind: OutletKind = "copy" if original.at_ms < text.at_ms else "same time"
    kind = "headline" if not (publication.has_text and original.has_text) else "own" if is_own else kind
    kind = "doubtful" if publication.record.id in doubtful else "first" if publication is first else kind
    lag_ms = publication.at_ms - earliest.at_ms
    if is_own:
        return OutletEntry(publication, lag_ms, len(own), kind)
    words = 0 if original.updated_ms > publication.at_ms else original.record.text_words
    match, copied_ms = stored[publication.record.id].outcome.match, original.at_ms
    if match is not None and match.id == original.record.id:
        words = match.words or words
        if match.number > original.record.first_version:
            copied_ms = arrival_ms_of(match.number)
    return OutletEntry(publication, lag_ms, len(own), kind, original, copied_ms, words)
