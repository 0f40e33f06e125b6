"""Index maintenance: retention, compaction and rehash of all spaces, as a sequence of short steps.

The caller may stop after each step, and two processes at once are harmless (docs/design/segments.md). Of
a dropped segment ``closed`` stays for readers of the stream that were away.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Mapping, Sequence

from aggregator.domain import arrival_ms_of, article_number_at
from aggregator.errors import StoreUnavailable
from aggregator.index import Index, keys
from aggregator.index.bindings import decode_binding
from aggregator.index.segments import FLOOR_STEPS_PER_RETENTION, Retention, Segments, decode_samples
from aggregator.index.upkeep.compaction import Compactor
from aggregator.index.upkeep.sketch_rehash import SketchRehash
from aggregator.index.upkeep.spaces import StoredSpace, count_articles
from aggregator.store.base import Delete, Store, Transaction, ValueEquals, parse_position
from aggregator.time_units import DAY_MS, format_minute

log = logging.getLogger("aggregator.maintenance")
STREAM_RETENTION_MS = 8 * DAY_MS  # longer than the event detector looks back
TRIM_STEP_MS = 10_000
NO_NUMBER = 1 << 64
_NUMBER = re.compile(rb"[0-9a-f]{16}")  # other programs may have keys of the same prefix


class RetentionJob:
    """Raises the floor, seals and drops segments, and trims article streams, in short steps."""

    def __init__(self, store: Store, segments: Segments, retention: Retention) -> None:
        self._store = store
        self._segments = segments
        self._retention = retention
        self.segments_dropped = 0

    async def floors(self, space: str, trusted_ms: int) -> tuple[int, int]:
        """The floor, and the one to which ``expire`` would raise it; equal while that is less than a step."""
        old, new = (await self._segments.refresh(space)).floor, self._retention.floor_at(trusted_ms)
        step_ms = (self._retention.period_ms or 0) // FLOOR_STEPS_PER_RETENTION
        return old, new if arrival_ms_of(new) - arrival_ms_of(old) > step_ms else old

    async def expire(self, space: str, trusted_ms: int) -> None:
        """Raise the floor of a space, and seal the segment that spans the period."""
        stack, period_ms = await self._segments.refresh(space), self._retention.period_ms
        if period_ms is None:
            return
        old, floor = await self.floors(space, trusted_ms)
        if floor != old:
            await self._log_expiry(space, arrival_ms_of(old), arrival_ms_of(floor), period_ms)
            await self._segments.advance_head(space, floor=floor)
        numbers, _ = decode_samples((await self._store.read([stack.writable_tag + keys.SAMPLES]))[0])
        if len(numbers) and trusted_ms - arrival_ms_of(int(numbers.min())) > period_ms:
            await self._segments.seal(space, stack.last, trusted_ms)

    async def _log_expiry(self, space: str, since_ms: int, at_ms: int, period_ms: int) -> None:
        """A warning if articles of over a day expire, else a line a day."""
        oldest_ms = since_ms
        if at_ms - since_ms > DAY_MS:  # seldom; counting reads a sample of the index
            found = await count_articles(self._store, space, StoredSpace())
            oldest_ms = max(since_ms, found.oldest_ms or at_ms)
        if at_ms - oldest_ms > DAY_MS:
            span = f"from {format_minute(oldest_ms)} to {format_minute(at_ms)}"
            log.warning("%s: what arrived %s expires; retention_days is %g", space, span, period_ms / DAY_MS)
        elif since_ms and at_ms // DAY_MS > since_ms // DAY_MS:
            log.info("%s: what arrived before %s has expired", space, format_minute(at_ms))

    async def steps(self, space: str, trusted_ms: int) -> AsyncIterator[None]:
        """Drop what has expired in one space; each step takes the store a few milliseconds."""
        async for _ in self._drop_expired_segments(space):
            yield
        for tag in (await self._segments.stack(space)).tags:
            async for _ in self._trim_stream(tag, trusted_ms):
                yield

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
                await self._store.delete([key for key in found if key != tag + keys.SEALED])
                yield
            await self._segments.advance_head(space, cleared_below=number + 1)

    async def _is_expired(self, space: str, number: int, floor: int) -> bool:
        sealed = (await self._store.read([keys.tag(space, number) + keys.SEALED]))[0]
        return arrival_ms_of(floor) > int(sealed or NO_NUMBER) + self._retention.shared_entries_grace_ms

    async def _trim_stream(self, tag: bytes, trusted_ms: int) -> AsyncIterator[None]:
        stream, oldest_kept_ms = tag + keys.STREAM, trusted_ms - STREAM_RETENTION_MS
        while True:
            (entries,) = await self._store.stream_read([stream], [b""], 1)
            at_ms = parse_position(entries[0][0])[0] if entries else oldest_kept_ms
            if at_ms >= oldest_kept_ms:
                return
            await self._store.stream_trim(stream, b"%d-0" % min(oldest_kept_ms, at_ms + TRIM_STEP_MS))
            yield


class ExpirySweep:
    """Sweeps the store of an index; ``expiring_prefixes``: retention of further keys in ms by prefix."""

    def __init__(self, index: Index, expiring_prefixes: Mapping[bytes, int] | None = None) -> None:
        self._index = index
        self._store = index.store
        self._expiring_prefixes = dict(expiring_prefixes or {})
        self._last_sweep_ms: int | None = None

    async def steps(self, trusted_ms: int) -> AsyncIterator[None]:
        """Sweep once if it is due; each step takes the store a few milliseconds."""
        last_ms, interval_ms = self._last_sweep_ms, self._index.retention.shared_entries_grace_ms
        if last_ms is not None and trusted_ms - last_ms < interval_ms:
            return
        cutoffs = self._cutoffs(trusted_ms)
        async for found in self._store.scan_batches(b""):
            limits = [(key, limit) for key in found for p, limit in cutoffs.items() if key.startswith(p)]
            await self._store.delete([key for key, limit in limits if _number_of(key) < limit])
            yield
            if cutoff := cutoffs.get(keys.RECORD_PREFIX, 0):
                await self._sweep_segments([k for k in found if keys.kind_of(k) in (b"i", b"p")], cutoff)
                yield
        self._last_sweep_ms = trusted_ms

    def _cutoffs(self, trusted_ms: int) -> dict[bytes, int]:
        """By prefix, the article number below which keys are deleted."""
        retention = self._index.retention
        ages = dict(self._expiring_prefixes)
        if retention.period_ms is not None:
            age_ms = retention.period_ms + 2 * retention.shared_entries_grace_ms
            ages |= {keys.RECORD_PREFIX: age_ms, keys.TEXT_PREFIX: age_ms}
        return {prefix: article_number_at(max(0, trusted_ms - age_ms)) for prefix, age_ms in ages.items()}

    async def _sweep_segments(self, found: Sequence[bytes], cutoff: int) -> None:
        frozen = [key for key in found if not await self._is_writable(key)]
        await self._store.delete(
            [k for k in frozen if keys.kind_of(k) == b"p" and int.from_bytes(k[-8:], "big") < cutoff]
        )
        bindings = [key for key in frozen if keys.kind_of(key) == b"i"]
        if not bindings:
            return
        expired = [
            Transaction((ValueEquals(key, value),), (Delete(key),))
            for key, value in zip(bindings, await self._store.read(bindings), strict=True)
            if value is not None and value != keys.ABSENT and _number_bound(value) < cutoff
        ]
        await self._store.commit_many(expired)

    async def _is_writable(self, key: bytes) -> bool:
        space, segments = keys.space_of(key), self._index.segments
        return space in self._index.all_spaces and keys.segment_of(key) == (await segments.stack(space)).last


def _number_of(key: bytes) -> int:
    _, colon, number = key.rpartition(b":")
    return int(number, 16) if colon and _NUMBER.fullmatch(number) else NO_NUMBER


def _number_bound(value: bytes) -> int:
    """``NO_NUMBER`` if it is damaged, which audits report."""
    try:
        return decode_binding(value).number
    except StoreUnavailable:
        return NO_NUMBER


class SegmentMaintenance:
    """Runs the jobs ``retention``, ``compactor``, ``rehash`` and ``sweep``."""

    def __init__(self, index: Index, expiring_prefixes: Mapping[bytes, int] | None = None) -> None:
        self._spaces = index.all_spaces
        self.retention = RetentionJob(index.store, index.segments, index.retention)
        self.rehash = SketchRehash(index.store, index.segments)
        self.compactor = Compactor(index)
        self.sweep = ExpirySweep(index, expiring_prefixes)

    async def steps(self, trusted_ms: int) -> AsyncIterator[None]:
        """All work that is due at this trusted time (``clock_guard.py``): of the spaces, beside the sweep."""
        await self.expire(trusted_ms)
        jobs = [self._steps_of_spaces(trusted_ms), self.sweep.steps(trusted_ms)]
        while jobs:
            for job in tuple(jobs):
                if await anext(job, True):  # at its end
                    jobs.remove(job)
                else:
                    yield

    async def expire(self, trusted_ms: int) -> None:
        """Raise the floors of all spaces, also while other work takes hours."""
        for space in self._spaces:
            await self.retention.expire(space, trusted_ms)

    async def _steps_of_spaces(self, trusted_ms: int) -> AsyncIterator[None]:
        for space in self._spaces:
            jobs = [job.steps(space, trusted_ms) for job in (self.retention, self.compactor)]
            for steps in (*jobs, self.rehash.steps(space)):
                async for _ in steps:
                    yield
