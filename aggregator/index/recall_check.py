"""Does the index find what is stored? Sampled articles are compared with everything, bit by bit.

Every bucket of every block is read once, in pieces; that is the truth, since an entry stands in one bucket
of each block. So a look-up that misses something is noticed, and so is an entry that one of its blocks has
lost or that stands where no look-up would come by. Last, the newest articles of the stream must find
themselves. Nothing is written; articles that come or go meanwhile do no harm.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aggregator.domain import article_number_at
from aggregator.index import Index, keys
from aggregator.index.blocks import MAX_RADIUS
from aggregator.index.codec.postings import NUMBER_BYTES, decode_numbers, decode_remainders

BUCKETS_PER_READ = 1024  # buckets per round trip
_MIX_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class RecallReport:
    """What was found in one space.

    stored     entries in the fullest block, so articles that can be found
    sampled    articles that were compared with all of them
    pairs      neighbours within 7 bits that the comparison found, each sampled article with itself included
    missed     how many of these a look-up did not return, by radius 0 .. 7
    uneven     entries that not every block has; 1 where each has as many, but not of the same fingerprints
    lost       articles of the stream that do not find themselves
    largest    entries in the fullest bucket
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
        """Recall is 1.0 at every radius, and nothing stands wrong."""
        return not (any(self.missed) or self.inconsistent_entries or self.not_self_retrievable)


async def check_recall(index: Index, space: str, sample_size: int, now_ms: int) -> RecallReport:
    """Compare ``sample`` articles (or all, if fewer) of one space with all that is stored."""
    # What the next hour's retention takes is left out: it may go while we look.
    floor = index.floor((await index.segments.read({space: ()})).stacks[space], now_ms + 3_600_000)
    before = article_number_at(now_ms)
    counts, largest = {}, 0
    chosen = _BottomKSample(sample_size)
    sums = np.zeros((len(index.plan(space).widths), 2), np.uint64)
    for block in range(len(sums)):
        counts[block] = 0
        async for table in _read_buckets(index, space, block):
            largest = max(largest, len(table))
            table = table[(table[:, 1] >= floor) & (table[:, 1] < before)]
            counts[block] += len(table)
            sums[block] += _checksum(table)
            chosen.add(table)
    uneven = max(counts.values()) - min(counts.values())
    if not uneven and (sums != sums[0]).any():
        uneven = 1
    missed, pairs = await _count_missed(index, space, chosen.entries, floor, before, now_ms)
    lost = await _count_not_self_retrievable(index, space, sample_size, floor, now_ms)
    return RecallReport(
        space, max(counts.values()), len(chosen.entries), pairs, missed, uneven, lost, largest
    )


async def _count_missed(
    index: Index, space: str, entries: npt.NDArray[np.uint64], floor: int, below_number: int, now_ms: int
) -> tuple[tuple[int, ...], int]:
    """Per radius, how many neighbours of the sampled entries a look-up leaves out; and how many there are."""
    near: list[dict[int, int]] = [{} for _ in entries]
    for block in range(len(index.plan(space).widths)):
        async for table in _read_buckets(index, space, block):
            table = table[(table[:, 1] >= floor) & (table[:, 1] < below_number)]
            bits = np.bitwise_count(entries[:, :1] ^ table[None, :, 0])
            for i, j in zip(*np.nonzero(bits <= MAX_RADIUS), strict=True):
                number = int(table[j, 1])
                near[i][number] = min(int(bits[i, j]), near[i].get(number, MAX_RADIUS))
    missed = [0] * (MAX_RADIUS + 1)
    for (fingerprint, _), truth in zip(entries.tolist(), near, strict=True):
        for radius in range(MAX_RADIUS + 1):
            found, _ = await index.find_within_radius(space, fingerprint, radius, now_ms)
            wanted = {number for number, bits in truth.items() if bits <= radius}
            missed[radius] += len(await _with_records(index, space, wanted - set(found.tolist())))
    return tuple(missed), sum(map(len, near))


async def _count_not_self_retrievable(index: Index, space: str, count: int, floor: int, now_ms: int) -> int:
    """How many of the newest articles are not among those that have their very fingerprint."""
    lost = 0
    recent = [i for i in await index.recent(count) if i.kind == "article" and i.space == space]
    for item in recent:
        if item.exact or item.number < floor:
            continue  # an exact copy stands in the index through the article it repeats
        found, _ = await index.find_within_radius(space, item.fingerprint, 0, now_ms)
        if item.number not in found:
            lost += len(await _with_records(index, space, {item.number}))
    return lost


async def _with_records(index: Index, space: str, numbers: set[int]) -> set[int]:
    """Those whose record has not gone meanwhile."""
    return set(await index.read_records(dict.fromkeys(sorted(numbers), space))) if numbers else set()


async def _read_buckets(index: Index, space: str, block: int) -> AsyncIterator[npt.NDArray[np.uint64]]:
    """(n, 2) fingerprints and numbers of every bucket of a block that is not empty, over all segments."""
    plan = index.plan(space)
    values, entry = 1 << plan.widths[block], plan.remainder_bytes + NUMBER_BYTES
    for start in range(0, values, BUCKETS_PER_READ):
        wanted = [
            keys.block_bucket(b"", block, value)
            for value in range(start, min(start + BUCKETS_PER_READ, values))
        ]
        snapshot = await index.segments.read({space: wanted})
        for place, packed in enumerate(snapshot.values_in_all_segments(space, wanted)):
            if packed:
                value, packed = start + place % len(wanted), packed[: len(packed) // entry * entry]
                numbers, rests = (
                    of(packed, plan.remainder_bytes) for of in (decode_numbers, decode_remainders)
                )
                yield np.stack([plan.join(block, value, rests), numbers], axis=1)


def _checksum(table: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """(2,): sums, modulo 2^64, that do not depend on the order of the entries."""
    mixed = _mix((table[:, 0] * _MIX_MULTIPLIER) ^ table[:, 1])
    return np.array([table[:, 1].sum(dtype=np.uint64), mixed.sum(dtype=np.uint64)], np.uint64)


class _BottomKSample:
    """As many entries as asked for, of a stream of unknown length, each article at most once.

    Those whose numbers have the smallest hashes: chance, but the same ones in every block.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._ranks = np.empty(0, np.uint64)
        self.entries = np.empty((0, 2), np.uint64)

    def add(self, entries: npt.NDArray[np.uint64]) -> None:
        """The lowest ranks stay."""
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
