"""Bursts of the last 7 days and their sizes, from which the number that fits a desk is chosen."""

from __future__ import annotations

import msgspec

from aggregator.events.detection.model import HISTORY_MS


class Burst(msgspec.Struct, array_like=True):
    """One burst: start, what voices told of it at most, language. The order is the saved format."""

    at_ms: int
    peak: int
    lang: str


class Bursts(msgspec.Struct, array_like=True):
    """The burst of each cluster that had one, in order of time."""

    by_cluster: dict[int, Burst] = {}

    def record(self, cluster_key: int, told: int, lang: str, now_ms: int) -> None:
        """Add the burst of a cluster, or raise its peak."""
        if cluster_key not in self.by_cluster:
            recent = ((k, b) for k, b in self.by_cluster.items() if b.at_ms >= now_ms - HISTORY_MS)
            self.by_cluster = {**dict(recent), cluster_key: Burst(now_ms, told, lang)}
        self.raise_peak(cluster_key, told)

    def raise_peak(self, cluster_key: int, peak: int) -> None:
        """Raise the peak of the burst of a cluster, if it had one."""
        if (burst := self.by_cluster.get(cluster_key)) is not None:
            burst.peak = max(burst.peak, peak)

    def peaks(self, lang: str, since_ms: int) -> list[int]:
        """What voices told of each burst in a language since then, largest first."""
        found = (burst for burst in self.by_cluster.values() if burst.lang == lang)
        return sorted((burst.peak for burst in found if burst.at_ms >= since_ms), reverse=True)
