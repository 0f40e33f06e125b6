"""Bulk loads without dates: more undated articles in a minute than a crawler collects.

An undated article counts at its arrival, so an archive that is sent at once would look like a burst. What a
stream brings in a minute says whether it is one. The limit is what the stream usually has in a whole window
of 4 h: a crawler that polls every few hours stays below it. While less than a day is known, the limit is
``MAX_PER_MINUTE``. A load ends with the first minute that stays below the limit::

    usual: 400 articles in 4 h      a poll brings 150 undated ones       counted
    12:00  700 in a minute          the first 400 are counted, 300 are ignored: a bulk load
    12:01  1,400                    ignored
    12:02  90                       ignored: the end of the load
    12:03  150                      counted
"""

from __future__ import annotations

import msgspec

from aggregator.events.detection.baseline import ALL_DOCUMENTS, Baseline
from aggregator.time_units import HOUR_MS, MINUTE_MS

# Limit that no stream exceeds: at that rate a day has 4 million.
MAX_PER_MINUTE = 3_000
# Limit of a small stream. The first visit of a crawler to its feeds brings that many.
MIN_PER_MINUTE = 300


class UndatedArticles(msgspec.Struct, array_like=True):
    """Undated articles of the present minute. The order of the fields is part of the saved state.

    minute    minute of the latest one, since 1970
    count     those that arrived in it
    ignored   articles of the present bulk load so far, 0 without one
    """

    minute: int = 0
    count: int = 0
    ignored: int = 0

    def is_bulk(self, now_ms: int, baseline: Baseline) -> bool:
        """Count an undated article that arrives at ``now_ms``; return whether it belongs to a bulk load."""
        limit = limit_per_minute(baseline, now_ms // HOUR_MS)
        minute = now_ms // MINUTE_MS
        if minute != self.minute:
            if minute > self.minute + 1 or self.count <= limit:
                self.ignored = 0
            self.minute, self.count = minute, 0
        self.count += 1
        if not self.ignored and self.count <= limit:
            return False
        self.ignored += 1
        return True


def limit_per_minute(baseline: Baseline, hour: int) -> float:
    """Return the undated articles of one minute above which they are a bulk load."""
    if baseline.missing_share(hour):
        return MAX_PER_MINUTE
    return min(MAX_PER_MINUTE, max(MIN_PER_MINUTE, baseline.expected(ALL_DOCUMENTS, hour)))
