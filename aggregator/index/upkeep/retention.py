"""Retention: how long articles are kept, and the job that removes what is older.

The **floor** of a space is the lowest article number that is still kept; lookups ignore smaller ones. It is
saved in the head of the space and rises with the trusted time (``clock_guard.py``), never with a wall clock,
so that an article that expired once stays expired and a wrong clock expires none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from aggregator.domain import arrival_ms_of, article_number_at
from aggregator.index import keys
from aggregator.index.segments import Segments, decode_samples
from aggregator.index.snapshot import SegmentStack
from aggregator.store.base import Store
from aggregator.time_units import DAY_MS, HOUR_MS

# Longer than the event detector looks back.
STREAM_RETENTION_MS = 8 * DAY_MS
TRIM_STEP_MS = 10_000
# The floor rises in steps of this part of the retention period: each one is a write, and the grace covers it.
FLOOR_STEPS_PER_RETENTION = 1000


@dataclass(frozen=True, slots=True)
class Retention:
    """How long articles are kept: at least ``period_ms``, or indefinitely if that is None."""

    period_ms: int | None = None

    @property
    def shared_entries_grace_ms(self) -> int:
        """Articles are kept this much longer than ``period_ms``, so no copy outlives entries it shares."""
        return DAY_MS if self.period_ms is None else min(DAY_MS, self.period_ms // 8)

    def floor_at(self, trusted_ms: int) -> int:
        """The floor at this trusted time; 0 if articles are kept indefinitely."""
        if self.period_ms is None:
            return 0
        return article_number_at(max(0, trusted_ms - self.period_ms - self.shared_entries_grace_ms))

    def stable_floor(self, stack: SegmentStack) -> int:
        """A number that the floor does not pass within an hour: checks of all articles begin there."""
        step_ms = (self.period_ms or 0) // FLOOR_STEPS_PER_RETENTION
        return stack.floor + article_number_at(HOUR_MS + step_ms) if stack.floor else 0


class RetentionJob:
    """Raises the floor, seals and drops segments, and trims article streams, in short steps.

    A segment that spans the retention period is sealed even if it is not full. A frozen segment below the
    floor is dropped: first from the head, then its keys; ``closed`` stays for readers of the stream that were
    away.
    """

    def __init__(self, store: Store, segments: Segments, retention: Retention) -> None:
        self._store = store
        self._segments = segments
        self._retention = retention
        self.segments_dropped = 0

    async def steps(self, space: str, trusted_ms: int) -> AsyncIterator[None]:
        """All work that is due in one space; each step takes the store a few milliseconds."""
        stack = await self._segments.refresh(space)
        yield
        if self._retention.period_ms is not None:
            await self._raise_floor(stack, trusted_ms, self._retention.period_ms)
            await self._seal_if_spans_period(stack, trusted_ms, self._retention.period_ms)
        async for _ in self._drop_expired_segments(space):
            yield
        for tag in (await self._segments.stack(space)).tags:
            async for _ in self._trim_stream(tag, trusted_ms):
                yield

    async def _raise_floor(self, stack: SegmentStack, trusted_ms: int, period_ms: int) -> None:
        floor = self._retention.floor_at(trusted_ms)
        if arrival_ms_of(floor) - arrival_ms_of(stack.floor) > period_ms // FLOOR_STEPS_PER_RETENTION:
            await self._segments.advance_head(stack.space, floor=floor)

    async def _seal_if_spans_period(self, stack: SegmentStack, trusted_ms: int, period_ms: int) -> None:
        numbers, _ = decode_samples((await self._store.read([keys.sampled_numbers(stack.writable_tag)]))[0])
        if len(numbers) and trusted_ms - arrival_ms_of(int(numbers.min())) > period_ms:
            await self._segments.seal(stack.space, stack.last, trusted_ms)

    async def _drop_expired_segments(self, space: str) -> AsyncIterator[None]:
        head = await self._segments.head(space)
        while head.first < head.last and await self._is_expired(space, head.first, head.floor):
            if not await self._segments.advance_head(space, first=head.first + 1):
                return
            self.segments_dropped += 1
            head = await self._segments.head(space)
            yield
        for number in range(head.cleared_below, head.first):
            tag = keys.tag(space, number)
            async for found in self._store.scan_batches(tag):
                await self._store.delete([key for key in found if key != keys.sealed(tag)])
                yield
            await self._segments.advance_head(space, cleared_below=number + 1)

    async def _is_expired(self, space: str, number: int, floor: int) -> bool:
        sealed = (await self._store.read([keys.sealed(keys.tag(space, number))]))[0]
        return (
            sealed is not None
            and arrival_ms_of(floor) > int(sealed) + self._retention.shared_entries_grace_ms
        )

    async def _trim_stream(self, tag: bytes, trusted_ms: int) -> AsyncIterator[None]:
        stream, oldest_kept_ms = keys.stream(tag), trusted_ms - STREAM_RETENTION_MS
        while True:
            (entries,) = await self._store.stream_read([stream], [b""], 1)
            at_ms = int(entries[0][0].split(b"-")[0]) if entries else oldest_kept_ms
            if at_ms >= oldest_kept_ms:
                return
            await self._store.stream_trim(stream, b"%d-0" % min(oldest_kept_ms, at_ms + TRIM_STEP_MS))
            yield
