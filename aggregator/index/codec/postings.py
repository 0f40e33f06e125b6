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

from aggregator.index.blocks import ProbePlan
from aggregator.index.keys import SKETCH_BUCKET_BITS, TERM_REMAINDER_BITS
from aggregator.store.decoding import corrupt_error

NUMBER_BYTES: Final = 8
SKETCH_REMAINDER_BYTES: Final = 2
TERM_REMAINDER_BYTES: Final = 4
TERM_POSTING_BYTES: Final = TERM_REMAINDER_BYTES + NUMBER_BYTES
_TERM_REMAINDER_MASK: Final = (1 << TERM_REMAINDER_BITS) - 1

ArticleNumbers = npt.NDArray[np.uint64]
Distances = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]


NO_NUMBERS = np.empty(0, np.uint64)
NO_COUNTS = np.empty(0, np.int64)
_TERM_HASH_MASK = np.uint32(0xFFFF_FF00)  # of a topic's rest; the remainder is the weight


def encode_posting(remainder: int, number: int, remainder_bytes: int) -> bytes:
    """One entry of ``rest_bytes`` + 8 bytes."""
    return remainder.to_bytes(remainder_bytes, "little") + number.to_bytes(NUMBER_BYTES, "little")


def encode_postings(remainders: Iterable[int], number: int, remainder_bytes: int) -> list[bytes]:
    """``pack`` of each under one number."""
    end = number.to_bytes(NUMBER_BYTES, "little")
    return [rest.to_bytes(remainder_bytes, "little") + end for rest in remainders]


def encode_sketch_postings(sketch_keys: Iterable[int], number: int) -> list[bytes]:
    """An entry of the bucket ``keys.band(band)`` for each, under one number."""
    return encode_postings(
        [band >> SKETCH_BUCKET_BITS for band in sketch_keys], number, SKETCH_REMAINDER_BYTES
    )


def encode_term_posting(index_key: int, number: int) -> bytes:
    """An entry of the bucket ``keys.topic(value)``; ``value`` as ``topics.indexed`` gives it."""
    return encode_term_postings((index_key,), number)[0]


def encode_term_postings(index_keys: Iterable[int], number: int) -> list[bytes]:
    """``pack_topic`` of each under one number."""
    return encode_postings(
        [value & _TERM_REMAINDER_MASK for value in index_keys], number, TERM_REMAINDER_BYTES
    )


def numbers_within(
    buckets: Sequence[bytes | None], probe_plan: ProbePlan, radius: int, floor: int
) -> tuple[ArticleNumbers, Distances]:
    """Article numbers at or above ``floor`` within ``radius`` bits, and their distances.

    ``buckets``: those of ``keys.buckets(around)`` in that order, as often as there are layers. Both (n,),
    ascending by number, each number once (at its smallest distance).
    """
    return numbers_within_each(buckets, [probe_plan], radius, floor)[0]


def numbers_within_each(
    buckets: Sequence[bytes | None], probe_plans: Sequence[ProbePlan], radius: int, floor: int
) -> list[tuple[ArticleNumbers, Distances]]:
    """``within`` of several look-ups of one plan and radius; ``buckets``: all of the first, all of the next, ..."""
    rest_bytes, flipped = probe_plans[0].remainder_bytes, probe_plans[0].flipped_bits
    entry = rest_bytes + NUMBER_BYTES
    filled = [bucket or b"" for bucket in buckets]
    sizes, joined = list(map(len, filled)), b"".join(filled)
    if not joined:
        return [(NO_NUMBERS, NO_COUNTS)] * len(probe_plans)
    counts = _entry_counts(sizes, [len(flips) for *_, flips in probe_plans[0].block_probes], entry)
    unused = np.uint64(8 * (8 - rest_bytes))
    own = (
        np.array([[rest for _, _, rest, _ in around.block_probes] for around in probe_plans], np.uint64)
        << unused
    )
    layers = len(counts) // own.size
    differing = np.ndarray((len(joined) // entry,), "<u8", joined, 0, (entry,)) << unused
    differing ^= (own if layers == 1 else np.tile(own, layers)).reshape(-1).repeat(counts)
    bits = np.bitwise_count(differing)
    (near,) = (bits <= radius).nonzero()  # few: all that follows is about them
    if not len(near):
        return [(NO_NUMBERS, NO_COUNTS)] * len(probe_plans)
    # A neighbour's bucket: what was flipped in its key differs as well.
    place = np.array(sizes).cumsum().searchsorted(near * entry, "right")
    distances = (bits[near] + flipped[place % len(flipped)]).astype(np.int64)
    numbers, whose = _number_view(joined, rest_bytes)[near], place // (layers * len(flipped))
    keep = (distances <= radius) & (numbers >= np.uint64(floor))
    numbers, distances, whose = numbers[keep], distances[keep], whose[keep]
    order = np.lexsort((distances, numbers, whose))
    numbers, distances, whose = numbers[order], distances[order], whose[order]
    first = _first_of_each_run(numbers, whose)
    return _split_by_query(whose[first], len(probe_plans), numbers[first], distances[first])


def _first_of_each_run(numbers: ArticleNumbers, query_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Of sorted (whose, number), each pair's first place."""
    first = np.ones(len(numbers), bool)
    first[1:] = (numbers[1:] != numbers[:-1]) | (query_ids[1:] != query_ids[:-1])
    return first


def _split_by_query(
    query_ids: npt.NDArray[np.int64], count: int, numbers: ArticleNumbers, values: npt.NDArray[np.int64]
) -> list[tuple[ArticleNumbers, Counts]]:
    """Both by whose they are, 0 to ``count`` (exclusive), which ascends."""
    ends = query_ids.searchsorted(np.arange(count + 1)).tolist()
    return [(numbers[a:b], values[a:b]) for a, b in pairwise(ends)]


def _entry_counts(
    bucket_sizes: Sequence[int], buckets_per_block: Sequence[int], entry_bytes: int
) -> list[int]:
    """How many entries stand in so many buckets at a time, in turn. Raises StoreUnavailable when some are torn."""
    counts, at = [], 0
    while at < len(bucket_sizes):
        for step in buckets_per_block:
            count, torn = divmod(sum(bucket_sizes[at : at + step]), entry_bytes)
            if torn:
                raise _truncated_bucket_error()
            counts.append(count)
            at += step
    return counts


def numbers_sharing_each(
    buckets: Sequence[bytes | None], sketch_keys: Sequence[Sequence[int]], floor: int
) -> list[tuple[ArticleNumbers, Counts]]:
    """Of each look-up, article numbers with one of its values among their bands, and how many of them. Both (n,).

    ``values``: those of each look-up, each once. ``buckets``: theirs, as often as there are layers; all of the first
    look-up, all of the next, ...
    """
    if not any(buckets):
        return [(NO_NUMBERS, NO_COUNTS)] * len(sketch_keys)
    layers = len(buckets) // sum(map(len, sketch_keys))
    asked = [
        (value >> SKETCH_BUCKET_BITS, i) for i, some in enumerate(sketch_keys) for value in [*some] * layers
    ]
    # Most entries of a bucket are of other bands: what follows is about few.
    joined, place = _join_with_values(buckets, range(len(asked)), SKETCH_REMAINDER_BYTES)
    own, whose = np.array(asked).T
    (alike,) = (_remainder_view(joined, "<u2", SKETCH_REMAINDER_BYTES) == own[place]).nonzero()
    if not len(alike):
        return [(NO_NUMBERS, NO_COUNTS)] * len(sketch_keys)
    numbers, whose = _number_view(joined, SKETCH_REMAINDER_BYTES)[alike], whose[place[alike]]
    keep = numbers >= np.uint64(floor)
    order = np.lexsort((numbers[keep], whose[keep]))
    numbers, whose = numbers[keep][order], whose[keep][order]
    (first,) = _first_of_each_run(numbers, whose).nonzero()
    counts = np.append(first[1:], len(numbers)) - first
    return _split_by_query(whose[first], len(sketch_keys), numbers[first], counts)


def appended_within(
    appended: Mapping[int, bytes], probe_plan: ProbePlan, radius: int, floor: int
) -> dict[int, int]:
    """What ``within`` finds among a few entries: number -> distance.

    ``grown``: entries that came to buckets, by the bucket's place; a place behind them is another kind's.
    """
    found: dict[int, int] = {}
    for place, entries in appended.items():
        for _, _, own, flips in probe_plan.block_probes:
            if place < len(flips):
                flipped = flips[place].bit_count()
                for rest, number in _iterate_postings(entries, probe_plan.remainder_bytes):
                    distance = (own ^ rest).bit_count() + flipped
                    if distance <= radius and number >= floor:
                        found[number] = min(distance, found.get(number, distance))
                break
            place -= len(flips)
    return found


def appended_sharing(
    appended: Mapping[int, bytes], sketch_keys: Sequence[int], block_bucket_count: int, floor: int
) -> dict[int, int]:
    """What ``sharing_each`` finds among a few entries: number -> how many. ``grown``: as above; bands stand behind ``before`` others."""
    found: dict[int, int] = {}
    for place, entries in appended.items():
        if place >= block_bucket_count:
            own = sketch_keys[place - block_bucket_count] >> SKETCH_BUCKET_BITS
            for rest, number in _iterate_postings(entries, SKETCH_REMAINDER_BYTES):
                if rest == own and number >= floor:
                    found[number] = found.get(number, 0) + 1
    return found


def merge_matches(
    matches: tuple[ArticleNumbers, Counts], additions: Mapping[int, int], combine: Callable[[int, int], int]
) -> tuple[ArticleNumbers, Counts]:
    """Both together, ascending by number; ``join`` says what stands beside a number that is in both."""
    if not additions:
        return matches
    both = dict(zip(*(of.tolist() for of in matches), strict=True))
    for number, value in additions.items():
        both[number] = combine(both[number], value) if number in both else value
    numbers = sorted(both)
    return np.array(numbers, np.uint64), np.array([both[number] for number in numbers], np.int64)


def _iterate_postings(entries: bytes, remainder_bytes: int) -> Iterator[tuple[int, int]]:
    """Rest and number of each."""
    entry = remainder_bytes + NUMBER_BYTES
    for at in range(0, len(entries), entry):
        rest, number = entries[at : at + remainder_bytes], entries[at + remainder_bytes : at + entry]
        yield int.from_bytes(rest, "little"), int.from_bytes(number, "little")


def top_by_terms(buckets: Sequence[bytes | None], weights: Mapping[int, float], floor: int) -> ArticleNumbers:
    """Article numbers under any of these terms (hashes as ``topics.probed``), those that weigh most first.

    ``buckets``: those of ``weights``, as often as there are layers. An article's weight is the product of both
    weights, summed over the terms; of equals the newer is first.
    """
    low = (1 << TERM_REMAINDER_BITS) - 1
    joined, own = _join_with_values(buckets, [hashed & low for hashed in weights], TERM_REMAINDER_BYTES)
    rests = _remainder_view(joined, "<u4", TERM_REMAINDER_BYTES)
    numbers = _number_view(joined, TERM_REMAINDER_BYTES)
    keep = (rests & _TERM_HASH_MASK == own) & (numbers >= np.uint64(floor))
    if not keep.any():
        return NO_NUMBERS
    _, ours = _join_with_values(buckets, list(weights.values()), TERM_REMAINDER_BYTES)
    product = ours[keep] * (rests[keep] & ~_TERM_HASH_MASK)
    found, place = np.unique(numbers[keep], return_inverse=True)
    sums = np.bincount(place.reshape(-1), product)
    order = np.lexsort((found, sums))[::-1]
    return found[order][sums[order] > 0]


def compact_bucket(bucket: bytes, remainder_bytes: int, floor: int, dead: ArticleNumbers) -> bytes:
    """The bucket without entries below ``floor`` or of ``dead`` numbers; these ascending."""
    numbers = decode_numbers(bucket, remainder_bytes)
    gone = numbers < np.uint64(floor)
    if len(dead):
        at = np.minimum(np.searchsorted(dead, numbers), len(dead) - 1)
        gone |= dead[at] == numbers
    if not gone.any():
        return bucket
    return np.frombuffer(bucket, f"V{remainder_bytes + NUMBER_BYTES}")[~gone].tobytes()


def decode_numbers(bucket: bytes, remainder_bytes: int) -> ArticleNumbers:
    """The article numbers of all entries, (n,). Raises StoreUnavailable when the bucket ends within an entry."""
    if len(bucket) % (remainder_bytes + NUMBER_BYTES):
        raise _truncated_bucket_error()
    return _number_view(bucket, remainder_bytes)


def decode_remainders(bucket: bytes, remainder_bytes: int) -> npt.NDArray[np.uint64]:
    """What the entries of a block's bucket keep of their fingerprints, (n,); as ``numbers_of``."""
    unused = np.uint64(8 * (8 - remainder_bytes))
    if not len(decode_numbers(bucket, remainder_bytes)):
        return NO_NUMBERS
    return _remainder_view(bucket, "<u8", remainder_bytes) << unused >> unused


def _join_with_values(
    buckets: Sequence[bytes | None], values: Sequence[float], remainder_bytes: int
) -> tuple[bytes, npt.NDArray[np.float64 | np.int64]]:
    """All entries, and for each the value that its bucket was read for, (n,)."""
    filled = [bucket or b"" for bucket in buckets]
    joined, sizes = b"".join(filled), np.array(list(map(len, filled)), np.int64)
    counts = sizes // (remainder_bytes + NUMBER_BYTES)
    if counts.sum() * (remainder_bytes + NUMBER_BYTES) != len(joined):
        raise _truncated_bucket_error()
    own = np.array(values)
    if len(buckets) != len(own):
        own = np.tile(own, len(buckets) // len(own))
    return joined, np.repeat(own, counts)


def _remainder_view(joined: bytes, dtype: str, remainder_bytes: int) -> npt.NDArray[np.uint64]:
    entry = remainder_bytes + NUMBER_BYTES
    return np.ndarray((len(joined) // entry,), dtype, joined, 0, (entry,))


def _number_view(joined: bytes, remainder_bytes: int) -> ArticleNumbers:
    entry = remainder_bytes + NUMBER_BYTES
    if not joined:
        return NO_NUMBERS
    return np.ndarray((len(joined) // entry,), "<u8", joined, remainder_bytes, (entry,))


def _truncated_bucket_error() -> Exception:
    return corrupt_error("A bucket", "it ends within an entry")
