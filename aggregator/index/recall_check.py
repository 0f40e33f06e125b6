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

from aggregator.domain import number_of
from aggregator.index import Index, keys
from aggregator.index.blocks import MAX_RADIUS
from aggregator.index.codec.postings import NUMBER_BYTES, numbers_of, rests_of

PIECE = 1024  # buckets per round trip
_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Audit:
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
    pairs: int
    missed: tuple[int, ...]
    uneven: int
    lost: int
    largest: int

    @property
    def sound(self) -> bool:
        """Recall is 1.0 at every radius, and nothing stands wrong."""
        return not (any(self.missed) or self.uneven or self.lost)


async def audit(index: Index, space: str, sample: int, now_ms: int) -> Audit:
    """Compare ``sample`` articles (or all, if fewer) of one space with all that is stored."""
    # What the next hour's retention takes is left out: it may go while we look.
    floor = index.floor((await index.segments.read({space: ()})).layers[space], now_ms + 3_600_000)
    before = number_of(now_ms)
    counts, largest = {}, 0
    chosen = _Sample(sample)
    sums = np.zeros((len(index.plan(space).widths), 2), np.uint64)
    for block in range(len(sums)):
        counts[block] = 0
        async for table in _buckets(index, space, block):
            largest = max(largest, len(table))
            table = table[(table[:, 1] >= floor) & (table[:, 1] < before)]
            counts[block] += len(table)
            sums[block] += _checksum(table)
            chosen.offer(table)
    uneven = max(counts.values()) - min(counts.values())
    if not uneven and (sums != sums[0]).any():
        uneven = 1
    missed, pairs = await _missed(index, space, chosen.entries, floor, before, now_ms)
    lost = await _lost(index, space, sample, floor, now_ms)
    return Audit(space, max(counts.values()), len(chosen.entries), pairs, missed, uneven, lost, largest)


async def _missed(
    index: Index, space: str, entries: npt.NDArray[np.uint64], floor: int, before: int, now_ms: int
) -> tuple[tuple[int, ...], int]:
    """Per radius, how many neighbours of the sampled entries a look-up leaves out; and how many there are."""
    near: list[dict[int, int]] = [{} for _ in entries]
    for block in range(len(index.plan(space).widths)):
        async for table in _buckets(index, space, block):
            table = table[(table[:, 1] >= floor) & (table[:, 1] < before)]
            bits = np.bitwise_count(entries[:, :1] ^ table[None, :, 0])
            for i, j in zip(*np.nonzero(bits <= MAX_RADIUS), strict=True):
                number = int(table[j, 1])
                near[i][number] = min(int(bits[i, j]), near[i].get(number, MAX_RADIUS))
    missed = [0] * (MAX_RADIUS + 1)
    for (fingerprint, _), truth in zip(entries.tolist(), near, strict=True):
        for radius in range(MAX_RADIUS + 1):
            found, _ = await index.near(space, fingerprint, radius, now_ms)
            wanted = {number for number, bits in truth.items() if bits <= radius}
            missed[radius] += len(await _still_there(index, space, wanted - set(found.tolist())))
    return tuple(missed), sum(map(len, near))


async def _lost(index: Index, space: str, count: int, floor: int, now_ms: int) -> int:
    """How many of the newest articles are not among those that have their very fingerprint."""
    lost = 0
    recent = [i for i in await index.recent(count) if i.kind == "article" and i.space == space]
    for item in recent:
        if item.exact or item.number < floor:
            continue  # an exact copy stands in the index through the article it repeats
        found, _ = await index.near(space, item.fingerprint, 0, now_ms)
        if item.number not in found:
            lost += len(await _still_there(index, space, {item.number}))
    return lost


async def _still_there(index: Index, space: str, numbers: set[int]) -> set[int]:
    """Those whose record has not gone meanwhile."""
    return set(await index.records(dict.fromkeys(sorted(numbers), space))) if numbers else set()


async def _buckets(index: Index, space: str, block: int) -> AsyncIterator[npt.NDArray[np.uint64]]:
    """(n, 2) fingerprints and numbers of every bucket of a block that is not empty, over all segments."""
    plan = index.plan(space)
    values, entry = 1 << plan.widths[block], plan.rest_bytes + NUMBER_BYTES
    for start in range(0, values, PIECE):
        wanted = [keys.bucket(b"", block, value) for value in range(start, min(start + PIECE, values))]
        snapshot = await index.segments.read({space: wanted})
        for place, packed in enumerate(snapshot.everywhere(space, wanted)):
            if packed:
                value, packed = start + place % len(wanted), packed[: len(packed) // entry * entry]
                numbers, rests = (of(packed, plan.rest_bytes) for of in (numbers_of, rests_of))
                yield np.stack([plan.whole(block, value, rests), numbers], axis=1)


def _checksum(table: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """(2,): sums, modulo 2^64, that do not depend on the order of the entries."""
    mixed = _mixed((table[:, 0] * _ODD) ^ table[:, 1])
    return np.array([table[:, 1].sum(dtype=np.uint64), mixed.sum(dtype=np.uint64)], np.uint64)


class _Sample:
    """As many entries as asked for, of a stream of unknown length, each article at most once.

    Those whose numbers have the smallest hashes: chance, but the same ones in every block.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._ranks = np.empty(0, np.uint64)
        self.entries = np.empty((0, 2), np.uint64)

    def offer(self, table: npt.NDArray[np.uint64]) -> None:
        """The lowest ranks stay."""
        ranks = _mixed(table[:, 1])
        if len(self._ranks) == self._size:
            table, ranks = table[ranks < self._ranks[-1]], ranks[ranks < self._ranks[-1]]
        if len(ranks):
            ranks, first = np.unique(np.concatenate([self._ranks, ranks]), return_index=True)
            self.entries = np.concatenate([self.entries, table])[first[: self._size]]
            self._ranks = ranks[: self._size]


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    mixed = values * _ODD
    mixed ^= mixed >> np.uint64(29)
    return mixed * _ODD
