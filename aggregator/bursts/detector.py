"""The state machine itself: which story, how many, is that unusual, and what became of it.

``observe`` is the flow of one item: move time on, find its story, join, look whether the story fires.
Once a minute of virtual time the house is kept: stories merge, events fade and close, headlines are
chosen again. Nothing here reads a clock; equal calls give equal bytes (``dump``).
"""

from __future__ import annotations

from collections import deque

import xxhash

from aggregator.bursts import state
from aggregator.bursts.background import Background
from aggregator.bursts.event import HOUR_MS, BurstRule, Change, Event, Kind
from aggregator.bursts.headline import strip_desk_prefix
from aggregator.bursts.neighbours import Neighbours
from aggregator.bursts.openevent import OpenEvent
from aggregator.bursts.stories import LINK, LINK_RELATED, Member, Stories, Story
from aggregator.domain import StreamItem

MINUTE_MS = 60_000
# How many times the usual number a story needs (divided by the rule's sensitivity).
CLEARLY_MORE = 4.0
# Expectation of a story: that of its terms, each by the cube of its share of the items, so that the
# frame that all items have in common decides and not the names that fill it.
SHARE_POWER = 3
FULL_WEIGHT = 255


class BurstDetector:
    """Fed with items and time; events come out of ``changes``."""

    def __init__(self, rule: BurstRule) -> None:
        self.rule = rule
        self.clock_ms = 0
        self.background = Background(rule.window_ms)
        self.stories = Stories()
        self.window: deque[Member] = deque()
        self.open_events: dict[str, OpenEvent] = {}
        self._recent: dict[str, int] = {}
        self._weights: dict[str, float] = {}
        self._grown: dict[str, None] = {}
        self._touched: dict[str, None] = {}
        self._turns: list[tuple[Kind, int, OpenEvent]] = []
        self._neighbours = Neighbours(rule) if rule.mode == "neighbours" else None

    # -- what drivers call ---------------------------------------------------------------------

    def observe(self, item: StreamItem, now_ms: int) -> None:
        """One item of the stream, at the (virtual) time of its arrival."""
        if item.kind == "deleted":
            self._take_down(item)
            return
        self._advance(now_ms)
        if self._is_update(item):
            return
        copied = self._story_of_copy(item)
        if copied is not None and any(m.source == item.source for m in copied.members.values()):
            self._sight(copied, now_ms)
            return
        member = self._member(item, now_ms)
        self._count(member)
        self._place(member, item, copied)

    def tick(self, now_ms: int) -> None:
        """Time has passed, whether or not anything arrived."""
        if now_ms < self.clock_ms - self.rule.window_ms:
            self._start_over(now_ms)
        self._advance(now_ms)

    def changes(self) -> list[Change]:
        """What happened since the last call, in order; each with the event as it stands now."""
        turned = [
            Change(kind, at_ms, event.shown(), self._handed(event)) for kind, at_ms, event in self._turns
        ]
        told = {change.event.id for change in turned}
        grown = [
            Change("updated", event.last_seen_ms, event.shown(), self._handed(event))
            for event in (self.open_events[e] for e in self._touched if e in self.open_events)
            if event.id not in told
        ]
        self._turns, self._touched = [], {}
        return turned + grown

    @property
    def events(self) -> list[Event]:
        """Open events, in order of detection."""
        return [event.shown() for event in self.open_events.values()]

    def dump(self) -> bytes:
        """The whole state; ``load`` continues bit for bit. Call ``changes`` first: they are not part of it."""
        return state.dump(self)

    @classmethod
    def load(cls, data: bytes, rule: BurstRule) -> BurstDetector:
        """The detector that was dumped, under ``rule``. Raises ValueError for another format."""
        detector = cls(rule)
        state.load(detector, data)
        return detector

    # -- time ----------------------------------------------------------------------------------

    def _advance(self, now_ms: int) -> None:
        """Move on to ``now_ms``, unless time is there already; keep house when a minute begins."""
        if now_ms <= self.clock_ms:
            return
        begun = now_ms // MINUTE_MS > self.clock_ms // MINUTE_MS
        self.clock_ms = now_ms
        if begun:
            self.background.freeze(now_ms // HOUR_MS)
            self._weights = {}
            self.stories.minute = now_ms // MINUTE_MS
        self._expire()
        if begun:
            self._keep_house()

    def _expire(self) -> None:
        oldest_ms = self.clock_ms - self.rule.window_ms
        while self.window and self.window[0].at_ms < oldest_ms:
            self._leave(self.window.popleft())

    def _leave(self, member: Member) -> None:
        if member.fires:
            for term in member.terms:
                left = self._recent[term] - 1
                if left:
                    self._recent[term] = left
                else:
                    del self._recent[term]
                self._weights.pop(term, None)
        if self._neighbours is not None:
            self._neighbours.leave(member)
        if member.story >= 0:
            story = self.stories.leave(member)
            if not story.members and story.event is not None:
                self._close(self.open_events[story.event])
                if self._neighbours is not None:
                    self._neighbours.close(story.key)

    def _start_over(self, now_ms: int) -> None:
        """The clock had run ahead by more than a window: what was seen at that time has no date."""
        while self.window:
            self._leave(self.window.popleft())
        self.background.forget_after(now_ms // HOUR_MS)
        self.clock_ms = 0

    def _keep_house(self) -> None:
        if self._neighbours is None:
            for key in sorted(self.stories.changed):
                self._merge_converged(key)
        self.stories.changed.clear()
        for event in list(self.open_events.values()):
            self._age(event)
        for id_ in self._grown:
            if id_ in self.open_events:
                self._describe(self.open_events[id_])
        self._grown = {}

    def _age(self, event: OpenEvent) -> None:
        """Breaking or fading, by what is in the window now."""
        items = self.stories.open[event.story].firing
        if event.status == "breaking" and items * 2 <= event.peak:
            event.status = "fading"
        elif event.status == "fading" and items > self.rule.items and items * 2 > event.peak:
            event.status = "breaking"
        else:
            return
        self._touched[event.id] = None

    # -- one item ------------------------------------------------------------------------------

    def _member(self, item: StreamItem, now_ms: int) -> Member:
        """The item as a story sees it: heaviest terms as integers, its place in time, whether it counts."""
        largest = max((weight for _, weight in item.terms), default=0.0) or 1.0
        published_ms = item.arrived_ms if item.published_at_ms is None else item.published_at_ms
        oldest_ms = self.clock_ms - self.rule.window_ms
        late = item.arrived_ms - published_ms > self.rule.window_ms or now_ms < oldest_ms
        return Member(
            number=item.number,
            first=item.first,
            id=item.id,
            at_ms=self.clock_ms if late else now_ms,
            source=item.source,
            title=strip_desk_prefix(item.title),
            terms={t: max(1, round(FULL_WEIGHT * w / largest)) for t, w in item.terms if w > 0},
            fires=not late,
            cosine=1.0,
            story=-1,
            fingerprint=item.fingerprint,
        )

    def _is_update(self, item: StreamItem) -> bool:
        """A new version of an item in the window takes its place and does not count again."""
        member = self.stories.member(item.first)
        if member is None and self._neighbours is not None:
            member = self._neighbours.waiting.get(item.first)
        if member is None:
            return False
        member.title = strip_desk_prefix(item.title)
        self.stories.renumber(member, item.number)
        return True

    def _count(self, member: Member) -> None:
        """Into the window, at its place in time, and into the statistics of the stream."""
        place = len(self.window)
        while place and self.window[place - 1].at_ms > member.at_ms:
            place -= 1
        self.window.insert(place, member)
        if member.fires:
            self.background.add(member.at_ms // HOUR_MS, member.terms)
            for term in member.terms:
                self._recent[term] = self._recent.get(term, 0) + 1
                self._weights.pop(term, None)

    def _place(self, member: Member, item: StreamItem, copied: Story | None) -> None:
        if self._neighbours is not None:
            self._place_by_bits(member)
            return
        story, cosine = copied, 1.0
        if story is None:
            story, cosine = self.stories.nearest(member.terms, self._weigh)
            if story is None or cosine < LINK:
                story, cosine = self._story_of_related(item, member)
        if story is None:
            story, cosine = self._begin(member), 1.0
        member.cosine = cosine
        self._join(story, member)
        if story.event is None:
            self._look(story)

    def _place_by_bits(self, member: Member) -> None:
        """The literal rule: the neighbours of one item, not a story."""
        assert self._neighbours is not None
        seed = self._neighbours.seed_of(member)
        found = self._neighbours.add(member)
        if seed is not None:
            self._join(self.stories.open[seed.story], member)
        elif sum(m.fires for m in found) > self.rule.items:
            story = self._begin(member)
            for neighbour in found:
                self._join(story, neighbour)
            self._neighbours.seeds.append(member)
            self._fire(story, 0.0)

    def _begin(self, member: Member) -> Story:
        name = xxhash.xxh3_64_hexdigest(f"{member.first}:{member.id}".encode("utf-8", "surrogatepass"))
        return self.stories.begin(name)

    def _join(self, story: Story, member: Member) -> None:
        self.stories.join(story, member)
        if story.event is not None:
            self._extend(self.open_events[story.event], story, [member])

    def _story_of_copy(self, item: StreamItem) -> Story | None:
        """The story of the text that this one repeats, while it is in the window."""
        if item.verdict != "duplicate" or self._neighbours is not None:  # the literal rule counts all
            return None
        return self._story_with(item.canonical_first) or self._story_with(item.matched_number)

    def _story_of_related(self, item: StreamItem, member: Member) -> tuple[Story | None, float]:
        """The story of the text within 7 bits, if the item is not far from its centroid."""
        story = self._story_with(item.matched_number) if item.verdict != "new" else None
        cosine = self.stories.cosine(member.terms, story, self._weigh) if story else 0.0
        return (story, cosine) if cosine >= LINK_RELATED else (None, 0.0)

    def _story_with(self, number: int | None) -> Story | None:
        key = self.stories.of_number.get(number) if number is not None else None
        return self.stories.open[key] if key is not None else None

    def _sight(self, story: Story, now_ms: int) -> None:
        story.sightings += 1
        if story.event is not None:
            event = self.open_events[story.event]
            event.sightings += 1
            event.last_seen_ms = max(event.last_seen_ms, now_ms)
            self._touched[event.id] = None

    def _take_down(self, item: StreamItem) -> None:
        for event in self.open_events.values():
            if item.id in event.items:
                event.remove(item.id)
                event.title = ""
                self._grown[event.id] = self._touched[event.id] = None
        for member in [m for m in self.window if m.first == item.first]:
            self.window.remove(member)
            self._leave(member)
        self._refresh()

    def _refresh(self) -> None:
        """Choose headlines again at once: a text that was taken down must not be shown a minute longer."""
        for id_ in self._touched:
            if id_ in self.open_events:
                self._describe(self.open_events[id_])

    # -- stories into events -------------------------------------------------------------------

    def _look(self, story: Story) -> None:
        """Does it fire? More than the rule's number, of enough sources, clearly more than usual."""
        if story.firing <= self.rule.items:
            return
        if len({m.source for m in story.members.values() if m.fires}) < self.rule.min_sources:
            return
        expected = self._expected(story)
        if story.firing * self.rule.sensitivity >= CLEARLY_MORE * expected:
            self._fire(story, expected)

    def _expected(self, story: Story) -> float:
        """Items per window that are usual for what this story's items have in common."""
        hour = self.clock_ms // HOUR_MS
        weighted = total = 0.0
        for term, weight in story.sums.items():
            share = (weight / (FULL_WEIGHT * len(story.members))) ** SHARE_POWER
            weighted += share * self.background.expected(term, hour)
            total += share
        return weighted / total if total else 0.0

    def _fire(self, story: Story, expected: float) -> None:
        event = OpenEvent(story.id, story.key, self.clock_ms, expected, "", sightings=story.sightings)
        story.event = event.id
        self.open_events[event.id] = event
        joined = sorted(story.members.values(), key=lambda m: (m.at_ms, m.number))
        self._extend(event, story, joined)
        self._describe(event)
        event.reason = self._reason(event, story)
        self._turns.append(("fired", self.clock_ms, event))

    def _extend(self, event: OpenEvent, story: Story, members: list[Member]) -> None:
        for member in members:
            event.add(member)
        event.peak = max(event.peak, story.firing)
        self._grown[event.id] = self._touched[event.id] = None

    def _describe(self, event: OpenEvent) -> None:
        """Headline and terms, from the items in the window; a fading event keeps those of its height."""
        if event.status == "fading" and event.title:
            return
        story = self.stories.open[event.story]
        event.title = self.stories.medoid(story, self._weigh).title
        event.terms = self.stories.heaviest(story, self._weigh)

    def _reason(self, event: OpenEvent, story: Story) -> str:
        minutes = (event.last_seen_ms - event.first_seen_ms) // MINUTE_MS
        sources = len(event.sources)
        about = ", ".join(event.terms[:3])
        return (
            f"{story.firing} items from {sources} source{'s' * (sources != 1)} in "
            f"{minutes // 60} h {minutes % 60:02d} min about {about}, where {event.expected:.1f} are usual in "
            f"{self.rule.window_ms / HOUR_MS:g} h; more than {self.rule.items} make an event."
        )

    def _merge_converged(self, key: int) -> None:
        """Merge a story with those that have come to it, the nearest first."""
        while (story := self.stories.open.get(key)) is not None:
            other = self.stories.converged(story, self._weigh)
            if other is None:
                return
            into, away = self._elder(story, other)
            lost = self.open_events.pop(away.event) if away.event is not None else None
            moved = self.stories.merge(into, away)
            if lost is not None:
                self._take_over(self.open_events[into.event or ""], lost, into)
            elif into.event is not None:
                self._extend(self.open_events[into.event], into, moved)
            else:
                self._look(into)
            key = into.key

    def _elder(self, a: Story, b: Story) -> tuple[Story, Story]:
        """The story that goes on: the event detected first, else the larger, else the older."""

        def rank(story: Story) -> tuple[float, int, int]:
            detected = self.open_events[story.event].detected_at_ms if story.event else float("inf")
            return detected, -len(story.members), story.key

        return (a, b) if rank(a) < rank(b) else (b, a)

    def _take_over(self, event: OpenEvent, lost: OpenEvent, story: Story) -> None:
        event.absorb(lost)
        event.peak = max(event.peak, story.firing)
        lost.status, lost.merged_into, lost.arrivals = "closed", event.id, []
        self._turns.append(("merged", self.clock_ms, lost))
        self._grown[event.id] = self._touched[event.id] = None

    def _close(self, event: OpenEvent) -> None:
        event.status = "closed"
        del self.open_events[event.id]
        self._turns.append(("closed", self.clock_ms, event))

    # -- small ---------------------------------------------------------------------------------

    def _weigh(self, term: str) -> float:
        """What a term says now. Remembered until its counts or the minute change."""
        weight = self._weights.get(term)
        if weight is None:
            hour = self.clock_ms // HOUR_MS
            weight = self.background.weight(term, self._recent.get(term, 0), hour)
            self._weights[term] = weight
        return weight

    @staticmethod
    def _handed(event: OpenEvent) -> tuple[int, ...]:
        handed, event.arrivals = tuple(event.arrivals), []
        return handed
