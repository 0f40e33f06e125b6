"""Compaction of frozen segments: rewrites buckets without expired and dead entries.

After each seal, and then once a day, every bucket of the frozen segments is rewritten without the entries
below the floor and those of dead versions; rewriting also frees the spare memory that APPEND reserved.

It needs no lock, since it changes nothing that a lookup would use: a bucket is written only while it has the
length that was read, and a frozen bucket only shrinks, so equal length means equal content. After all frozen
segments are done, no entry refers to the versions that died in them, and their DEAD marks are deleted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import islice

import msgspec
import numpy as np

from aggregator.index import Index, keys
from aggregator.index.blocks import PLAN
from aggregator.index.codec.postings import NUMBER_BYTES, REMAINDER_SIZES, ArticleNumbers, compact_bucket
from aggregator.index.snapshot import SegmentStack
from aggregator.store.base import Delete, LengthsUnchanged, Put, Transaction
from aggregator.store.optimistic import ValueFormat

KEYS_PER_CHUNK = 256
CHUNKS_PER_SAVE = 8


class CompactionCursor(msgspec.Struct, frozen=True, array_like=True):
    """Position of compaction: segment and bucket to continue with, and what the last complete run covered."""

    running: bool = False
    segment: int = 0
    position: int = 0
    finished_ms: int = 0
    covered_segment: int = -1


_CURSOR = ValueFormat(msgspec.msgpack.Decoder(CompactionCursor), "The compaction position", CompactionCursor)


class Compactor:
    """Compacts the frozen segments of an index; safe in any number of processes, useful in one."""

    def __init__(self, index: Index, *, keys_per_chunk: int = KEYS_PER_CHUNK) -> None:
        self._index = index
        self._store = index.store
        self._keys_per_chunk = keys_per_chunk
        self.buckets_rewritten = self.entries_removed = 0  # since the start, for metrics

    async def steps(self, space: str, now_ms: int) -> AsyncIterator[None]:
        """Compact one space if it is due; each step takes the store a few milliseconds."""
        stack = (await self._index.segments.read({space: ()})).stacks[space]
        if any(width.is_rehashing for width in stack.sketch_widths[:-1]):
            return  # a move makes frozen buckets grow; once it has ended none begins (``sketch_rehash.py``)
        cursor = _CURSOR.decode((await self._store.read([keys.compaction_cursor(space)]))[0])
        if not cursor.running:
            if not self._is_due(stack, cursor, now_ms):
                return
            cursor = msgspec.structs.replace(cursor, running=True, segment=stack.first, position=0)
            await self._save_cursor(space, cursor)
        marked = await self._store.read([tag + keys.DEAD_NUMBERS for tag in stack.tags])
        dead_by_segment = [np.frombuffer(raw or b"", "<u8").astype(np.uint64) for raw in marked]
        dead = np.sort(np.concatenate(dead_by_segment))  # np.unique would import numpy.ma: 1.3 MB, 0.02 s
        yield
        for number in range(max(cursor.segment, stack.first), stack.last):
            start = cursor.position if number == cursor.segment else 0
            async for position in self._compact_segment(stack, number, start, dead):
                if position // self._keys_per_chunk % CHUNKS_PER_SAVE == 0:
                    moved = msgspec.structs.replace(cursor, segment=number, position=position)
                    await self._save_cursor(space, moved)
                yield
        for tag, numbers in zip(stack.tags[:-1], dead_by_segment, strict=False):
            async for _ in self._delete_dead_versions(tag, numbers.tolist()):
                yield
        await self._save_cursor(space, CompactionCursor(finished_ms=now_ms, covered_segment=stack.last - 1))

    def _is_due(self, stack: SegmentStack, cursor: CompactionCursor, now_ms: int) -> bool:
        """After every seal, and once a day while there are frozen segments."""
        if stack.first == stack.last:
            return False
        is_newly_sealed = stack.last - 1 > cursor.covered_segment
        return is_newly_sealed or now_ms - cursor.finished_ms >= self._index.retention.shared_entries_grace_ms

    async def _compact_segment(
        self, stack: SegmentStack, number: int, position: int, dead: ArticleNumbers
    ) -> AsyncIterator[int]:
        """Yields the position after each chunk."""
        tag = keys.tag(stack.space, number)
        width = stack.sketch_widths[number - stack.first]
        buckets = islice(self._bucket_keys(width.bits), position, None)
        while chunk := [tag + key for key in islice(buckets, self._keys_per_chunk)]:
            await self._compact_buckets(chunk, stack.floor, dead)
            position += len(chunk)
            yield position

    def _bucket_keys(self, sketch_bits: int) -> Iterator[bytes]:
        return keys.all_buckets(PLAN.widths, sketch_bits)

    async def _compact_buckets(self, bucket_keys: Sequence[bytes], floor: int, dead: ArticleNumbers) -> None:
        values = await self._store.read(bucket_keys)
        changes = []
        for key, value in zip(bucket_keys, values, strict=True):
            if value is None:
                continue
            remainder_bytes = REMAINDER_SIZES[keys.kind_of(key)]
            left = compact_bucket(value, remainder_bytes, floor, dead)
            changes.append(
                Transaction((LengthsUnchanged((key,), (value,)),), (Put(key, left) if left else Delete(key),))
            )
            self.buckets_rewritten += 1
            self.entries_removed += (len(value) - len(left)) // (remainder_bytes + NUMBER_BYTES)
        if changes:
            await self._store.commit_many(changes)

    async def _delete_dead_versions(self, tag: bytes, numbers: Sequence[int]) -> AsyncIterator[None]:
        """Records first, then the DEAD marks: no entry refers to these versions."""
        for i in range(0, len(numbers), self._keys_per_chunk):
            chunk = numbers[i : i + self._keys_per_chunk]
            await self._index.records.delete(dict.fromkeys(chunk, keys.space_of(tag)))
            await self._store.delete([tag + keys.state(n) for n in chunk])
            yield
        if numbers:
            await self._store.delete([tag + keys.DEAD_NUMBERS])

    async def _save_cursor(self, space: str, cursor: CompactionCursor) -> None:
        await self._store.put([Put(keys.compaction_cursor(space), _CURSOR.encode(cursor))])
