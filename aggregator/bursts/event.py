"""The values of the detector: the rule an operator chose and the event that editors see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

HOUR_MS = 3_600_000
Status = Literal["emerging", "breaking", "fading", "closed"]
Kind = Literal["fired", "updated", "merged", "closed"]


@dataclass(frozen=True, slots=True)
class BurstRule:
    """More than ``items`` similar items within ``window_ms`` (both inclusive of their boundary, see package).

    min_sources   distinct sources that a firing story needs
    sensitivity   1.0: a story must have 4 times its usual number; 2.0: twice as readily (2 times)
    mode          "stories", or "neighbours" for the literal rule of Hu & You (2017): an item
                  with more than ``items`` items (itself included) within 7 bits in the window fires
    """

    items: int = 15
    window_ms: int = 4 * HOUR_MS
    min_sources: int = 1
    sensitivity: float = 1.0
    mode: Literal["stories", "neighbours"] = "stories"


@dataclass(frozen=True, slots=True)
class Event:
    """One breaking event, as it stands. Its id never changes; everything else may while it evolves.

    size       items that count, of any age; ``sightings``: copies that do not
    peak       most items within one window so far
    expected   items per window that were usual for this story when it fired
    sources    names in order of joining; ``languages``: theirs, ISO 639-1
    items      article ids in order of joining (the first MAX_ITEMS); ``cosines``: how near each was
               to the story when it joined, 0..1 (1.0 for a copy)
    terms      its most distinctive terms, heaviest first
    timeline   (start of 10 minutes in ms, items in them), quiet ones left out
    rate       most items within one such 10 minutes
    reason     why it fired, one sentence
    merged_into  the event that took it over, when that is how it was closed
    """

    id: str
    title: str
    status: Status
    detected_at_ms: int
    first_seen_ms: int
    last_seen_ms: int
    size: int
    sightings: int
    peak: int
    rate: int
    expected: float
    sources: tuple[str, ...]
    items: tuple[str, ...]
    cosines: tuple[float, ...]
    terms: tuple[str, ...]
    timeline: tuple[tuple[int, int], ...]
    reason: str
    merged_into: str | None = None
    languages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to an event since it was last handed over; ``numbers``: articles that joined."""

    kind: Kind
    at_ms: int
    event: Event
    numbers: tuple[int, ...] = ()
