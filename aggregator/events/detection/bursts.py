"""Bursts of the last 7 days and their sizes, from which the number that fits a desk is chosen."""

from __future__ import annotations

from itertools import takewhile

import msgspec

from aggregator.events.detection.model import HISTORY_DAYS
from aggregator.time_units import DAY_MS


class Burst(msgspec.Struct, array_like=True):
    """One burst: cluster, start, what voices told of it at most, language. The order is the saved format."""

    cluster_key: int
    at_ms: int
    peak: int
    lang: str


class BurstMemory:
    """Bursts in order of time."""

    def __init__(self) -> None:
        self.bursts: list[Burst] = []

    def record(self, cluster_key: int, told: int, lang: str, now_ms: int) -> None:
        """Add the burst of this cluster, or raise the peak of the one that it had in the last day."""
        if not self.raise_peak(cluster_key, told, now_ms - DAY_MS):
            self.bursts.append(Burst(cluster_key, now_ms, told, lang))
            oldest_ms = now_ms - HISTORY_DAYS * DAY_MS
            self.bursts = [burst for burst in self.bursts if burst.at_ms >= oldest_ms]

    def raise_peak(self, cluster_key: int, peak: int, since_ms: int = 0) -> bool:
        """Raise the peak of the latest burst of this cluster since then, if it had one."""
        for burst in takewhile(lambda burst: burst.at_ms >= since_ms, reversed(self.bursts)):
            if burst.cluster_key == cluster_key:
                burst.peak = max(burst.peak, peak)
                return True
        return False

    def peaks(self, lang: str, since_ms: int) -> list[int]:
        """What voices told of each burst in a language since then, largest first."""
        found = takewhile(lambda burst: burst.at_ms >= since_ms, reversed(self.bursts))
        return sorted((burst.peak for burst in found if burst.lang == lang), reverse=True)
