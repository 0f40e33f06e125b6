"""Lessons for the detector: a stream that ``aggregator learn`` writes and the leader reads.

    {events}lessons     entries: a format byte, then a compressed ``Lesson`` of one hour, or of bursts

The leader saves its position together with the detector, so each lesson is taken once. Entries are kept for
``LESSON_RETENTION_MS``, to rebuild a lost state: the baseline remembers no older hours.
"""

from __future__ import annotations

import zlib
from itertools import islice

import msgspec

from aggregator.errors import DamagedValue
from aggregator.events.detection import Lesson
from aggregator.store.base import Store, StreamAdd, Transaction
from aggregator.store.decoding import corrupt_error, decode_value
from aggregator.time_units import DAY_MS

LESSONS_KEY = b"{events}lessons"
FORMAT_BYTE = b"\x01"
LESSON_RETENTION_MS = 8 * DAY_MS
# Entries per read and per commit: an hour of full texts has up to 1 MB, seven days about 170 entries.
ENTRIES_PER_CALL = 8

_decoder = msgspec.msgpack.Decoder(Lesson)


class Lessons:
    """The stream of lessons in ``store``. All methods raise StoreUnavailable."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, lesson: Lesson) -> None:
        """Append a lesson, in parts that are taken one by one; after an error add it again."""
        parts = lesson.parts()
        while batch := tuple(islice(parts, ENTRIES_PER_CALL)):
            writes = tuple(StreamAdd(LESSONS_KEY, _encode(part)) for part in batch)
            await self._store.commit(Transaction((), writes))

    async def read(self, after: bytes) -> list[tuple[bytes, Lesson]]:
        """Up to ``ENTRIES_PER_CALL`` (position, lesson) after a position, oldest first."""
        entries = (await self._store.stream_read([LESSONS_KEY], [after], ENTRIES_PER_CALL))[0]
        return [(position, _decode(payload)) for position, payload in entries]

    async def last_position(self) -> bytes:
        """Position of the newest entry; b"" when the stream is empty."""
        tail = await self._store.stream_tail(LESSONS_KEY, 1)
        return tail[0][0] if tail else b""

    async def trim(self, trusted_ms: int) -> None:
        """Delete entries ``LESSON_RETENTION_MS`` older than the newest one, and than ``trusted_ms``."""
        newest_ms = int((await self.last_position()).partition(b"-")[0] or 0)
        before_ms = max(0, min(newest_ms, trusted_ms) - LESSON_RETENTION_MS)
        await self._store.stream_trim(LESSONS_KEY, b"%d-0" % before_ms)


def _encode(lesson: Lesson) -> bytes:
    return FORMAT_BYTE + zlib.compress(msgspec.msgpack.encode(lesson), 1)


def _decode(payload: bytes) -> Lesson:
    """The lesson; an empty one for a damaged entry, which is logged and must not stop the detector."""
    try:
        if payload[:1] != FORMAT_BYTE:
            raise corrupt_error("A lesson", f"format {payload[:1].hex()}")
        return decode_value(_decoder, zlib.decompress(payload[1:]), "A lesson")
    except zlib.error as error:
        corrupt_error("A lesson", error)
    except DamagedValue:
        pass
    return Lesson([], [])
