"""Storylines: events of one topic over days and weeks, linked when an event fires. Pure.

An event belongs to the storyline of the earlier event that it resembles most, if it resembles one: its topic
breaks again after a pause, or a new development of it fires while the earlier event is still open. The rule
compares the profiles of both events (``detection/profile.py``): their cosine, and their common terms, since
one word is not a topic (two accidents are a "crash")::

    Monday     quake, japan, tsunami, coast      event a, storyline a
    Tuesday    japan, reactor, quake, plant      event b: quake and japan in common, storyline a
    Wednesday  quake, chile, coast               event c: too little in common, storyline c
    16 days    japan, reactor, plant, leak       event d resembles b most: storyline a

An event that reports what another one reported within a day in another language (``translations.py``) joins
its storyline as a translation and does not alert.

The entries are part of the checkpoint (``unit_of_work.py``). There are at most ``MAX_ENTRIES``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import msgspec

from aggregator.events.event import Event
from aggregator.events.translations import report_the_same
from aggregator.store.decoding import decode_value
from aggregator.time_units import DAY_MS

LINK_MS = 21 * DAY_MS
LINK_COSINE = 0.3
MIN_COMMON_TERMS = 2
# Alerts of one event in two languages follow each other within a day.
TRANSLATION_MS = DAY_MS
# A term is common to two profiles if it has at least this weight in both.
COMMON_TERM_WEIGHT = 0.16
# About 100 kB. A stream with one alert a day has 21 entries.
MAX_ENTRIES = 500


class StorylineEntry(msgspec.Struct, array_like=True):
    """What is kept of an event to link later ones. The order of the fields is part of the stored format.

    profile  (term, weight) of the event's latest version
    opening  the same when it fired: later versions describe only what is new
    """

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
        """Adopt the storylines that editors gave to events: ``stories`` maps event ids to storylines.

        Later events that resemble an unlinked event then join its storyline, not the one that it left.
        """
        for id_, entry in self._entries.items():
            story_id = stories.get(id_) or entry.story_id
            if story_id != entry.story_id:
                self._entries[id_] = msgspec.structs.replace(entry, story_id=story_id)

    def place(self, event: Event) -> Event:
        """Return a new version of an event with its storyline, and remember it for later events.

        An event keeps the storyline that it has. One that was merged into another is forgotten.
        """
        if event.merged_into is not None:
            self._entries.pop(event.id, None)
            return event if event.story_id else replace(event, story_id=event.id)
        known = self._entries.get(event.id)
        if not event.story_id:
            event = replace(event, story_id=known.story_id) if known else self._link(event)
        profile = dict(event.profile)
        opening = known.opening if known else profile
        self._entries[event.id] = StorylineEntry(
            event.id,
            event.story_id,
            event.detected_at_ms,
            event.last_seen_ms,
            profile,
            opening,
            list(event.languages),
        )
        self._drop_old(event.last_seen_ms)
        return event

    def _link(self, event: Event) -> Event:
        original = self._find_original(event)
        if original is not None:
            return replace(event, story_id=original.story_id, translation_of=original.event_id)
        return replace(event, story_id=self._find_story(event))

    def _find_original(self, event: Event) -> StorylineEntry | None:
        """The first event that reports the same in another language at the same time."""
        profile = dict(event.profile)
        for entry in self._entries.values():
            if (
                event.languages
                and entry.languages
                and not set(event.languages) & set(entry.languages)
                and abs(event.detected_at_ms - entry.detected_at_ms) <= TRANSLATION_MS
                and (report_the_same(profile, entry.opening) or report_the_same(profile, entry.profile))
            ):
                return entry
        return None

    def _find_story(self, event: Event) -> str:
        best, best_cosine = event.id, 0.0
        profile = dict(event.profile)
        for entry in self._entries.values():
            if event.first_seen_ms - entry.last_seen_ms > LINK_MS:
                continue
            cosine = max(link_cosine(profile, entry.profile), link_cosine(profile, entry.opening))
            if cosine >= max(LINK_COSINE, best_cosine):  # the later event on a tie
                best, best_cosine = entry.story_id, cosine
        return best

    def _drop_old(self, now_ms: int) -> None:
        oldest_ms = now_ms - LINK_MS
        kept = [e for e in self._entries.values() if e.last_seen_ms >= oldest_ms]
        self._entries = {entry.event_id: entry for entry in kept[-MAX_ENTRIES:]}


def link_cosine(a: dict[str, float], b: dict[str, float]) -> float:
    """Return the cosine of two profiles; 0 if they have fewer than ``MIN_COMMON_TERMS`` terms in common."""
    common = [term for term, weight in a.items() if min(weight, b.get(term, 0.0)) >= COMMON_TERM_WEIGHT]
    if len(common) < MIN_COMMON_TERMS:
        return 0.0
    return sum(weight * b.get(term, 0.0) for term, weight in a.items())
