"""Life cycle of open events: firing, growth, fading, merging, closing, and their unreported changes.

An event that fired with 16 items is "doubled" at 32 and 64, and fading from half of its peak on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import xxhash

from aggregator.domain import StreamItem, arrival_ms_of
from aggregator.events.detection import description
from aggregator.events.detection.clustering import JOIN_COSINE, Cluster, ClusterIndex, TermWeigher, WindowItem
from aggregator.events.detection.developments import Articles, StoryMemory
from aggregator.events.detection.model import (
    HISTORY_MS,
    NEGLIGIBLE_SHARE,
    BurstRule,
    ChangeKind,
    DetectedEvent,
    EventChange,
    EventStatus,
    FirstReport,
)
from aggregator.events.detection.numbers import Item, counted, course, size_text
from aggregator.events.doubt import strange_articles
from aggregator.events.figures import Toll, figures_in, new_tolls
from aggregator.time_units import HOUR_MS, MINUTE_MS

KEPT_HEADLINE_MS = 15 * MINUTE_MS  # a headline is kept for this time unless another one is clearly better
# Ids listed by one event; further items only count. The largest cluster of a day has some hundred items.
MAX_EVENT_ITEMS = 5_000


class OpenEvent(msgspec.Struct, array_like=True):
    """Mutable counterpart of ``DetectedEvent``. The order of the fields is part of the saved state.

    further   times of items that are not listed; ``busiest``: most items at once since the last development
    announced_size   size when it was announced or last doubled; 0: not announced yet
    needed           number of items that it had to exceed
    surface_forms    term -> word shown for it; "" for a term that is not shown, since no headline contains it
    """

    id: str
    cluster_key: int
    detected_at_ms: int
    expected: float
    window_ms: int
    reason: str = ""
    status: EventStatus = "breaking"
    title: str = ""
    terms: list[str] = []
    sightings: int = 0
    busiest: int = 0
    items: dict[str, Item] = {}
    further: list[int] = []
    merged_into: str | None = None
    languages: dict[str, int] = {}
    headline_id: str = ""
    profile: list[tuple[str, float]] = []
    absorbed: list[str] = []
    announced_size: int = 0
    surface_forms: dict[str, str] = {}
    needed: int = 0
    removed: dict[str, None] = {}
    first: FirstReport | None = None
    titled_ms: int = 0
    developments: list[tuple[int, tuple[str, ...]]] = []
    story: StoryMemory | None = None
    tolls: list[Toll] = []

    def add(self, member: WindowItem) -> None:
        """Add one item of the cluster."""
        at_ms, number = member.published_ms or member.at_ms, member.first_version
        item = Item(member.cosine, at_ms, member.source, member.claim_ms, number, False, member.titled_ms)
        self._list(member.id, item)
        if member.lang:
            self.languages[member.lang] = self.languages.get(member.lang, 0) + 1

    def absorb(self, other: OpenEvent) -> None:
        """Add items and counts of another event of the same story."""
        if other.size > self.size:  # it is what the event is about
            self.reason = other.reason
        self.expected = max(self.expected, other.expected)
        self.sightings += other.sightings
        for id_, item in other.items.items():
            self._list(id_, item)
        self.further += other.further
        self.languages = dict(Counter(self.languages) + Counter(other.languages))
        self.first = min(filter(None, (self.first, other.first)), default=None)
        self.developments = sorted(self.developments + other.developments)
        self.absorbed += [other.id, *other.absorbed] if other.announced_size else other.absorbed

    def forget_tolls(self, lost: Iterable[WindowItem] = (), since_ms: float = math.inf) -> None:
        """Drop tolls that lost items said, and those since a time; ``_describe`` finds what is still said."""
        said = {number for member in lost for number in figures_in(member.title, member.lang).values()}
        self.tolls = [toll for toll in self.tolls if toll[0] < since_ms and toll[2] not in said]

    @property
    def size(self) -> int:
        """Number of its items."""
        return len(self.items) + len(self.further)

    @property
    def last_seen_ms(self) -> int:
        """Time of the last item."""
        return max(course(self.items.values(), self.further), default=self.detected_at_ms)

    def _list(self, id_: str, item: Item) -> None:
        if id_ in self.items or len(self.items) < MAX_EVENT_ITEMS:
            self.items[id_] = item
        else:
            self.further.append(item.at_ms)

    def to_event(self) -> DetectedEvent:
        """Return the immutable value."""
        own = {n: getattr(self, n) for n in self.__struct_fields__ if n in DetectedEvent.__slots__}
        own |= {name: tuple(value) for name, value in own.items() if isinstance(value, dict | list)}
        own |= counted(self.items, self.further, self.window_ms, self.developments, self.detected_at_ms)
        shown = {form.casefold(): form for form in (self.surface_forms.get(t, t) for t in self.terms) if form}
        own |= {"expected": round(self.expected, 2), "terms": tuple(shown.values()) or own["terms"]}
        enough = min(2, max(self.languages.values(), default=0))  # one headline alone may be misread
        own["languages"] = tuple(lang for lang, items in self.languages.items() if items >= enough)
        return DetectedEvent(**own)


class OpenEvents:
    """Open events in order of detection, and their changes; ``idf``: weight of a term at any time.

    merged  by id, what editors merged: it and its survivor as they were before, so that it can be undone
    """

    def __init__(self, rule: BurstRule, clusters: ClusterIndex, weigh: TermWeigher, idf: TermWeigher) -> None:
        self.by_id: dict[str, OpenEvent] = {}
        self.needs_headline: dict[str, None] = {}
        self.closed: dict[str, OpenEvent] = {}
        self.merged: dict[str, tuple[OpenEvent, OpenEvent]] = {}
        self._rule, self._clusters, self._weigh, self._idf = rule, clusters, weigh, idf
        self._updated: dict[str, None] = {}
        self._transitions: list[tuple[ChangeKind, int, OpenEvent]] = []

    def event_of_cluster(self, cluster: Cluster) -> OpenEvent | None:
        """Return the event that this cluster became, if it did."""
        return None if cluster.event_id is None else self.by_id[cluster.event_id]

    def clusters_of_young(self, cluster: Cluster) -> list[int]:
        """The clusters of the other events detected in the minute before that of ``cluster``, if it waits."""
        event = self.event_of_cluster(cluster)
        if event is None or event.announced_size:
            return []
        since_ms = event.detected_at_ms - MINUTE_MS
        return [e.cluster_key for e in self.by_id.values() if e is not event and e.detected_at_ms >= since_ms]

    def is_about(self, event: OpenEvent, member: WindowItem) -> bool:
        """Whether an item is about what the event was about when it broke."""
        return 2 * description.similarity(event.profile, member.terms, self._idf) >= JOIN_COSINE

    def drain_changes(self) -> list[EventChange]:
        """Return the changes since the last call: transitions in order, then other updates."""
        transitions = [EventChange(kind, at_ms, event.to_event()) for kind, at_ms, event in self._transitions]
        reported = {change.event.id for change in transitions}
        updates = [
            EventChange("updated", event.last_seen_ms, event.to_event())
            for event in self._still_open(self._updated)
            if event.id not in reported and event.announced_size
        ]
        self._transitions, self._updated = [], {}
        return transitions + updates

    # -- transitions ---------------------------------------------------------------------------

    def describe(self, cluster: Cluster, clock_ms: int) -> DetectedEvent:
        """The event of a cluster, or what the cluster would be if it fired now."""
        return (self.event_of_cluster(cluster) or self._open(cluster, clock_ms, 0.0)).to_event()

    def _open(self, cluster: Cluster, clock_ms: int, expected: float, window_ms: int = 0) -> OpenEvent:
        event = OpenEvent(cluster.id, cluster.key, clock_ms, expected, window_ms or self._rule.window_ms)
        event.sightings = cluster.sightings
        for member in sorted(cluster.members.values(), key=lambda m: (m.published_ms or m.at_ms, m.number)):
            event.add(member)
        event.busiest = min(cluster.counted_items, event.size)  # see add_items
        self._describe(event)
        return event

    def fire(
        self, cluster: Cluster, clock_ms: int, expected: float, needed: int,
        new_source_items: int = 0, waits: bool = False, window_ms: int = 0,
    ) -> None:  # fmt: skip
        """Make the cluster, which exceeds ``needed`` items, an event; ``waits``: announced with a minute."""
        event = self._open(cluster, clock_ms, expected, window_ms)
        event.needed = needed
        cluster.event_id = event.id
        self.by_id[event.id] = event
        self._mark_grown(event)
        event.reason = self._format_reason(event.to_event(), needed, new_source_items)
        if not waits:
            self._announce(event, clock_ms)

    def _announce(self, event: OpenEvent, clock_ms: int) -> None:
        event.announced_size = event.size
        self._transitions.append(("fired", clock_ms, event))

    def add_items(self, cluster: Cluster, members: Iterable[WindowItem]) -> None:
        """Add items that joined the cluster of an event, in this order."""
        event = self.by_id[cluster.event_id or ""]
        for member in members:
            event.add(member)
        # The cluster may also hold unrelated items, which the event does not list.
        event.busiest = max(event.busiest, min(cluster.counted_items, event.size))
        self._mark_grown(event)

    def record_sighting(self, cluster: Cluster) -> None:
        """Count a duplicate that is not an item, if the cluster is an event."""
        event = self.event_of_cluster(cluster)
        if event is not None:
            event.sightings += 1
            self._updated[event.id] = None

    def record_update(self, item: StreamItem) -> bool:
        """Record a later version of an article that an event lists; whether there is one."""
        for event in self.by_id.values() if item.number != item.first_version else ():
            listed = event.items.get(item.id)
            if listed is not None and listed.number == item.first_version:
                event.items[item.id] = listed._replace(updated_ms=item.arrived_ms)
                self.needs_headline[event.id] = self._updated[event.id] = None
                return True
        return False

    def absorb(self, cluster: Cluster, absorbed: OpenEvent, clock_ms: int) -> None:
        """Close ``absorbed`` and add its items and counts to the event of ``cluster``."""
        event = self.by_id[cluster.event_id or ""]
        event.absorb(absorbed)
        event.busiest = max(event.busiest, min(cluster.counted_items, event.size))  # see add_items
        if absorbed.announced_size:
            if event.announced_size:
                event.announced_size += absorbed.announced_size  # nothing grew
            elif absorbed.status == "breaking":
                event.announced_size = event.size  # one alert for the story
            self._transitions.append(("merged", clock_ms, absorbed))
        absorbed.status, absorbed.merged_into = "closed", event.id
        self._mark_grown(event)

    def reopen(self, event: OpenEvent) -> None:
        """Restore an event as it was before a merge; then ``close`` it if it has no cluster."""
        self.by_id[event.id] = event
        self._mark_grown(event)

    def close(self, event_id: str, clock_ms: int, into: str | None = None) -> None:
        """Close an event without items in the window, or merged by editors ``into`` one that is not open."""
        event = self.by_id.pop(event_id)
        event.status, event.merged_into = "closed", into
        if into is None and event.story is not None:
            known = (*self.closed.values(), event)
            self.closed = {e.id: e for e in known if e.last_seen_ms > clock_ms - HISTORY_MS}
        if event.announced_size:
            self._transitions.append(("closed" if into is None else "merged", clock_ms, event))

    def develop(self, event: OpenEvent, cluster: Cluster, terms: list[str], told: Articles) -> None:
        """Report a development; an event that closed goes on with ``cluster``, unless that is another one."""
        if event.id not in self.by_id:
            event = self.event_of_cluster(cluster) or self.closed.pop(event.id)
        if event.id not in self.by_id:
            event.status, event.cluster_key, cluster.event_id = "breaking", cluster.key, event.id
            self.by_id[event.id] = event
            self.add_items(cluster, cluster.members.values())
        event.busiest = min(self._clusters.by_key[event.cluster_key].counted_items, event.size)
        words, at_ms = description.surface_forms(terms, told).values(), told[-1].at_ms
        event.developments.append((at_ms, tuple(filter(None, words))))
        self._transitions.append(("development", at_ms, event))

    def release_items(self, cluster: Cluster, members: Sequence[WindowItem]) -> None:
        """Remove items that leave the cluster of an event; without effect for a cluster that is no event."""
        event = self.event_of_cluster(cluster)
        if event is None:
            return
        for member in members:
            event.items.pop(member.id, None)
        event.forget_tolls(members)
        event.busiest = min(event.busiest, event.size)
        event.surface_forms = {}
        if event.headline_id in [member.id for member in members]:
            event.title = ""
        self._mark_grown(event)

    def remove_article(self, id_: str, member: WindowItem | None) -> None:
        """Remove an article; then call ``refresh_headlines``."""
        merged = (event for both in self.merged.values() for event in both)
        for event in (*self.by_id.values(), *self.closed.values(), *merged):
            if (item := event.items.pop(id_, None)) is not None:
                event.title, event.surface_forms, event.removed[id_] = "", {}, None
                event.forget_tolls([member] if member else [], math.inf if member else item.at_ms)
                self._mark_grown(event)
            if event.story:
                event.story.recent = [m for m in event.story.recent if m.id != id_]

    def end_without(self, id_: str, ended_ms: int) -> None:
        """Close at ``ended_ms`` what is too small without an article, under the headline that is left."""
        for event in [e for e in self.by_id.values() if id_ in e.removed and e.size <= e.needed]:
            cluster = self._clusters.by_key[event.cluster_key]
            self.close(event.id, ended_ms)
            cluster.event_id, cluster.id = None, xxhash.xxh3_64_hexdigest(cluster.id)

    # -- once a minute -------------------------------------------------------------------------

    def run_minute_steps(self, clock_ms: int) -> Iterator[None]:
        """Update all events, the headlines of those that grew in steps; announce those that waited."""
        for event in self.by_id.values():
            self._update_status(event)
        for event in self._still_open(self.needs_headline):
            self._describe(event)
            yield
        for event in self.by_id.values():
            if not event.announced_size:
                self._announce(event, clock_ms)
        self.needs_headline = {}

    def refresh_headlines(self) -> None:
        """Choose the headline of every changed event again, without waiting for the next minute."""
        for event in self._still_open(self._updated):
            self._describe(event)

    def _update_status(self, event: OpenEvent) -> None:
        items = self._clusters.by_key[event.cluster_key].counted_items
        if event.status == "breaking" and items * 2 <= event.busiest:
            event.status = "fading"
        elif event.status == "fading" and items > event.needed and items * 2 > event.busiest:
            event.status = "breaking"
        else:
            return
        self._updated[event.id] = None

    def _still_open(self, ids: Iterable[str]) -> list[OpenEvent]:
        return [self.by_id[id_] for id_ in ids if id_ in self.by_id]

    def _describe(self, event: OpenEvent) -> None:
        """Choose headline, terms and profile from the items in the window, unless the event is fading."""
        cluster = self._clusters.by_key[event.cluster_key]
        members = cluster.members.values()
        said = ((m.titled_ms or m.at_ms, m.source, figures_in(m.title, m.lang)) for m in members)
        if grown := new_tolls(said, event.tolls):
            arrived = {m.titled_ms or m.at_ms: arrival_ms_of(m.first_version) for m in members}
            event.tolls += [(max(at, arrived[at]), kind, number) for at, kind, number in grown]
        if event.status == "fading" and event.title and not grown:
            _mark_doubtful(event, cluster)
            return
        event.terms = description.heaviest_terms(cluster.term_sums, self._weigh)
        if not event.surface_forms.keys() >= set(event.terms):
            event.surface_forms = description.surface_forms(event.terms, members)
        event.profile = description.build_profile(cluster, self._idf)
        if event.first and event.first[1] not in event.items:
            event.first = None
        if event.first or event.size <= len(members):  # else earlier items are gone
            found = description.first_report(members, event.terms)
            event.first = min(filter(None, (event.first, found)), default=None)
        doubtful = _mark_doubtful(event, cluster)
        kept = event.headline_id if event.last_seen_ms - event.titled_ms < KEPT_HEADLINE_MS else ""
        headline = description.typical_headline(cluster, self._weigh, kept, event.tolls, doubtful)
        is_other = (headline.id, headline.title) != (event.headline_id, event.title)
        event.titled_ms = event.titled_ms if kept and not is_other else event.last_seen_ms
        self._updated |= {event.id: None} if is_other or grown else {}  # the last item was perhaps reported
        event.title, event.headline_id = headline.title, headline.id

    def _format_reason(self, event: DetectedEvent, needed: int, new_source_items: int) -> str:
        minutes = (event.last_seen_ms - event.first_seen_ms) // MINUTE_MS
        duration = f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"
        duration = duration if minutes else "less than a minute"
        usual = f"{event.expected:.1f} are" if event.expected >= NEGLIGIBLE_SHARE else "none is"
        new = f"{new_source_items} of {event.size} items from sources first seen today; "
        marked = new if 2 * new_source_items > event.size else ""
        early = sum(at_ms < event.first_seen_ms for at_ms in event.times)
        size = size_text(event) + (f" ({early} doubtful and earlier)" if early else "")
        return (
            f"{size} in {duration}, where {usual} usual in "
            f"{event.window_ms / HOUR_MS:g} h; {marked}more than {needed} make an event."
        )

    def _mark_grown(self, event: OpenEvent) -> None:
        self.needs_headline[event.id] = self._updated[event.id] = None
        if event.announced_size and event.size >= 2 * event.announced_size:
            event.announced_size = event.size
            self._transitions.append(("doubled", event.last_seen_ms, event))


def _mark_doubtful(event: OpenEvent, cluster: Cluster) -> set[str]:
    """Mark items that are like hardly any others of the window, or too early; older ones stay as they are."""
    terms_of = {member.id: member.terms.keys() for member in cluster.members.values()}
    strange, since_ms = strange_articles(terms_of), event.first[0] if event.first else 0
    for id_, item in event.items.items():
        known = id_ in strange if id_ in terms_of else item.doubtful
        event.items[id_] = item._replace(doubtful=known or item.at_ms < since_ms)
    return {id_ for id_, item in event.items.items() if item.doubtful}
