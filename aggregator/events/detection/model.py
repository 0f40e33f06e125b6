"""The values of the detector: the rule an operator chose and the event that editors see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from aggregator.time_units import HOUR_MS

EventStatus = Literal["emerging", "breaking", "fading", "closed"]
ChangeKind = Literal["fired", "updated", "doubled", "merged", "closed"]
ActionName = Literal["acknowledge", "mute", "unmute", "merge", "remove_item", "false_alarm"]
MuteScope = Literal["story", "routine"]


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
class EditorAction:
    """What an editor did, as it stands in the audit trail of every event it changed.

    event  the event it was asked of; ``into``: the one that goes on (merge); ``item``: an article's id
    scope  what a mute covers: this story as it goes on, or everything that looks like it (a routine)
    """

    action: ActionName
    actor: str
    at_ms: int
    event: str
    scope: MuteScope | None = None
    into: str | None = None
    item: str | None = None


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
    headline_id  the article whose headline is the title: the nearest to all others (medoid)
    profile    (term, weight) of what its items have in common, of length 1: to know it again
    absorbed   events that it took over

    What editors did is not the detector's; the event log carries it from one version to the next:

    acknowledged_by, muted (scope), false_alarm, removed (ids of items taken out), actions (audit trail)
    revision   counts the versions in the log, from 1
    """

    id: str
    title: str
    status: EventStatus
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
    headline_id: str = ""
    profile: tuple[tuple[str, float], ...] = ()
    absorbed: tuple[str, ...] = ()
    acknowledged_by: str | None = None
    muted: MuteScope | None = None
    false_alarm: bool = False
    removed: tuple[str, ...] = ()
    actions: tuple[EditorAction, ...] = ()
    revision: int = 0


@dataclass(frozen=True, slots=True)
class EventChange:
    """What happened to an event since it was last handed over; ``numbers``: articles that joined.

    kind  "doubled": it has twice the items it had when it fired or was last told to have doubled
    """

    kind: ChangeKind
    at_ms: int
    event: Event
    article_numbers: tuple[int, ...] = ()
