"""Incremental rehash of sketch buckets: the buckets of a segment double in number while it is used.

When and how: docs/design/segments.md, "Sketch buckets". One commit moves a chunk: it checks that nothing has
changed since it was read, writes what was in the old buckets before what is in the new ones, which is newer,
and deletes the old ones. A chunk may be moved again, or by two processes, so no position is stored. It
advances the version of the segment: otherwise an insert that trims a bucket would drop what was moved there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from aggregator.index import keys
from aggregator.index.codec.postings import SKETCH_POSTING_BYTES, split_sketch_bucket
from aggregator.index.segments import Segments
from aggregator.index.snapshot import SketchWidth, unchanged_checks
from aggregator.store.base import AdvanceVersion, Check, Delete, Put, Store, Transaction, ValueEquals, Write

# Mean entries of a bucket. A look-up reads up to 16 buckets, mostly entries of other keys; a bucket takes 80
# bytes of memory, so a smaller limit costs more of it (docs/decisions/0045-sketch-bucket-width.md).
SPLIT_ENTRIES = 4
SAMPLED_BUCKETS = 1024
BUCKETS_PER_CHUNK = 64  # 3 ms of the server


class SketchRehash:
    """Widens the sketch buckets of all spaces above ``split_entries`` mean entries per bucket."""

    def __init__(
        self,
        store: Store,
        segments: Segments,
        *,
        split_entries: float = SPLIT_ENTRIES,
        buckets_per_chunk: int = BUCKETS_PER_CHUNK,
    ) -> None:
        self._store = store
        self._segments = segments
        self._split_entries = split_entries
        self._buckets_per_chunk = buckets_per_chunk

    async def steps(self, space: str) -> AsyncIterator[None]:
        """Begin a rehash of the writable segment if it is due; finish all that have begun."""
        stack = (await self._segments.read({space: ()})).stacks[space]
        tag, width = stack.writable_tag, stack.sketch_widths[-1]
        if not width.is_rehashing:
            if width.bits < keys.MAX_SKETCH_BUCKET_BITS and await self._is_dense(tag, width):
                is_open = ValueEquals(tag + keys.SEALED, None)
                await self._change_width(tag, width, SketchWidth(width.bits + 1, width.bits), is_open)
            yield
            stack = (await self._segments.read({space: ()})).stacks[space]
        for tag, width in zip(stack.tags, stack.sketch_widths, strict=True):
            if width.former_bits is None:
                continue
            buckets = self._bucket_values(width.former_bits)
            for start in range(0, len(buckets), self._buckets_per_chunk):
                chunk = buckets[start : start + self._buckets_per_chunk]
                while not await self._move(tag, width, chunk):
                    yield
                yield
            await self._change_width(tag, width, SketchWidth(width.bits))

    def _bucket_values(self, bits: int) -> Sequence[int]:
        return range(1 << bits)

    async def _is_dense(self, tag: bytes, width: SketchWidth) -> bool:
        values = self._bucket_values(width.bits)
        sampled = values[:: max(1, len(values) // SAMPLED_BUCKETS - 1)]  # an odd step: all low bits occur
        buckets = await self._store.read(keys.sketch_buckets(tag, sampled, width.bits))
        entries = sum(len(bucket) for bucket in buckets if bucket) / SKETCH_POSTING_BYTES
        return entries > self._split_entries * len(sampled)

    async def _change_width(self, tag: bytes, width: SketchWidth, to: SketchWidth, *checks: Check) -> None:
        key, value = tag + keys.WIDTH, to.encode() or b""
        version = AdvanceVersion(tag + keys.VERSION, b"width" + value)
        await self._store.commit(
            Transaction((ValueEquals(key, width.encode()), *checks), (Put(key, value), version))
        )

    async def _move(self, tag: bytes, width: SketchWidth, values: Sequence[int]) -> bool:
        """False if one of the buckets changed meanwhile."""
        former_bits = width.bits - 1
        upper = [value | 1 << former_bits for value in values]
        old_keys = keys.sketch_buckets(tag, values, former_bits)
        new_keys = keys.sketch_buckets(tag, [*values, *upper], width.bits)
        read = await self._store.read([*old_keys, *new_keys])
        old, new = read[: len(old_keys)], read[len(old_keys) :]
        filled = [i for i, value in enumerate(old) if value]
        if not filled:
            return True
        moved: dict[int, bytes] = {}
        for i in filled:
            moved[i], moved[i + len(values)] = split_sketch_bucket(old[i] or b"", former_bits)
        targets = [i for i, entries in moved.items() if entries]
        checks: list[Check] = [
            ValueEquals(tag + keys.WIDTH, width.encode()),
            *unchanged_checks([old_keys[i] for i in filled], [old[i] for i in filled]),
            *unchanged_checks([new_keys[i] for i in targets], [new[i] for i in targets]),
        ]
        writes: list[Write] = [Put(new_keys[i], moved[i] + (new[i] or b"")) for i in targets]
        writes += [Delete(old_keys[i]) for i in filled]
        writes.append(AdvanceVersion(tag + keys.VERSION, b"move%d>%d" % (values[0], width.bits)))
        return not await self._store.commit(Transaction(tuple(checks), tuple(writes)))
