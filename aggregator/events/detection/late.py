"""Late articles: when they count, and what they may teach.

3 sources cannot hide the news of 24. With fewer than ``MIN_VOICES``, as of one wire, all late articles teach.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from aggregator.analysis.source import outlet_name
from aggregator.domain import Problem, StreamItem
from aggregator.events.detection.model import CHANCE_ITEMS, HISTORY_DAYS
from aggregator.events.detection.voices import MIN_VOICES, Source
from aggregator.time_units import DAY_MS, HOUR_MS, MINUTE_MS

MAX_TAUGHT_PER_DAY = 3


class LateArticles(msgspec.Struct, array_like=True):
    """Of today, how late the articles of sources were that never were in time."""

    day: int = 0
    least_ms: int = DAY_MS
    delays: dict[int, int] = {}  # in half hours -> articles

    def place(self, item: StreamItem, at_ms: int, now_ms: int, window_ms: int, source: Source) -> int:
        """Record an article of ``at_ms`` that arrives now; returns its time."""
        if now_ms // DAY_MS != self.day:
            self.day, self.least_ms, self.delays = now_ms // DAY_MS, DAY_MS, {}
        if item.backfill or item.published_at_ms is None or now_ms - at_ms <= window_ms:
            source.is_in_time |= not item.backfill and item.published_at_ms is not None
            return at_ms
        source.late, source.name = source.late + 1, item.source
        return at_ms if source.is_in_time or not self._is_zone(now_ms - at_ms) else now_ms

    def _is_zone(self, delay_ms: int) -> bool:
        """Whether most are late by the same hours: local time taken for UTC. A backlog has all delays."""
        half_hour_ms = HOUR_MS // 2
        self.least_ms, delay = min(self.least_ms, delay_ms), min(delay_ms, 2 * DAY_MS) // half_hour_ms
        self.delays[delay] = self.delays.get(delay, 0) + 1
        least, beyond_ms = divmod(self.least_ms, half_hour_ms)
        near = sum(count for each, count in self.delays.items() if each < least + 3)
        are_most = near >= CHANCE_ITEMS and 2 * near > sum(self.delays.values())
        return are_most and delay < least + 3 and beyond_ms < 5 * MINUTE_MS

    def may_teach(self, item: StreamItem, at_ms: int, source: Source, known_sources: int) -> bool:
        """Whether a late article may change what is usual."""
        if item.backfill and not item.problems & Problem.late:
            return True
        day, is_known = at_ms // DAY_MS, at_ms // HOUR_MS >= source.first_hour
        if known_sources >= MIN_VOICES and not (is_known and source.taught.get(day, 0) < MAX_TAUGHT_PER_DAY):
            return False
        source.taught = {d: n for d, n in source.taught.items() if d >= self.day - HISTORY_DAYS}
        source.taught[day] = source.taught.get(day, 0) + 1
        return True


def describe_late(sources: Mapping[str, Source]) -> str:
    """How many late articles taught, by source with any, of most first; "" without any."""
    late = [(s, outlet_name(s.name or key)) for key, s in sources.items() if s.late and s.taught]
    found = [(sum(s.taught.values()), s.late, name) for s, name in late]
    shown = sorted(found, reverse=True)[: 2 * MIN_VOICES]
    return "; ".join(f"{taught:,} of {late:,} from {name or '?'}" for taught, late, name in shown)
