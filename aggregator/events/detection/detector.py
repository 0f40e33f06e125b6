"""Burst detector: a deterministic state machine that turns stream items and time into event changes.

``observe`` processes one item; at the start of each minute of virtual time the clock also merges clusters and
updates the events. No function reads a clock: equal calls give equal bytes (``dump``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterator
from copy import deepcopy
from functools import partial

from msgspec.structs import replace

from aggregator.analysis.term_frequencies import TermRates
from aggregator.analysis.text.normalization import source_key, split_headline
from aggregator.domain import StreamItem, publication_time
from aggregator.events.detection import expectation, newsworthiness, state
from aggregator.events.detection.assignment import ClusterAssignment
from aggregator.events.detection.baseline import ALL_DOCUMENTS, Baseline, documents_in
from aggregator.events.detection.clustering import Cluster, ClusterIndex, TermWeigher, WindowItem
from aggregator.events.detection.developments import Articles, StoryMemory
from aggregator.events.detection.expectation import ColdStart, TermWeights
from aggregator.events.detection.items import LATEST_ITEMS, deleted_hashes, to_window_item
from aggregator.events.detection.late import describe_late
from aggregator.events.detection.lifecycle import OpenEvents
from aggregator.events.detection.merging import ClusterMerger
from aggregator.events.detection.model import (
    CHANCE_ITEMS,
    HISTORY_DAYS,
    HISTORY_MS,
    NEGLIGIBLE_SHARE,
    BurstRule,
    DetectedEvent,
    EditorOverrides,
    EventChange,
    LearnedHistory,
)
from aggregator.events.detection.state import DetectorState, Memory
from aggregator.events.detection.voices import Source, Story
from aggregator.time_units import DAY_MS, HOUR_MS, MINUTE_MS


class BurstDetector:
    """Detector under one rule. All times are virtual, in ms since 1970 UTC, and only move forward.

    The ``*_steps`` and ``*_chunks`` methods are for a caller that shares an event loop: it may run other
    work after each step (at most 40 ms), but must not use the detector before the last one.
    """

    def __init__(self, rule: BurstRule, rates: TermRates | None = None) -> None:
        self.rule = rule
        self.clock_ms = 0
        self.baseline = Baseline(rule.window_ms)
        self.clusters = ClusterIndex()
        self.window: deque[WindowItem] = deque()
        self.cold_start = ColdStart(rates, self.baseline)
        self.term_weights = TermWeights(rule, self.baseline, self.cold_start)
        self.open_events = OpenEvents(rule, self.clusters, self.term_weights.weigh, self.baseline.idf)
        self.memory = Memory()
        parts = self.clusters, self.open_events, self.term_weights
        self.assignment = ClusterAssignment(*parts)
        self.merger = ClusterMerger(*parts, self._check_burst)
        self.overrides = EditorOverrides()

    # -- interface -----------------------------------------------------------------------------

    def observe(self, item: StreamItem, now_ms: int) -> None:
        """Process one stream item that arrived at ``now_ms``; a deletion does not advance the clock."""
        if item.kind == "deleted":
            self.remove_article(item.id, item.first_version, is_deleted=True)
            self.term_weights.invalidate(self.baseline.forget(item.first_version, deleted_hashes(item)))
            return
        for _ in self.advance_clock_steps(now_ms):
            pass
        if self.baseline.document_count > (1 + NEGLIGIBLE_SHARE) * self.baseline.idf_documents:
            self.term_weights.refresh(self.clock_ms)
        if self.overrides.is_removed(item) or self._apply_update(item):
            return
        at_ms, basis = publication_time(item.published_at_ms, item.arrived_ms)
        if item.backfill and basis == "arrived":
            return
        duplicate_cluster = self.assignment.cluster_of_duplicate(item)
        key = source_key(item.source)
        copies = duplicate_cluster.members.values() if duplicate_cluster else ()
        if duplicate_cluster and any(source_key(m.source) == key for m in copies):
            if item.keep:  # what an outlet adds to its own text is listed, but no further report
                member = to_window_item(item, min(at_ms, now_ms), self.clock_ms, self.rule.window_ms)
                member.is_counted, member.cosine = False, 1.0
                self._add_to_window(member)
                self.assignment.add(duplicate_cluster, member)
            else:
                duplicate_cluster.sightings += 1
                self.open_events.record_sighting(duplicate_cluster)
            return
        if item.published_at_ms is None and self.memory.undated.is_bulk(now_ms, self.baseline):
            return
        at_ms, window_ms = min(at_ms, now_ms), self.rule.window_ms
        source = self.memory.voices.observe(item.lang, key, (at_ms if item.backfill else now_ms) // HOUR_MS)
        at_ms = self.memory.late.place(item, at_ms, now_ms, window_ms, source)
        member = to_window_item(item, at_ms, self.clock_ms, window_ms)
        member.is_usual = self.memory.voices.is_usual(item.lang, key)
        if member.is_counted:
            terms = (*member.terms, ALL_DOCUMENTS, documents_in(member.lang))
            self.baseline.add(member.at_ms // HOUR_MS, terms, member.first_version)
            self._add_to_window(member)
            cluster = self.assignment.assign(member, duplicate_cluster)
            if cluster.event_id is None:
                self._check_burst(cluster)
            self._check_subject(member)
            self._check_development(member)
        else:
            self._observe_late(item, member, at_ms, source, duplicate_cluster)

    def tick(self, now_ms: int) -> Iterator[None]:
        """Advance the clock without an item, and merge, in steps; one window behind resets the clock."""
        if now_ms < self.clock_ms - self.rule.window_ms:
            # The clock ran over one window ahead: forget what was observed at the wrong time.
            self.memory.earlier.clear()
            while self.window:
                self._remove_from_window(self.window.popleft())
            self.baseline.drop_hours_after(now_ms // HOUR_MS)
            self.clock_ms = 0
        yield from self.advance_clock_steps(now_ms)
        yield from self._merge_changed_clusters()

    def advance_clock_steps(self, now_ms: int) -> Iterator[None]:
        """Advance the clock in steps; a later ``observe`` at ``now_ms`` finds nothing left of this work."""
        if now_ms <= self.clock_ms:
            return
        next_minute_ms = (self.clock_ms // MINUTE_MS + 1) * MINUTE_MS
        if now_ms - self.clock_ms > 10 * MINUTE_MS and self.clusters.changed_keys:  # before it is too old
            yield from self.advance_clock_steps(next_minute_ms)
        is_new_minute = now_ms >= next_minute_ms
        self.clock_ms = now_ms
        if is_new_minute:
            self.term_weights.refresh(self.clock_ms)
            self.clusters.minute = now_ms // MINUTE_MS
            if self.rule.adapts:
                main = max(self.memory.voices.documents, key=self._documents_in, default="")
                self.term_weights.min_burst_documents = self._items_needed(main) // 2 + 1
        oldest_ms = now_ms - self.rule.window_ms
        while self.window and self.window[0].at_ms < oldest_ms:
            member = self.window.popleft()
            self._remove_from_window(member)
            self.memory.earlier += [member] if member.is_counted else []
        if is_new_minute:
            removed = self.memory.removed.items()
            self.memory.removed = {n: m for n, m in removed if m.at_ms >= oldest_ms}
            known = self.memory.earlier[-max(1, LATEST_ITEMS - len(self.window)) :]
            self.memory.earlier = known[bisect_right(known, now_ms - DAY_MS, key=lambda m: m.at_ms) :]
            yield from self._merge_changed_clusters()
            yield from self.open_events.run_minute_steps(now_ms)
            self._apply_overrides()

    def set_overrides(self, overrides: EditorOverrides) -> None:
        """Replace the editor overrides and apply them. They are not part of the saved state."""
        self.overrides = overrides
        self._apply_overrides()
        self.open_events.refresh_headlines()

    def drain_changes(self) -> list[EventChange]:
        """Return the changes since the last call, in order, each with the present version of its event."""
        return self.open_events.drain_changes()

    @property
    def events(self) -> list[DetectedEvent]:
        """Open events, in order of detection."""
        return [event.to_event() for event in self.open_events.by_id.values()]

    # -- saved state ---------------------------------------------------------------------------

    def dump(self) -> bytes:
        """Encode the state without undrained changes and overrides; ``load`` continues bit for bit."""
        return b"".join(self.dump_chunks())

    def dump_chunks(self) -> Iterator[bytes]:
        """``dump`` in chunks. The detector must not change before the last one."""
        baseline, articles = self.baseline, self.baseline.articles_by_hour.items()
        captured = DetectorState(
            clock_ms=self.clock_ms,
            next_cluster_key=self.clusters.next_key,
            window=[(m.cluster_key, m.first_version) for m in self.window],
            clusters=list(self.clusters.by_key.values()),
            changed_clusters=list(self.clusters.changed_keys),
            needs_headline=list(self.open_events.needs_headline),
            events=list(self.open_events.by_id.values()),
            first_hour=baseline.first_hour,
            idf_documents=baseline.idf_documents,
            hours=[(h, a.tobytes(), baseline.counts_by_hour[h]) for h, a in articles],
            known_hour=baseline.known_hour,
            min_burst_documents=self.term_weights.min_burst_documents,
            memory=self.memory,
            closed=self.open_events.closed,
            merged=self.open_events.merged,
        )
        return state.encode_chunks(captured)

    @classmethod
    def load(cls, data: bytes, rule: BurstRule, rates: TermRates | None = None) -> BurstDetector:
        """Return a dumped detector under ``rule``. Raises ValueError for damaged or foreign bytes."""
        detector = cls(rule, rates)
        detector._restore(state.decode(data))
        return detector

    @property
    def learned_history(self) -> LearnedHistory:
        """What the detector knows, and how many items it asks for."""
        languages = sorted(self.memory.voices.documents, key=self._documents_in, reverse=True)
        needed = [self._items_needed(lang, with_ceiling=True) for lang in languages[:1]]
        return LearnedHistory(
            self.baseline.known_hour,
            self.baseline.documents_by_hour,
            needed=max(needed, default=self.rule.items),
            reasons=tuple(map(self._reason_of, filter(self.memory.voices.counts_voices, languages))),
            late=describe_late(self.memory.voices.sources),
        )

    def _restore(self, state: DetectorState) -> None:
        """Fill a new detector; window counts, totals and the inverted index are computed again."""
        self.clock_ms = state.clock_ms
        self.memory = state.memory
        self.open_events.closed, self.open_events.merged = state.closed, state.merged
        self.term_weights.min_burst_documents = state.min_burst_documents
        self.clusters.minute = state.clock_ms // MINUTE_MS
        self.clusters.restore(state.clusters, state.next_cluster_key)
        self.clusters.changed_keys = dict.fromkeys(state.changed_clusters)
        self.open_events.needs_headline = dict.fromkeys(state.needs_headline)
        self.open_events.by_id = {event.id: event for event in state.events}
        self.window = deque(self.clusters.by_key[key].members[first] for key, first in state.window)
        baseline, hour = self.baseline, state.clock_ms // HOUR_MS
        baseline.first_hour, baseline.known_hour = state.first_hour, state.known_hour
        baseline.idf_documents = state.idf_documents
        baseline.idf_hour = self.term_weights.hour = hour
        self.cold_start.refresh(hour)
        for member in self.window:
            if member.is_counted:
                self.term_weights.add(member)
        for saved_hour, articles, counts in state.hours:
            baseline.restore_hour(saved_hour, counts, articles)

    # -- time ----------------------------------------------------------------------------------

    def _remove_from_window(self, member: WindowItem) -> None:
        if member.is_counted:
            self.term_weights.remove(member)
        cluster = self.clusters.remove_item(member)
        if not cluster.members and cluster.event_id is not None:
            event = self.open_events.by_id[cluster.event_id]
            self.memory.bursts.raise_peak(cluster.key, len({item.source for item in event.items.values()}))
            self.open_events.close(cluster.event_id, self.clock_ms)

    def _merge_changed_clusters(self) -> Iterator[None]:
        yield from self.merger.merge_changed_steps(self.overrides, self.clock_ms)
        self.clusters.end_round()

    # -- one item ------------------------------------------------------------------------------

    def _apply_update(self, item: StreamItem) -> bool:
        is_listed = self.open_events.record_update(item)
        if (member := self.clusters.find_item(item.first_version)) is None:
            return is_listed
        member.desk_prefix, member.title = split_headline(item.title)
        member.titled_ms = item.arrived_ms
        self.clusters.renumber(member, item.number)
        return True

    def _observe_late(
        self, item: StreamItem, member: WindowItem, at_ms: int, source: Source, copied: Cluster | None
    ) -> None:
        """Learn from a late or backfilled article, if it may teach; it joins events only, uncounted."""
        terms, hour = (*member.terms, ALL_DOCUMENTS, documents_in(member.lang)), at_ms // HOUR_MS
        may_teach = self.baseline.covers(hour, self.clock_ms // HOUR_MS)
        if may_teach and self.memory.late.may_teach(item, at_ms, source, len(self.memory.voices.sources)):
            self.baseline.add_late(hour, terms, member.first_version)
            self.term_weights.invalidate(terms)
        if not self.open_events.by_id:
            return  # of an archive, nearly all: half of the time of this call
        cluster, member.cosine = self.assignment.nearest_cluster(member, copied)
        if cluster is not None and cluster.event_id is not None:
            self._add_to_window(member)
            self.assignment.add(cluster, member)

    def _add_to_window(self, member: WindowItem) -> None:
        self.window.insert(bisect_right(self.window, member.at_ms, key=lambda m: m.at_ms), member)
        if member.is_counted:
            self.term_weights.add(member)

    def remove_article(self, item_id: str, first_version: int, *, is_deleted: bool = False) -> None:
        """Remove an article that an editor removed from its event, or that was deleted, which may end it."""
        member = next((member for member in self.window if member.first_version == first_version), None)
        self.memory.earlier = [m for m in self.memory.earlier if m.first_version != first_version]
        self.memory.removed.pop(first_version, None)
        self.open_events.remove_article(item_id, member)
        if member:
            self.memory.removed |= {} if is_deleted else {first_version: member}
            self.window.remove(member)
            self._remove_from_window(member)
        self.open_events.refresh_headlines()
        if is_deleted:
            self.open_events.end_without(item_id, self.clock_ms)

    # -- clusters and events --------------------------------------------------------------------

    def items_needed(self, cluster: Cluster) -> int:
        """The number of items that the cluster has to exceed now."""
        return self._items_needed(_language_of(cluster), with_ceiling=True)

    def _items_needed(self, lang: str, *, with_ceiling: bool = False) -> int:
        rule = self.rule
        if not rule.adapts:
            return rule.items
        missing = self.baseline.missing_share(self.clock_ms // HOUR_MS)
        needed = self.memory.voices.items_needed(lang, rule.items, missing)
        if with_ceiling:
            larger = self.memory.bursts.peaks(lang, self.clock_ms - HISTORY_MS)
            enough = int(HISTORY_DAYS * rule.alerts_per_day)
            needed = min(rule.items, max(needed, *larger[enough : enough + 1], 0))
        return needed

    def _reason_of(self, lang: str) -> str:
        """Why a language needs its number of items, and how many stories of the last week had more."""
        needed = self._items_needed(lang, with_ceiling=True)
        peaks = self.memory.bursts.peaks(lang, self.clock_ms - HISTORY_MS)
        sources, a_day = len(self.memory.voices.by_language[lang]), self.memory.voices.a_day(lang)
        larger = [sum(peak > n for peak in peaks) for n in (needed, needed + 2)]
        return (
            f"{lang}: more than {needed} items, with {sources} sources and {a_day:.0f} articles a day; last "
            f"week {larger[0]} stories had more, {larger[1]} more than {needed + 2}"
        )

    def _documents_in(self, lang: str) -> int:
        return sum(self.memory.voices.documents[lang].values())

    def _check_burst(self, cluster: Cluster) -> None:
        if cluster.counted_items <= (CHANCE_ITEMS if self.rule.adapts else self.rule.items):
            return
        hour, lang = self.clock_ms // HOUR_MS, _language_of(cluster)
        story = self._measure(cluster, lang, hour)
        if story is None:
            return
        self.memory.bursts.record(cluster.key, story.told, lang, self.clock_ms)
        needed = self._items_needed(lang, with_ceiling=True)
        if story.size > needed and not self.merger.divide(cluster, self.clock_ms):
            waits = self.merger.may_join_event(cluster)
            self.open_events.fire(cluster, self.clock_ms, story.expected, needed, story.new_items, waits)
            if not self.baseline.missing_share(hour):  # else it may be a regular subject of the stream
                event, told = self.open_events.by_id[cluster.id], [*cluster.members.values()]
                event.story = StoryMemory(self.clock_ms, told)

    def _check_subject(self, member: WindowItem) -> None:
        """Make what many voices told within a day an event, unless it was one in half of the history."""
        rule, now_ms, voices = self.rule, self.clock_ms, self.memory.voices
        is_ready = rule.adapts and rule.min_sources != 1 and len(voices.days) > HISTORY_DAYS
        if not is_ready or not voices.counts_voices(member.lang):
            return
        since, hour = (now_ms - DAY_MS) // HOUR_MS, now_ms // HOUR_MS
        needed = voices.voices_needed(member.lang)
        count_of = partial(self.baseline.count_between, start=since, end=hour, least=needed)
        often = [term for term in member.headline_terms if count_of(term) >= needed]
        if len(often) < 2:
            return  # most calls end here
        needed = max(needed, self._items_needed(member.lang, with_ceiling=True))
        events = (*self.open_events.by_id.values(), *self.open_events.closed.values())
        recent = [e for e in events if 2 * (now_ms - e.detected_at_ms) < HISTORY_MS]
        if any(self.open_events.is_about(event, member) for event in recent):
            return
        known = {id_ for event in events for id_ in event.items}
        day = [m for m in (*self.memory.earlier, *self.window) if m.is_counted and m.lang == member.lang]
        day = [m for m in day if m.at_ms > now_ms - DAY_MS and m.id not in known]
        usual_of = partial(self.baseline.on_a_day, hour=hour)
        told, expected = voices.find_subject(day, {t: usual_of(t) for t in often}, needed, rule, hour)
        if told and self._is_news(told, expected / rule.sensitivity, usual_of):
            cluster = self.clusters.by_key[member.cluster_key]
            self._gather(cluster, told)
            self.memory.bursts.record(cluster.key, len(told), member.lang, now_ms)
            self.open_events.fire(cluster, now_ms, expected, needed - 1, window_ms=DAY_MS)
            self.open_events.by_id[cluster.id].story = StoryMemory(now_ms, [*cluster.members.values()])

    def _gather(self, cluster: Cluster, told: Articles) -> None:
        """Move these items to a cluster, those that left the window as late ones, which do not count."""
        for member in told:
            own = self.clusters.find_item(member.first_version)
            if own is None:
                own = replace(member, at_ms=self.clock_ms, published_ms=member.at_ms, is_counted=False)
                self._add_to_window(own)
                self.clusters.add_item(cluster, own)
            elif own.cluster_key != cluster.key:
                self.merger.move([own], self.clusters.by_key[own.cluster_key], cluster)

    def _check_development(self, member: WindowItem) -> None:
        """Add an item to the stories that it belongs to; one of them may have a development."""
        now_ms, events, window_ms = self.clock_ms, self.open_events, self.rule.window_ms
        stories = [
            (event, event.story.add(member, now_ms - window_ms))
            for event in (*events.by_id.values(), *events.closed.values())
            if event.story and events.is_about(event, member)
        ]
        quiet_ms = max([story.at_ms for _, story in stories], default=0) + 2 * window_ms  # all is new
        has_voices = self.memory.voices.counts_voices(member.lang)
        for event, story in stories:
            enough = now_ms >= quiet_ms and 2 * len(story.recent) > event.needed
            new = story.new_terms(self.term_weights, has_voices) if enough else {}
            if terms := [term for term, told in new.items() if self._is_news(told)]:
                told, story.at_ms = new[terms[0]], now_ms
                story.past |= dict.fromkeys(terms, story.past_items)  # they are not new again
                keys = [self.clusters.key_by_number.get(m.first_version, member.cluster_key) for m in told]
                cluster = max(map(self.clusters.by_key.__getitem__, keys), key=lambda c: len(c.members))
                events.develop(event, cluster, terms, told)
                break

    def _is_news(self, told: Articles, usual: float = 0.0, expected_of: TermWeigher | None = None) -> bool:
        rates, expected_of = self.cold_start.rates, expected_of or self.term_weights.expected
        evidence = newsworthiness.measure(told, self.window, rates, usual, expected_of)
        return newsworthiness.probability(evidence) >= newsworthiness.MIN_PROBABILITY

    def _measure(self, cluster: Cluster, lang: str, hour: int) -> Story | None:
        """What counts of a cluster, if it exceeds the rule and what is expected, and is news, else None."""
        rule, needed = self.rule, self._items_needed(lang)
        if cluster.counted_items <= needed:
            return None  # most calls end here
        expected = expectation.expected_items(cluster, self.baseline, hour)
        if not expectation.exceeds_expectation(cluster.counted_items, expected, rule):
            return None
        members = [member for member in cluster.members.values() if member.is_counted]
        story = self.memory.voices.count(members, lang, needed, rule, hour)
        if rule.min_sources == 1:
            story = story._replace(size=len(members), items=len(members), told=len(members))
        if story.size <= needed or story.voices < rule.min_sources:
            return None
        expected *= expectation.volume_ratio(cluster, self.baseline, self.term_weights.window_count, hour)
        usual = self.cold_start.expected_items(cluster, expected)
        if not expectation.exceeds_expectation(story.items, usual, rule):
            return None
        is_news = self._is_news(members, expected / rule.sensitivity)
        return story._replace(expected=expected) if is_news else None

    # -- editor overrides ----------------------------------------------------------------------

    def _apply_overrides(self) -> None:
        """Bring clusters and events in line with the editor overrides. Idempotent."""
        events = self.open_events
        for id_, (first_version, event_id) in self.overrides.placed.items():
            if not event_id and any(id_ in event.items for event in events.by_id.values()):
                self.remove_article(id_, first_version)
            event = events.by_id.get(event_id)
            if event and (member := self.memory.removed.pop(first_version, None)):
                event.forget_tolls(since_ms=member.at_ms)
                self._add_to_window(member)
                self.assignment.add(self.clusters.by_key[event.cluster_key], member)
        self.merger.place(self.overrides, self.clock_ms)
        for absorbed_id, (into_id, _) in self.overrides.merges.items():
            if absorbed_id not in events.by_id:
                continue
            cluster = self.clusters.by_key[events.by_id[absorbed_id].cluster_key]
            if into_id in events.by_id:
                into = self.clusters.by_key[events.by_id[into_id].cluster_key]
                events.merged[absorbed_id] = deepcopy((events.by_id[absorbed_id], events.by_id[into_id]))
                self.merger.merge(into, cluster, self.clock_ms)
            else:
                events.close(absorbed_id, self.clock_ms, into_id)
                cluster.event_id = None
                for member in list(cluster.members.values()):
                    self.window.remove(member)
                    self._remove_from_window(member)


def _language_of(cluster: Cluster) -> str:
    """The language of most of its items."""
    languages = Counter(member.lang for member in cluster.members.values() if member.is_counted)
    return languages.most_common(1)[0][0] if languages else ""
