"""Burst detector: a deterministic state machine that turns stream items and time into event changes.

``observe`` processes one item: advance the clock, find the item's story, join it, check whether the story
fires. At the start of each minute of virtual time the clock also merges stories, updates the status of
events and chooses their headlines. No function reads a clock: equal calls give equal bytes (``dump``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator

import xxhash

from aggregator.analysis.term_rates import TermRates
from aggregator.analysis.text.headline import split_headline
from aggregator.domain import StreamItem
from aggregator.events.detection import coherence, expectation, fragments, routine, state_codec
from aggregator.events.detection.baseline import ALL_DOCUMENTS, Baseline
from aggregator.events.detection.clustering import (
    JOIN_RELATED_COSINE,
    MIN_ITEMS_TO_MERGE,
    Story,
    StoryIndex,
    WindowItem,
)
from aggregator.events.detection.cold_start import ColdStart
from aggregator.events.detection.hamming_mode import HammingMode
from aggregator.events.detection.items import placed_ms, plausible_date_ms, to_window_item
from aggregator.events.detection.key_terms import KeyTermCache
from aggregator.events.detection.learning import LearnedHistory
from aggregator.events.detection.lesson import Lesson
from aggregator.events.detection.lifecycle import OpenEvents
from aggregator.events.detection.model import BurstRule, Event, EventChange
from aggregator.events.detection.overrides import EditorOverrides
from aggregator.events.detection.series import SeriesMemory
from aggregator.events.detection.state_codec import DetectorState
from aggregator.events.detection.term_weights import TermWeights
from aggregator.time_units import HOUR_MS, MINUTE_MS

# More undated articles in one minute are a bulk load: at that rate a day has 4 million.
MAX_UNDATED_PER_MINUTE = 3_000


class BurstDetector:
    """Detector under one rule. Feed it with ``observe`` and ``tick``; read ``drain_changes``.

    ``rates``: how frequent terms are in news in general, for the first day (``cold_start.py``); None: no
    rules for the first day.

    All times are virtual, in ms since 1970 UTC, and only move forward.

    The ``*_steps`` and ``*_chunks`` methods are for a caller that shares an event loop: it may run other
    work after each step, but must not use the detector before the last one. CPU time of the longest call and
    of its longest step, with 13,000 full texts arriving at 100/s (20,000 at 500/s)::

        observe                 36 (72 to 90) ms, 0.16 (0.24) ms on average; not divided
        advance_clock_steps    163 ms at the start of a minute, in steps of at most 22 ms
        tick_steps             115 (333) ms, in steps of at most 40 (57) ms
        dump_chunks             35 (79) ms, in chunks of at most 6 (10) ms

    Headlines only, 30,000 in two days: no call takes longer than 14 ms.
    """

    def __init__(self, rule: BurstRule, rates: TermRates | None = None) -> None:
        self.rule = rule
        self.clock_ms = 0
        self.baseline = Baseline(rule.window_ms)
        self.stories = StoryIndex()
        self.window: deque[WindowItem] = deque()
        self.cold_start = ColdStart(rates, self.baseline)
        self.term_weights = TermWeights(rule, self.baseline, self.cold_start)
        self.open_events = OpenEvents(rule, self.stories, self.term_weights.weigh, self.baseline.idf)
        self._hamming_mode = HammingMode() if rule.mode == "literal" else None
        self.overrides = EditorOverrides()
        # (minute, undated articles that arrived in it so far)
        self._undated_minute = (0, 0)
        self.series = SeriesMemory()

    # -- interface -----------------------------------------------------------------------------

    def observe(self, item: StreamItem, now_ms: int) -> None:
        """Process one stream item that arrived at ``now_ms``; a deletion does not advance the clock."""
        if item.kind == "deleted":
            self.remove_article(item.id, item.first_version)
            return
        _run(self.advance_clock_steps(now_ms))
        if self.baseline.idf_is_stale():
            self.stories.invalidate_norms()
            self.term_weights.refresh(self.clock_ms)
        if self.overrides.is_removed(item) or self._apply_update(item):
            return
        if item.backfill and plausible_date_ms(item) is None:
            return
        duplicate_story = self._story_of_duplicate(item)
        if duplicate_story is not None and any(
            m.source == item.source for m in duplicate_story.members.values()
        ):
            self._record_sighting(duplicate_story, now_ms)
            return
        if self._is_bulk(item, now_ms):
            return
        member = to_window_item(item, now_ms, self.clock_ms, self.rule.window_ms)
        if not member.is_counted and self._hamming_mode is None:
            self._observe_late(member, item, placed_ms(item, now_ms), duplicate_story)
            return
        self._add_to_window(member)
        self._assign_story(member, item, duplicate_story)

    def tick(self, now_ms: int) -> None:
        """Advance the clock to ``now_ms`` without an item and merge the stories that grew.

        Merging here, and not only at the start of a minute, alerts up to a minute earlier to a story that
        arrives in fragments. A time over one window behind the clock resets the clock.
        """
        _run(self.tick_steps(now_ms))

    def tick_steps(self, now_ms: int) -> Iterator[None]:
        """``tick`` in steps."""
        if now_ms < self.clock_ms - self.rule.window_ms:
            self._reset_clock(now_ms)
        yield from self.advance_clock_steps(now_ms)
        yield from self._merge_changed_stories()

    def advance_clock_steps(self, now_ms: int) -> Iterator[None]:
        """Advance the clock in steps; a later ``observe`` at ``now_ms`` finds nothing left of this work.

        Expires items and, if a new minute starts, merges stories and updates events. A no-op when the
        clock is at ``now_ms`` or later.
        """
        if now_ms <= self.clock_ms:
            return
        is_new_minute = now_ms // MINUTE_MS > self.clock_ms // MINUTE_MS
        self.clock_ms = now_ms
        if is_new_minute:
            self.term_weights.refresh(self.clock_ms)
            self.stories.begin_minute(now_ms // MINUTE_MS)
        self._expire_items()
        if is_new_minute:
            yield from self._merge_changed_stories()
            yield from self.open_events.run_minute_steps()
            self._apply_overrides()

    def set_overrides(self, overrides: EditorOverrides) -> None:
        """Replace the editor overrides and apply them. They are not part of the saved state."""
        self.overrides = overrides
        self._apply_overrides()

    def drain_changes(self) -> list[EventChange]:
        """Return the changes since the last call, in order, each with the present version of its event."""
        return self.open_events.drain_changes()

    def close_events(self) -> list[EventChange]:
        """Close all open events, when another rule takes over; returns the changes."""
        for event in list(self.open_events.by_id.values()):
            self.open_events.close(self.stories.by_key[event.story_key], self.clock_ms)
        return self.drain_changes()

    def learn(self, lesson: Lesson) -> None:
        """Take over what another detector learned of the time before the window; fires nothing."""
        for hour, documents, counts in lesson.hours:
            self.baseline.learn_hour(hour, documents, counts, self.clock_ms // HOUR_MS)
        self.series.learn(lesson.bursts, self.clock_ms)
        self.term_weights.refresh(self.clock_ms)

    @property
    def lesson(self) -> Lesson:
        """What this detector learned."""
        return Lesson(self.baseline.saved_hours(), self.series.bursts)

    @property
    def learned_history(self) -> LearnedHistory:
        """What the baseline knows, for the learning status."""
        return LearnedHistory(self.baseline.known_hour, dict(self.baseline.documents_by_hour))

    @property
    def events(self) -> list[Event]:
        """Open events, in order of detection."""
        return self.open_events.to_events()

    # -- saved state ---------------------------------------------------------------------------

    def dump(self) -> bytes:
        """Encode the state; a detector from ``load`` continues bit for bit.

        Undrained changes and editor overrides are not included: call ``drain_changes`` first.
        """
        return b"".join(self.dump_chunks())

    def dump_chunks(self) -> Iterator[bytes]:
        """``dump`` in chunks. The detector must not change before the last one."""
        hamming = self._hamming_mode
        state = DetectorState(
            clock_ms=self.clock_ms,
            next_story_key=self.stories.next_key,
            window=[(m.story_key, m.first_version) for m in self.window],
            stories=list(self.stories.by_key.values()),
            changed_stories=list(self.stories.changed_keys),
            needs_headline=list(self.open_events.needs_headline),
            pending=[m for m in hamming.pending.values() if m.story_key < 0] if hamming else [],
            seeds=hamming.seeds if hamming else [],
            events=list(self.open_events.by_id.values()),
            first_hour=self.baseline.first_hour,
            idf_documents=self.baseline.idf_documents,
            hours=self.baseline.saved_hours(),
            known_hour=self.baseline.known_hour,
            undated_minute=self._undated_minute,
            bursts=self.series.bursts,
            learned_hours=sorted(self.baseline.learned_hours),
        )
        return state_codec.encode_chunks(state)

    @classmethod
    def load(cls, data: bytes, rule: BurstRule, rates: TermRates | None = None) -> BurstDetector:
        """Return a dumped detector under ``rule``. Raises ValueError for damaged or foreign bytes."""
        detector = cls(rule, rates)
        detector._restore(state_codec.decode(data))
        return detector

    def _restore(self, state: DetectorState) -> None:
        """Fill a new detector; window counts, totals and the inverted index are computed again."""
        self.clock_ms = state.clock_ms
        self.stories.begin_minute(state.clock_ms // MINUTE_MS)
        self.stories.restore(state.stories, state.next_story_key)
        self.stories.changed_keys = dict.fromkeys(state.changed_stories)
        self.open_events.needs_headline = dict.fromkeys(state.needs_headline)
        self.open_events.by_id = {event.id: event for event in state.events}
        pending = {m.first_version: m for m in state.pending}
        self.window = deque(
            self.stories.by_key[key].members[first] if key >= 0 else pending[first]
            for key, first in state.window
        )
        if self._hamming_mode is not None:
            self._hamming_mode.restore(state.pending, state.seeds)
        self.baseline.first_hour = state.first_hour
        self.baseline.known_hour = state.known_hour
        self._undated_minute = state.undated_minute
        self.baseline.idf_documents = state.idf_documents
        self.baseline.idf_hour = self.term_weights.hour = state.clock_ms // HOUR_MS
        self.cold_start.refresh(self.term_weights.hour)
        for member in self.window:
            if member.is_counted:
                self.term_weights.add(member)
        self.series.bursts = state.bursts
        self.baseline.learned_hours = set(state.learned_hours)
        for hour, documents, counts in state.hours:
            self.baseline.restore_hour(hour, counts, documents)

    # -- time ----------------------------------------------------------------------------------

    def _expire_items(self) -> None:
        oldest_ms = self.clock_ms - self.rule.window_ms
        while self.window and self.window[0].at_ms < oldest_ms:
            self._remove_from_window(self.window.popleft())

    def _remove_from_window(self, member: WindowItem) -> None:
        if member.is_counted:
            self.term_weights.remove(member)
        if self._hamming_mode is not None:
            self._hamming_mode.remove(member)
        if member.story_key >= 0:
            story = self.stories.remove_item(member)
            if not story.members and story.event_id is not None:
                self.series.raise_peak(story.key, self.open_events.by_id[story.event_id].peak)
                self.open_events.close(story, self.clock_ms)
                if self._hamming_mode is not None:
                    self._hamming_mode.close_story(story.key)

    def _reset_clock(self, now_ms: int) -> None:
        """Recover from a clock that ran over one window ahead: forget what was observed at the wrong time."""
        while self.window:
            self._remove_from_window(self.window.popleft())
        self.baseline.drop_hours_after(now_ms // HOUR_MS)
        self.clock_ms = 0

    def _merge_changed_stories(self) -> Iterator[None]:
        """Merge stories that grew since the last call, oldest first; one step per search."""
        if self._hamming_mode is None:
            key_terms = KeyTermCache(self.term_weights)
            for key in sorted(self.stories.changed_keys):
                yield from self._merge_with_candidates(key, key_terms)
            for key in sorted(self.stories.changed_keys):
                self._divide(key, key_terms)
        self.stories.changed_keys.clear()

    # -- one item ------------------------------------------------------------------------------

    def _apply_update(self, item: StreamItem) -> bool:
        """Replace an item of the window by its new version, without counting it again; False if absent."""
        member = self.stories.find_item(item.first_version)
        if member is None and self._hamming_mode is not None:
            member = self._hamming_mode.pending.get(item.first_version)
        if member is None:
            return False
        member.desk_prefix, member.title = split_headline(item.title)
        self.stories.renumber(member, item.number)
        return True

    def _is_bulk(self, item: StreamItem, now_ms: int) -> bool:
        """Whether the article belongs to a bulk load without dates: nobody publishes so many in a minute."""
        if item.published_at_ms is not None:
            return False
        minute, count = self._undated_minute
        count = count + 1 if minute == now_ms // MINUTE_MS else 1
        self._undated_minute = (now_ms // MINUTE_MS, count)
        return count > MAX_UNDATED_PER_MINUTE

    def _observe_late(
        self, member: WindowItem, item: StreamItem, at_ms: int, duplicate_story: Story | None
    ) -> None:
        """Learn from a late or backfilled article; it joins events only, uncounted."""
        terms = (*member.terms, ALL_DOCUMENTS)
        self.baseline.add_late(at_ms // HOUR_MS, terms, self.clock_ms // HOUR_MS)
        self.term_weights.invalidate(terms)
        story, cosine = duplicate_story, 1.0
        if story is None:
            story, cosine = self.stories.nearest(member.terms, self.term_weights.weigh)
        if story is not None and story.event_id is not None:
            member.cosine = cosine
            self._add_to_window(member)
            self._add_to_story(story, member)

    def _add_to_window(self, member: WindowItem) -> None:
        """Insert the item into the window in order of time and count its terms."""
        if not self.window or self.window[-1].at_ms <= member.at_ms:
            self.window.append(member)
        else:
            self.window.insert(bisect_right(self.window, member.at_ms, key=lambda m: m.at_ms), member)
        if member.is_counted:
            self.baseline.add(member.at_ms // HOUR_MS, (*member.terms, ALL_DOCUMENTS))
            self.term_weights.add(member)

    def _assign_story(self, member: WindowItem, item: StreamItem, duplicate_story: Story | None) -> None:
        """Join the story of the duplicate, the nearest one, that of the related article, or a new one."""
        if self._hamming_mode is not None:
            self._assign_by_hamming_distance(member)
            return
        story, cosine = duplicate_story, 1.0
        if story is None:
            story, cosine = self.stories.nearest(member.terms, self.term_weights.weigh)
            if story is None:
                story, cosine = self._story_of_related(item, member)
        if story is None:
            story, cosine = self._create_story(member), 1.0
        member.cosine = cosine
        self._add_to_story(story, member)
        if story.event_id is None:
            self._check_burst(story)

    def _assign_by_hamming_distance(self, member: WindowItem) -> None:
        """Apply the literal rule of Hu & You: count the neighbors of the item instead of a story."""
        assert self._hamming_mode is not None
        seed = self._hamming_mode.find_seed(member)
        neighbors = self._hamming_mode.add(member)
        if seed is not None:
            self._add_to_story(self.stories.by_key[seed.story_key], member)
        elif member.is_counted and sum(m.is_counted for m in neighbors) > self.rule.items:
            story = self._create_story(member)
            for neighbor in neighbors:
                self._add_to_story(story, neighbor)
            self._hamming_mode.seeds.append(member)
            self.open_events.fire(story, self.clock_ms, 0.0)

    def _create_story(self, member: WindowItem, suffix: str = "") -> Story:
        """New story; its id depends on its first item alone, so that a replayed stream gives the same ids.

        ``suffix``: for a part of a divided story, whose first item may be that of the other part.
        """
        seed = f"{member.first_version}:{member.id}{suffix}".encode("utf-8", "surrogatepass")
        return self.stories.create(xxhash.xxh3_64_hexdigest(seed))

    def _add_to_story(self, story: Story, member: WindowItem) -> None:
        self.stories.add_item(story, member)
        if story.event_id is not None:
            self.open_events.add_items(story, [member])

    def _story_of_duplicate(self, item: StreamItem) -> Story | None:
        """Story of the article that this one duplicates, if it is in the window."""
        # The literal rule counts duplicates like any item.
        if item.verdict != "duplicate" or self._hamming_mode is not None:
            return None
        return self._story_containing(item.canonical_first) or self._story_containing(item.matched_number)

    def _story_of_related(self, item: StreamItem, member: WindowItem) -> tuple[Story | None, float]:
        """Story of the related article and the cosine to it, if at least ``JOIN_RELATED_COSINE``."""
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
        """Remove an article that was deleted, or that an editor removed from its event."""
        self.open_events.remove_article(item_id)
        for member in [m for m in self.window if m.first_version == first_version]:
            self.window.remove(member)
            self._remove_from_window(member)
        self.open_events.refresh_headlines()

    # -- stories and events --------------------------------------------------------------------

    def _check_burst(self, story: Story) -> None:
        """Fire the story if it exceeds the rule and its expectation, and is no routine."""
        hour = self.clock_ms // HOUR_MS
        expected = expectation.expected_if_exceeded(
            story, self.rule, self.baseline, self.term_weights.window_count, hour, self.cold_start
        )
        if expected is None or routine.is_routine(story, self.window):
            return
        in_series = self.series.expected_items(story, self.clock_ms)
        self.series.record(story, self.clock_ms)
        if expectation.exceeds_expectation(story.counted_items, in_series, self.rule):
            self.open_events.fire(story, self.clock_ms, max(expected, in_series))

    def _merge_with_candidates(self, key: int, key_terms: KeyTermCache) -> Iterator[None]:
        """Merge a story with those whose centroid or bursting terms converged with it, nearest first."""
        stories, weights = self.stories, self.term_weights
        while (story := stories.by_key.get(key)) is not None and len(story.members) >= MIN_ITEMS_TO_MERGE:
            other = stories.find_merge_candidate(
                story, key_terms.top_terms(story), weights.weigh, key_terms.support_merge
            ) or fragments.find_merge_partner(stories, story, weights, key_terms)
            yield
            if other is None:
                return
            into, absorbed = self._survivor(story, other)
            self.merge_stories(into, absorbed)
            key_terms.invalidate(into)
            key = into.key

    def _divide(self, key: int, key_terms: KeyTermCache) -> None:
        """Move the smaller of two topics that one story holds to a new story, and out of its event."""
        story = self.stories.by_key[key]
        if len(story.members) < coherence.MIN_STORY_ITEMS or self._is_merged_by_editor(story):
            return
        weights = self.term_weights
        part = coherence.find_division(story, key_terms.top_terms(story), weights.weigh, weights.expected)
        if part is None:
            return
        self.open_events.release_items(story, part)
        divided = self._create_story(part[0], f":{self.clock_ms}")
        for member in part:
            self.stories.remove_item(member)
            self.stories.add_item(divided, member)
        key_terms.invalidate(story)
        for each in (story, divided):
            if each.event_id is None:
                self._check_burst(each)

    def _is_merged_by_editor(self, story: Story) -> bool:
        return story.event_id is not None and any(
            into == story.event_id for into, _ in self.overrides.merges.values()
        )

    def merge_stories(self, into: Story, absorbed: Story) -> None:
        """Move all items of ``absorbed`` into ``into``; if both are events, that of ``absorbed`` closes."""
        absorbed_event = (
            self.open_events.by_id.pop(absorbed.event_id) if absorbed.event_id is not None else None
        )
        moved = self.stories.merge(into, absorbed)
        if absorbed_event is not None:
            self.open_events.absorb(into, absorbed_event, self.clock_ms)
        elif into.event_id is not None:
            self.open_events.add_items(into, self._related_items(into, moved))
        else:
            self._check_burst(into)

    def _related_items(self, story: Story, moved: Iterable[WindowItem]) -> Iterator[WindowItem]:
        """Yield the moved items that are similar to their new story, with their cosine to it.

        A small story may hold unrelated items. They count with the story, but its event does not list them.
        """
        for member in moved:
            member.cosine = self.stories.cosine(member.terms, story, self.term_weights.weigh)
            if member.cosine >= JOIN_RELATED_COSINE:
                yield member

    def _dissolve(self, story: Story) -> None:
        """Remove a story whose event is closed, and all its items."""
        story.event_id = None
        for member in list(story.members.values()):
            self.window.remove(member)
            self._remove_from_window(member)

    def _survivor(self, a: Story, b: Story) -> tuple[Story, Story]:
        """(survivor, absorbed): the event detected first survives, else the larger, else the older story."""

        def rank(story: Story) -> tuple[float, int, int]:
            event = self.open_events.event_of_story(story)
            return event.detected_at_ms if event else float("inf"), -len(story.members), story.key

        return (a, b) if rank(a) < rank(b) else (b, a)

    # -- editor overrides ----------------------------------------------------------------------

    def _apply_overrides(self) -> None:
        """Bring stories and events in line with the editor overrides. Idempotent."""
        events = self.open_events
        for id_, first_version in self.overrides.removed_items.items():
            if any(id_ in event.items for event in events.by_id.values()):
                self.remove_article(id_, first_version)
        for absorbed_id, (into_id, _) in self.overrides.merges.items():
            if absorbed_id not in events.by_id:
                continue
            story = self.stories.by_key[events.by_id[absorbed_id].story_key]
            if into_id in events.by_id:
                self.merge_stories(self.stories.by_key[events.by_id[into_id].story_key], story)
            else:
                events.close_as_merged(absorbed_id, into_id, self.clock_ms)
                self._dissolve(story)


def _run(steps: Iterator[None]) -> None:
    """Execute all steps in one call."""
    for _ in steps:
        pass
