"""Recall check: lookups of sampled articles are compared with an exhaustive scan of the index.

Every bucket of every block is read once, in chunks. That is the ground truth, since an entry is in one
bucket of each block. So the check notices a lookup that misses something, an entry that is missing from one
of its blocks, and an entry in a bucket where no lookup would read it. Last, the newest articles of the
stream must find themselves. Nothing is written; articles that arrive or expire meanwhile do no harm.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aggregator.domain import article_number_at
from aggregator.index import Index
from aggregator.index.blocks import MAX_RADIUS
from aggregator.index.codec.postings import NUMBER_BYTES, decode_numbers, decode_remainders
from aggregator.index.segments import scan_block

_MIX_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
# (n, 2): fingerprints and article numbers.
Entries = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class RecallReport:
    """The result for one space.

    ``stored``: entries of the fullest block, ``sampled`` of which were compared with all. ``missed``: by
    radius 0 .. 7, how many of their ``neighbor_pairs`` (each article included) a lookup did not return.
    ``inconsistent_entries`` are not in every block; 1 if only the fingerprints differ.
    ``not_self_retrievable``: articles of the stream that do not find themselves.
    """

    space: str
    stored: int
    sampled: int
    neighbor_pairs: int
    missed: tuple[int, ...]
    inconsistent_entries: int
    not_self_retrievable: int
    largest_bucket_entries: int

    @property
    def ok(self) -> bool:
        """Whether recall is 1.0 at every radius and every entry is where it belongs."""
        return not (any(self.missed) or self.inconsistent_entries or self.not_self_retrievable)


async def check_recall(index: Index, space: str, sample_size: int, now_ms: int) -> RecallReport:
    """Compare ``sample_size`` articles of one space (or all, if fewer) with all that is stored."""
    return await _RecallCheck(index, space, now_ms).run(sample_size)


class _RecallCheck:
    def __init__(self, index: Index, space: str, now_ms: int) -> None:
        self._index = index
        self._space = space
        self._plan = index.plans[space]
        self._tags: tuple[bytes, ...] = ()
        self._floor = 0
        self._end_number = article_number_at(now_ms)

    async def run(self, sample_size: int) -> RecallReport:
        stack = (await self._index.segments.read({self._space: ()})).stacks[self._space]
        self._tags = stack.tags
        # Articles that may expire during the check are left out.
        self._floor = self._index.retention.stable_floor(stack)
        counts, largest = [], 0
        sample = _BottomKSample(sample_size)
        sums = np.zeros((len(self._plan.widths), 2), np.uint64)
        for block in range(len(sums)):
            counts.append(0)
            async for bucket in self._read_buckets(block):
                largest = max(largest, len(bucket))
                entries = self._in_scope(bucket)
                counts[block] += len(entries)
                sums[block] += _checksum(entries)
                sample.add(entries)
        inconsistent = max(counts) - min(counts)
        if not inconsistent and (sums != sums[0]).any():
            inconsistent = 1
        missed, pairs = await self._count_missed(sample.entries)
        lost = await self._count_not_self_retrievable(sample_size)
        return RecallReport(
            space=self._space,
            stored=max(counts),
            sampled=len(sample.entries),
            neighbor_pairs=pairs,
            missed=missed,
            inconsistent_entries=inconsistent,
            not_self_retrievable=lost,
            largest_bucket_entries=largest,
        )

    def _in_scope(self, entries: Entries) -> Entries:
        return entries[(entries[:, 1] >= self._floor) & (entries[:, 1] < self._end_number)]

    async def _read_buckets(self, block: int) -> AsyncIterator[Entries]:
        entry_bytes = self._plan.remainder_bytes + NUMBER_BYTES
        for tag in self._tags:
            async for value, bucket in scan_block(self._index.store, tag, block, self._plan.widths[block]):
                if bucket:
                    whole = bucket[: len(bucket) // entry_bytes * entry_bytes]
                    remainders = decode_remainders(whole, self._plan.remainder_bytes)
                    numbers = decode_numbers(whole, self._plan.remainder_bytes)
                    yield np.stack([self._plan.join(block, value, remainders), numbers], axis=1)

    async def _count_missed(self, sampled: Entries) -> tuple[tuple[int, ...], int]:
        """Per radius, how many neighbors of the sampled entries a lookup misses; and how many there are."""
        near: list[dict[int, int]] = [{} for _ in sampled]
        for block in range(len(self._plan.widths)):
            async for bucket in self._read_buckets(block):
                entries = self._in_scope(bucket)
                bits = np.bitwise_count(sampled[:, :1] ^ entries[None, :, 0])
                for i, j in zip(*np.nonzero(bits <= MAX_RADIUS), strict=True):
                    number = int(entries[j, 1])
                    near[i][number] = min(int(bits[i, j]), near[i].get(number, MAX_RADIUS))
        missed = [0] * (MAX_RADIUS + 1)
        for (fingerprint, _), truth in zip(sampled.tolist(), near, strict=True):
            for radius in range(MAX_RADIUS + 1):
                found = await self._find(fingerprint, radius)
                expected = {number for number, bits in truth.items() if bits <= radius}
                missed[radius] += await self._count_stored(expected.difference(found))
        return tuple(missed), sum(map(len, near))

    async def _count_not_self_retrievable(self, count: int) -> int:
        lost = 0
        for item in await self._index.stream.recent(count):
            if item.kind != "article" or item.space != self._space or item.number < self._floor:
                continue
            if item.exact:
                continue  # an exact copy may share the entries of the article it repeats
            if item.number not in await self._find(item.fingerprint, 0):
                lost += await self._count_stored({item.number})
        return lost

    async def _find(self, fingerprint: int, radius: int) -> Sequence[int]:
        numbers, _ = await self._index.lookup.find_within_radius(self._space, fingerprint, radius)
        found: list[int] = numbers.tolist()
        return found

    async def _count_stored(self, numbers: set[int]) -> int:
        return len(await self._index.records.read(dict.fromkeys(sorted(numbers), self._space)))


def _checksum(entries: Entries) -> npt.NDArray[np.uint64]:
    """(2,): sums modulo 2^64, independent of the order of the entries."""
    mixed = _mix((entries[:, 0] * _MIX_MULTIPLIER) ^ entries[:, 1])
    return np.array([entries[:, 1].sum(dtype=np.uint64), mixed.sum(dtype=np.uint64)], np.uint64)


class _BottomKSample:
    """Sample of up to ``size`` entries with the smallest hashes: the same for every block."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._ranks = np.empty(0, np.uint64)
        self.entries: Entries = np.empty((0, 2), np.uint64)

    def add(self, entries: Entries) -> None:
        """Keep the entries with the smallest ranks."""
        ranks = _mix(entries[:, 1])
        if len(self._ranks) == self._size:
            entries, ranks = entries[ranks < self._ranks[-1]], ranks[ranks < self._ranks[-1]]
        if len(ranks):
            ranks, first = np.unique(np.concatenate([self._ranks, ranks]), return_index=True)
            self.entries = np.concatenate([self.entries, entries])[first[: self._size]]
            self._ranks = ranks[: self._size]


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    mixed = values * _MIX_MULTIPLIER
    mixed ^= mixed >> np.uint64(29)
    return mixed * _MIX_MULTIPLIER
