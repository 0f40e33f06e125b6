"""Memory of series: bursts of the last 400 days, to recognize what returns at the same time of day.

Statistics of a month, quarterly results and decisions of central banks come back after weeks, at the same
hour, with the same words; the baseline forgets them after seven days. Half of the earlier peak is then
expected. One common term recurs by chance (a country in the news), so it must have come back twice.
"""

from __future__ import annotations

import msgspec

from aggregator.events.detection.clustering import MAX_TERM_WEIGHT, Cluster
from aggregator.time_units import DAY_MS, MINUTE_MS

# Terms of the calendar, as English word stems: they say when something is, not what it is about.
_CALENDAR_WORDS = """
    januari februari march april may june juli august septemb octob novemb decemb jan feb mar apr jun
    jul aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue wed
    thu fri pct week month quarter year annual
"""
CALENDAR_TERMS = frozenset(_CALENDAR_WORDS.split())
MAX_ENTRIES = 4_000
MAX_AGE_MS = 400 * DAY_MS
# Younger bursts are in the baseline, or are the same story.
MIN_AGE_MS = 6 * DAY_MS
# Summer time moves a series by an hour.
SAME_TIME_MS = 90 * MINUTE_MS
# Share of its earlier peak that is expected when a series returns, as for weekly events (``baseline.py``).
PEAK_SHARE = 0.5
COMMON_TERM_SHARE = 0.6
MIN_JACCARD = 0.5
MIN_RETURNS_OF_ONE_TERM = 2


class Burst(msgspec.Struct, array_like=True):
    """One burst. The order of the fields is part of the saved state.

    at_ms   time at which its cluster first exceeded its expectation
    peak    maximum number of counted items
    terms   common terms without those of the calendar
    """

    cluster_key: int
    at_ms: int
    peak: int
    terms: list[str]


class SeriesMemory:
    """Bursts in order of time."""

    def __init__(self) -> None:
        self.bursts: list[Burst] = []

    def record(self, cluster: Cluster, now_ms: int) -> int:
        """Add the burst of this cluster, or raise the peak of its own; returns when it began, in ms."""
        burst = self._burst_of(cluster.key, now_ms - DAY_MS)
        if burst is not None:
            burst.peak = max(burst.peak, cluster.counted_items)
            return burst.at_ms
        self.bursts.append(Burst(cluster.key, now_ms, cluster.counted_items, common_terms(cluster)))
        if len(self.bursts) > MAX_ENTRIES or self.bursts[0].at_ms < now_ms - MAX_AGE_MS:
            del self.bursts[0]
        return now_ms

    def raise_peak(self, cluster_key: int, peak: int) -> None:
        """Set the final peak of a burst, if this cluster had one."""
        burst = self._burst_of(cluster_key)
        if burst is not None:
            burst.peak = max(burst.peak, peak)

    def _burst_of(self, cluster_key: int, since_ms: int = 0) -> Burst | None:
        """Latest burst of a cluster; one that began before ``since_ms`` may be missed."""
        for burst in reversed(self.bursts):
            if burst.cluster_key == cluster_key:
                return burst
            if burst.at_ms < since_ms:
                return None
        return None

    def expected_items(self, cluster: Cluster, began_ms: int) -> float:
        """Return the items that earlier bursts with the same terms at this time of day let expect; else 0.

        ``began_ms``: see ``record``. A cluster does not become unexpected while it lasts.
        """
        terms = set(common_terms(cluster))
        if not terms:
            return 0.0
        returns = [
            burst.peak
            for burst in self.bursts
            if began_ms - burst.at_ms >= MIN_AGE_MS
            and _time_of_day_distance(began_ms, burst.at_ms) <= SAME_TIME_MS
            and _jaccard(terms, burst.terms) >= MIN_JACCARD
        ]
        enough = MIN_RETURNS_OF_ONE_TERM if len(terms) == 1 else 1
        return PEAK_SHARE * max(returns) if len(returns) >= enough else 0.0


def common_terms(cluster: Cluster) -> list[str]:
    """Return the terms that most items hold, without those of the calendar, in a fixed order."""
    required = COMMON_TERM_SHARE * MAX_TERM_WEIGHT * len(cluster.members)
    return sorted(
        t for t, total in cluster.term_sums.items() if total >= required and t not in CALENDAR_TERMS
    )


def _time_of_day_distance(a_ms: int, b_ms: int) -> int:
    distance = abs(a_ms - b_ms) % DAY_MS
    return min(distance, DAY_MS - distance)


def _jaccard(terms: set[str], others: list[str]) -> float:
    common = sum(term in terms for term in others)
    return common / (len(terms) + len(others) - common) if common else 0.0
