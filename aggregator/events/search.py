"""Search of events by words of their headlines, terms and sources.

Every process keeps the words of the events that it has read, about 1 kB each, and reads an event again when
its entry in the index of events has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from aggregator.analysis.source import outlet_key
from aggregator.analysis.text.normalization import normalize, unaccented
from aggregator.analysis.text.tokenizer import has_quoted, search_terms
from aggregator.events.event import Event, EventSummary
from aggregator.events.repository import EVENTS_PER_READ, EventRepository

MAX_EVENTS = 5000  # the most recently seen events; a closed one is kept for weeks
MIN_SUBSTRING_CHARS = 3  # shorter queries are compared word by word only: "a" is in every headline
DEFAULT_LANGUAGES = ("en",)
_query_terms = lru_cache(maxsize=1024)(search_terms)


class EventWords(NamedTuple):
    """What an event is searched by. ``summary``: the entry of the index that it was read with."""

    summary: EventSummary
    title: str
    languages: tuple[str, ...]
    title_terms: frozenset[str]
    other_terms: frozenset[str]
    sources: frozenset[str]


class EventSearch:
    """Finds stored events, open and closed; those that were merged into others are left out."""

    def __init__(self, repository: EventRepository) -> None:
        self._repository = repository
        self._words: dict[str, EventWords] = {}
        self._lock = asyncio.Lock()

    async def find(
        self,
        query: str,
        limit: int,
        *,
        lang: str | None = None,
        sources: Sequence[str] = (),
        since_ms: int | None = None,
        until_ms: int | None = None,
    ) -> tuple[list[tuple[Event, int]], int]:
        """The best matches (most words, most in the headline, open, newest), words they lack; the total."""
        if not query.strip():
            return [], 0
        async with self._lock:
            await self._refresh(await self._repository.summaries())
        ranked = sorted(
            (rank, id_)
            for id_, words in self._words.items()
            if (lang is None or lang in words.languages)
            and (not sources or not words.sources.isdisjoint(map(outlet_key, sources)))
            and (since_ms is None or words.summary.last_seen_ms >= since_ms)
            and (until_ms is None or words.summary.first_seen_ms < until_ms)
            and (rank := _rank(query, words)) is not None
        )
        found = await self._repository.get_many([id_ for _, id_ in ranked[:limit]])
        return [(found[id_], rank[0]) for rank, id_ in ranked[:limit] if id_ in found], len(ranked)

    async def _refresh(self, summaries: Mapping[str, EventSummary]) -> None:
        kept = [item for item in summaries.items() if item[1].merged_into is None]
        current = dict(sorted(kept, key=lambda item: -item[1].last_seen_ms)[:MAX_EVENTS])
        known = self._words
        self._words = {i: known[i] for i, s in current.items() if i in known and known[i].summary == s}
        changed = [id_ for id_ in current if id_ not in self._words]
        for at in range(0, len(changed), EVENTS_PER_READ):
            events = await self._repository.get_many(changed[at : at + EVENTS_PER_READ])
            self._words |= {id_: _words_of(event, current[id_]) for id_, event in events.items()}


def _words_of(event: Event, summary: EventSummary) -> EventWords:
    languages = event.languages or DEFAULT_LANGUAGES
    words = [search_terms(source, lang) for source in event.sources for lang in languages]
    return EventWords(
        summary=summary,
        title=normalize(event.title),
        languages=event.languages,
        title_terms=frozenset(chain(*(search_terms(event.title, lang) for lang in languages))),
        other_terms=frozenset(map(unaccented, event.terms)).union(*words),
        sources=frozenset(map(outlet_key, event.sources)),
    )


def _rank(query: str, words: EventWords) -> tuple[int, int, bool, int] | None:
    """Sort key of a result; None if it lacks more than half of the words."""
    found: list[tuple[int, int]] = []
    text, title = normalize(query), words.title
    if (len(text) >= MIN_SUBSTRING_CHARS or not text.isascii()) and text in title:
        found.append((0, -len(text.split())))
    for lang in words.languages or DEFAULT_LANGUAGES:
        terms = frozenset(_query_terms(query, lang))
        in_title = terms & words.title_terms
        matched = len(in_title | terms & words.other_terms)
        if matched * 2 >= len(terms) > 0 and has_quoted(query, lang, title):
            found.append((len(terms) - matched, -len(in_title)))
    if not found:
        return None
    missing, title_rank = min(found)
    return missing, title_rank, words.summary.status == "closed", -words.summary.last_seen_ms
