"""Segments: which ones a space has, which one is writable, and when it is full.

    open --seal: closed=now, if absent--> frozen --retention, everything below the floor--> dropped

A segment is under one tag, so on one node of a cluster. The **head** of a space, a separate key, names the
live segments and the floor, the lowest article number that is kept. It is only a hint: every read of a
segment includes its ``closed`` key, so an outdated head costs one more read (docs/design/segments.md).

They are counted by a sample: an article whose number ends in k random zero bits appends it with k there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from aggregator.domain import arrival_ms_of, article_number_at
from aggregator.errors import StoreUnavailable
from aggregator.index import keys
from aggregator.index.blocks import PLAN
from aggregator.index.snapshot import INITIAL_WIDTH, SegmentStack, SketchWidth, Snapshot, decode_sketch_width
from aggregator.store.base import AdvanceVersion, Put, Store, Transaction, ValueEquals
from aggregator.store.decoding import PLAIN
from aggregator.store.optimistic import StoredValue, ValueFormat
from aggregator.time_units import DAY_MS, HOUR_MS

MIN_SAMPLES_PER_SEGMENT: Final = 16384  # of a full segment
EXPONENT_BITS: Final = 5  # low bits of a sample that hold k
NO_SAMPLING: Final = (1 << EXPONENT_BITS) - 1


def sampling_exponent_for(max_articles: int) -> int:
    """The k that gives a segment of ``max_articles`` at least ``MIN_SAMPLES_PER_SEGMENT`` samples."""
    return max(0, (max_articles // MIN_SAMPLES_PER_SEGMENT).bit_length() - 1)


def sample_entry(number: int, sampling_exponent: int) -> bytes:
    """The sample of article ``number``, 8 bytes; empty if it is not sampled."""
    if number & ((1 << sampling_exponent) - 1):
        return b""
    return (number >> EXPONENT_BITS << EXPONENT_BITS | sampling_exponent).to_bytes(8, "little")


def decode_samples(samples: bytes | None) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Sampled numbers (low bits cleared), and how many articles each of them represents; both (n,)."""
    found = np.frombuffer(samples or b"", "<u8")
    exponents = found & np.uint64((1 << EXPONENT_BITS) - 1)
    return found ^ exponents, np.left_shift(1, exponents.astype(np.int64))


# The floor rises in steps of this part of the retention period: each one is a write, and the grace covers it.
FLOOR_STEPS_PER_RETENTION = 1000


@dataclass(frozen=True, slots=True)
class Retention:
    """How long articles are kept: at least ``period_ms``, or indefinitely if that is None."""

    period_ms: int | None = None

    @property
    def shared_entries_grace_ms(self) -> int:
        """Articles are kept this much longer, so no copy outlives the entries that it shares."""
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


KEYS_PER_READ = 1024


async def scan_block(store: Store, tag: bytes, step: int = 1) -> AsyncIterator[bytes]:
    """The buckets of every ``step``-th value of block 0, in which each article has one entry."""
    values = range(0, 1 << PLAN.widths[0], step)
    for start in range(0, len(values), KEYS_PER_READ):
        chunk = values[start : start + KEYS_PER_READ]
        for bucket in await store.read([keys.block_bucket(tag, 0, value) for value in chunk]):
            if bucket:
                yield bucket


SEGMENT_MAX_ARTICLES = 10_000_000
KeyBuilder = Callable[[bytes, SketchWidth], list[bytes]]  # tag, width -> full keys


class SpaceHead(msgspec.Struct, frozen=True, array_like=True):
    """Live segments ``first`` to ``last``, floor, and the segment number below which all keys are deleted."""

    first: int = 0
    last: int = 0
    floor: int = 0
    cleared_below: int = 0


_HEAD_FORMAT = ValueFormat(msgspec.msgpack.Decoder(SpaceHead), "A list of segments", SpaceHead, PLAIN)


class Segments:
    """The segments of all spaces over one store, as far as this process knows them."""

    def __init__(self, store: Store, max_articles: int = SEGMENT_MAX_ARTICLES) -> None:
        self._store = store
        self.max_articles = max_articles
        self.sampling_exponent = sampling_exponent_for(max_articles)
        self._stacks: dict[str, SegmentStack] = {}
        self._sketch_widths: dict[bytes, SketchWidth] = {}  # by tag

    async def stack(self, space: str) -> SegmentStack:
        """The stack of a space as this process knows it."""
        await self._load_heads([space])
        return self._stacks[space]

    async def refresh(self, space: str) -> SegmentStack:
        """The stack as the stored head has it; only this learns of dropped segments and a new floor."""
        return (await self.refresh_all([space]))[0]

    async def refresh_all(self, spaces: Sequence[str]) -> list[SegmentStack]:
        """``refresh`` of several spaces: one round trip."""
        raw = await self._store.read([keys.space_head(space) for space in spaces])
        return [self._merge_head(s, _HEAD_FORMAT.decode(value)) for s, value in zip(spaces, raw, strict=True)]

    async def head(self, space: str) -> SpaceHead:
        """The stored head."""
        return await self._stored_head(space).read()

    async def read(self, suffixes_by_space: Mapping[str, Sequence[bytes]]) -> Snapshot:
        """Read keys (without tags) from all live segments of their spaces: one round trip."""

        def builder(suffixes: Sequence[bytes]) -> KeyBuilder:
            return lambda tag, _: [tag + suffix for suffix in suffixes]

        return await self.read_keys({space: builder(own) for space, own in suffixes_by_space.items()})

    async def read_keys(self, builders: Mapping[str, KeyBuilder], others: Sequence[bytes] = ()) -> Snapshot:
        """Read the keys that each space's builder returns, and ``others``, which belong to no segment.

        Again if a segment was sealed or rehashed meanwhile.
        """
        if not builders.keys() <= self._stacks.keys():
            await self._load_heads(builders)
        while True:
            stacks = {space: self._stacks[space] for space in builders}
            sealed_keys = [stack.writable_tag + keys.SEALED for stack in stacks.values()]
            all_keys = sealed_keys + [stack.writable_tag + keys.VERSION for stack in stacks.values()]
            widths_at = len(all_keys)
            all_keys += [tag + keys.WIDTH for stack in stacks.values() for tag in stack.tags]
            for space, stack in stacks.items():
                for tag, width in zip(stack.tags, stack.sketch_widths, strict=True):
                    all_keys += builders[space](tag, width)
            all_keys += others
            values = await self._store.read(all_keys)
            sealed = [space for space, value in zip(stacks, values, strict=False) if value is not None]
            changed = self._update_widths(stacks, values[widths_at:])
            if not sealed and not changed:
                return Snapshot(stacks, dict(zip(all_keys, values, strict=True)))
            for space in sealed:
                await self._advance_writable(space, stacks[space].last + 1)

    async def read_more(self, snapshot: Snapshot, space: str, suffixes: Iterable[bytes]) -> Snapshot:
        """Read more keys of the segments that ``snapshot`` was read from; the commit checks they are live."""
        stack = snapshot.stacks[space]
        all_keys = list(dict.fromkeys(tag + suffix for tag in stack.tags for suffix in suffixes))
        values = await self._store.read(all_keys) if all_keys else []
        return Snapshot({space: stack}, dict(zip(all_keys, values, strict=True)))

    async def seal(self, space: str, number: int, now_ms: int) -> None:
        """Seal segment ``number`` unless it is sealed already; the next one is writable then."""
        closed = keys.tag(space, number) + keys.SEALED
        version = AdvanceVersion(keys.tag(space, number) + keys.VERSION, b"closed")
        # The clock may have been set back since: the segment must outlive its newest article.
        samples = (await self._store.read([keys.tag(space, number) + keys.SAMPLES]))[0]
        sealed_ms = max(now_ms, arrival_ms_of(int(decode_samples(samples)[0].max(initial=0))))
        await self._store.commit(
            Transaction((ValueEquals(closed, None),), (Put(closed, b"%d" % sealed_ms), version))
        )
        await self._advance_writable(space, number + 1)

    async def seal_if_full(self, space: str, now_ms: int) -> None:
        """Seal the writable segment if it is full and the store available."""
        stack = await self.stack(space)
        try:
            samples = (await self._store.read([stack.writable_tag + keys.SAMPLES]))[0]
            if decode_samples(samples)[1].sum() >= self.max_articles:
                await self.seal(space, stack.last, now_ms)
        except StoreUnavailable:
            return

    async def advance_head(self, space: str, **fields: int) -> bool:
        """Raise fields of the stored head, never lower them; False if another process wrote it meanwhile."""
        stored = self._stored_head(space)
        raw, head = await stored.read_with_raw()
        raised = {name: max(value, getattr(head, name)) for name, value in fields.items()}
        moved = msgspec.structs.replace(head, **raised)
        if moved != head and not await stored.replace(raw, moved):
            return False
        self._merge_head(space, moved)
        return True

    async def lower_floor(self, space: str, floor: int) -> None:
        """Lower the stored floor, which a wrong clock raised. Raises CommitConflict."""
        head = await self._stored_head(space).edit(
            lambda head: msgspec.structs.replace(head, floor=min(head.floor, floor))
        )
        self._merge_head(space, head)

    async def _advance_writable(self, space: str, last: int) -> None:
        """Use segment ``last``: the one before it is sealed. Losing the race for the head is harmless."""
        known = self._stacks.get(space, SegmentStack(space))
        if known.last < last:
            self._merge_head(space, SpaceHead(known.first, last, known.floor))
        await self.advance_head(space, last=last)

    async def _load_heads(self, spaces: Iterable[str]) -> None:
        if missing := [space for space in spaces if space not in self._stacks]:
            await self.refresh_all(missing)

    def _merge_head(self, space: str, head: SpaceHead) -> SegmentStack:
        known = self._stacks.get(space, SegmentStack(space))
        first, last = max(head.first, known.first), max(head.last, known.last)
        tags = [keys.tag(space, number) for number in range(first, last + 1)]
        widths = tuple([self._sketch_widths.get(tag, INITIAL_WIDTH) for tag in tags])
        self._stacks[space] = SegmentStack(space, first, last, head.floor, widths)
        return self._stacks[space]

    def _update_widths(self, stacks: Mapping[str, SegmentStack], stored: Sequence[bytes | None]) -> bool:
        """Whether any of the ``stored`` widths differs from ``stacks``."""
        position, changed = 0, False
        for space, stack in stacks.items():
            widths = tuple(map(decode_sketch_width, stored[position : position + len(stack.tags)]))
            position += len(stack.tags)
            if widths != stack.sketch_widths:
                self._sketch_widths.update(zip(stack.tags, widths, strict=True))
                known = self._stacks[space]
                self._merge_head(space, SpaceHead(known.first, known.last, known.floor))
                changed = True
        return changed

    def _stored_head(self, space: str) -> StoredValue[SpaceHead]:
        return StoredValue(self._store, keys.space_head(space), _HEAD_FORMAT)
