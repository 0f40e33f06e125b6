"""Keeps the report on outlets current: one leader reads the article stream and counts its newest part.

The leader holds the window in memory and saves only the report; a new one reads the window again. The next
count waits ``PAUSE_FACTOR`` times as long as the last took: counting uses at most 2 % of a processor.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable

from aggregator.concurrency.scheduling import YieldControl, yield_control
from aggregator.index import Index
from aggregator.provenance.directory import SourceDirectory
from aggregator.provenance.statistics import SourceCounter
from aggregator.provenance.window import MAX_ARTICLES, WINDOW_MS, PublicationWindow
from aggregator.store.periodic_task import PeriodicTask

LEASE_KEY = b"{provenance}leader"
COLLECT_INTERVAL_S = 30.0
ITEMS_PER_READ = 100
READS_PER_LEASE = 200  # a renewal takes two round trips
PAUSE_FACTOR = 50


class SourceCollector(PeriodicTask):
    """One replica's part of the statistics; ``clock``: ms since 1970 UTC.

    ``family_of``: source -> first member of its family, as of the last run, in every replica.
    """

    def __init__(
        self,
        index: Index,
        clock: Callable[[], int],
        *,
        window_ms: int = WINDOW_MS,
        max_articles: int = MAX_ARTICLES,
        yield_control: YieldControl = yield_control,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("the statistics of sources", COLLECT_INTERVAL_S, index.store, LEASE_KEY)
        self._index, self._clock, self._monotonic = index, clock, monotonic
        self._window_ms, self._max_articles = window_ms, max_articles
        self._yield_control = yield_control
        self.directory = SourceDirectory(index.store)
        self.family_of: dict[str, str] = {}
        self._window: PublicationWindow | None = None
        self._positions: dict[bytes, bytes] = {}
        self._has_news = True
        self._next_count_s = float("-inf")

    async def lead(self) -> None:
        """Read the new articles, and count the window if there are any."""
        await self._read_new()
        if self._has_news and self._monotonic() >= self._next_count_s:
            await self._count()
        await self._refresh_families()

    async def follow(self) -> None:
        """Read the families; the leader has the window."""
        self._window = None
        await self._refresh_families()

    def reset(self) -> None:
        """Read the window again: it may have missed articles."""
        self._window = None

    async def _refresh_families(self) -> None:
        families = (await self.directory.report()).families
        self.family_of = {name: family.members[0] for family in families for name in family.members}

    async def _read_new(self) -> None:
        window = self._window or await self._open_window()
        for read in itertools.count(1):
            items, self._positions = await self._index.stream.read(self._positions, ITEMS_PER_READ)
            for item in items:
                window.add(item)
            self._has_news = self._has_news or bool(items)
            if len(items) < ITEMS_PER_READ:
                break
            await self._yield_control()
            if read % READS_PER_LEASE == 0 and not await self.acquire():
                self._window = None
                return
        window.drop_before(self._clock() - self._window_ms)
        self._window = window

    async def _open_window(self) -> PublicationWindow:
        """An empty window at its start; a full one of the former leader says where that is."""
        since_ms = self._clock() - self._window_ms
        report = await self.directory.report()
        if report.articles >= self._max_articles:
            since_ms = max(since_ms, report.since_ms or 0)
        self._positions = await self._index.stream.positions_at(since_ms)
        self._has_news = True
        return PublicationWindow(self._max_articles)

    async def _count(self) -> None:
        window = self._window
        if window is None:
            return
        started_s = self._monotonic()
        # Sorting and summing up half a million articles take 0.2 s each, in which numpy holds no lock mostly.
        counter = SourceCounter(await asyncio.to_thread(window.publications))
        for _ in counter.steps():
            await self._yield_control()
        report = await asyncio.to_thread(counter.report, self._clock(), window.since_ms)
        await self.directory.write(report)
        self._has_news = False
        self._next_count_s = self._monotonic() + PAUSE_FACTOR * (self._monotonic() - started_s)
