"""What has outlived its retention goes, and frozen segments are made compact: a little at a time.

``Upkeep.chunks`` is all that there is to do in a space just now, as a generator: each step is a few
milliseconds of the store's time, and whoever drives it may pause or stop between any two. What it did is
in the store, so another process goes on there. Two at once do no harm, only double work.

* The **floor** rises with the clock and is kept in the head: what was forgotten once stays forgotten.
* A segment that spans a whole period of retention is **sealed**, full or not, so that it can go as a whole.
* A frozen segment that lies below the floor is **dropped**: first from the head, then its keys. Its
  ``closed`` stays, for a reader of the stream that has been away for longer.
* The streams of articles keep ``STREAM_MS``, more than the event detector looks back.
* **Compaction** goes over every bucket of the frozen segments, once after a seal and then once a day.
  Entries below the floor and of dead versions go, and with the rewriting the room that APPEND left. It
  changes nothing that a look-up would have used, so it needs no lock: it writes a bucket only while it has
  the length that was read, and a frozen bucket only shrinks, so equal length is equal content. When all
  frozen segments are done, the marks of versions that died while they were written to are of no more use:
  no entry names those versions any longer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec
import numpy as np
import numpy.typing as npt

from aggregator.domain import arrival_ms_of
from aggregator.index import keys
from aggregator.index.base import IndexBase
from aggregator.index.codec.postings import (
    NUMBER_BYTES,
    SKETCH_REMAINDER_BYTES,
    TERM_REMAINDER_BYTES,
    compact_bucket,
)
from aggregator.index.segment_sampling import decode_samples
from aggregator.index.snapshot import SegmentStack
from aggregator.store.base import Delete, LengthEquals, Put, Transaction
from aggregator.store.decoding import decode_value
from aggregator.time_units import DAY_MS

KEYS_PER_CHUNK = 256
CHUNKS_PER_SAVE = 8  # chunks
STREAM_RETENTION_MS = 8 * DAY_MS
TRIM_STEP_MS = 10_000
FLOOR_STEPS_PER_RETENTION = 1000  # per period of retention

ArticleNumbers = npt.NDArray[np.uint64]


class CompactionCursor(msgspec.Struct, frozen=True, array_like=True):
    """How far compaction is: the segment and key it goes on with, and what the last whole round covered."""

    running: bool = False
    segment: int = 0
    position: int = 0
    finished_ms: int = 0
    covered_segment: int = -1


_cursor_decoder = msgspec.msgpack.Decoder(CompactionCursor)


@dataclass(slots=True)
class CompactionCounters:
    """What was done since start: for metrics."""

    buckets_rewritten: int = 0
    entries_removed: int = 0
    segments_dropped: int = 0


class Compactor:
    """Upkeep of an index; safe in any number of processes, worthwhile in one."""

    def __init__(self, index: IndexBase, *, keys_per_chunk: int = KEYS_PER_CHUNK) -> None:
        self._index = index
        self._keys_per_chunk = keys_per_chunk
        self._store = index.store
        self._segments = index.segments
        self.counters = CompactionCounters()

    async def run(self, now_ms: int) -> None:
        """All that there is to do in all spaces, to the end."""
        for space in self._index.all_spaces:
            async for _ in self.steps(space, now_ms):
                pass

    async def steps(self, space: str, now_ms: int) -> AsyncIterator[None]:
        """All that there is to do in one space, in short steps."""
        layers = await self._segments.refresh(space)
        yield
        await self._raise_floor(layers, now_ms)
        await self._seal_if_spans_retention(layers, now_ms)
        async for _ in self._drop_expired_segments(space):
            yield
        for tag in (await self._segments.stack(space)).tags:
            async for _ in self._trim_stream(tag, now_ms):
                yield
        async for _ in self._compact_frozen_segments(space, now_ms):
            yield

    # -- retention -----------------------------------------------------------------------------

    async def _raise_floor(self, layers: SegmentStack, now_ms: int) -> None:
        """In steps: every look-up knows the floor of this moment anyway."""
        retention_ms = self._index.retention_ms
        if retention_ms is None:
            return
        floor = self._index.floor(layers, now_ms)
        if arrival_ms_of(floor) - arrival_ms_of(layers.floor) > retention_ms // FLOOR_STEPS_PER_RETENTION:
            await self._segments.advance_head(layers.space, floor=floor)

    async def _seal_if_spans_retention(self, layers: SegmentStack, now_ms: int) -> None:
        if self._index.retention_ms is None:
            return
        numbers, _ = decode_samples((await self._store.read([keys.sampled_numbers(layers.writable_tag)]))[0])
        if len(numbers) and now_ms - arrival_ms_of(int(numbers.min())) > self._index.retention_ms:
            await self._segments.seal(layers.space, layers.last, now_ms)

    async def _drop_expired_segments(self, space: str) -> AsyncIterator[None]:
        head = await self._segments.head(space)
        while head.first < head.last and await self._is_expired(space, head.first, head.floor):
            if not await self._segments.advance_head(space, first=head.first + 1):
                return
            self.counters.segments_dropped += 1
            head = await self._segments.head(space)
            yield
        for number in range(head.cleared_below, head.first):
            tag = keys.tag(space, number)
            async for found in self._store.scan_batches(tag):
                await self._store.delete([key for key in found if key != keys.sealed(tag)])
                yield
            await self._segments.advance_head(space, cleared_below=number + 1)

    async def _is_expired(self, space: str, number: int, floor: int) -> bool:
        """Whether it was sealed so long before the floor that no article in it can be above."""
        closed = (await self._store.read([keys.sealed(keys.tag(space, number))]))[0]
        return closed is not None and arrival_ms_of(floor) > int(closed) + self._index.shared_entries_grace_ms

    async def _trim_stream(self, tag: bytes, now_ms: int) -> AsyncIterator[None]:
        stream, keep_ms = keys.stream(tag), now_ms - STREAM_RETENTION_MS
        while True:
            (oldest,) = await self._store.stream_read([stream], [b""], 1)
            at_ms = int(oldest[0][0].split(b"-")[0]) if oldest else keep_ms
            if at_ms >= keep_ms:
                return
            await self._store.stream_trim(stream, b"%d-0" % min(keep_ms, at_ms + TRIM_STEP_MS))
            yield

    # -- compaction ----------------------------------------------------------------------------

    async def _compact_frozen_segments(self, space: str, now_ms: int) -> AsyncIterator[None]:
        layers = await self._segments.stack(space)
        state = await self._load_cursor(space)
        if not state.running:
            if not self._is_due(layers, state, now_ms):
                return
            state = msgspec.structs.replace(state, running=True, segment=layers.first, position=0)
            await self._save_cursor(space, state)
        graves = [await self._read_dead_numbers(tag) for tag in layers.tags]
        dead = np.sort(np.concatenate(graves))  # np.unique would load numpy.ma: 1.3 MB, .02 s
        yield
        for number in range(max(state.segment, layers.first), layers.last):
            start = state.position if number == state.segment else 0
            async for cursor in self._compact_segment(layers, number, start, dead):
                if cursor // self._keys_per_chunk % CHUNKS_PER_SAVE == 0:
                    moved = msgspec.structs.replace(state, segment=number, position=cursor)
                    await self._save_cursor(space, moved)
                yield
        for tag, numbers in zip(layers.tags[:-1], graves, strict=False):
            async for _ in self._delete_dead_versions(tag, numbers.tolist()):
                yield
        await self._save_cursor(space, CompactionCursor(finished_ms=now_ms, covered_segment=layers.last - 1))

    def _is_due(self, layers: SegmentStack, state: CompactionCursor, now_ms: int) -> bool:
        """After every seal, and once a day while anything is frozen."""
        fresh = layers.last - 1 > state.covered_segment
        return not layers.has_single_segment and (
            fresh or now_ms - state.finished_ms >= self._index.shared_entries_grace_ms
        )

    async def _compact_segment(
        self, layers: SegmentStack, number: int, position: int, dead: ArticleNumbers
    ) -> AsyncIterator[int]:
        """Rewrite the buckets of one segment from a position on; gives the position after each chunk."""
        tag = keys.tag(layers.space, number)
        cells = islice(self._bucket_keys(layers.space), position, None)
        while chunk := [tag + cell for cell in islice(cells, self._keys_per_chunk)]:
            await self._compact_buckets(chunk, layers.floor, dead)
            position += len(chunk)
            yield position

    def _bucket_keys(self, space: str) -> Iterator[bytes]:
        return keys.compaction_keys(self._index.plan(space).widths)

    async def _compact_buckets(self, bucket_keys: Sequence[bytes], floor: int, dead: ArticleNumbers) -> None:
        values = await self._store.read(bucket_keys)
        plan = self._index.plan(keys.space_of(bucket_keys[0]))
        rests = {b"b": plan.remainder_bytes, b"s": SKETCH_REMAINDER_BYTES, b"t": TERM_REMAINDER_BYTES}
        changes = []
        for key, value in zip(bucket_keys, values, strict=True):
            if value is None:
                continue
            rest_bytes = rests[key[key.index(b"}") + 1 :][:1]]
            left = compact_bucket(value, rest_bytes, floor, dead)
            changes.append(
                Transaction((LengthEquals(key, len(value)),), (Put(key, left) if left else Delete(key),))
            )
            self.counters.buckets_rewritten += 1
            self.counters.entries_removed += (len(value) - len(left)) // (rest_bytes + NUMBER_BYTES)
        if changes:
            await self._store.commit_many(changes)

    async def _delete_dead_versions(self, tag: bytes, numbers: Sequence[int]) -> AsyncIterator[None]:
        """No entry names these versions any more: what a crash left of their records goes, then their marks."""
        for i in range(0, len(numbers), self._keys_per_chunk):
            some = numbers[i : i + self._keys_per_chunk]
            await self._index.delete_records(dict.fromkeys(some, keys.space_of(tag)))
            await self._store.delete([keys.state(tag, n) for n in some])
            yield
        if numbers:
            await self._store.delete([keys.dead_numbers(tag)])

    async def _read_dead_numbers(self, tag: bytes) -> ArticleNumbers:
        raw = (await self._store.read([keys.dead_numbers(tag)]))[0]
        return np.frombuffer(raw or b"", "<u8").astype(np.uint64)

    async def _load_cursor(self, space: str) -> CompactionCursor:
        raw = (await self._store.read([keys.compaction_cursor(space)]))[0]
        return (
            CompactionCursor() if raw is None else decode_value(_cursor_decoder, raw, "The round of upkeep")
        )

    async def _save_cursor(self, space: str, state: CompactionCursor) -> None:
        await self._store.put([Put(keys.compaction_cursor(space), msgspec.msgpack.encode(state))])
