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
from aggregator.events.detection.baseline import ALL_DOCUMENTS, Baseline
from aggregator.events.detection.clustering import (
    JOIN_RELATED_COSINE,
    MIN_ITEMS_TO_MERGE,
    Story,
    StoryIndex,
    WindowItem,
)
from aggregator.events.detection.hamming_mode import HammingMode
from aggregator.events.detection.headline import strip_desk_prefix
from aggregator.events.detection.items import to_window_item
from aggregator.events.detection.key_terms import KeyTermCache
from aggregator.events.detection.lifecycle import OpenEvents
from aggregator.events.detection.model import BurstRule, Event, EventChange
from aggregator.events.detection.overrides import EditorOverrides, apply_overrides
from aggregator.events.detection.term_weights import TermWeights
from aggregator.time_units import HOUR_MS, MINUTE_MS


class BurstDetector:
    """Fed with items and time; events come out of ``changes``."""

    def __init__(self, rule: BurstRule) -> None:
        self.rule = rule
        self.clock_ms = 0
        self.baseline = Baseline(rule.window_ms)
        self.stories = StoryIndex()
        self.window: deque[WindowItem] = deque()
        self.term_weights = TermWeights(rule, self.baseline)
        self.open_events = OpenEvents(rule, self.stories, self.term_weights.weigh, self.baseline.idf)
        self._hamming_mode = HammingMode(rule) if rule.mode == "neighbours" else None
        self.overrides = EditorOverrides()

    # -- what drivers call ---------------------------------------------------------------------

    def observe(self, item: StreamItem, now_ms: int) -> None:
        """One item of the stream, at the (virtual) time of its arrival."""
        deque(self.observe_steps(item, now_ms), maxlen=0)

    def observe_steps(self, item: StreamItem, now_ms: int) -> Iterator[None]:
        """``observe`` in pieces, as ``ticking``."""
        if item.kind == "deleted":
            self.remove_article(item.id, item.first_version)
            return
        yield from self.advance_clock(now_ms)
        if self.baseline.idf_is_stale():
            self.stories.invalidate_norms()
            self.term_weights.refresh(self.clock_ms)
        if self.overrides.is_removed(item) or self._apply_update(item):
            return
        copied = self._story_of_duplicate(item)
        if copied is not None and any(m.source == item.source for m in copied.members.values()):
            self._record_sighting(copied, now_ms)
            return
        member = to_window_item(item, now_ms, self.clock_ms, self.rule.window_ms)
        self._add_to_window(member)
        yield from self._assign_story(member, item, copied)

    def tick(self, now_ms: int) -> None:
        """Time has passed, whether or not anything arrived.

        Stories that grew are compared with one another at once, not only when the next minute begins: of a
        story that came in fragments an editor hears with the tick, not up to a minute later.
        """
        deque(self.tick_steps(now_ms), maxlen=0)

    def tick_steps(self, now_ms: int) -> Iterator[None]:
        """``tick`` in pieces of some milliseconds at most; nothing else may be asked before the last."""
        if now_ms < self.clock_ms - self.rule.window_ms:
            self._reset_clock(now_ms)
        yield from self.advance_clock(now_ms)
        yield from self._merge_changed_stories()

    def advance_clock(self, now_ms: int) -> Iterator[None]:
        """What ``observing`` does first at ``now_ms``: time goes on.

        Unless it is there already; when a minute begins, the house is kept.
        """
        if now_ms <= self.clock_ms:
            return
        begun = now_ms // MINUTE_MS > self.clock_ms // MINUTE_MS
        self.clock_ms = now_ms
        if begun:
            self.term_weights.refresh(self.clock_ms)
            self.stories.begin_minute(now_ms // MINUTE_MS)
        self._expire_items()
        if begun:
            yield from self._merge_changed_stories()
            yield from self.open_events.run_minute_steps()
            apply_overrides(self, self.overrides)

    def set_overrides(self, overrides: EditorOverrides) -> None:
        """What editors want, from now on. It is no part of the state that is saved."""
        self.overrides = overrides
        apply_overrides(self, overrides)

    def drain_changes(self) -> list[EventChange]:
        """What happened since the last call, in order; each with the event as it stands now."""
        return self.open_events.drain_changes()

    @property
    def events(self) -> list[Event]:
        """Open events, in order of detection."""
        return self.open_events.to_events()

    def dump(self) -> bytes:
        """The whole state; ``load`` continues bit for bit. Call ``changes`` first: they are not part of it."""
        return b"".join(self.dump_chunks())

    def dump_chunks(self) -> Iterator[bytes]:
        """``dump`` in pieces; nothing may change before the last."""
        return state_codec.dump_chunks(self)

    @classmethod
    def load(cls, data: bytes, rule: BurstRule) -> BurstDetector:
        """The detector that was dumped, under ``rule``. Raises ValueError for another format."""
        detector = cls(rule)
        state_codec.restore(detector, data)
        return detector

    # -- time ----------------------------------------------------------------------------------

    def _expire_items(self) -> None:
        oldest_ms = self.clock_ms - self.rule.window_ms
        while self.window and self.window[0].at_ms < oldest_ms:
            self._remove_from_window(self.window.popleft())

    def _remove_from_window(self, member: WindowItem) -> None:
        if member.is_counted:
            self.term_weights.remove(member.terms)
        if self._hamming_mode is not None:
            self._hamming_mode.remove(member)
        if member.story_key >= 0:
            story = self.stories.remove_item(member)
            if not story.members and story.event_id is not None:
                self.open_events.close(story, self.clock_ms)
                if self._hamming_mode is not None:
                    self._hamming_mode.close_story(story.key)

    def _reset_clock(self, now_ms: int) -> None:
        """The clock had run ahead by more than a window: what was seen at that time has no date."""
        while self.window:
            self._remove_from_window(self.window.popleft())
        self.baseline.drop_hours_after(now_ms // HOUR_MS)
        self.clock_ms = 0

    def _merge_changed_stories(self) -> Iterator[None]:
        if self._hamming_mode is None:
            chiefs = KeyTermCache(self.term_weights)
            for key in sorted(self.stories.changed_keys):
                yield from self._merge_with_candidates(key, chiefs)
        self.stories.changed_keys.clear()

    # -- one item ------------------------------------------------------------------------------

    def _apply_update(self, item: StreamItem) -> bool:
        """A new version of an item in the window takes its place and does not count again."""
        member = self.stories.find_item(item.first_version)
        if member is None and self._hamming_mode is not None:
            member = self._hamming_mode.pending.get(item.first_version)
        if member is None:
            return False
        member.title = strip_desk_prefix(item.title)
        self.stories.renumber(member, item.number)
        return True

    def _add_to_window(self, member: WindowItem) -> None:
        """Into the window, at its place in time, and into the statistics of the stream."""
        place = len(self.window)
        while place and self.window[place - 1].at_ms > member.at_ms:
            place -= 1
        self.window.insert(place, member)
        if member.is_counted:
            self.baseline.add(member.at_ms // HOUR_MS, (*member.terms, ALL_DOCUMENTS))
            self.term_weights.add(member.terms)

    def _assign_story(
        self, member: WindowItem, item: StreamItem, duplicate_story: Story | None
    ) -> Iterator[None]:
        if self._hamming_mode is not None:
            self._assign_by_hamming_distance(member)
            return
        story, cosine = duplicate_story, 1.0
        if story is None:
            story, cosine = yield from self.stories.nearest(member.terms, self.term_weights.weigh)
            if story is None:
                story, cosine = self._story_of_related(item, member)
        if story is None:
            story, cosine = self._create_story(member), 1.0
        member.cosine = cosine
        self._add_to_story(story, member)
        if story.event_id is None:
            self._check_burst(story)

    def _assign_by_hamming_distance(self, member: WindowItem) -> None:
        """The literal rule: the neighbours of one item, not a story."""
        assert self._hamming_mode is not None
        seed = self._hamming_mode.find_seed(member)
        found = self._hamming_mode.add(member)
        if seed is not None:
            self._add_to_story(self.stories.by_key[seed.story_key], member)
        elif sum(m.is_counted for m in found) > self.rule.items:
            story = self._create_story(member)
            for neighbour in found:
                self._add_to_story(story, neighbour)
            self._hamming_mode.seeds.append(member)
            self.open_events.fire(story, self.clock_ms, 0.0)

    def _create_story(self, member: WindowItem) -> Story:
        name = xxhash.xxh3_64_hexdigest(
            f"{member.first_version}:{member.id}".encode("utf-8", "surrogatepass")
        )
        return self.stories.create(name)

    def _add_to_story(self, story: Story, member: WindowItem) -> None:
        self.stories.add_item(story, member)
        if story.event_id is not None:
            self.open_events.add_items(story, [member])

    def _story_of_duplicate(self, item: StreamItem) -> Story | None:
        """The story of the text that this one repeats, while it is in the window."""
        if item.verdict != "duplicate" or self._hamming_mode is not None:  # the literal rule counts all
            return None
        return self._story_containing(item.canonical_first) or self._story_containing(item.matched_number)

    def _story_of_related(self, item: StreamItem, member: WindowItem) -> tuple[Story | None, float]:
        """The story of the text within 7 bits, if the item is not far from its centroid."""
        story = self._story_containing(item.matched_number) if item.verdict != "new" else None
        cosine = self.stories.cosine(member.terms, story, self.term_weights.weigh) if story else 0.0
        return (story, cosine) if cosine >= JOIN_RELATED_COSINE else (None, 0.0)

    def _story_containing(self, number: int | None) -> Story | None:
        key = self.stories.key_by_number.get(number) if number is not None else None
        return self.stories.by_key[key] if key is not None else None

    def _record_sighting(self, story: Story, now_ms: int) -> None:
        story.sightings += 1
        self.open_events.record_sighting(story, now_ms)

    def remove_article(self, item_id: str, first_version: int) -> None:
        """An article was taken down, or an editor said that it does not belong here."""
        self.open_events.remove_article(item_id)
        for member in [m for m in self.window if m.first_version == first_version]:
            self.window.remove(member)
            self._remove_from_window(member)
        self.open_events.refresh_headlines()

    # -- stories into events -------------------------------------------------------------------

    def _check_burst(self, story: Story) -> None:
        """Does it fire? More than the rule's number, of enough sources, clearly more than usual."""
        hour = self.clock_ms // HOUR_MS
        expected = expectation.expected_if_exceeded(
            story, self.rule, self.baseline, self.term_weights.window_count, hour
        )
        if expected is not None:
            self.open_events.fire(story, self.clock_ms, expected)

    def _merge_with_candidates(self, key: int, key_terms: KeyTermCache) -> Iterator[None]:
        """Merge a story with those that have come to it, the nearest first."""
        stories, terms = self.stories, self.term_weights
        while (story := stories.by_key.get(key)) is not None and len(story.members) >= MIN_ITEMS_TO_MERGE:
            other = stories.find_merge_candidate(
                story, key_terms.top_terms(story), terms.weigh, key_terms.support_merge
            )
            yield
            other = other or fragments.find_merge_partner(stories, story, terms, key_terms)
            yield
            if other is None:
                return
            into, away = self._survivor(story, other)
            self.merge_stories(into, away)
            key_terms.invalidate(into)
            key = into.key

    def merge_stories(self, into: Story, absorbed: Story) -> None:
        """One story of two; if both are events, that of ``into`` goes on."""
        lost = self.open_events.by_id.pop(absorbed.event_id) if absorbed.event_id is not None else None
        moved = self.stories.merge(into, absorbed)
        if lost is not None:
            self.open_events.absorb(into, lost, self.clock_ms)
        elif into.event_id is not None:
            self.open_events.add_items(into, self._related_items(into, moved))
        else:
            self._check_burst(into)

    def _related_items(self, story: Story, moved: Iterable[WindowItem]) -> Iterator[WindowItem]:
        """Those of the items that came with another story that have something in common with this one.

        A small story may hold strangers beside the item that led it here; they count with it, but an event does not
        show them. How much alike an item is, is said of the story that it is in.
        """
        for member in moved:
            member.cosine = self.stories.cosine(member.terms, story, self.term_weights.weigh)
            if member.cosine >= JOIN_RELATED_COSINE:
                yield member

    def dissolve(self, story: Story) -> None:
        """Forget the items of a story, which is no event any more."""
        story.event_id = None
        for member in list(story.members.values()):
            self.window.remove(member)
            self._remove_from_window(member)

    def _survivor(self, a: Story, b: Story) -> tuple[Story, Story]:
        """The story that goes on: the event detected first, else the larger, else the older."""

        def rank(story: Story) -> tuple[float, int, int]:
            event = self.open_events.event_of_story(story)
            return event.detected_at_ms if event else float("inf"), -len(story.members), story.key

        return (a, b) if rank(a) < rank(b) else (b, a)
