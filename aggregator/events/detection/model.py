"""Value types of the detector: burst rule, events, their changes, editor overrides.

Editor overrides are persistent instructions (mute, merge, removed item) that describe a desired state, so
the detector can apply them repeatedly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from aggregator.domain import StreamItem, arrival_ms_of
from aggregator.events.figures import Toll
from aggregator.time_units import DAY_MS, HOUR_MS

EventStatus = Literal["emerging", "breaking", "fading", "closed"]
ChangeKind = Literal["fired", "updated", "development", "doubled", "merged", "closed"]
MuteScope = Literal["story", "routine"]
Profile = Iterable[tuple[str, float]]
FirstReport = tuple[int, str, str]  # time in ms, article id and source
# Cosine of two profiles from which an editor's instruction for one event also applies to the other.
SAME_STORY_COSINE = 0.5
# Known history. Merges and placed items expire with it; a muted story is usual after it (a routine: always).
HISTORY_DAYS = 7
HISTORY_MS = HISTORY_DAYS * DAY_MS
HOURS_PER_DAY = DAY_MS // HOUR_MS
CHANCE_ITEMS = 3  # fewer documents are chance; added to counts of which a ratio is formed
# A smaller share is neglected: of a story in another one, of windows with a term, by which a total changed.
NEGLIGIBLE_SHARE = 0.05
NEARLY_ALL = 0.8


@dataclass(frozen=True, slots=True)
class BurstRule:
    """A cluster fires with more than ``items`` items in ``window_ms``; an item of exactly that age counts.

    adapts        fewer items suffice where stories are smaller (``voices.py``)
    min_sources   distinct sources that a firing cluster needs; 0: voices are counted (``voices.py``)
    alerts_per_day  above this number, more items are needed, as far as ``adapts`` lowered it
    sensitivity   a cluster must have 4 / sensitivity times its expectation
    """

    items: int = 15
    adapts: bool = False
    window_ms: int = 4 * HOUR_MS
    min_sources: int = 1
    alerts_per_day: float = 2.0
    sensitivity: float = 1.0


@dataclass(frozen=True, slots=True)
class DetectedEvent:
    """The detector's half of one version of an event. Its id never changes; every other field may.

    size          number of items, of any age; ``sightings``: duplicates that do not count
    peak, rate    most items within ``window_ms``, within 10 minutes (since the last development)
    expected      items per window that were expected for this cluster when it fired
    sources       names in order of joining; ``languages``: codes of ISO 639-1, each of two items
    items         article ids in order of joining (the first MAX_EVENT_ITEMS)
    cosines       by item: similarity to the cluster when it joined, 0..1 (1.0 for a duplicate)
    times         by item: when it was published, in ms; then those of items that are not listed
    claims        of items whose time is that of their arrival: the time that they state, 0 for none
    outlets       by item: position of its outlet in ``sources``, -1 for none
    terms         most distinctive terms, heaviest first
    timeline      (start of 10 minutes in ms, items in them), without empty buckets
    voices        (start of 10 minutes in ms, voices whose latest item is in them), likewise
    merged_into   the event that absorbed it; ``absorbed``: events that it absorbed
    headline_id   article whose headline is the title
    profile       (term, weight) of the common terms, of norm 1, to recognize the cluster later
    first         the earliest article that is about it; None: not certain, or deleted
    developments  (time in ms, words that are new to the story)
    needed        number of items that it had to exceed; 0: not known
    tolls         each larger number that two outlets report, and each that corrects it (``figures.py``)
    numbers       by item: number of its first version, 0 if not known
    updates       when the last update in place of an item arrived, in ms
    doubtful      items like hardly any others or earlier than the first about it, none that editors put there
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
    first: FirstReport | None = None
    voices: tuple[tuple[int, int], ...] = ()
    developments: tuple[tuple[int, tuple[str, ...]], ...] = ()
    times: tuple[int, ...] = ()
    outlets: tuple[int, ...] = ()
    window_ms: int = 4 * HOUR_MS
    claims: dict[str, int] = field(default_factory=dict)
    needed: int = 0
    tolls: tuple[Toll, ...] = ()
    numbers: tuple[int, ...] = ()
    doubtful: tuple[str, ...] = ()
    updates: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EventChange:
    """A change of an event since it was last drained."""

    kind: ChangeKind
    at_ms: int
    event: DetectedEvent


class Mute(msgspec.Struct, frozen=True, array_like=True):
    """Suppresses alerts for events with a similar profile, until ``until_ms`` (None: indefinitely)."""

    event_id: str
    scope: MuteScope
    profile: tuple[tuple[str, float], ...]
    until_ms: int | None = None


class EditorOverrides(msgspec.Struct, frozen=True, array_like=True):
    """All overrides in force; every action increments the revision. The order is the stored format.

    merges  absorbed event id -> (id of the surviving event, time of the action in ms)
    placed  article id -> (its first version, id of the event that it belongs to, "" for none)
    """

    revision: int = 0
    mutes: tuple[Mute, ...] = ()
    merges: dict[str, tuple[str, int]] = {}
    placed: dict[str, tuple[int, str]] = {}

    def with_merge(self, absorbed_id: str, into_id: str, at_ms: int) -> EditorOverrides:
        """With a merge of two events; ``into_id`` "": without it."""
        merges = {i: m for i, m in {**self.merges, absorbed_id: (into_id, at_ms)}.items() if m[0]}
        placed = {i: (n, into_id if to == absorbed_id else to) for i, (n, to) in self.placed.items()}
        return msgspec.structs.replace(self, merges=merges, placed=placed)

    def is_removed(self, item: StreamItem) -> bool:
        """Whether an editor removed this article (any version of it) from an event."""
        return self.placed.get(item.id) == (item.first_version, "")

    def mute_scope(self, profile: Profile, now_ms: int) -> MuteScope | None:
        """Return the scope of the mute that covers a new event with this profile, or None."""
        for mute in self.mutes:
            if (mute.until_ms is None or now_ms <= mute.until_ms) and is_same_story(mute.profile, profile):
                return mute.scope
        return None

    def next_revision(self, now_ms: int) -> EditorOverrides:
        """Return the next revision, without expired overrides."""
        oldest_ms = now_ms - HISTORY_MS
        return EditorOverrides(
            self.revision + 1,
            mutes=tuple(m for m in self.mutes if m.until_ms is None or now_ms <= m.until_ms),
            merges={id_: merge for id_, merge in self.merges.items() if merge[1] >= oldest_ms},
            placed={i: to for i, to in self.placed.items() if arrival_ms_of(to[0]) >= oldest_ms},
        )


def is_same_story(a: Profile, b: Profile) -> bool:
    """Whether two profiles describe the same story. False for an empty one."""
    weights = dict(a)
    return sum(weights.get(term, 0.0) * weight for term, weight in b) >= SAME_STORY_COSINE


@dataclass(frozen=True, slots=True)
class LearningStatus:
    """How many of the last days a detector knows, 0 to 7."""

    known_days: float
    needed_days: int = HISTORY_DAYS

    @property
    def is_complete(self) -> bool:
        """Whether all days are known."""
        return self.known_days >= self.needed_days

    def __str__(self) -> str:
        return f"learning: {int(self.known_days)} of {self.needed_days} days"


class LearnedHistory(msgspec.Struct, array_like=True, frozen=True):
    """What a baseline knows, without terms; ``known_hour``: the first, since 1970; None: no document.

    ``needed``: items that an event of the main language exceeds; ``reasons``: why, by language; ``late``: how
    many articles that came late changed what is usual, by source.

    Of the last seven periods of 24 h those with documents count, or all if a stream of two weeks has most.
    """

    known_hour: int | None
    documents_by_hour: dict[int, int]
    needed: int = 15
    reasons: tuple[str, ...] = ()
    late: str = ""

    def status(self, now_ms: int) -> LearningStatus:
        """Return the status at a time in ms since 1970 UTC."""
        if self.known_hour is None:
            return LearningStatus(0.0)
        now_hour, known_hour = now_ms // HOUR_MS, self.known_hour
        hours = (hour for hour in self.documents_by_hour if known_hour <= hour <= now_hour)
        ages = {(now_hour - hour) // HOURS_PER_DAY for hour in hours}
        days, passed = len(ages & set(range(HISTORY_DAYS))), (now_hour + 1 - known_hour) / HOURS_PER_DAY
        if passed >= 2 * HISTORY_DAYS and 2 * days >= HISTORY_DAYS:
            return LearningStatus(float(HISTORY_DAYS))
        return LearningStatus(max(0.0, min(days, passed)))
