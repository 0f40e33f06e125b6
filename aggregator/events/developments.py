"""Headlines for editors: key developments of a storyline by day, alternatives to that of an event. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from aggregator.analysis.text.normalization import strip_desk_prefix
from aggregator.analysis.text.tokenizer import tokenize
from aggregator.domain import ArticleRecord
from aggregator.events.detection.description import Candidate, choose_headline, rank_headlines
from aggregator.events.event import Event
from aggregator.time_units import DAY_MS

MAX_ALTERNATIVES = 3
# Two headlines whose terms have a larger Jaccard similarity say the same.
MAX_RESEMBLANCE = 0.5
# Articles read per storyline, evenly spread over the items of each event.
MAX_STORY_ARTICLES = 400


def headline_alternatives(records: Sequence[ArticleRecord], current_title: str) -> list[ArticleRecord]:
    """Return the articles with the best headlines that differ from ``current_title`` and from each other."""
    titled = [record for record in records if record.title]
    candidates = [Candidate(r.title, r.publication_ms, dict(r.terms)) for r in titled]
    found: list[ArticleRecord] = []
    taken = [_terms(current_title, titled[0].lang)] if titled else []
    for position in rank_headlines(candidates):
        record = titled[position]
        terms = _terms(record.title, record.lang)
        if record.title != current_title and all(_resemblance(terms, t) <= MAX_RESEMBLANCE for t in taken):
            found.append(record)
            taken.append(terms)
        if len(found) == MAX_ALTERNATIVES:
            break
    return found


def _terms(title: str, lang: str) -> frozenset[str]:
    return frozenset(tokenize(strip_desk_prefix(title), lang))


def _resemblance(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / len(a | b) if a | b else 1.0


@dataclass(frozen=True, slots=True)
class Development:
    """What one event brought on one day (UTC).

    items    items of the event on that day
    article  the article with the headline; None if no article of the day is stored
    """

    day_ms: int
    event: Event
    items: int
    article: ArticleRecord | None


def sample_items(events: Sequence[Event]) -> list[str]:
    """Ids of the articles to read for ``developments``: the same number of every event."""
    per_event = max(1, MAX_STORY_ARTICLES // max(1, len(events)))
    return [id_ for event in events for id_ in _spread(event.items, per_event)]


def developments(events: Iterable[Event], articles: Mapping[str, ArticleRecord]) -> list[Development]:
    """Return the developments in order of day, on one day in order of detection.

    ``articles``: those of ``sample_items`` that are still stored, by id.
    """
    found = []
    for event in events:
        by_day: dict[int, list[ArticleRecord]] = {}
        for id_ in event.items:
            if id_ in articles:
                by_day.setdefault(_day_of(articles[id_].publication_ms), []).append(articles[id_])
        counts: Counter[int] = Counter()
        for at_ms, items in event.timeline:
            counts[_day_of(at_ms)] += items
        for day_ms, items in counts.items():
            found.append(Development(day_ms, event, items, _choose_article(by_day.get(day_ms, []))))
    return sorted(found, key=lambda d: (d.day_ms, d.event.detected_at_ms, d.event.id))


def _choose_article(records: Sequence[ArticleRecord]) -> ArticleRecord | None:
    candidates = [Candidate(record.title, record.publication_ms, dict(record.terms)) for record in records]
    return records[choose_headline(candidates)] if records else None


def _spread(items: Sequence[str], count: int) -> Sequence[str]:
    """At most ``count`` of the items, evenly spread.

    >>> _spread("abcdefgh", 3)
    ['a', 'c', 'f']
    """
    if len(items) <= count:
        return items
    return [items[i * len(items) // count] for i in range(count)]


def _day_of(at_ms: int) -> int:
    return at_ms // DAY_MS * DAY_MS
