"""Counts of articles per minute of the last hour, exact at any rate: read from the article streams once.

The first update starts at the entries of one hour ago, later ones where the previous one ended. So the page
that shows the counts costs what has arrived since, and not an hour of articles each time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from aggregator.domain import VerdictName, arrival_ms_of
from aggregator.index import keys
from aggregator.index.article_stream import decode_stream_entry
from aggregator.index.segments import Segments
from aggregator.store.base import Store
from aggregator.time_units import HOUR_MS, MINUTE_MS

ENTRIES_PER_READ = 1000
# Entries per update and stream: about 0.3 s of work, in parts of 5 ms. The next update continues.
MAX_ENTRIES_PER_UPDATE = 100_000
# Positions are times of the store's clock, which may be ahead of that of the process that set the arrival.
CLOCK_MARGIN_MS = 5 * MINUTE_MS


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Articles of the last hour by minute (its start in ms) and by verdict, if ``is_complete``."""

    by_minute: tuple[tuple[int, int], ...]
    verdicts: dict[VerdictName, int]
    is_complete: bool

    @property
    def total(self) -> int:
        """Articles of the last hour."""
        return sum(count for _, count in self.by_minute)


class ArrivalCounts:
    """Keeps the counts of this process up to date. ``spaces``: those whose streams are read."""

    def __init__(self, store: Store, segments: Segments, spaces: Sequence[str]) -> None:
        self._store, self._segments, self._spaces = store, segments, tuple(spaces)
        self._positions: dict[bytes, bytes] = {}
        self._counts: Counter[tuple[int, VerdictName]] = Counter()
        self._lock = asyncio.Lock()

    async def update(self, now_ms: int) -> Arrivals:
        """The counts of the hour that ends with the minute of ``now_ms``. Raises StoreUnavailable."""
        from_ms = now_ms // MINUTE_MS * MINUTE_MS - HOUR_MS + MINUTE_MS
        async with self._lock:
            store_ms = await self._store.time_ms()
            start = b"%d-0" % max(0, (now_ms if store_ms is None else store_ms) - HOUR_MS - CLOCK_MARGIN_MS)
            results = [
                await self._read(keys.stream(tag), start)
                for space in self._spaces
                for tag in (await self._segments.stack(space)).tags
            ]
            for key in [key for key in self._counts if key[0] < from_ms]:
                del self._counts[key]
            minutes: Counter[int] = Counter()
            verdicts: dict[VerdictName, int] = {"new": 0, "related": 0, "duplicate": 0}
            for (minute_ms, verdict), count in self._counts.items():
                if minute_ms <= now_ms:
                    minutes[minute_ms] += count
                    verdicts[verdict] += count
            return Arrivals(tuple(sorted(minutes.items())), verdicts, all(results))

    async def _read(self, stream: bytes, start: bytes) -> bool:
        for _ in range(0, MAX_ENTRIES_PER_UPDATE, ENTRIES_PER_READ):
            position = self._positions.get(stream, start)
            entries = (await self._store.stream_read([stream], [position], ENTRIES_PER_READ))[0]
            for _, payload in entries:
                entry = decode_stream_entry(payload)
                if entry.kind == "article":
                    minute_ms = arrival_ms_of(entry.number) // MINUTE_MS * MINUTE_MS
                    self._counts[minute_ms, entry.verdict] += 1
            if entries:
                self._positions[stream] = entries[-1][0]
            if len(entries) < ENTRIES_PER_READ:
                return True
            await asyncio.sleep(0)
        return False
