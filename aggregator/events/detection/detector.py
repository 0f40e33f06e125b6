"""The state machine itself: which story, how many, is that unusual, and what became of it.

``observe`` is the flow of one item: move time on, find its story, join, look whether the story fires.
Once a minute of virtual time the house is kept: stories merge, events fade and close, headlines are
chosen again. Nothing here reads a clock; equal calls give equal bytes (``dump``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import xxhash

from aggregator.domain import StreamItem
from aggregator.events.detection import expectation, fragments, state_codec
from aggregator.events.detection.baseline import EVERY, Background
from aggregator.events.detection.clustering import LEAST_TO_MERGE, LINK_RELATED, Member, Stories, Story
from aggregator.events.detection.hamming_mode import Neighbours
from aggregator.events.detection.headline import strip_desk_prefix
from aggregator.events.detection.items import member_of
from aggregator.events.detection.key_terms import Chiefs
from aggregator.events.detection.lifecycle import EventBook
from aggregator.events.detection.model import HOUR_MS, BurstRule, Change, Event
from aggregator.events.detection.overrides import Orders, enforce
from aggregator.events.detection.term_weights import Terms

MINUTE_MS = 60_000


class BurstDetector:
    """Fed with items and time; events come out of ``changes``."""

    def __init__(self, rule: BurstRule) -> None:
        self.rule = rule
        self.clock_ms = 0
        self.background = Background(rule.window_ms)
        self.stories = Stories()
        self.window: deque[Member] = deque()
        self.terms = Terms(rule, self.background)
        self.book = EventBook(rule, self.stories, self.terms.weigh, self.background.idf)
        self._neighbours = Neighbours(rule) if rule.mode == "neighbours" else None
        self.orders = Orders()

    # -- what drivers call ---------------------------------------------------------------------

    def observe(self, item: StreamItem, now_ms: int) -> None:
        """One item of the stream, at the (virtual) time of its arrival."""
        deque(self.observing(item, now_ms), maxlen=0)

    def observing(self, item: StreamItem, now_ms: int) -> Iterator[None]:
        """``observe`` in pieces, as ``ticking``."""
        if item.kind == "deleted":
            self.take_out(item.id, item.first)
            return
        yield from self.advance(now_ms)
        if self.background.has_outgrown():
            self.stories.outdate()
            self.terms.freeze(self.clock_ms)
        if self.orders.has_removed(item) or self._is_update(item):
            return
        copied = self._story_of_copy(item)
        if copied is not None and any(m.source == item.source for m in copied.members.values()):
            self._sight(copied, now_ms)
            return
        member = member_of(item, now_ms, self.clock_ms, self.rule.window_ms)
        self._count(member)
        yield from self._place(member, item, copied)

    def tick(self, now_ms: int) -> None:
        """Time has passed, whether or not anything arrived.

        Stories that grew are compared with one another at once, not only when the next minute begins: of a
        story that came in fragments an editor hears with the tick, not up to a minute later.
        """
        deque(self.ticking(now_ms), maxlen=0)

    def ticking(self, now_ms: int) -> Iterator[None]:
        """``tick`` in pieces of some milliseconds at most; nothing else may be asked before the last."""
        if now_ms < self.clock_ms - self.rule.window_ms:
            self._start_over(now_ms)
        yield from self.advance(now_ms)
        yield from self._merge_grown()

    def advance(self, now_ms: int) -> Iterator[None]:
        """What ``observing`` does first at ``now_ms``: time goes on.

        Unless it is there already; when a minute begins, the house is kept.
        """
        if now_ms <= self.clock_ms:
            return
        begun = now_ms // MINUTE_MS > self.clock_ms // MINUTE_MS
        self.clock_ms = now_ms
        if begun:
            self.terms.freeze(self.clock_ms)
            self.stories.begin_minute(now_ms // MINUTE_MS)
        self._expire()
        if begun:
            yield from self._merge_grown()
            yield from self.book.keep()
            enforce(self, self.orders)

    def follow(self, orders: Orders) -> None:
        """What editors want, from now on. It is no part of the state that is saved."""
        self.orders = orders
        enforce(self, orders)

    def changes(self) -> list[Change]:
        """What happened since the last call, in order; each with the event as it stands now."""
        return self.book.changes()

    @property
    def events(self) -> list[Event]:
        """Open events, in order of detection."""
        return self.book.shown()

    def dump(self) -> bytes:
        """The whole state; ``load`` continues bit for bit. Call ``changes`` first: they are not part of it."""
        return b"".join(self.dumping())

    def dumping(self) -> Iterator[bytes]:
        """``dump`` in pieces; nothing may change before the last."""
        return state_codec.dump(self)

    @classmethod
    def load(cls, data: bytes, rule: BurstRule) -> BurstDetector:
        """The detector that was dumped, under ``rule``. Raises ValueError for another format."""
        detector = cls(rule)
        state_codec.load(detector, data)
        return detector

    # -- time ----------------------------------------------------------------------------------

    def _expire(self) -> None:
        oldest_ms = self.clock_ms - self.rule.window_ms
        while self.window and self.window[0].at_ms < oldest_ms:
            self._leave(self.window.popleft())

    def _leave(self, member: Member) -> None:
        if member.fires:
            self.terms.go(member.terms)
        if self._neighbours is not None:
            self._neighbours.leave(member)
        if member.story >= 0:
            story = self.stories.leave(member)
            if not story.members and story.event is not None:
                self.book.close(story, self.clock_ms)
                if self._neighbours is not None:
                    self._neighbours.close(story.key)

    def _start_over(self, now_ms: int) -> None:
        """The clock had run ahead by more than a window: what was seen at that time has no date."""
        while self.window:
            self._leave(self.window.popleft())
        self.background.forget_after(now_ms // HOUR_MS)
        self.clock_ms = 0

    def _merge_grown(self) -> Iterator[None]:
        if self._neighbours is None:
            chiefs = Chiefs(self.terms)
            for key in sorted(self.stories.changed):
                yield from self._merge_converged(key, chiefs)
        self.stories.changed.clear()

    # -- one item ------------------------------------------------------------------------------

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
            self.background.add(member.at_ms // HOUR_MS, (*member.terms, EVERY))
            self.terms.come(member.terms)

    def _place(self, member: Member, item: StreamItem, copied: Story | None) -> Iterator[None]:
        if self._neighbours is not None:
            self._place_by_bits(member)
            return
        story, cosine = copied, 1.0
        if story is None:
            story, cosine = yield from self.stories.nearest(member.terms, self.terms.weigh)
            if story is None:
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
            self.book.fire(story, self.clock_ms, 0.0)

    def _begin(self, member: Member) -> Story:
        name = xxhash.xxh3_64_hexdigest(f"{member.first}:{member.id}".encode("utf-8", "surrogatepass"))
        return self.stories.begin(name)

    def _join(self, story: Story, member: Member) -> None:
        self.stories.join(story, member)
        if story.event is not None:
            self.book.extend(story, [member])

    def _story_of_copy(self, item: StreamItem) -> Story | None:
        """The story of the text that this one repeats, while it is in the window."""
        if item.verdict != "duplicate" or self._neighbours is not None:  # the literal rule counts all
            return None
        return self._story_with(item.canonical_first) or self._story_with(item.matched_number)

    def _story_of_related(self, item: StreamItem, member: Member) -> tuple[Story | None, float]:
        """The story of the text within 7 bits, if the item is not far from its centroid."""
        story = self._story_with(item.matched_number) if item.verdict != "new" else None
        cosine = self.stories.cosine(member.terms, story, self.terms.weigh) if story else 0.0
        return (story, cosine) if cosine >= LINK_RELATED else (None, 0.0)

    def _story_with(self, number: int | None) -> Story | None:
        key = self.stories.of_number.get(number) if number is not None else None
        return self.stories.open[key] if key is not None else None

    def _sight(self, story: Story, now_ms: int) -> None:
        story.sightings += 1
        self.book.sight(story, now_ms)

    def take_out(self, item_id: str, first: int) -> None:
        """An article was taken down, or an editor said that it does not belong here."""
        self.book.take_down(item_id)
        for member in [m for m in self.window if m.first == first]:
            self.window.remove(member)
            self._leave(member)
        self.book.refresh()

    # -- stories into events -------------------------------------------------------------------

    def _look(self, story: Story) -> None:
        """Does it fire? More than the rule's number, of enough sources, clearly more than usual."""
        hour = self.clock_ms // HOUR_MS
        expected = expectation.exceeded(story, self.rule, self.background, self.terms.seen, hour)
        if expected is not None:
            self.book.fire(story, self.clock_ms, expected)

    def _merge_converged(self, key: int, chiefs: Chiefs) -> Iterator[None]:
        """Merge a story with those that have come to it, the nearest first."""
        stories, terms = self.stories, self.terms
        while (story := stories.open.get(key)) is not None and len(story.members) >= LEAST_TO_MERGE:
            other = stories.converged(story, chiefs.heaviest(story), terms.weigh, chiefs.agree)
            yield
            other = other or fragments.partner(stories, story, terms, chiefs)
            yield
            if other is None:
                return
            into, away = self._elder(story, other)
            self.unite(into, away)
            chiefs.forget(into)
            key = into.key

    def unite(self, into: Story, away: Story) -> None:
        """One story of two; if both are events, that of ``into`` goes on."""
        lost = self.book.open.pop(away.event) if away.event is not None else None
        moved = self.stories.merge(into, away)
        if lost is not None:
            self.book.take_over(into, lost, self.clock_ms)
        elif into.event is not None:
            self.book.extend(into, self._kin(into, moved))
        else:
            self._look(into)

    def _kin(self, story: Story, moved: Iterable[Member]) -> Iterator[Member]:
        """Those of the items that came with another story that have something in common with this one.

        A small story may hold strangers beside the item that led it here; they count with it, but an event does not
        show them. How much alike an item is, is said of the story that it is in.
        """
        for member in moved:
            member.cosine = self.stories.cosine(member.terms, story, self.terms.weigh)
            if member.cosine >= LINK_RELATED:
                yield member

    def disband(self, story: Story) -> None:
        """Forget the items of a story, which is no event any more."""
        story.event = None
        for member in list(story.members.values()):
            self.window.remove(member)
            self._leave(member)

    def _elder(self, a: Story, b: Story) -> tuple[Story, Story]:
        """The story that goes on: the event detected first, else the larger, else the older."""

        def rank(story: Story) -> tuple[float, int, int]:
            event = self.book.of(story)
            return event.detected_at_ms if event else float("inf"), -len(story.members), story.key

        return (a, b) if rank(a) < rank(b) else (b, a)
