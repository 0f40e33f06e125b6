"""Broadcast of event changes: one task per process reads the change stream for all subscribers.

A subscriber resumes from a position in the change stream: it first receives the changes it missed, read for
it alone, then those that the reader task publishes. One that does not keep up is disconnected and may resume.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from aggregator.errors import StoreUnavailable
from aggregator.events.event import Event
from aggregator.events.repository import CHANGE_RETENTION_MS, ChangeRecord, EventRepository
from aggregator.log_limits import ChangeFilter
from aggregator.store.base import parse_position

POLL_INTERVAL_S = 0.5
CHANGES_PER_READ = 200
NO_CHANGES = b"0-0"  # position before the first change
MAX_SUBSCRIBERS = 256
QUEUE_LIMIT = 1000
_POSITION_PATTERN = re.compile(rb"\d{1,19}-\d{1,19}")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ChangeNotification:
    """One change: its position in the stream, and the present event (None: no longer stored)."""

    position: bytes
    change: ChangeRecord
    event: Event | None


class Subscriber:
    """Queue of one client. ``position``: of the last change received; ``has_gap``: changes before it lost."""

    def __init__(self, position: bytes) -> None:
        self.position = position
        self.has_gap = False
        self.backlog: deque[ChangeNotification] = deque()  # precedes everything in the queue
        self._queue: asyncio.Queue[ChangeNotification | None] = asyncio.Queue()
        self._closed = False

    def reset(self, position: bytes) -> None:
        """Skip to ``position``, because the missed changes are unknown or too many."""
        self.position, self.has_gap = position, True
        self.backlog.clear()

    def enqueue(self, notification: ChangeNotification) -> None:
        """Add one change; a subscriber whose queue is full is closed instead."""
        if self._closed:
            return
        if self._queue.qsize() < QUEUE_LIMIT:
            self._queue.put_nowait(notification)
        else:
            self.close()

    def close(self) -> None:
        """End the subscription: ``get`` returns None after the queued changes."""
        self._closed = True
        self._queue.put_nowait(None)

    async def get(self, timeout_s: float) -> ChangeNotification | None:
        """The next change; None at the end. Raises TimeoutError after ``timeout_s`` without one."""
        async with asyncio.timeout(timeout_s):
            # The backlog and the queue may overlap.
            while notification := self.backlog.popleft() if self.backlog else await self._queue.get():
                if parse_position(notification.position) > parse_position(self.position):
                    self.position = notification.position
                    return notification
        return None


class ChangeBroadcaster:
    """Broadcasts the changes of one store in one process. ``poll_interval_s``: pause between two reads."""

    def __init__(self, repository: EventRepository, *, poll_interval_s: float = POLL_INTERVAL_S) -> None:
        self._repository, self._poll_interval_s = repository, poll_interval_s
        self._subscribers: dict[Subscriber, None] = {}
        self._reader: asyncio.Task[None] | None = None
        self._position = b""
        self._closed = False

    @property
    def is_full(self) -> bool:
        """Whether no further subscriber is accepted: the limit is reached, or the service is stopping."""
        return self._closed or len(self._subscribers) >= MAX_SUBSCRIBERS

    async def latest_position(self) -> bytes:
        """Position of the newest change; a subscription after it receives everything from now on."""
        return await self._repository.latest_position() or NO_CHANGES

    @contextlib.asynccontextmanager
    async def subscribe(self, after: bytes | None = None) -> AsyncIterator[Subscriber]:
        """Subscribe to the changes after a position (None: now); one not resumable starts now, with a gap."""
        tail = await self.latest_position()
        subscriber = Subscriber(tail if after is None else after)
        if after is not None and not _is_resumable(after, tail):
            subscriber.reset(tail)
        if self._reader is None:
            self._position = tail
            self._reader = asyncio.create_task(self._read_loop())
        self._subscribers[subscriber] = None
        try:
            await self._load_backlog(subscriber, self._position)
            yield subscriber
        finally:
            self._subscribers.pop(subscriber, None)
            if not self._subscribers and self._reader is not None:
                self._reader.cancel()
                self._reader = None

    def close(self) -> None:
        """End all subscriptions, so that a shutdown does not wait for them."""
        self._closed = True
        for subscriber in list(self._subscribers):
            subscriber.close()

    async def _load_backlog(self, subscriber: Subscriber, until: bytes) -> None:
        position, count = subscriber.position, 0
        while parse_position(position) < parse_position(until) and (batch := await self._read(position)):
            subscriber.backlog.extend(batch)
            position, count = batch[-1].position, count + len(batch)
            if count > QUEUE_LIMIT:
                subscriber.reset(until)
                return

    async def _read_loop(self) -> None:
        problem = ChangeFilter()
        while True:
            try:
                batch = await self._read(self._position)
                problem.clear()
            except StoreUnavailable as error:
                if problem.is_new(str(error)):
                    logger.warning("The change stream of events cannot be read; retrying: %s", error)
                batch = []
            for notification in batch:
                self._position = notification.position
                for subscriber in list(self._subscribers):
                    subscriber.enqueue(notification)
            if len(batch) < CHANGES_PER_READ:
                await asyncio.sleep(self._poll_interval_s)

    async def _read(self, after: bytes) -> Sequence[ChangeNotification]:
        changes = await self._repository.changes(after, CHANGES_PER_READ)
        if not changes:
            return []
        events = await self._repository.get_many(list(dict.fromkeys(c.event_id for _, c in changes)))
        found = ((position, change, events.get(change.event_id)) for position, change in changes)
        return [ChangeNotification(*each) for each in found]


def _is_resumable(position: bytes, tail: bytes) -> bool:
    """Whether it is a position of this stream, and all changes after it are still stored."""
    if not _POSITION_PATTERN.fullmatch(position):
        return False
    at, end = parse_position(position), parse_position(tail)
    return at == parse_position(NO_CHANGES) or (at <= end and at[0] >= end[0] - CHANGE_RETENTION_MS)
