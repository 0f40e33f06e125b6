"""Postings: the packed entries of buckets, filtered with numpy.

    remainder  what the bucket's key does not say, little-endian
    8 bytes    little-endian uint64: the article number

    bucket    its key says                   remainder
    block     the block's value              the other bits of the fingerprint (``split``): 6 or 7 bytes
    sketch    low 18 to 24 bits of a key     its upper 14 bits: 2 bytes
    term      top 20 bits of a term's hash   16 bits that follow: 2 bytes

Entries are only appended, so a bucket's length is its version, except in sketch buckets. Functions for
lookups take the buckets of one segment after another, and ``floor``: smaller article numbers have expired.
An article found in several buckets counts once. A truncated bucket raises StoreUnavailable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from aggregator.index.blocks import PLAN, ProbePlan
from aggregator.index.keys import SKETCH_BUCKET_BITS, TERM_REMAINDER_BITS
from aggregator.store.decoding import corrupt_error

NUMBER_BYTES: Final = 8
SKETCH_REMAINDER_BYTES: Final = 2
SKETCH_POSTING_BYTES: Final = SKETCH_REMAINDER_BYTES + NUMBER_BYTES
TERM_REMAINDER_BYTES: Final = 2
TERM_POSTING_BYTES: Final = TERM_REMAINDER_BYTES + NUMBER_BYTES
_TERM_REMAINDER_MASK: Final = (1 << TERM_REMAINDER_BITS) - 1

ArticleNumbers = npt.NDArray[np.uint64]
Distances = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]

NO_NUMBERS = np.empty(0, np.uint64)
NO_COUNTS = np.empty(0, np.int64)
MIN_STORED: Final = 1000  # an index with fewer articles has no samples of them


# -- encoding ----------------------------------------------------------------------------------


def encode_postings(remainders: Iterable[int], number: int, remainder_bytes: int) -> list[bytes]:
    """Entries of one article, one per remainder."""
    end = number.to_bytes(NUMBER_BYTES, "little")
    return [remainder.to_bytes(remainder_bytes, "little") + end for remainder in remainders]


def encode_sketch_postings(sketch_keys: Iterable[int], number: int) -> list[bytes]:
    """Entries for ``keys.sketch_buckets(tag, sketch_keys)``."""
    return encode_postings([key >> SKETCH_BUCKET_BITS for key in sketch_keys], number, SKETCH_REMAINDER_BYTES)


def encode_term_postings(hashes: Iterable[int], number: int) -> list[bytes]:
    """Entries for ``keys.term_buckets(tag, hashes)``."""
    return encode_postings([hashed & _TERM_REMAINDER_MASK for hashed in hashes], number, TERM_REMAINDER_BYTES)


# -- lookups in block buckets ------------------------------------------------------------------


def numbers_within(
    buckets: Sequence[bytes | None], probe_plan: ProbePlan, radius: int, floor: int
) -> tuple[ArticleNumbers, Distances]:
    """Article numbers within ``radius`` bits, ascending, and their (smallest) distances; both (n,)."""
    return numbers_within_each(buckets, [probe_plan], radius, floor)[0]


def numbers_within_each(
    buckets: Sequence[bytes | None], probe_plans: Sequence[ProbePlan], radius: int, floor: int
) -> list[tuple[ArticleNumbers, Distances]]:
    """``numbers_within`` of several lookups of one plan and radius; ``buckets``: lookup by lookup."""
    remainder_bytes, flipped = probe_plans[0].remainder_bytes, probe_plans[0].flipped_bits
    entry_bytes = remainder_bytes + NUMBER_BYTES
    filled = [bucket or b"" for bucket in buckets]
    sizes, joined = list(map(len, filled)), b"".join(filled)
    if not joined:
        return [(NO_NUMBERS, NO_COUNTS)] * len(probe_plans)
    counts = _entry_counts(sizes, [len(flips) for *_, flips in probe_plans[0].block_probes], entry_bytes)
    # Remainders are read as 8 bytes each; the shift drops the bytes of the number that follow.
    unused_bits = np.uint64(8 * (8 - remainder_bytes))
    own = np.array([[rest for _, _, rest, _ in plan.block_probes] for plan in probe_plans], np.uint64)
    own <<= unused_bits
    segments = len(counts) // own.size
    differing = np.ndarray((len(joined) // entry_bytes,), "<u8", joined, 0, (entry_bytes,)) << unused_bits
    differing ^= (own if segments == 1 else np.tile(own, segments)).reshape(-1).repeat(counts)
    bits = np.bitwise_count(differing)
    (near,) = (bits <= radius).nonzero()  # few: everything below works on these
    if not len(near):
        return [(NO_NUMBERS, NO_COUNTS)] * len(probe_plans)
    # In a neighboring bucket, the flipped bits of its key differ as well.
    position = np.array(sizes).cumsum().searchsorted(near * entry_bytes, "right")
    distances = (bits[near] + flipped[position % len(flipped)]).astype(np.int64)
    numbers, query = (
        _column(joined, "<u8", remainder_bytes, remainder_bytes)[near],
        position // (segments * len(flipped)),
    )
    keep = (distances <= radius) & (numbers >= np.uint64(floor))
    numbers, distances, query = numbers[keep], distances[keep], query[keep]
    order = np.lexsort((distances, numbers, query))
    numbers, distances, query = numbers[order], distances[order], query[order]
    first = _first_of_each_run(numbers, query)
    numbers, distances = numbers[first], distances[first]
    ends = query[first].searchsorted(np.arange(len(probe_plans) + 1)).tolist()
    return [(numbers[a:b], distances[a:b]) for a, b in pairwise(ends)]


def _first_of_each_run(numbers: ArticleNumbers, query_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    first = np.ones(len(numbers), bool)
    first[1:] = (numbers[1:] != numbers[:-1]) | (query_ids[1:] != query_ids[:-1])
    return first


def _entry_counts(
    bucket_sizes: Sequence[int], buckets_per_block: Sequence[int], entry_bytes: int
) -> list[int]:
    counts, at = [], 0
    while at < len(bucket_sizes):
        for step in buckets_per_block:
            count, extra = divmod(sum(bucket_sizes[at : at + step]), entry_bytes)
            if extra:
                raise _truncated_bucket_error()
            counts.append(count)
            at += step
    return counts


# -- lookups in sketch buckets -----------------------------------------------------------------


class KeyMatches(NamedTuple):
    """The article numbers that share sketch keys with one lookup, ascending; all arrays (n,).

    ``counts``: how many keys each shares. Of one of these: its entries in the segment and its position in the
    lookup.
    """

    numbers: ArticleNumbers
    counts: Counts
    key_entries: Counts
    key_ranks: Counts


NO_KEY_MATCHES = KeyMatches(NO_NUMBERS, NO_COUNTS, NO_COUNTS, NO_COUNTS)


def numbers_sharing_each(
    buckets: Sequence[bytes | None], sketch_keys: Sequence[Sequence[int]], floor: int
) -> list[KeyMatches]:
    """Per lookup, the article numbers that share its sketch keys; ``buckets``: by lookup, then by segment."""
    if not any(buckets):
        return [NO_KEY_MATCHES] * len(sketch_keys)
    segments = len(buckets) // sum(map(len, sketch_keys))
    wanted = [
        (key >> SKETCH_BUCKET_BITS, i, rank)
        for i, own_keys in enumerate(sketch_keys)
        for rank, key in [*enumerate(own_keys)] * segments
    ]
    # Most entries of a bucket are of other sketch keys: everything below works on few.
    joined, position = _join_with_values(buckets, range(len(wanted)), SKETCH_REMAINDER_BYTES)
    own, query, ranks = np.array(wanted).T
    (equal,) = (_column(joined, "<u2", 0, SKETCH_REMAINDER_BYTES) == own[position]).nonzero()
    if not len(equal):
        return [NO_KEY_MATCHES] * len(sketch_keys)
    numbers, position = (
        _column(joined, "<u8", SKETCH_REMAINDER_BYTES, SKETCH_REMAINDER_BYTES)[equal],
        position[equal],
    )
    entries = np.bincount(position)
    (live,) = (numbers >= np.uint64(floor)).nonzero()
    order = live[np.lexsort((numbers[live], query[position[live]]))]
    numbers, position = numbers[order], position[order]
    (first,) = _first_of_each_run(numbers, query[position]).nonzero()
    counts = np.append(first[1:], len(numbers)) - first
    numbers, position = numbers[first], position[first]
    entries, ranks = entries[position], ranks[position]
    ends = query[position].searchsorted(np.arange(len(sketch_keys) + 1)).tolist()
    return [KeyMatches(numbers[a:b], counts[a:b], entries[a:b], ranks[a:b]) for a, b in pairwise(ends)]


def trim_sketch_key(bucket: bytes, remainder: int, full: int, kept: int) -> bytes:
    """A bucket with the last ``kept`` entries of a remainder, if it has ``full``; else the bucket itself."""
    decode_numbers(bucket, SKETCH_REMAINDER_BYTES)  # raises if it is truncated
    (own,) = (_column(bucket, "<u2", 0, SKETCH_REMAINDER_BYTES) == remainder).nonzero()
    if len(own) < full:
        return bucket
    left = np.ones(len(bucket) // SKETCH_POSTING_BYTES, bool)
    left[own[: len(own) - kept]] = False
    return np.frombuffer(bucket, f"V{SKETCH_POSTING_BYTES}")[left].tobytes()


def split_sketch_bucket(bucket: bytes, bits: int) -> tuple[bytes, bytes]:
    """The two buckets of ``bits + 1`` bits that replace one of ``bits`` bits; entries stay in order."""
    decode_numbers(bucket, SKETCH_REMAINDER_BYTES)  # raises if it is truncated
    upper = _column(bucket, "<u2", 0, SKETCH_REMAINDER_BYTES) >> (bits - SKETCH_BUCKET_BITS) & 1 == 1
    entries = np.frombuffer(bucket, f"V{SKETCH_POSTING_BYTES}")
    return entries[~upper].tobytes(), entries[upper].tobytes()


# -- entries appended since a lookup: so few that a Python loop is faster than numpy -----------


def appended_within(
    appended: Mapping[int, bytes], probe_plan: ProbePlan, radius: int, floor: int
) -> dict[int, int]:
    """What ``numbers_within`` finds among a few entries, given by the position of their bucket."""
    found: dict[int, int] = {}
    for position, entries in appended.items():
        start = 0
        for _, _, own, flips in probe_plan.block_probes:
            if position < start + len(flips):
                flipped = flips[position - start].bit_count()
                for remainder, number in _iterate_postings(entries, probe_plan.remainder_bytes):
                    distance = (own ^ remainder).bit_count() + flipped
                    if distance <= radius and number >= floor:
                        found[number] = min(distance, found.get(number, distance))
                break
            start += len(flips)
    return found


def appended_sharing(
    appended: Mapping[int, bytes], sketch_keys: Sequence[int], block_bucket_count: int, floor: int
) -> dict[int, int]:
    """What ``numbers_sharing_each`` finds among a few entries: number -> number of shared sketch keys.

    The sketch buckets follow the block buckets, those of one width after another.
    """
    found: dict[int, int] = {}
    for position, entries in appended.items():
        if position >= block_bucket_count:
            own = sketch_keys[(position - block_bucket_count) % len(sketch_keys)] >> SKETCH_BUCKET_BITS
            for remainder, number in _iterate_postings(entries, SKETCH_REMAINDER_BYTES):
                if remainder == own and number >= floor:
                    found[number] = found.get(number, 0) + 1
    return found


def merge_matches(
    matches: tuple[ArticleNumbers, Counts], additions: Mapping[int, int], combine: Callable[[int, int], int]
) -> tuple[ArticleNumbers, Counts]:
    """Both together, ascending by number; the values of a number that is in both are combined."""
    if not additions:
        return matches
    merged = dict(zip(*(column.tolist() for column in matches), strict=True))
    for number, value in additions.items():
        merged[number] = combine(merged[number], value) if number in merged else value
    numbers = sorted(merged)
    return np.array(numbers, np.uint64), np.array([merged[number] for number in numbers], np.int64)


def _iterate_postings(entries: bytes, remainder_bytes: int) -> Iterator[tuple[int, int]]:
    entry_bytes = remainder_bytes + NUMBER_BYTES
    for at in range(0, len(entries), entry_bytes):
        remainder, number = (
            entries[at : at + remainder_bytes],
            entries[at + remainder_bytes : at + entry_bytes],
        )
        yield int.from_bytes(remainder, "little"), int.from_bytes(number, "little")


# -- lookups in term buckets -------------------------------------------------------------------


def entries_of_terms(
    buckets: Sequence[bytes | None], hashes: Sequence[int], floor: int
) -> tuple[ArticleNumbers, Counts]:
    """Article numbers, once for each of these terms that they have, and its position; both (n,)."""
    if not any(buckets):
        return NO_NUMBERS, NO_COUNTS
    joined, terms = _join_with_values(buckets, range(len(hashes)), TERM_REMAINDER_BYTES)
    own = np.array([hashed & _TERM_REMAINDER_MASK for hashed in hashes])
    numbers = _column(joined, "<u8", TERM_REMAINDER_BYTES, TERM_REMAINDER_BYTES)
    keep = (_column(joined, "<u2", 0, TERM_REMAINDER_BYTES) == own[terms]) & (numbers >= np.uint64(floor))
    return numbers[keep], terms[keep]


def top_by_terms(numbers: ArticleNumbers, terms: Counts, weights: npt.NDArray[np.float64]) -> ArticleNumbers:
    """The articles of ``entries_of_terms`` whose terms weigh most together, 0 left out; ties: newer first."""
    found, position = np.unique(numbers, return_inverse=True)
    sums = np.bincount(position.reshape(-1), weights[terms], len(found))
    order = np.lexsort((found, sums))[::-1]
    return found[order][sums[order] > 0]


def shares_of_terms(
    numbers: ArticleNumbers, terms: Counts, entries: Counts, samples: tuple[ArticleNumbers, Counts], full: int
) -> npt.NDArray[np.float64]:
    """The share, 0..1, of the stored articles that are indexed under each term with so many ``entries``.

    A list of ``full`` entries may have lost older ones: its share is that since its first entry, the oldest.
    ``samples``: article numbers, and how many articles each represents.
    """
    sampled, represented = samples
    oldest = np.zeros(len(entries), np.uint64)
    oldest[terms[::-1]] = numbers[::-1]
    order = sampled.argsort()
    newer = np.append(represented[order][::-1].cumsum()[::-1], 0)
    total = max(MIN_STORED, int(newer[0]))
    articles = np.where(entries < full, total, newer[sampled[order].searchsorted(oldest)])
    shares: npt.NDArray[np.float64] = np.maximum(entries, 1) / np.maximum(np.maximum(articles, entries), 1)
    return shares


# -- whole buckets -----------------------------------------------------------------------------


def is_among(values: ArticleNumbers, ascending: ArticleNumbers) -> npt.NDArray[np.bool_]:
    """Which ``values``, (n,), are in ``ascending``, (m,); ``numpy.isin`` would sort all of them."""
    if not len(ascending):
        return np.zeros(len(values), np.bool_)
    at = np.minimum(ascending.searchsorted(values), len(ascending) - 1)
    found: npt.NDArray[np.bool_] = ascending[at] == values
    return found


def newest_missing(
    parts: Sequence[ArticleNumbers], known: ArticleNumbers
) -> tuple[ArticleNumbers, npt.NDArray[np.int64]]:
    """Numbers of all parts that are not ``known``, newest first, and the part of each; 1 s for 10^7."""
    numbers = np.concatenate(parts)
    owners = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    missing = np.flatnonzero(~is_among(numbers, np.sort(known)))
    newest_first = missing[np.argsort(numbers[missing])[::-1]]
    return numbers[newest_first], owners[newest_first]


def compact_bucket(bucket: bytes, remainder_bytes: int, floor: int, dead: ArticleNumbers) -> bytes:
    """The bucket without entries below ``floor`` or of ``dead`` numbers, which ascend."""
    numbers = decode_numbers(bucket, remainder_bytes)
    gone = (numbers < np.uint64(floor)) | is_among(numbers, dead)
    if not gone.any():
        return bucket
    return np.frombuffer(bucket, f"V{remainder_bytes + NUMBER_BYTES}")[~gone].tobytes()


# Bytes of a remainder by the kind of the bucket (``keys.kind_of``).
REMAINDER_SIZES = {b"b": PLAN.remainder_bytes, b"s": SKETCH_REMAINDER_BYTES, b"t": TERM_REMAINDER_BYTES}


def decode_numbers(bucket: bytes, remainder_bytes: int) -> ArticleNumbers:
    """The article numbers of all entries, (n,)."""
    if len(bucket) % (remainder_bytes + NUMBER_BYTES):
        raise _truncated_bucket_error()
    return _column(bucket, "<u8", remainder_bytes, remainder_bytes)


def decode_remainders(bucket: bytes, remainder_bytes: int) -> npt.NDArray[np.uint64]:
    """The remainders of all entries, (n,)."""
    unused_bits = np.uint64(8 * (8 - remainder_bytes))
    if not len(decode_numbers(bucket, remainder_bytes)):
        return NO_NUMBERS
    return _column(bucket, "<u8", 0, remainder_bytes) << unused_bits >> unused_bits


def _join_with_values(
    buckets: Sequence[bytes | None], values: Sequence[float], remainder_bytes: int
) -> tuple[bytes, npt.NDArray[np.float64 | np.int64]]:
    """All entries, and the value of the bucket of each, (n,); ``values`` repeat per segment."""
    filled = [bucket or b"" for bucket in buckets]
    joined, sizes = b"".join(filled), np.array(list(map(len, filled)), np.int64)
    counts = sizes // (remainder_bytes + NUMBER_BYTES)
    if counts.sum() * (remainder_bytes + NUMBER_BYTES) != len(joined):
        raise _truncated_bucket_error()
    own = np.array(values)
    if len(buckets) != len(own):
        own = np.tile(own, len(buckets) // len(own))
    return joined, np.repeat(own, counts)


def _column(joined: bytes, dtype: str, offset: int, remainder_bytes: int) -> npt.NDArray[np.uint64]:
    """What all entries have at ``offset``; not copied."""
    entry_bytes = remainder_bytes + NUMBER_BYTES
    if not joined:
        return NO_NUMBERS
    return np.ndarray((len(joined) // entry_bytes,), dtype, joined, offset, (entry_bytes,))


def _truncated_bucket_error() -> Exception:
    return corrupt_error("A bucket", "it ends within an entry")
