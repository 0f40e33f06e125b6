"""Late articles: when they count, and what they may teach.

One that arrives over a window after its date, undeclared or declared with a key of its source, may be there
to hide an event. It teaches of times when its source was known, ``MAX_TAUGHT_PER_DAY`` of each source do: 3
sources cannot hide the news of 24. With fewer than ``MIN_VOICES``, as of one wire, all late articles teach.
"""

from __future__ import annotations

import msgspec

from aggregator.analysis.text.normalization import source_key
from aggregator.domain import Problem, StreamItem
from aggregator.events.detection.model import HISTORY_DAYS
from aggregator.events.detection.voices import MIN_VOICES
from aggregator.time_units import DAY_MS, HOUR_MS, MINUTE_MS

MAX_TAUGHT_PER_DAY, MAX_SHOWN = 3, 10
_HALF_HOUR_MS = HOUR_MS // 2


class Punctuality(msgspec.Struct, array_like=True):
    """Of one source: whether an article was in time, its late articles, and those that taught, by day."""

    is_in_time: bool = False
    late: int = 0
    taught: dict[int, int] = {}


class LateArticles(msgspec.Struct, array_like=True):
    """Punctuality by source key; of today, how late the articles of sources were that never were in time."""

    by_source: dict[str, Punctuality] = {}
    day: int = 0
    least_ms: int = DAY_MS
    delays: dict[int, int] = {}  # in half hours -> articles

    def place(self, item: StreamItem, at_ms: int, now_ms: int, window_ms: int, known: dict[str, int]) -> int:
        """Record an article of ``at_ms`` that arrives now; returns its time. ``known``: sources to keep."""
        if now_ms // DAY_MS != self.day:
            self.day, self.least_ms, self.delays = now_ms // DAY_MS, DAY_MS, {}
            self.by_source = {key: own for key, own in self.by_source.items() if key in known}
        own = self.by_source.setdefault(source_key(item.source), Punctuality())
        if item.backfill or item.published_at_ms is None or now_ms - at_ms <= window_ms:
            own.is_in_time |= not item.backfill and item.published_at_ms is not None
            return at_ms
        own.late += 1
        return at_ms if own.is_in_time or not self._is_zone(now_ms - at_ms) else now_ms

    def _is_zone(self, delay_ms: int) -> bool:
        """Whether most are late by the same hours: local time taken for UTC. A backlog has all delays."""
        self.least_ms, delay = min(self.least_ms, delay_ms), min(delay_ms, 2 * DAY_MS) // _HALF_HOUR_MS
        self.delays[delay] = self.delays.get(delay, 0) + 1
        least, beyond_ms = divmod(self.least_ms, _HALF_HOUR_MS)
        near = sum(count for each, count in self.delays.items() if each < least + 3)
        return delay < least + 3 and 2 * near > sum(self.delays.values()) and beyond_ms < 5 * MINUTE_MS

    def may_teach(self, item: StreamItem, at_ms: int, first_hours: dict[str, int]) -> bool:
        """Whether a late article may change what is usual. ``first_hours``: of all sources that are known."""
        if item.backfill and not item.problems & Problem.late:
            return True
        key, day = source_key(item.source), at_ms // DAY_MS
        own, is_known = self.by_source[key], at_ms // HOUR_MS >= first_hours.get(key, 0)
        if len(first_hours) >= MIN_VOICES and not (is_known and own.taught.get(day, 0) < MAX_TAUGHT_PER_DAY):
            return False
        own.taught = {d: n for d, n in own.taught.items() if d >= self.day - HISTORY_DAYS}
        own.taught[day] = own.taught.get(day, 0) + 1
        return True

    def __str__(self) -> str:
        """How many late articles taught, of the sources with most of them; "" without any."""
        found = [(sum(own.taught.values()), own.late, key) for key, own in self.by_source.items() if own.late]
        shown = sorted(found, reverse=True)[:MAX_SHOWN]
        return "; ".join(f"{taught:,} of {late:,} from {key or '?'}" for taught, late, key in shown)
