"""Load control: interactive requests take precedence over bulk work, in this process and across processes.

While interactive articles arrive, bulk work (batches, imports, reindexing) runs in small slices, one at a
time per process (docs/design/load-control.md). Priorities of the operating system do not reach the store.
"""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass

from aggregator.errors import StoreUnavailable
from aggregator.store.base import Put, Store

# About the duration of one interactive request without other load: bulk work yields to it for this time.
MAX_WAIT_S = 0.005
PAUSE_RATIO = 1.0  # seconds of pause per second of work while interactive articles arrive
QUIET_AFTER_S = 10.0  # the pause shrinks to 0 over this time after the newest interactive article
MAX_PAUSE_S = 0.25
# Articles looked up and committed in one slice: the longest that an interactive article waits for.
SLICE_ARTICLES = 8


class PriorityGate:
    """Lets the bulk tasks of one event loop pause while interactive tasks are active."""

    def __init__(self) -> None:
        self._high_priority_count = 0
        self._waiters: set[asyncio.Future[None]] = set()

    @contextmanager
    def high_priority(self) -> Iterator[None]:
        """Mark the current task as interactive: bulk tasks pause until it leaves the context."""
        self._high_priority_count += 1
        try:
            yield
        finally:
            self._high_priority_count -= 1
            if not self._high_priority_count:
                for waiter in self._waiters:
                    _wake(waiter)

    async def yield_control(self) -> None:
        """Let other tasks run; returns when no interactive task is active, or after ``MAX_WAIT_S``."""
        if not self._high_priority_count:
            await asyncio.sleep(0)
            return
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        timeout = loop.call_later(MAX_WAIT_S, _wake, waiter)
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            timeout.cancel()
            self._waiters.discard(waiter)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def pause_s(since_last_s: float, work_s: float) -> float:
    """Seconds to pause after ``work_s`` of work, ``since_last_s`` after the newest interactive article.

    >>> pause_s(0.0, 0.02), pause_s(5.0, 0.02), pause_s(10.0, 0.02)
    (0.02, 0.01, 0.0)
    """
    return min(MAX_PAUSE_S, PAUSE_RATIO * work_s * max(0.0, 1.0 - since_last_s / QUIET_AFTER_S))


class BulkThrottle:
    """Throttle for all bulk work of one process; ``yield_control`` is awaited before each slice.

    ``seconds_since_last``: since the newest interactive article, inf without any.
    """

    def __init__(
        self,
        seconds_since_last: Callable[[], Awaitable[float]],
        yield_control: Callable[[], Awaitable[None]],
        *,
        clock_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._seconds_since_last, self._yield_control = seconds_since_last, yield_control
        self._clock_s, self._sleep = clock_s, sleep
        self._slice_lock = asyncio.Lock()
        self._next_slice_at_s = 0.0
        self.throttled_s = 0.0  # total of all pauses, for metrics

    @asynccontextmanager
    async def slice(self, articles: int, slice_articles: int = SLICE_ARTICLES) -> AsyncIterator[int]:
        """Wait for the next slice and yield its number of articles; the time inside counts as work."""
        since_s = await self._seconds_since_last()
        if pause_s(since_s, 1.0) == 0.0:
            yield articles
            return
        async with self._slice_lock:
            if (wait_s := self._next_slice_at_s - self._clock_s()) > 0:
                await self._sleep(wait_s)
                self.throttled_s += wait_s
            await self._yield_control()
            began_s = self._clock_s()
            try:
                yield min(articles, slice_articles)
            finally:
                ended_s = self._clock_s()
                self._next_slice_at_s = ended_s + pause_s(since_s, ended_s - began_s)


def throttled_slice(
    throttle: BulkThrottle | None, articles: int, slice_articles: int = SLICE_ARTICLES
) -> AbstractAsyncContextManager[int]:
    """``BulkThrottle.slice``; one slice of all articles without a throttle."""
    return nullcontext(articles) if throttle is None else throttle.slice(articles, slice_articles)


PUBLISH_INTERVAL_S, POLL_INTERVAL_S = 1.0, 0.5
BEACON_KEY = b"{singles}"


class ActivityBeacon:
    """Interactive activity of this process and, with a delay of seconds, of others on ``store``."""

    def __init__(self, store: Store, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock_s = store, clock_s
        self._latest_s = self._published_s = self._polled_s = -math.inf
        self._marker: bytes | None = None
        self._publish_task: asyncio.Task[None] | None = None

    def record_arrival(self) -> None:
        """An interactive article arrived here; other processes are notified in the background."""
        self._latest_s = self._clock_s()
        if self._latest_s - self._published_s >= PUBLISH_INTERVAL_S and (
            self._publish_task is None or self._publish_task.done()
        ):
            self._published_s = self._latest_s
            self._publish_task = asyncio.ensure_future(self._publish())

    async def seconds_since_last(self) -> float:
        """Seconds since the newest interactive article arrived in any process; inf if none did."""
        now_s = self._clock_s()
        if now_s - self._latest_s >= POLL_INTERVAL_S and now_s - self._polled_s >= POLL_INTERVAL_S:
            self._polled_s = now_s
            await self._poll(now_s)
        return now_s - self._latest_s

    async def close(self) -> None:
        """Stop publishing. Idempotent."""
        if self._publish_task is not None:
            self._publish_task.cancel()
            await asyncio.gather(self._publish_task, return_exceptions=True)

    async def _publish(self) -> None:
        try:
            await self._store.put([Put(BEACON_KEY, secrets.token_bytes(8), int(QUIET_AFTER_S * 1000))])
        except StoreUnavailable:
            return

    async def _poll(self, now_s: float) -> None:
        try:
            marker = (await self._store.read([BEACON_KEY]))[0]
        except StoreUnavailable:
            return
        if marker is not None and marker != self._marker:
            self._latest_s = now_s
        self._marker = marker


@dataclass(frozen=True, slots=True)
class LoadControl:
    """The gate of this event loop, the beacon in the store, and the pauses of bulk work."""

    gate: PriorityGate
    activity: ActivityBeacon
    throttle: BulkThrottle

    @classmethod
    def create(cls, store: Store) -> LoadControl:
        """The mechanisms of one process over ``store``."""
        gate, activity = PriorityGate(), ActivityBeacon(store)
        return cls(gate, activity, BulkThrottle(activity.seconds_since_last, gate.yield_control))
