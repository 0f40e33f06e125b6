"""Who hears of changed events at once? One task of the process reads the change stream and tells all.

A position in the change stream is all that a listener needs to resume: it first gets what it missed, read
for it alone, then what the reader task brings. A listener that does not keep up is let go and resumes.
The reader runs while anybody listens; a store that is away is asked again until it answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass

from aggregator.errors import StoreUnavailable
from aggregator.events.detection import Event
from aggregator.events.repository import CHANGE_RETENTION_MS, ChangeRecord, EventRepository

POLL_INTERVAL_S = 0.5
CHANGES_PER_READ = 200
MAX_SUBSCRIBERS = 256
QUEUE_LIMIT = 1000
STREAM_START = (0, 0)
_POSITION_PATTERN = re.compile(rb"\d{1,19}-\d{1,19}")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ChangeNotification:
    """One change: where it stands in the stream, and the event as it is now (None: no longer kept)."""

    position: bytes
    change: ChangeRecord
    event: Event | None


class Subscriber:
    """One open stream. ``position``: behind which it goes on; ``missed``: changes before it are lost to it."""

    def __init__(self, position: bytes) -> None:
        self.position = position
        self.has_gap = False
        self._backlog: deque[ChangeNotification] = deque()
        self._queue: asyncio.Queue[ChangeNotification | None] = asyncio.Queue()
        self._closed = False

    def add_backlog(self, backlog: Iterable[ChangeNotification]) -> None:
        """What it gets before anything that it is told."""
        self._backlog.extend(backlog)

    def reset(self, position: bytes) -> None:
        """Too much was missed, or nobody knows what: go on behind ``position``."""
        self.position, self.has_gap = position, True
        self._backlog.clear()

    def enqueue(self, notification: ChangeNotification) -> None:
        """Hand over one change; whoever is too slow is let go, and resumes behind what it got."""
        if self._closed:
            return
        if self._queue.qsize() < QUEUE_LIMIT:
            self._queue.put_nowait(notification)
        else:
            self.close()

    def close(self) -> None:
        """No more changes: ``get`` answers None behind those that wait."""
        self._closed = True
        self._queue.put_nowait(None)

    async def get(self, timeout_s: float) -> ChangeNotification | None:
        """The next change, None at the end. Raises TimeoutError when nothing happens for so long."""
        async with asyncio.timeout(timeout_s):
            while (told := await self._next()) is not None:
                if parse_position(told.position) > parse_position(self.position):
                    self.position = told.position
                    return told
        return None

    async def _next(self) -> ChangeNotification | None:
        return self._backlog.popleft() if self._backlog else await self._queue.get()


class ChangeBroadcaster:
    """The changes of one store for the listeners of one process. ``poll_s``: pause between two reads."""

    def __init__(
        self,
        repository: EventRepository,
        *,
        poll_interval_s: float = POLL_INTERVAL_S,
        max_subscribers: int = MAX_SUBSCRIBERS,
    ) -> None:
        self._repository = repository
        self._poll_interval_s = poll_interval_s
        self._max_subscribers = max_subscribers
        self._subscribers: dict[Subscriber, None] = {}
        self._reader: asyncio.Task[None] | None = None
        self._position = b""
        self._closed = False

    @property
    def subscriber_count(self) -> int:
        """How many listen now."""
        return len(self._subscribers)

    @property
    def is_full(self) -> bool:
        """Whether another listener would be one too many, or the service is going down."""
        return self._closed or self.subscriber_count >= self._max_subscribers

    async def latest_position(self) -> bytes:
        """The position of the newest change: whoever listens behind it misses nothing from now on."""
        return await self._repository.latest_position() or b"0-0"

    @contextlib.asynccontextmanager
    async def subscribe(self, after: bytes | None = None) -> AsyncIterator[Subscriber]:
        """Changes behind ``after`` (None: from now on), in order, none twice.

        Behind a position that is not of this store, or from which too much was missed, nothing can be
        resumed: the listener starts now and has ``missed`` something. Raises StoreUnavailable.
        """
        tail = await self.latest_position()
        listener = Subscriber(tail if after is None else after)
        if after is not None and not _is_resumable(after, tail):
            listener.reset(tail)
        if self._reader is None:
            self._position = tail
            self._reader = asyncio.create_task(self._read_loop())
        self._subscribers[listener] = None
        try:
            await self._load_backlog(listener, self._position)
            yield listener
        finally:
            self._subscribers.pop(listener, None)
            if not self._subscribers and self._reader is not None:
                self._reader.cancel()
                self._reader = None

    def close(self) -> None:
        """Let all listeners go, so that a shutdown need not wait for them."""
        self._closed = True
        for listener in list(self._subscribers):
            listener.close()

    async def _load_backlog(self, subscriber: Subscriber, until: bytes) -> None:
        """What stands between the listener's position and where the reader was when it came."""
        position, count = subscriber.position, 0
        while parse_position(position) < parse_position(until) and (batch := await self._read(position)):
            subscriber.add_backlog(batch)
            position, count = batch[-1].position, count + len(batch)
            if count > QUEUE_LIMIT:
                subscriber.reset(until)
                return

    async def _read_loop(self) -> None:
        away = False
        while True:
            try:
                batch = await self._read(self._position)
                away = False
            except StoreUnavailable as error:
                if not away:
                    log.warning("changed events cannot be read and will be asked for again: %s", error)
                batch, away = [], True
            for told in batch:
                self._position = told.position
                for listener in list(self._subscribers):
                    listener.enqueue(told)
            if len(batch) < CHANGES_PER_READ:
                await asyncio.sleep(self._poll_interval_s)

    async def _read(self, after: bytes) -> Sequence[ChangeNotification]:
        changes = await self._repository.changes(after, CHANGES_PER_READ)
        if not changes:
            return []
        events = await self._repository.get_many(list(dict.fromkeys(c.event_id for _, c in changes)))
        return [
            ChangeNotification(position, change, events.get(change.event_id)) for position, change in changes
        ]


def _is_resumable(position: bytes, tail: bytes) -> bool:
    """Whether it can be of this stream, and what follows it is still kept."""
    if not _POSITION_PATTERN.fullmatch(position):
        return False
    if parse_position(position) == STREAM_START:
        return True
    return (
        parse_position(position) <= parse_position(tail)
        and parse_position(position)[0] >= parse_position(tail)[0] - CHANGE_RETENTION_MS
    )


def parse_position(position: bytes) -> tuple[int, int]:
    """A position as numbers that compare as the stream runs."""
    ms, _, sequence = position.partition(b"-")
    return int(ms or 0), int(sequence or 0)
