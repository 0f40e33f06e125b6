"""Keeps the report on outlets current: one leader reads the article stream and counts its newest part.

The leader holds the window in memory (``window.py``) and saves only the report, so commits do nothing for it.
A new leader reads the window from the stream again. Each run reads what is new and, if anything is, counts
the window; the next count waits ``PAUSE_FACTOR`` times as long as the last took, so that counting uses at
most 2 % of a processor.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable

from aggregator.concurrency.scheduling import YieldControl, yield_control
from aggregator.index import Index
from aggregator.log_limits import ChangeFilter
from aggregator.provenance.directory import SourceDirectory
from aggregator.provenance.statistics import SourceCounter
from aggregator.provenance.window import MAX_ARTICLES, WINDOW_MS, PublicationWindow
from aggregator.store.lease import Lease

LEASE_KEY = b"{provenance}leader"
COLLECT_INTERVAL_S = 30.0
LEASE_TTL_MS = 90_000
ITEMS_PER_READ = 100
READS_PER_LEASE = 200  # a renewal takes two round trips
PAUSE_FACTOR = 50

logger = logging.getLogger(__name__)


class SourceCollector:
    """One replica's part of the statistics; ``clock``: ms since 1970 UTC.

    ``family_of``: source -> first member of its family, as of the last run, in every replica.
    Counters since start: ``runs`` as leader, ``skipped`` (another replica leads), ``errors``.
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
        self._index, self._clock, self._monotonic = index, clock, monotonic
        self._window_ms, self._max_articles = window_ms, max_articles
        self._yield_control = yield_control
        self._lease = Lease(index.store, LEASE_KEY, LEASE_TTL_MS)
        self.directory = SourceDirectory(index.store)
        self.family_of: dict[str, str] = {}
        self._window: PublicationWindow | None = None
        self._positions: dict[bytes, bytes] = {}
        self._has_news = True
        self._next_count_s = float("-inf")
        self._problems = ChangeFilter()
        self.runs = self.skipped = self.errors = 0

    async def run_once(self) -> None:
        """One run. Never raises, except when cancelled; a failure is logged when its reason changes."""
        try:
            if await self._lease.acquire():
                self.runs += 1
                await self._read_new()
                if self._has_news and self._monotonic() >= self._next_count_s:
                    await self._count()
            else:
                self.skipped += 1
                self._window = None  # another replica has one
            await self._refresh_families()
        except Exception as error:
            self.errors += 1
            self._window = None  # it may have missed articles
            self._problems.log_retry(logger, "the statistics of sources", error)
        else:
            self._problems.clear()

    async def close(self) -> None:
        """Release the lease so that another replica can continue immediately. Idempotent."""
        await self._lease.close()

    async def _refresh_families(self) -> None:
        families = (await self.directory.report()).families
        self.family_of = {name: family.members[0] for family in families for name in family.members}

    async def _read_new(self) -> None:
        """Read the stream to its end."""
        window = self._window or await self._open_window()
        for read in itertools.count(1):
            items, self._positions = await self._index.stream.read(self._positions, ITEMS_PER_READ)
            for item in items:
                window.add(item)
            self._has_news = self._has_news or bool(items)
            if len(items) < ITEMS_PER_READ:
                break
            await self._yield_control()
            if read % READS_PER_LEASE == 0 and not await self._lease.acquire():
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
