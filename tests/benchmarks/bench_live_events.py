"""Events that the whole service finds in a dated archive with texts.

    python -m tests.benchmarks.bench_live_events FILE

Every article is analyzed, decided and committed as if posted by a crawler, on a store in memory whose clock
is the time of publication; the detector then reads the article stream. `aggregator replay` detects from the
same terms without a store. Prints one line per event for review (do not commit it).
"""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import Any

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.app import build_core
from aggregator.dedup.policy import Policy
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
BATCH_ARTICLES = 50
CHECKPOINT_MS = 6 * 60 * MINUTE_MS


class ArchiveReplay:
    """Service core whose clock is the time of publication."""

    def __init__(self) -> None:
        self.now_ms = 0
        store, analyzer = MemoryStore(clock=self.clock), Analyzer(load_models(None))
        self.index = Index(store, analyzer.spaces)
        self.ingest = build_core(self.index, in_process(analyzer), Policy(), clock=self.clock).ingest
        self.detector = DetectorRunner(
            EventRepository(store), BurstRule(), checkpoint_interval_ms=CHECKPOINT_MS
        )
        self.found: dict[str, Event] = {}
        self.waiting: list[Article] = []

    def clock(self) -> int:
        """Time of publication of the latest article, in ms since the epoch."""
        return self.now_ms

    async def add(self, row: dict[str, str], at_ms: int) -> None:
        """Add one article; those of one minute are stored in one batch."""
        if at_ms > self.now_ms + MINUTE_MS or len(self.waiting) >= BATCH_ARTICLES:
            await self.flush()
        self.now_ms = max(self.now_ms, at_ms)
        fields: dict[str, Any] = {name: row.get(name) or "" for name in ("id", "title", "text", "source")}
        self.waiting.append(Article(**fields, published_at_ms=at_ms, lang=row.get("lang")))

    async def flush(self) -> None:
        """Store the waiting articles and poll the detector."""
        await self.ingest.submit_many(self.waiting)
        self.waiting.clear()
        for change in await self.detector.poll(self.index.stream, self.now_ms):
            self.found[change.event.id] = change.event


async def run(path: str) -> None:
    """Replay the file and print the events."""
    archive, count = ArchiveReplay(), 0
    for row in read_rows([path]):
        at_ms = parse_time_ms(row.get("published_at"))
        if at_ms is not None:
            await archive.add(row, at_ms)
            count += 1
    await archive.flush()
    for e in sorted(archive.found.values(), key=lambda e: e.detected_at_ms):
        print(f"{rfc3339(e.detected_at_ms)}\t{e.size}\t{e.expected}\t{len(e.sources)}\t{e.title}")
    print(f"{count} articles, {len(archive.found)} events, {time.process_time():.0f} s of CPU")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", metavar="FILE")
    asyncio.run(run(parser.parse_args().file))


if __name__ == "__main__":
    main()
