"""Packed bucket entries: what a bucket's key does not say, and whose it is; filtered without a Python loop.

    rest      little-endian, as many bytes as the kind of bucket needs
    8 bytes   little-endian uint64: the article number

    bucket of         its key says                the rest of an entry
    a block           the block's value           the fingerprint's other bits (``blocks.BlockPlan.cut``): 6 bytes
                                                  under 4x16, 7 under the plans of narrower blocks
    a band            its lowest 18 bits          its upper 14 bits: 2 bytes
    a topic           the top 20 bits of a value  the lowest 32: 24 of the term's hash, 8 of its weight: 4 bytes

An article found in several buckets counts once. Entries are only ever appended, so a bucket's
length is its version (``index/``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from aggregator.index.blocks import Around
from aggregator.index.keys import BAND_BITS, TOPIC_REST_BITS
from aggregator.store.decoding import damaged

NUMBER_BYTES: Final = 8
BAND_REST_BYTES: Final = 2
TOPIC_REST_BYTES: Final = 4
TOPIC_BYTES: Final = TOPIC_REST_BYTES + NUMBER_BYTES
_TOPIC_REST: Final = (1 << TOPIC_REST_BITS) - 1

ArticleNumbers = npt.NDArray[np.uint64]
Distances = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]


NO_NUMBERS = np.empty(0, np.uint64)
NO_COUNTS = np.empty(0, np.int64)
_HASH = np.uint32(0xFFFF_FF00)  # of a topic's rest; the remainder is the weight


def pack(rest: int, number: int, rest_bytes: int) -> bytes:
    """One entry of ``rest_bytes`` + 8 bytes."""
    return rest.to_bytes(rest_bytes, "little") + number.to_bytes(NUMBER_BYTES, "little")


def pack_many(rests: Iterable[int], number: int, rest_bytes: int) -> list[bytes]:
    """``pack`` of each under one number."""
    end = number.to_bytes(NUMBER_BYTES, "little")
    return [rest.to_bytes(rest_bytes, "little") + end for rest in rests]


def pack_bands(bands: Iterable[int], number: int) -> list[bytes]:
    """An entry of the bucket ``keys.band(band)`` for each, under one number."""
    return pack_many([band >> BAND_BITS for band in bands], number, BAND_REST_BYTES)


def pack_topic(value: int, number: int) -> bytes:
    """An entry of the bucket ``keys.topic(value)``; ``value`` as ``topics.indexed`` gives it."""
    return pack_topics((value,), number)[0]


def pack_topics(values: Iterable[int], number: int) -> list[bytes]:
    """``pack_topic`` of each under one number."""
    return pack_many([value & _TOPIC_REST for value in values], number, TOPIC_REST_BYTES)


def within(
    buckets: Sequence[bytes | None], around: Around, radius: int, floor: int
) -> tuple[ArticleNumbers, Distances]:
    """Article numbers at or above ``floor`` within ``radius`` bits, and their distances.

    ``buckets``: those of ``keys.buckets(around)`` in that order, as often as there are layers. Both (n,),
    ascending by number, each number once (at its smallest distance).
    """
    return within_each(buckets, [around], radius, floor)[0]


def within_each(
    buckets: Sequence[bytes | None], arounds: Sequence[Around], radius: int, floor: int
) -> list[tuple[ArticleNumbers, Distances]]:
    """``within`` of several look-ups of one plan and radius; ``buckets``: all of the first, all of the next, ..."""
    rest_bytes, flipped = arounds[0].rest_bytes, arounds[0].flipped
    entry = rest_bytes + NUMBER_BYTES
    filled = [bucket or b"" for bucket in buckets]
    sizes, joined = list(map(len, filled)), b"".join(filled)
    if not joined:
        return [(NO_NUMBERS, NO_COUNTS)] * len(arounds)
    counts = _counts(sizes, [len(flips) for *_, flips in arounds[0].cells], entry)
    unused = np.uint64(8 * (8 - rest_bytes))
    own = np.array([[rest for _, _, rest, _ in around.cells] for around in arounds], np.uint64) << unused
    layers = len(counts) // own.size
    differing = np.ndarray((len(joined) // entry,), "<u8", joined, 0, (entry,)) << unused
    differing ^= (own if layers == 1 else np.tile(own, layers)).reshape(-1).repeat(counts)
    bits = np.bitwise_count(differing)
    (near,) = (bits <= radius).nonzero()  # few: all that follows is about them
    if not len(near):
        return [(NO_NUMBERS, NO_COUNTS)] * len(arounds)
    # A neighbour's bucket: what was flipped in its key differs as well.
    place = np.array(sizes).cumsum().searchsorted(near * entry, "right")
    distances = (bits[near] + flipped[place % len(flipped)]).astype(np.int64)
    numbers, whose = _numbers(joined, rest_bytes)[near], place // (layers * len(flipped))
    keep = (distances <= radius) & (numbers >= np.uint64(floor))
    numbers, distances, whose = numbers[keep], distances[keep], whose[keep]
    order = np.lexsort((distances, numbers, whose))
    numbers, distances, whose = numbers[order], distances[order], whose[order]
    first = _firsts(numbers, whose)
    return _parted(whose[first], len(arounds), numbers[first], distances[first])


def _firsts(numbers: ArticleNumbers, whose: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Of sorted (whose, number), each pair's first place."""
    first = np.ones(len(numbers), bool)
    first[1:] = (numbers[1:] != numbers[:-1]) | (whose[1:] != whose[:-1])
    return first


def _parted(
    whose: npt.NDArray[np.int64], count: int, numbers: ArticleNumbers, others: npt.NDArray[np.int64]
) -> list[tuple[ArticleNumbers, Counts]]:
    """Both by whose they are, 0 to ``count`` (exclusive), which ascends."""
    ends = whose.searchsorted(np.arange(count + 1)).tolist()
    return [(numbers[a:b], others[a:b]) for a, b in pairwise(ends)]


def _counts(sizes: Sequence[int], steps: Sequence[int], entry: int) -> list[int]:
    """How many entries stand in so many buckets at a time, in turn. Raises StoreUnavailable when some are torn."""
    counts, at = [], 0
    while at < len(sizes):
        for step in steps:
            count, torn = divmod(sum(sizes[at : at + step]), entry)
            if torn:
                raise _torn()
            counts.append(count)
            at += step
    return counts


def sharing_each(
    buckets: Sequence[bytes | None], values: Sequence[Sequence[int]], floor: int
) -> list[tuple[ArticleNumbers, Counts]]:
    """Of each look-up, article numbers with one of its values among their bands, and how many of them. Both (n,).

    ``values``: those of each look-up, each once. ``buckets``: theirs, as often as there are layers; all of the first
    look-up, all of the next, ...
    """
    if not any(buckets):
        return [(NO_NUMBERS, NO_COUNTS)] * len(values)
    layers = len(buckets) // sum(map(len, values))
    asked = [(value >> BAND_BITS, i) for i, some in enumerate(values) for value in [*some] * layers]
    # Most entries of a bucket are of other bands: what follows is about few.
    joined, place = _aligned(buckets, range(len(asked)), BAND_REST_BYTES)
    own, whose = np.array(asked).T
    (alike,) = (_rests(joined, "<u2", BAND_REST_BYTES) == own[place]).nonzero()
    if not len(alike):
        return [(NO_NUMBERS, NO_COUNTS)] * len(values)
    numbers, whose = _numbers(joined, BAND_REST_BYTES)[alike], whose[place[alike]]
    keep = numbers >= np.uint64(floor)
    order = np.lexsort((numbers[keep], whose[keep]))
    numbers, whose = numbers[keep][order], whose[keep][order]
    (first,) = _firsts(numbers, whose).nonzero()
    counts = np.append(first[1:], len(numbers)) - first
    return _parted(whose[first], len(values), numbers[first], counts)


def also_within(grown: Mapping[int, bytes], around: Around, radius: int, floor: int) -> dict[int, int]:
    """What ``within`` finds among a few entries: number -> distance.

    ``grown``: entries that came to buckets, by the bucket's place; a place behind them is another kind's.
    """
    found: dict[int, int] = {}
    for place, entries in grown.items():
        for _, _, own, flips in around.cells:
            if place < len(flips):
                flipped = flips[place].bit_count()
                for rest, number in _few(entries, around.rest_bytes):
                    distance = (own ^ rest).bit_count() + flipped
                    if distance <= radius and number >= floor:
                        found[number] = min(distance, found.get(number, distance))
                break
            place -= len(flips)
    return found


def also_sharing(
    grown: Mapping[int, bytes], values: Sequence[int], before: int, floor: int
) -> dict[int, int]:
    """What ``sharing_each`` finds among a few entries: number -> how many. ``grown``: as above; bands stand behind ``before`` others."""
    found: dict[int, int] = {}
    for place, entries in grown.items():
        if place >= before:
            own = values[place - before] >> BAND_BITS
            for rest, number in _few(entries, BAND_REST_BYTES):
                if rest == own and number >= floor:
                    found[number] = found.get(number, 0) + 1
    return found


def joined(
    found: tuple[ArticleNumbers, Counts], more: Mapping[int, int], join: Callable[[int, int], int]
) -> tuple[ArticleNumbers, Counts]:
    """Both together, ascending by number; ``join`` says what stands beside a number that is in both."""
    if not more:
        return found
    both = dict(zip(*(of.tolist() for of in found), strict=True))
    for number, value in more.items():
        both[number] = join(both[number], value) if number in both else value
    numbers = sorted(both)
    return np.array(numbers, np.uint64), np.array([both[number] for number in numbers], np.int64)


def _few(entries: bytes, rest_bytes: int) -> Iterator[tuple[int, int]]:
    """Rest and number of each."""
    entry = rest_bytes + NUMBER_BYTES
    for at in range(0, len(entries), entry):
        rest, number = entries[at : at + rest_bytes], entries[at + rest_bytes : at + entry]
        yield int.from_bytes(rest, "little"), int.from_bytes(number, "little")


def weighed(buckets: Sequence[bytes | None], weights: Mapping[int, float], floor: int) -> ArticleNumbers:
    """Article numbers under any of these terms (hashes as ``topics.probed``), those that weigh most first.

    ``buckets``: those of ``weights``, as often as there are layers. An article's weight is the product of both
    weights, summed over the terms; of equals the newer is first.
    """
    low = (1 << TOPIC_REST_BITS) - 1
    joined, own = _aligned(buckets, [hashed & low for hashed in weights], TOPIC_REST_BYTES)
    rests = _rests(joined, "<u4", TOPIC_REST_BYTES)
    numbers = _numbers(joined, TOPIC_REST_BYTES)
    keep = (rests & _HASH == own) & (numbers >= np.uint64(floor))
    if not keep.any():
        return NO_NUMBERS
    _, ours = _aligned(buckets, list(weights.values()), TOPIC_REST_BYTES)
    product = ours[keep] * (rests[keep] & ~_HASH)
    found, place = np.unique(numbers[keep], return_inverse=True)
    sums = np.bincount(place.reshape(-1), product)
    order = np.lexsort((found, sums))[::-1]
    return found[order][sums[order] > 0]


def kept(bucket: bytes, rest_bytes: int, floor: int, dead: ArticleNumbers) -> bytes:
    """The bucket without entries below ``floor`` or of ``dead`` numbers; these ascending."""
    numbers = numbers_of(bucket, rest_bytes)
    gone = numbers < np.uint64(floor)
    if len(dead):
        at = np.minimum(np.searchsorted(dead, numbers), len(dead) - 1)
        gone |= dead[at] == numbers
    if not gone.any():
        return bucket
    return np.frombuffer(bucket, f"V{rest_bytes + NUMBER_BYTES}")[~gone].tobytes()


def numbers_of(bucket: bytes, rest_bytes: int) -> ArticleNumbers:
    """The article numbers of all entries, (n,). Raises StoreUnavailable when the bucket ends within an entry."""
    if len(bucket) % (rest_bytes + NUMBER_BYTES):
        raise _torn()
    return _numbers(bucket, rest_bytes)


def rests_of(bucket: bytes, rest_bytes: int) -> npt.NDArray[np.uint64]:
    """What the entries of a block's bucket keep of their fingerprints, (n,); as ``numbers_of``."""
    unused = np.uint64(8 * (8 - rest_bytes))
    if not len(numbers_of(bucket, rest_bytes)):
        return NO_NUMBERS
    return _rests(bucket, "<u8", rest_bytes) << unused >> unused


def _aligned(
    buckets: Sequence[bytes | None], values: Sequence[float], rest_bytes: int
) -> tuple[bytes, npt.NDArray[np.float64 | np.int64]]:
    """All entries, and for each the value that its bucket was read for, (n,)."""
    filled = [bucket or b"" for bucket in buckets]
    joined, sizes = b"".join(filled), np.array(list(map(len, filled)), np.int64)
    counts = sizes // (rest_bytes + NUMBER_BYTES)
    if counts.sum() * (rest_bytes + NUMBER_BYTES) != len(joined):
        raise _torn()
    own = np.array(values)
    if len(buckets) != len(own):
        own = np.tile(own, len(buckets) // len(own))
    return joined, np.repeat(own, counts)


def _rests(joined: bytes, dtype: str, rest_bytes: int) -> npt.NDArray[np.uint64]:
    entry = rest_bytes + NUMBER_BYTES
    return np.ndarray((len(joined) // entry,), dtype, joined, 0, (entry,))


def _numbers(joined: bytes, rest_bytes: int) -> ArticleNumbers:
    entry = rest_bytes + NUMBER_BYTES
    if not joined:
        return NO_NUMBERS
    return np.ndarray((len(joined) // entry,), "<u8", joined, rest_bytes, (entry,))


def _torn() -> Exception:
    return damaged("A bucket", "it ends within an entry")
