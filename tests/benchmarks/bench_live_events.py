"""Which events does the whole service find in a dated archive with texts?

    python tests/benchmarks/bench_live_events.py FILE

Every article is analysed, decided and committed as a crawler's would be, on a store in memory whose clock is the
time of publication; the detector then reads the article stream. `aggregator replay` looks at headlines
only. Prints one line per event for people to read (do not commit it).
"""

from __future__ import annotations

import asyncio
import sys
import time

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.app import build_core
from aggregator.dedup.verdict import Policy
from aggregator.domain import Article
from aggregator.events.consumer import DetectorRunner
from aggregator.events.detection import BurstRule, Event
from aggregator.events.repository import EventRepository
from aggregator.index import Index
from aggregator.offline.jsonl import read_rows
from aggregator.offline.replay import parse_time_ms, rfc3339
from aggregator.store.memory import MemoryStore
from tests.support.factories import in_process

MINUTE_MS = 60_000
TOGETHER = 50
HOURS_MS = 6 * 60 * MINUTE_MS


class Archive:
    """A service core under the clock of an archive."""

    def __init__(self) -> None:
        self.now_ms = 0
        store, analyser = MemoryStore(clock=self.clock), Analyzer(load_models(None))
        self.index = Index(store, analyser.spaces)
        self.ingest = build_core(self.index, in_process(analyser), Policy(), clock=self.clock).ingest
        self.events = DetectorRunner(EventRepository(store), BurstRule(), checkpoint_interval_ms=HOURS_MS)
        self.found: dict[str, Event] = {}
        self.waiting: list[Article] = []

    def clock(self) -> int:
        return self.now_ms

    async def take(self, row: dict[str, str], at_ms: int) -> None:
        """One article; those of one minute are stored together."""
        if at_ms > self.now_ms + MINUTE_MS or len(self.waiting) >= TOGETHER:
            await self.flush()
        self.now_ms = max(self.now_ms, at_ms)
        fields = {name: row.get(name) or "" for name in ("id", "title", "text", "source")}
        self.waiting.append(Article(**fields, published_at_ms=at_ms, lang=row.get("lang")))

    async def flush(self) -> None:
        """Store what waits, and let the detector read on."""
        await self.ingest.submit_many(self.waiting)
        self.waiting.clear()
        for change in await self.events.poll(self.index, self.now_ms):
            self.found[change.event.id] = change.event


async def main(path: str) -> None:
    """Run and print."""
    archive, count = Archive(), 0
    for row in read_rows([path]):
        at_ms = parse_time_ms(row.get("published_at"))
        if at_ms is not None:
            await archive.take(row, at_ms)
            count += 1
    await archive.flush()
    for e in sorted(archive.found.values(), key=lambda e: e.detected_at_ms):
        print(f"{rfc3339(e.detected_at_ms)}\t{e.size}\t{e.expected}\t{len(e.sources)}\t{e.title}")
    print(f"{count} articles, {len(archive.found)} events, {time.process_time():.0f} s of CPU")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
