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
from aggregator.events.repository import CHANGES_KEPT_MS, ChangeRecord, EventLog

POLL_S = 0.5
BATCH = 200
MAX_LISTENERS = 256
MAX_WAITING = 1000
BEGINNING = (0, 0)
_POSITION = re.compile(rb"\d{1,19}-\d{1,19}")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Told:
    """One change: where it stands in the stream, and the event as it is now (None: no longer kept)."""

    position: bytes
    change: ChangeRecord
    event: Event | None


class Listener:
    """One open stream. ``position``: behind which it goes on; ``missed``: changes before it are lost to it."""

    def __init__(self, position: bytes) -> None:
        self.position = position
        self.missed = False
        self._backlog: deque[Told] = deque()
        self._waiting: asyncio.Queue[Told | None] = asyncio.Queue()
        self._ended = False

    def catch_up(self, backlog: Iterable[Told]) -> None:
        """What it gets before anything that it is told."""
        self._backlog.extend(backlog)

    def start_over(self, position: bytes) -> None:
        """Too much was missed, or nobody knows what: go on behind ``position``."""
        self.position, self.missed = position, True
        self._backlog.clear()

    def tell(self, told: Told) -> None:
        """Hand over one change; whoever is too slow is let go, and resumes behind what it got."""
        if self._ended:
            return
        if self._waiting.qsize() < MAX_WAITING:
            self._waiting.put_nowait(told)
        else:
            self.end()

    def end(self) -> None:
        """No more changes: ``get`` answers None behind those that wait."""
        self._ended = True
        self._waiting.put_nowait(None)

    async def get(self, timeout_s: float) -> Told | None:
        """The next change, None at the end. Raises TimeoutError when nothing happens for so long."""
        async with asyncio.timeout(timeout_s):
            while (told := await self._next()) is not None:
                if order(told.position) > order(self.position):
                    self.position = told.position
                    return told
        return None

    async def _next(self) -> Told | None:
        return self._backlog.popleft() if self._backlog else await self._waiting.get()


class EventStream:
    """The changes of one store for the listeners of one process. ``poll_s``: pause between two reads."""

    def __init__(
        self, events: EventLog, *, poll_s: float = POLL_S, max_listeners: int = MAX_LISTENERS
    ) -> None:
        self._events = events
        self._poll_s = poll_s
        self._max_listeners = max_listeners
        self._listeners: dict[Listener, None] = {}
        self._reader: asyncio.Task[None] | None = None
        self._position = b""
        self._closed = False

    @property
    def listeners(self) -> int:
        """How many listen now."""
        return len(self._listeners)

    @property
    def is_full(self) -> bool:
        """Whether another listener would be one too many, or the service is going down."""
        return self._closed or self.listeners >= self._max_listeners

    async def tail(self) -> bytes:
        """The position of the newest change: whoever listens behind it misses nothing from now on."""
        return await self._events.newest_change() or b"0-0"

    @contextlib.asynccontextmanager
    async def listen(self, after: bytes | None = None) -> AsyncIterator[Listener]:
        """Changes behind ``after`` (None: from now on), in order, none twice.

        Behind a position that is not of this store, or from which too much was missed, nothing can be
        resumed: the listener starts now and has ``missed`` something. Raises StoreUnavailable.
        """
        tail = await self.tail()
        listener = Listener(tail if after is None else after)
        if after is not None and not _is_resumable(after, tail):
            listener.start_over(tail)
        if self._reader is None:
            self._position = tail
            self._reader = asyncio.create_task(self._read_on())
        self._listeners[listener] = None
        try:
            await self._catch_up(listener, self._position)
            yield listener
        finally:
            self._listeners.pop(listener, None)
            if not self._listeners and self._reader is not None:
                self._reader.cancel()
                self._reader = None

    def close(self) -> None:
        """Let all listeners go, so that a shutdown need not wait for them."""
        self._closed = True
        for listener in list(self._listeners):
            listener.end()

    async def _catch_up(self, listener: Listener, until: bytes) -> None:
        """What stands between the listener's position and where the reader was when it came."""
        position, count = listener.position, 0
        while order(position) < order(until) and (batch := await self._read(position)):
            listener.catch_up(batch)
            position, count = batch[-1].position, count + len(batch)
            if count > MAX_WAITING:
                listener.start_over(until)
                return

    async def _read_on(self) -> None:
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
                for listener in list(self._listeners):
                    listener.tell(told)
            if len(batch) < BATCH:
                await asyncio.sleep(self._poll_s)

    async def _read(self, after: bytes) -> Sequence[Told]:
        changes = await self._events.changes(after, BATCH)
        if not changes:
            return []
        events = await self._events.get_many(list(dict.fromkeys(c.event_id for _, c in changes)))
        return [Told(position, change, events.get(change.event_id)) for position, change in changes]


def _is_resumable(position: bytes, tail: bytes) -> bool:
    """Whether it can be of this stream, and what follows it is still kept."""
    if not _POSITION.fullmatch(position):
        return False
    if order(position) == BEGINNING:
        return True
    return order(position) <= order(tail) and order(position)[0] >= order(tail)[0] - CHANGES_KEPT_MS


def order(position: bytes) -> tuple[int, int]:
    """A position as numbers that compare as the stream runs."""
    ms, _, sequence = position.partition(b"-")
    return int(ms or 0), int(sequence or 0)
