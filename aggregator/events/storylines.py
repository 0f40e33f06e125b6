"""Storylines: events of one topic over days and weeks, linked when an event fires; their headlines.

One common term is no topic, as two accidents are a "crash", and one name is no event.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, tzinfo
from functools import lru_cache
from itertools import chain, repeat
from operator import itemgetter

import msgspec
from anyascii import anyascii

from aggregator.analysis.source import outlet_key
from aggregator.analysis.text.normalization import normalize, strip_desk_prefix
from aggregator.analysis.text.tokenizer import tokenize
from aggregator.domain import ArticleRecord
from aggregator.events.detection.description import Candidate, rank_headlines
from aggregator.events.detection.model import DetectedEvent
from aggregator.events.detection.numbers import course_of, headline_times, items_of
from aggregator.events.event import Event
from aggregator.events.figures import Toll, figures_in, newer_figures
from aggregator.index import StoredArticle
from aggregator.store.decoding import decode_value
from aggregator.time_units import DAY_MS

ArticleReader = Callable[[Sequence[str]], Awaitable[Mapping[str, StoredArticle]]]
Headlines = Mapping[str, Sequence[ArticleRecord]]  # by event: the newest of up to three outlets
MIN_COSINE = 0.25
MIN_COMMON_NAMES = 3
MIN_PREFIX = 5
MAX_ENDING = 3
MIN_LETTERS = 3
LINK_MS = 21 * DAY_MS
LINK_COSINE = 0.3
MIN_COMMON_TERMS = 2
TRANSLATION_MS = DAY_MS  # alerts of one event in two languages follow each other within it
COMMON_TERM_WEIGHT = 0.16  # a term is common to two profiles if it has at least this weight in both
MAX_ENTRIES = 500  # about 100 kB; a stream with one alert a day has 21
MAX_ALTERNATIVES = MAX_NEWEST = 3
MAX_HEADLINES = 100
MAX_RESEMBLANCE = 0.5  # two headlines whose terms have a larger Jaccard similarity say the same
MAX_STORY_ARTICLES = 400  # articles read per storyline, evenly spread over the items of each event


def report_the_same(a: Mapping[str, float], b: Mapping[str, float]) -> bool:
    """Whether two profiles of different languages describe one event."""
    cosine, common = latin_agreement(a, b)
    return common >= MIN_COMMON_NAMES and cosine >= MIN_COSINE


def latin_agreement(a: Mapping[str, float], b: Mapping[str, float]) -> tuple[float, int]:
    """Return the cosine of two profiles over terms that agree in Latin script, and the number of those."""
    latin_a, latin_b = _latin_profile(a), _latin_profile(b)
    partners = {a: a if a in latin_b else next((b for b in latin_b if _agree(a, b)), "") for a in latin_a}
    found = [latin_a[a] * latin_b[b] for a, b in partners.items() if b]
    return round(sum(found), 6), len(found)


def _latin_profile(profile: Mapping[str, float]) -> dict[str, float]:
    latin: dict[str, float] = {}
    for term, weight in profile.items():
        key = to_latin(term)
        if len(key) >= MIN_LETTERS:
            latin[key] = max(weight, latin.get(key, 0.0))
    norm = math.sqrt(sum(weight * weight for weight in latin.values())) or 1.0
    return {key: weight / norm for key, weight in latin.items()}


@lru_cache(maxsize=4096)
def to_latin(term: str) -> str:
    """Return the letters and digits of a term in ASCII, lower case."""
    return "".join(character for character in anyascii(term).lower() if character.isalnum())


def _agree(a: str, b: str) -> bool:
    common = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return common >= MIN_PREFIX and max(len(a), len(b)) - common <= MAX_ENDING


class StorylineEntry(msgspec.Struct, array_like=True):
    """What is kept of an event to link later ones; ``opening``: profile when it fired. Order is stored."""

    event_id: str
    story_id: str
    detected_at_ms: int
    last_seen_ms: int
    profile: dict[str, float]
    opening: dict[str, float]
    languages: list[str] = []


_decoder = msgspec.msgpack.Decoder(list[StorylineEntry])


def decode_storylines(raw: bytes | None) -> Storylines:
    """The stored storylines; none for an absent value. Raises StoreUnavailable when it is damaged."""
    return Storylines(decode_value(_decoder, raw, "The list of storylines") if raw else ())


class Storylines:
    """Entries of the events of the last ``LINK_MS``, by event id, in order of detection."""

    def __init__(self, entries: Iterable[StorylineEntry] = ()) -> None:
        self._entries = {entry.event_id: entry for entry in entries}

    @property
    def entries(self) -> list[StorylineEntry]:
        """The entries to save."""
        return list(self._entries.values())

    def follow(self, stories: Mapping[str, str]) -> None:
        """Adopt the storylines that editors gave to events: ``stories`` maps event ids to storylines."""
        for id_, entry in self._entries.items():
            story_id = stories.get(id_) or entry.story_id
            if story_id != entry.story_id:
                self._entries[id_] = msgspec.structs.replace(entry, story_id=story_id)

    def place(self, event: Event) -> Event:
        """The event with its storyline, remembered for later ones; one that was merged is forgotten."""
        if event.merged_into is not None:
            self._entries.pop(event.id, None)
            return event if event.story_id else replace(event, story_id=event.id)
        known = self._entries.get(event.id)
        if not event.story_id:
            event = replace(event, story_id=known.story_id) if known else self._link(event)
        profile = dict(event.profile)
        opening = known.opening if known else profile
        times, langs = (event.detected_at_ms, event.last_seen_ms), list(event.languages)
        self._entries[event.id] = StorylineEntry(event.id, event.story_id, *times, profile, opening, langs)
        oldest_ms = event.last_seen_ms - LINK_MS
        kept = [entry for entry in self._entries.values() if entry.last_seen_ms >= oldest_ms]
        self._entries = {entry.event_id: entry for entry in kept[-MAX_ENTRIES:]}
        return event

    def _link(self, event: Event) -> Event:
        if original := self._find_original(event):
            return replace(event, story_id=original.story_id, translation_of=original.event_id)
        return replace(event, story_id=self.find_story(event))

    def _find_original(self, event: Event) -> StorylineEntry | None:
        """The first event that reports the same in another language at the same time."""
        profile, languages = dict(event.profile), set(event.languages)
        for entry in self._entries.values() if languages else ():
            is_other = entry.languages and languages.isdisjoint(entry.languages)
            is_near = abs(event.detected_at_ms - entry.detected_at_ms) <= TRANSLATION_MS
            profiles = (entry.opening, entry.profile) if is_other and is_near else ()
            if any(report_the_same(profile, other) for other in profiles):
                return entry
        return None

    def find_story(self, event: DetectedEvent) -> str:
        """The storyline of an event, or that of a new one, to which it belongs; its own id for none."""
        best, best_cosine = event.id, 0.0
        profile = dict(event.profile)
        for entry in self._entries.values():
            if event.first_seen_ms - entry.last_seen_ms > LINK_MS:
                continue
            cosine = max(link_cosine(profile, entry.profile), link_cosine(profile, entry.opening))
            if cosine >= max(LINK_COSINE, best_cosine):  # the later event on a tie
                best, best_cosine = entry.story_id, cosine
        return best


def link_cosine(a: dict[str, float], b: dict[str, float]) -> float:
    """Return the cosine of two profiles; 0 if they have fewer than ``MIN_COMMON_TERMS`` terms in common."""
    common = [term for term, weight in a.items() if min(weight, b.get(term, 0.0)) >= COMMON_TERM_WEIGHT]
    if len(common) < MIN_COMMON_TERMS:
        return 0.0
    return sum(weight * b.get(term, 0.0) for term, weight in a.items())


def headline_items(event: Event, most: int = MAX_HEADLINES) -> dict[str, int]:
    """The newest articles, whose headlines are compared, with their times; doubtful ones only if all are."""
    times = headline_times(event)
    items = {id_: ms for id_, ms in times.items() if id_ not in event.doubtful} or times
    return dict(sorted(items.items(), key=itemgetter(1))[-most:])


async def newest_headlines(read: ArticleReader | None, events: Collection[Event], items: int) -> Headlines:
    """By id of the event: other headlines than its own, of its last ``items``. Raises StoreUnavailable."""
    last = {event.id: headline_items(event, items) for event in events}
    stored = await read([*chain(*last.values())]) if read and last else {}
    found = dict[str, list[ArticleRecord]]()
    for event in events:
        said = ((stored[i].record, ms) for i, ms in last[event.id].items() if i in stored)
        found[event.id] = newest_of_outlets([replace(r, published_at_ms=ms) for r, ms in said], event.title)
    return found


def headline_alternatives(
    records: Sequence[ArticleRecord], current_title: str, tolls: Sequence[Toll] = ()
) -> list[ArticleRecord]:
    """The articles with the newest headline and the best ones, all different, the best first.

    None whose headline says a figure that is outdated by ``tolls``, or by that of the present headline.
    """
    lang = records[0].lang if records else ""
    if not newer_figures(current_title, lang, tolls):
        tolls = (*tolls, *((0, kind, number) for kind, number in figures_in(current_title, lang).items()))
    titled = [r for r in _by_headline(records).values() if not newer_figures(r.title, r.lang, tolls)]
    ranked, taken, found = _ranked(titled), [_terms(current_title, lang)], list[ArticleRecord]()
    for record in (*titled[-1:], *ranked):
        terms = _terms(record.title, record.lang)
        if record.title != current_title and all(_are_other(terms, known) for known in taken):
            found.append(record)
            taken.append(terms)
    return sorted(found[:MAX_ALTERNATIVES], key=ranked.index)


def newest_of_outlets(
    records: Collection[ArticleRecord], current_title: str, originals: Mapping[str, str] | None = None
) -> list[ArticleRecord]:
    """Return up to 3 articles with other headlines: the newest of each outlet, then its second.

    Of a copy, whose original ``originals`` names, only one that says something else than its original.
    """
    found, ranks = list[tuple[int, ArticleRecord]](), Counter[str]()
    others, by_id = _by_headline(records), {record.id: record for record in records}
    others.pop(normalize(strip_desk_prefix(current_title)), None)
    for record in reversed(others.values()):
        original = by_id.get((originals or {}).get(record.id, ""))
        if original and not _are_other(*(_terms(r.title, r.lang) for r in (record, original))):
            continue
        ranks[source := outlet_key(record.source)] += 1
        found.append((ranks[source], record))
    return [record for _, record in sorted(found, key=itemgetter(0))[:MAX_NEWEST]]


def _by_headline(records: Iterable[ArticleRecord]) -> dict[str, ArticleRecord]:
    """By headline the first article that has it, in order of publication: who repeats it gets no credit."""
    found = dict[str, ArticleRecord]()
    for record in sorted(records, key=lambda record: record.publication_ms):
        found.setdefault(normalize(strip_desk_prefix(record.title)), record)
    found.pop("", None)
    return found


def _are_other(terms: frozenset[str], others: frozenset[str]) -> bool:
    return len(terms & others) <= MAX_RESEMBLANCE * len(terms | others) > 0


def _terms(title: str, lang: str) -> frozenset[str]:
    return frozenset(tokenize(strip_desk_prefix(title), lang))


@dataclass(frozen=True, slots=True)
class Development:
    """What one event brought on one day: items and outlets, the stored article with the best headline."""

    day: date
    event: Event
    items: int
    sources: tuple[str, ...]
    article: ArticleRecord | None


def sample_items(events: Sequence[Event]) -> list[str]:
    """Ids of the articles to read for ``developments``: as many of every event, evenly spread."""
    per_event = max(1, MAX_STORY_ARTICLES // max(1, len(events)))
    return [id_ for event in events for id_ in event.items[:: -(-len(event.items) // per_event) or 1]]


def developments(
    events: Iterable[Event], articles: Mapping[str, ArticleRecord], zone: tzinfo = UTC
) -> list[Development]:
    """The developments by day of a time zone, then detection; ``articles``: those of ``sample_items``."""
    found = []
    for event in events:
        listed, days = items_of(event), dict[date, list[str]]()
        for id_, at_ms in zip(chain(listed, repeat("")), course_of(event), strict=False):
            days.setdefault(datetime.fromtimestamp(at_ms / 1000, zone).date(), []).append(id_)
        for day, ids in days.items():
            sources = dict.fromkeys(listed[id_].source for id_ in ids if id_)
            sure = [articles[id_] for id_ in ids if id_ in articles and not listed[id_].doubtful]
            best = next(iter(_ranked(sure)), None)
            found.append(Development(day, event, len(ids), tuple(filter(None, sources)), best))
    return sorted(found, key=lambda d: (d.day, d.event.detected_at_ms, d.event.id))


def _ranked(records: Sequence[ArticleRecord]) -> list[ArticleRecord]:
    """The articles, that with the best headline first."""
    candidates = [Candidate(record.title, record.publication_ms, dict(record.terms)) for record in records]
    return [records[i] for i in rank_headlines(candidates)]
