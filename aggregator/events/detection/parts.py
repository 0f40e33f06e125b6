"""Parts of a detector, which together are its state: created, captured and restored."""

from __future__ import annotations

from collections import deque

from aggregator.analysis.term_frequencies import TermRates
from aggregator.events.detection.baseline import Baseline
from aggregator.events.detection.bulk import UndatedArticles
from aggregator.events.detection.clustering import StoryIndex, WindowItem
from aggregator.events.detection.cold_start import ColdStart
from aggregator.events.detection.hamming_mode import HammingMode
from aggregator.events.detection.learning import LearnedHistory
from aggregator.events.detection.lifecycle import OpenEvents
from aggregator.events.detection.model import BurstRule, SourceFamilies
from aggregator.events.detection.series import SeriesMemory
from aggregator.events.detection.state_codec import DetectorState
from aggregator.events.detection.term_weights import TermWeights
from aggregator.time_units import HOUR_MS, MINUTE_MS


class DetectorParts:
    """Everything that a detector remembers, except for the editor overrides.

    undated         articles without a date that arrived lately
    hamming_mode    None except under the literal rule
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
        self.hamming_mode = HammingMode() if rule.mode == "literal" else None
        self.undated = UndatedArticles()
        self.series = SeriesMemory()
        self.families = SourceFamilies()

    @property
    def learned_history(self) -> LearnedHistory:
        """What the baseline knows, for the learning status."""
        return LearnedHistory(self.baseline.known_hour, dict(self.baseline.documents_by_hour))

    def capture(self) -> DetectorState:
        """The state; it shares objects with the parts, so it must be encoded before they change."""
        hamming, baseline = self.hamming_mode, self.baseline
        return DetectorState(
            clock_ms=self.clock_ms,
            next_story_key=self.stories.next_key,
            window=[(m.story_key, m.first_version) for m in self.window],
            stories=list(self.stories.by_key.values()),
            changed_stories=list(self.stories.changed_keys),
            needs_headline=list(self.open_events.needs_headline),
            pending=[m for m in hamming.pending.values() if m.story_key < 0] if hamming else [],
            seeds=hamming.seeds if hamming else [],
            events=list(self.open_events.by_id.values()),
            first_hour=baseline.first_hour,
            idf_documents=baseline.idf_documents,
            hours=baseline.saved_hours(),
            known_hour=baseline.known_hour,
            undated=self.undated,
            bursts=self.series.bursts,
            families=self.families,
        )

    def restore(self, state: DetectorState) -> None:
        """Fill new parts; window counts, totals and the inverted index are computed again."""
        self.clock_ms = state.clock_ms
        self.undated = state.undated
        self.series.bursts = state.bursts
        self.families = state.families
        self._restore_stories(state)
        self._restore_baseline(state)

    def _restore_stories(self, state: DetectorState) -> None:
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
        if self.hamming_mode is not None:
            self.hamming_mode.restore(state.pending, state.seeds)

    def _restore_baseline(self, state: DetectorState) -> None:
        baseline, hour = self.baseline, state.clock_ms // HOUR_MS
        baseline.first_hour, baseline.known_hour = state.first_hour, state.known_hour
        baseline.idf_documents = state.idf_documents
        baseline.idf_hour = self.term_weights.hour = hour
        self.cold_start.refresh(hour)
        for member in self.window:
            if member.is_counted:
                self.term_weights.add(member)
        for saved_hour, documents, counts in state.hours:
            baseline.restore_hour(saved_hour, counts, documents)
