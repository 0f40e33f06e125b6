"""Which events are meant: filters of the list, the stream, feeds, webhooks and desks; own coverage. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast
from urllib.parse import parse_qsl

from aggregator.analysis.text.normalization import normalize, source_key
from aggregator.analysis.text.tokenizer import tokenize
from aggregator.events.detection.model import EventStatus
from aggregator.events.event import Event


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Conditions that an event must all meet; an empty one matches every event.

    term      substring of the headline, or words that are all among the terms, in any case and width
    source    name of an outlet that reported the event, in any case
    lang      language of one of its items; only the primary subtag counts ("zh-Hant" matches "zh")
    and_also, any_of, none_of   filters that must all match too, of which one must, of which none may
    """

    term: str = ""
    source: str = ""
    lang: str = ""
    min_size: int = 0
    status: EventStatus | None = None
    and_also: tuple[EventFilter, ...] = ()
    any_of: tuple[EventFilter, ...] = ()
    none_of: tuple[EventFilter, ...] = ()

    @classmethod
    def parse(cls, text: str) -> EventFilter:
        """The filter of a saved query string, which was validated when it was saved."""
        fields = dict(parse_qsl(text))
        return cls(
            term=fields.get("term", "").strip(),
            source=fields.get("source", "").strip(),
            lang=fields.get("lang", ""),
            min_size=int(fields.get("min_size", 0)),
            status=cast("EventStatus | None", fields.get("status")),
        )

    def matches(self, event: Event) -> bool:
        """Whether the event meets all conditions."""
        if (
            not all(other.matches(event) for other in self.and_also)
            or (self.any_of and not any(other.matches(event) for other in self.any_of))
            or any(other.matches(event) for other in self.none_of)
        ):
            return False
        if event.size < self.min_size or (self.status is not None and event.status != self.status):
            return False
        if self.source and source_key(self.source) not in map(source_key, event.sources):
            return False
        if self.lang and _primary_subtag(self.lang) not in event.languages:
            return False
        return not self.term or _matches_term(event, self.term)


def _matches_term(event: Event, term: str) -> bool:
    if normalize(term) in normalize(event.title):
        return True
    event_terms = set(event.terms)
    # Terms are stems of the event's languages, so the words are tokenized in each of them.
    candidates = (tokenize(term, lang) for lang in event.languages or ("en",))
    return any(words and event_terms.issuperset(words) for words in candidates)


def _primary_subtag(tag: str) -> str:
    return tag.replace("_", "-").partition("-")[0].lower()


class OwnSources:
    """Names of the newsroom's own sources, separated by commas, compared by ``source_key``.

    >>> own = OwnSources("Harbour Times, harbour-times.example")
    >>> own.is_own("harbour times"), own.is_own("Quay News"), bool(OwnSources(" "))
    (True, False, False)
    """

    def __init__(self, names: str) -> None:
        self._names = frozenset(filter(None, (source_key(name) for name in names.split(","))))

    def __bool__(self) -> bool:
        """Whether any source is marked as own."""
        return bool(self._names)

    def is_own(self, source: str) -> bool:
        """Whether a source is one of them."""
        return source_key(source) in self._names

    def any_of(self, sources: Iterable[str]) -> bool:
        """Whether one of the sources of an event is."""
        return bool(self._names) and any(map(self.is_own, sources))
