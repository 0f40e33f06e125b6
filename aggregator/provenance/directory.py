"""The stored report on outlets, selection from it, and the task that keeps it current.

{provenance}version    number of the report, which readers compare with the one they have decoded
{provenance}sources    the ``SourcesReport``, compressed

One leader reads the article stream and counts its newest part, which it holds in memory; a new one reads it
again. The next count waits ``PAUSE_FACTOR`` times as long as the last took: at most 2 % of a processor.
"""

from __future__ import annotations

import asyncio
import itertools
import time
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from aggregator.analysis.source import outlet_groups, outlet_key
from aggregator.concurrency import YieldControl, yield_control
from aggregator.domain import LATE_MS
from aggregator.errors import DamagedValue, NotFound
from aggregator.index import Index
from aggregator.provenance.statistics import Family, SourceCounter, SourcesReport, SourceStatistics
from aggregator.provenance.window import MAX_ARTICLES, WINDOW_MS, PublicationWindow
from aggregator.store.base import Put, Store, Transaction
from aggregator.store.decoding import corrupt_error, decode_value
from aggregator.store.periodic_task import PeriodicTask

VERSION_KEY, SOURCES_KEY = b"{provenance}version", b"{provenance}sources"
EMPTY = SourcesReport(0, None, 0, 0, (), ())

_decoder = msgspec.msgpack.Decoder(SourcesReport)
SourceOrder = Literal["articles", "originals", "copies", "copied", "lag"]
# Ties stay in the order of the report, by number of articles.
_SORT_KEYS: Mapping[SourceOrder, Callable[[SourceStatistics], Any]] = {
    "articles": lambda source: -source.articles,
    "originals": lambda source: -source.originals / source.articles,
    "copies": lambda source: -source.copies / source.articles,
    "copied": lambda source: -source.copied,
    "lag": lambda source: (source.median_lag_ms is None, source.median_lag_ms),
}


class SourceDirectory:
    """Reads and writes the report; a reader decodes each version once. All methods raise StoreUnavailable."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._version: bytes | None = None
        self._report = EMPTY
        self._by_key: dict[str, SourceStatistics] = {}

    async def report(self) -> SourcesReport:
        """The newest report; an empty one, with ``computed_ms`` 0, before the first."""
        version = (await self._store.read([VERSION_KEY]))[0]
        if version != self._version:
            version, data = await self._store.read([VERSION_KEY, SOURCES_KEY])
            self._report = _decode(data)
            self._by_key = {outlet_key(source.name): source for source in self._report.sources}
            self._version = version
        return self._report

    async def get(self, name: str) -> tuple[SourceStatistics, Family | None]:
        """An outlet and its family. Raises NotFound."""
        report = await self.report()
        found = self._by_key.get(outlet_key(name))
        if found is None:
            raise NotFound(
                f"No statistics are known of the source {name[:200]!r}: names are whole, and a new source "
                "is counted within some minutes."
            )
        return found, report.families[found.family] if found.family is not None else None

    async def believed_ms(self) -> Callable[[str], float]:
        """How long before its arrival a date of each source is believed, in ms."""
        await self.report()
        of = self._by_key
        return lambda name: of[key].extraction.believed_ms if (key := outlet_key(name)) in of else LATE_MS

    async def write(self, report: SourcesReport) -> None:
        """Replace the report; two writers at once are harmless."""
        data = zlib.compress(msgspec.msgpack.encode(report), 6)
        writes = (Put(SOURCES_KEY, data), Put(VERSION_KEY, b"%d-%d" % (report.computed_ms, zlib.crc32(data))))
        await self._store.commit(Transaction((), writes))


def _decode(data: bytes | None) -> SourcesReport:
    """A damaged report is an empty one: the next run replaces it."""
    try:
        return decode_value(_decoder, zlib.decompress(data), "The report on sources") if data else EMPTY
    except zlib.error as error:
        corrupt_error("The report on sources", error)
    except DamagedValue:
        pass
    return EMPTY


@dataclass(frozen=True, slots=True)
class Selection:
    """One page of outlets; ``total``: outlets that match, ``next_offset``: None on the last page."""

    sources: tuple[SourceStatistics, ...]
    total: int
    next_offset: int | None


def select(report: SourcesReport, text: str, order: SourceOrder, offset: int, limit: int) -> Selection:
    """The outlets whose name contains ``text``, ignoring case; "originals" and "copies" by their share."""
    wanted = text.strip().casefold()
    found = [source for source in report.sources if wanted in source.name.casefold()]
    found.sort(key=_SORT_KEYS[order])
    end = offset + limit
    return Selection(tuple(found[offset:end]), len(found), end if end < len(found) else None)


def families_among(report: SourcesReport, outlets: Collection[str]) -> list[tuple[str, ...]]:
    """The members among ``outlets`` of each group of the file, and of each family of the others."""
    groups = outlet_groups(outlets)
    keys = set(map(outlet_key, outlets)).difference(outlet_key(name) for group in groups for name in group)
    present = [tuple(n for n in family.members if outlet_key(n) in keys) for family in report.families]
    return groups + [members for members in present if len(members) > 1]


LEASE_KEY = b"{provenance}leader"
COLLECT_INTERVAL_S = 10.0
ITEMS_PER_READ = 100
READS_PER_LEASE = 200  # a renewal takes two round trips
PAUSE_FACTOR = 50


class SourceCollector(PeriodicTask):
    """One replica's part of the statistics; ``failing``: number of sources that fail, by problem."""

    def __init__(
        self,
        index: Index,
        clock: Callable[[], int],
        *,
        window_ms: int = WINDOW_MS,
        yield_control: YieldControl = yield_control,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("the statistics of sources", COLLECT_INTERVAL_S, index.store, LEASE_KEY)
        self._index, self._clock, self._monotonic = index, clock, monotonic
        self._window_ms, self._yield_control = window_ms, yield_control
        self.directory = SourceDirectory(index.store)
        self.failing: Counter[str] = Counter()
        self._window: PublicationWindow | None = None
        self._positions: dict[bytes, bytes] = {}
        self._has_news = True
        self._next_count_s = float("-inf")

    async def lead(self) -> None:
        """Read the new articles, and count the window if there are any."""
        await self._read_new()
        if self._has_news and self._monotonic() >= self._next_count_s:
            await self._count()
        await self._refresh_failing()

    async def follow(self) -> None:
        """Read the report; the leader has the window."""
        self._window = None
        await self._refresh_failing()

    def reset(self) -> None:
        """Read the window again: it may have missed articles."""
        self._window = None

    async def _refresh_failing(self) -> None:
        report = await self.directory.report()
        self.failing = Counter(name for source in report.sources for name in source.extraction.failing)

    async def _read_new(self) -> None:
        window = self._window or await self._open_window()
        for read in itertools.count(1):
            batch = self._index.stream.read(self._positions, ITEMS_PER_READ, with_story_terms=False)
            items, self._positions = await batch
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
        if report.articles >= MAX_ARTICLES:
            since_ms = max(since_ms, report.since_ms or 0)
        self._positions = await self._index.stream.positions_at(since_ms)
        self._has_news = True
        return PublicationWindow()

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
