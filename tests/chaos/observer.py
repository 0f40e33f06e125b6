"""Reads the store past the faulty proxy: each event must fire once, each article must be streamed once."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from aggregator.app import build_analyzers
from aggregator.errors import StoreUnavailable
from aggregator.events.consumer import DetectorRunner
from aggregator.events.detection.model import BurstRule
from aggregator.events.repository import POSITION_KEY, EventRepository
from aggregator.index import Index
from aggregator.settings import Settings
from aggregator.store.redis import RedisStore, open_redis_store

REPORTS = 18  # per topic; more than fifteen make an event
TIMEOUT_S = 60.0  # without progress
WINDOW_MS = BurstRule().window_ms
MIN_REPORTS = 4  # an event may contain fewer reports of another topic, by a common word
LATE_EVENTS_S = 3.0  # many polls of the detector
PAGE_SIZE = 500


@dataclass
class StoreObserver:
    """Follows the change stream of events on a direct connection to the store.

    topics  event id -> topics of its articles
    """

    url: Callable[[], str]
    fired: Counter[str] = field(default_factory=Counter)
    topics: dict[str, set[int]] = field(default_factory=dict)
    store: RedisStore = field(init=False)
    _position: bytes = b""
    _checkpoint: bytes | None = None
    _spaces: Sequence[str] = field(default_factory=lambda: build_analyzers(Settings())[0].spaces)

    def __post_init__(self) -> None:
        self.store = open_redis_store(self.url())

    async def reconnect(self) -> None:
        """To the server that takes the writes now."""
        await self.store.close()
        self.store = open_redis_store(self.url())

    async def read_changes(self) -> None:
        """Read the changes since the last call."""
        repository = EventRepository(self.store)
        while changes := await repository.changes(self._position, PAGE_SIZE):
            self._position = changes[-1][0]
            self.fired.update(change.event_id for _, change in changes if change.kind == "fired")

    async def wait_for_events(self, topics: Iterable[int]) -> None:
        """Wait until each topic has an event or the detector has read everything, then for late events."""
        expected = set(topics)
        deadline_s = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline_s:
            with suppress(StoreUnavailable):  # a failover that is not over for this connection
                if await self._detector_advances():
                    deadline_s = time.monotonic() + TIMEOUT_S
                await self.read_changes()
                events = await EventRepository(self.store).get_many(list(self.fired))
                self.topics = {id_: _topics(event.items) for id_, event in events.items()}
                if expected <= self.topics_with_event():
                    deadline_s = min(deadline_s, time.monotonic() + LATE_EVENTS_S)
            await asyncio.sleep(0.2)

    async def split_topics(self, topics: Iterable[int]) -> set[int]:
        """Topics whose reports arrived over hours by the clock of the service: it was off by days meanwhile.

        Such a clock is plausible, so the service stores by it; the reports are in no common window.
        """
        split = set()
        for topic in topics:
            stored = await self._index().articles.get_many([f"m{topic}-{n}" for n in range(REPORTS)])
            arrivals = [article.record.arrived_ms for article in stored.values()]
            if max(arrivals, default=0) - min(arrivals, default=0) > WINDOW_MS:
                split.add(topic)
        return split

    async def _detector_advances(self) -> bool:
        """Whether there is a new checkpoint of the detector, and articles that it has not read."""
        before, self._checkpoint = self._checkpoint, (await self.store.read([POSITION_KEY]))[0]
        runner = DetectorRunner(EventRepository(self.store), BurstRule())
        return before != self._checkpoint and await runner.lag(self._index().stream, 1) > 0

    def topics_with_event(self) -> set[int]:
        """Topics of all events."""
        return set().union(*self.topics.values())

    def repeated_events(self) -> int:
        """Number of repeated ``fired`` changes per event, plus additional events per topic."""
        repeated = sum(count - 1 for count in self.fired.values())
        events_of_topic = Counter(topic for topics in self.topics.values() for topic in topics)
        return repeated + sum(count - 1 for count in events_of_topic.values())

    async def verdicts(self, ids: Sequence[str]) -> dict[str, str]:
        """Stored verdicts by id; missing articles are omitted."""
        index = self._index()
        found: dict[str, str] = {}
        for start in range(0, len(ids), PAGE_SIZE):
            stored = await index.articles.get_many(ids[start : start + PAGE_SIZE])
            found.update({id_: article.outcome.verdict for id_, article in stored.items()})
        return found

    async def stream_counts(self) -> Counter[str]:
        """Number of entries per id in the article stream."""
        index = self._index()
        counted: Counter[str] = Counter()
        positions: dict[bytes, bytes] = {}
        while True:
            items, positions = await index.stream.read(positions, PAGE_SIZE)
            counted.update(item.id for item in items)
            if not items:
                return counted

    def _index(self) -> Index:
        return Index(self.store, self._spaces)


def _topics(ids: Iterable[str]) -> set[int]:
    """Topics of an event with these articles."""
    counted = Counter(int(id_[1:].partition("-")[0]) for id_ in ids if id_.startswith("m"))
    return {topic for topic, count in counted.items() if count >= MIN_REPORTS}
