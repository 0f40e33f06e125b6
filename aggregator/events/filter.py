"""Which events does somebody want to hear of? One filter for the list, the stream, feeds and watches.

Pure. What is not asked for admits everything; what is asked for must all hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast
from urllib.parse import parse_qsl

from aggregator.analysis.text.tokenizer import normalize, tokenize
from aggregator.events.detection.model import Event

EventStatus = Literal["emerging", "breaking", "fading", "closed"]


@dataclass(frozen=True, slots=True)
class EventFilter:
    """What an event must have.

    term      stands in the headline, or all its words are among the event's terms; case and accents of
              width do not count
    source    name of an outlet that has reported it, whatever its case
    lang      language of one of its items; "zh-Hant" asks for "zh"
    min_size  items that count, at least
    status    its state
    beside    further queries that must hold too
    """

    term: str = ""
    source: str = ""
    lang: str = ""
    min_size: int = 0
    status: EventStatus | None = None
    and_also: tuple[EventFilter, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether every event is admitted."""
        return self == EventFilter()

    @classmethod
    def parse(cls, text: str) -> EventFilter:
        """A query string that was checked when it was saved; what it does not name stays open."""
        given = dict(parse_qsl(text))
        return cls(
            term=given.get("term", "").strip(),
            source=given.get("source", "").strip(),
            lang=given.get("lang", ""),
            min_size=int(given.get("min_size", 0)),
            status=cast("EventStatus | None", given.get("status")),
        )

    def matches(self, event: Event) -> bool:
        """Whether the event has all that is asked for."""
        if not all(query.matches(event) for query in self.and_also):
            return False
        if event.size < self.min_size or (self.status is not None and event.status != self.status):
            return False
        if self.source and normalize(self.source) not in map(normalize, event.sources):
            return False
        if self.lang and _primary_subtag(self.lang) not in event.languages:
            return False
        return not self.term or _matches_term(event, self.term)


def _matches_term(event: Event, term: str) -> bool:
    if normalize(term) in normalize(event.title):
        return True
    known = set(event.terms)
    return any(
        wanted and known.issuperset(wanted)
        for wanted in (tokenize(term, lang) for lang in event.languages or ("en",))
    )


def _primary_subtag(tag: str) -> str:
    return tag.replace("_", "-").partition("-")[0].lower()
