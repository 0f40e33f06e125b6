"""Mutable state of an open event: what the detector remembers beyond the window of its story."""

from __future__ import annotations

import msgspec

from aggregator.events.detection.clustering import WindowItem
from aggregator.events.detection.model import DetectedEvent, EventStatus

TIMELINE_BUCKET_MS = 600_000
# Ids listed by one event; further items only count. The largest story of a day has some hundred items.
MAX_EVENT_ITEMS = 5_000
MAX_EVENT_SOURCES = 500


# Fields with the same value in ``DetectedEvent``.
_EQUAL_FIELDS = (
    *("id", "title", "status", "detected_at_ms", "first_seen_ms", "last_seen_ms", "size", "sightings"),
    *("peak", "reason", "merged_into", "headline_id"),
)


class OpenEvent(msgspec.Struct, array_like=True):
    """Mutable counterpart of ``DetectedEvent``. The order of the fields is part of the saved state.

    pending_numbers  article numbers not yet in a drained change
    announced_size   size when it fired or last doubled
    released_numbers numbers of articles that left, not yet in a drained change
    surface_forms    term -> word shown for it; "" for a term that is not shown, since no headline contains it
    """

    id: str
    story_key: int
    detected_at_ms: int
    expected: float
    reason: str
    status: EventStatus = "breaking"
    title: str = ""
    terms: list[str] = []
    first_seen_ms: int = 0
    last_seen_ms: int = 0
    size: int = 0
    sightings: int = 0
    peak: int = 0
    items: dict[str, float] = {}
    sources: dict[str, None] = {}
    timeline: dict[int, int] = {}
    pending_numbers: list[int] = []
    merged_into: str | None = None
    languages: dict[str, None] = {}
    headline_id: str = ""
    profile: list[tuple[str, float]] = []
    absorbed: list[str] = []
    announced_size: int = 0
    surface_forms: dict[str, str] = {}
    released_numbers: list[int] = []

    def add(self, member: WindowItem) -> None:
        """Add one item of the story."""
        if not self.size or member.at_ms < self.first_seen_ms:
            self.first_seen_ms = member.at_ms
        self.last_seen_ms = max(self.last_seen_ms, member.at_ms)
        self.size += 1
        if len(self.items) < MAX_EVENT_ITEMS:
            self.items[member.id] = member.cosine
        if member.source and len(self.sources) < MAX_EVENT_SOURCES:
            self.sources[member.source] = None
        if member.lang:
            self.languages[member.lang] = None
        bucket_ms = _bucket(member.at_ms)
        self.timeline[bucket_ms] = self.timeline.get(bucket_ms, 0) + 1
        self.pending_numbers.append(member.first_version)

    def absorb(self, other: OpenEvent) -> None:
        """Add items and counts of another event of the same story."""
        self.first_seen_ms = min(self.first_seen_ms, other.first_seen_ms)
        self.last_seen_ms = max(self.last_seen_ms, other.last_seen_ms)
        self.size += other.size
        self.sightings += other.sightings
        for id_, cosine in other.items.items():
            if len(self.items) < MAX_EVENT_ITEMS:
                self.items.setdefault(id_, cosine)
        self.sources.update(other.sources)
        self.languages.update(other.languages)
        for bucket_ms, count in other.timeline.items():
            self.timeline[bucket_ms] = self.timeline.get(bucket_ms, 0) + count
        self.pending_numbers += other.pending_numbers
        self.absorbed += [other.id, *other.absorbed]

    def remove_item(self, id_: str, at_ms: int | None) -> None:
        """Remove an article, if the event lists it; from the timeline too, unless its time is unknown."""
        if self.items.pop(id_, None) is None:
            return
        self.size -= 1
        if at_ms is not None and (bucket_ms := _bucket(at_ms)) in self.timeline:
            self.timeline[bucket_ms] -= 1
            if not self.timeline[bucket_ms]:
                del self.timeline[bucket_ms]

    def to_event(self) -> DetectedEvent:
        """Return the immutable value."""
        return DetectedEvent(
            **{name: getattr(self, name) for name in _EQUAL_FIELDS},
            rate=max(self.timeline.values(), default=0),
            expected=round(self.expected, 2),
            sources=tuple(self.sources),
            items=tuple(self.items),
            cosines=tuple(round(c, 3) for c in self.items.values()),
            terms=tuple(word for term in self.terms if (word := self.surface_forms.get(term, term)))
            or tuple(self.terms),
            timeline=tuple(sorted(self.timeline.items())),
            languages=tuple(self.languages),
            profile=tuple(self.profile),
            absorbed=tuple(self.absorbed),
        )


def _bucket(at_ms: int) -> int:
    return at_ms // TIMELINE_BUCKET_MS * TIMELINE_BUCKET_MS
