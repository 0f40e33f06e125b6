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
from aggregator.index.base import DAY_MS, IndexBase
from aggregator.index.codec.postings import BAND_REST_BYTES, NUMBER_BYTES, TOPIC_REST_BYTES, kept
from aggregator.index.segment_sampling import tally
from aggregator.index.snapshot import Layers
from aggregator.store.base import Delete, Length, Put, Transaction
from aggregator.store.decoding import value_of

CHUNK_KEYS = 256
SAVE_EVERY = 8  # chunks
STREAM_MS = 8 * DAY_MS
TRIM_MS = 10_000
FLOOR_STEPS = 1000  # per period of retention

Numbers = npt.NDArray[np.uint64]


class Round(msgspec.Struct, frozen=True, array_like=True):
    """How far compaction is: the segment and key it goes on with, and what the last whole round covered."""

    running: bool = False
    segment: int = 0
    cursor: int = 0
    finished_ms: int = 0
    covered: int = -1


_round = msgspec.msgpack.Decoder(Round)


@dataclass(slots=True)
class Tally:
    """What was done since start: for metrics."""

    buckets: int = 0
    entries_removed: int = 0
    segments_dropped: int = 0


class Upkeep:
    """Upkeep of an index; safe in any number of processes, worthwhile in one."""

    def __init__(self, index: IndexBase, *, chunk_keys: int = CHUNK_KEYS) -> None:
        self._index = index
        self._chunk_keys = chunk_keys
        self._store = index.store
        self._segments = index.segments
        self.done = Tally()

    async def run(self, now_ms: int) -> None:
        """All that there is to do in all spaces, to the end."""
        for space in self._index.journals:
            async for _ in self.chunks(space, now_ms):
                pass

    async def chunks(self, space: str, now_ms: int) -> AsyncIterator[None]:
        """All that there is to do in one space, in short steps."""
        layers = await self._segments.refresh(space)
        yield
        await self._raise_floor(layers, now_ms)
        await self._seal_if_long(layers, now_ms)
        async for _ in self._drop(space):
            yield
        for tag in (await self._segments.layers(space)).tags:
            async for _ in self._trim(tag, now_ms):
                yield
        async for _ in self._compact(space, now_ms):
            yield

    # -- retention -----------------------------------------------------------------------------

    async def _raise_floor(self, layers: Layers, now_ms: int) -> None:
        """In steps: every look-up knows the floor of this moment anyway."""
        retention_ms = self._index.retention_ms
        if retention_ms is None:
            return
        floor = self._index.floor(layers, now_ms)
        if arrival_ms_of(floor) - arrival_ms_of(layers.floor) > retention_ms // FLOOR_STEPS:
            await self._segments.change_head(layers.space, floor=floor)

    async def _seal_if_long(self, layers: Layers, now_ms: int) -> None:
        if self._index.retention_ms is None:
            return
        numbers, _ = tally((await self._store.read([keys.marks(layers.top)]))[0])
        if len(numbers) and now_ms - arrival_ms_of(int(numbers.min())) > self._index.retention_ms:
            await self._segments.seal(layers.space, layers.last, now_ms)

    async def _drop(self, space: str) -> AsyncIterator[None]:
        head = await self._segments.head(space)
        while head.first < head.last and await self._is_forgotten(space, head.first, head.floor):
            if not await self._segments.change_head(space, first=head.first + 1):
                return
            self.done.segments_dropped += 1
            head = await self._segments.head(space)
            yield
        for number in range(head.cleared, head.first):
            tag = keys.tag(space, number)
            async for found in self._store.scan_steps(tag):
                await self._store.delete([key for key in found if key != keys.closed(tag)])
                yield
            await self._segments.change_head(space, cleared=number + 1)

    async def _is_forgotten(self, space: str, number: int, floor: int) -> bool:
        """Whether it was sealed so long before the floor that no article in it can be above."""
        closed = (await self._store.read([keys.closed(keys.tag(space, number))]))[0]
        return closed is not None and arrival_ms_of(floor) > int(closed) + self._index.lean_ms

    async def _trim(self, tag: bytes, now_ms: int) -> AsyncIterator[None]:
        stream, keep_ms = keys.stream(tag), now_ms - STREAM_MS
        while True:
            (oldest,) = await self._store.stream_read([stream], [b""], 1)
            at_ms = int(oldest[0][0].split(b"-")[0]) if oldest else keep_ms
            if at_ms >= keep_ms:
                return
            await self._store.stream_trim(stream, b"%d-0" % min(keep_ms, at_ms + TRIM_MS))
            yield

    # -- compaction ----------------------------------------------------------------------------

    async def _compact(self, space: str, now_ms: int) -> AsyncIterator[None]:
        layers = await self._segments.layers(space)
        state = await self._load(space)
        if not state.running:
            if not self._is_due(layers, state, now_ms):
                return
            state = msgspec.structs.replace(state, running=True, segment=layers.first, cursor=0)
            await self._save(space, state)
        graves = [await self._graves(tag) for tag in layers.tags]
        dead = np.sort(np.concatenate(graves))  # np.unique would load numpy.ma: 1.3 MB, .02 s
        yield
        for number in range(max(state.segment, layers.first), layers.last):
            start = state.cursor if number == state.segment else 0
            async for cursor in self._sweep(layers, number, start, dead):
                if cursor // self._chunk_keys % SAVE_EVERY == 0:
                    moved = msgspec.structs.replace(state, segment=number, cursor=cursor)
                    await self._save(space, moved)
                yield
        for tag, numbers in zip(layers.tags[:-1], graves, strict=False):
            async for _ in self._bury(tag, numbers.tolist()):
                yield
        await self._save(space, Round(finished_ms=now_ms, covered=layers.last - 1))

    def _is_due(self, layers: Layers, state: Round, now_ms: int) -> bool:
        """After every seal, and once a day while anything is frozen."""
        fresh = layers.last - 1 > state.covered
        return not layers.alone and (fresh or now_ms - state.finished_ms >= self._index.lean_ms)

    async def _sweep(self, layers: Layers, number: int, cursor: int, dead: Numbers) -> AsyncIterator[int]:
        """Rewrite the buckets of one segment from a position on; gives the position after each chunk."""
        tag = keys.tag(layers.space, number)
        cells = islice(self._cells(layers.space), cursor, None)
        while chunk := [tag + cell for cell in islice(cells, self._chunk_keys)]:
            await self._rewrite(chunk, layers.floor, dead)
            cursor += len(chunk)
            yield cursor

    def _cells(self, space: str) -> Iterator[bytes]:
        return keys.cells(self._index.plan(space).widths)

    async def _rewrite(self, chunk: Sequence[bytes], floor: int, dead: Numbers) -> None:
        values = await self._store.read(chunk)
        plan = self._index.plan(keys.space_of(chunk[0]))
        rests = {b"b": plan.rest_bytes, b"s": BAND_REST_BYTES, b"t": TOPIC_REST_BYTES}
        changes = []
        for key, value in zip(chunk, values, strict=True):
            if value is None:
                continue
            rest_bytes = rests[key[key.index(b"}") + 1 :][:1]]
            left = kept(value, rest_bytes, floor, dead)
            changes.append(
                Transaction((Length(key, len(value)),), (Put(key, left) if left else Delete(key),))
            )
            self.done.buckets += 1
            self.done.entries_removed += (len(value) - len(left)) // (rest_bytes + NUMBER_BYTES)
        if changes:
            await self._store.commit_many(changes)

    async def _bury(self, tag: bytes, numbers: Sequence[int]) -> AsyncIterator[None]:
        """No entry names these versions any more: what a crash left of their records goes, then their marks."""
        for i in range(0, len(numbers), self._chunk_keys):
            some = numbers[i : i + self._chunk_keys]
            await self._index.forget_records(dict.fromkeys(some, keys.space_of(tag)))
            await self._store.delete([keys.state(tag, n) for n in some])
            yield
        if numbers:
            await self._store.delete([keys.graves(tag)])

    async def _graves(self, tag: bytes) -> Numbers:
        raw = (await self._store.read([keys.graves(tag)]))[0]
        return np.frombuffer(raw or b"", "<u8").astype(np.uint64)

    async def _load(self, space: str) -> Round:
        raw = (await self._store.read([keys.upkeep(space)]))[0]
        return Round() if raw is None else value_of(_round, raw, "The round of upkeep")

    async def _save(self, space: str, state: Round) -> None:
        await self._store.put([Put(keys.upkeep(space), msgspec.msgpack.encode(state))])
