"""Packed bucket entries: 16 bytes each, filtered without a Python loop.

    bytes 0..7    little-endian uint64: the fingerprint (in a band bucket: the band; in a topic bucket:
                  the term's hash with its weight in the lowest byte)
    bytes 8..15   little-endian uint64: the article number

An article found in several buckets counts once. Entries are only ever appended, so a bucket's
length is its version (``index/``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from aggregator.store.sound import damaged

ENTRY_BYTES = 16

ArticleNumbers = npt.NDArray[np.uint64]
Distances = npt.NDArray[np.int64]


_NO_NUMBERS = np.empty(0, np.uint64)
_NO_COUNTS = np.empty(0, np.int64)


def pack(value: int, number: int) -> bytes:
    """One entry of 16 bytes."""
    return value.to_bytes(8, "little") + number.to_bytes(8, "little")


def within(
    buckets: Iterable[bytes | None], fingerprint: int, radius: int, floor: int
) -> tuple[ArticleNumbers, Distances]:
    """Article numbers at or above ``floor`` within ``radius`` bits, and their distances.

    Both (n,), ascending by number, each number once (at its smallest distance).
    """
    words = _words(buckets)
    bits = np.bitwise_count(words[::2] ^ np.uint64(fingerprint))
    (near,) = (bits <= radius).nonzero()  # few: all that follows is about them
    if not len(near):
        return _NO_NUMBERS, _NO_COUNTS
    numbers, distances = words[1::2][near], bits[near].astype(np.int64)
    if floor:
        keep = numbers >= np.uint64(floor)
        numbers, distances = numbers[keep], distances[keep]
    if len(numbers) < 2:
        return numbers, distances
    order = np.lexsort((distances, numbers))
    numbers, distances = numbers[order], distances[order]
    first = np.ones(len(numbers), bool)
    first[1:] = numbers[1:] != numbers[:-1]
    return numbers[first], distances[first]


def sharing(
    buckets: Iterable[bytes | None], values: Iterable[int], floor: int
) -> tuple[ArticleNumbers, npt.NDArray[np.int64]]:
    """Article numbers with one of ``values`` among their bands, and how many entries it has there. Both (n,)."""
    table = _table(buckets)
    if not len(table):
        return _NO_NUMBERS, _NO_COUNTS
    wanted = np.sort(np.fromiter(values, np.uint64))
    if not len(wanted):
        return _NO_NUMBERS, _NO_COUNTS
    # Most entries of a bucket are of other bands: np.isin and np.unique cost more than all the rest here.
    at = np.minimum(np.searchsorted(wanted, table[:, 0]), len(wanted) - 1)
    keep = (wanted[at] == table[:, 0]) & (table[:, 1] >= np.uint64(floor))
    if not keep.any():
        return _NO_NUMBERS, _NO_COUNTS
    numbers, counts = np.unique(table[keep, 1], return_counts=True)
    return numbers, counts


def weighed(buckets: Iterable[bytes | None], weights: Mapping[int, float], floor: int) -> ArticleNumbers:
    """Article numbers under any of these terms (hashes as ``topics.probed``), those that weigh most first.

    An article's weight is the product of both weights, summed over the terms; of equals the newer is first.
    """
    table = _table(buckets)
    table = table[table[:, 1] >= np.uint64(floor)]
    hashes = np.fromiter(sorted(weights), np.uint64, len(weights))
    if not len(table) or not len(hashes):
        return np.empty(0, np.uint64)
    own = np.array([weights[h] for h in hashes.tolist()])
    terms = table[:, 0] & ~np.uint64(0xFF)
    at = np.minimum(np.searchsorted(hashes, terms), len(hashes) - 1)
    product = np.where(hashes[at] == terms, own[at] * (table[:, 0] & np.uint64(0xFF)), 0.0)
    numbers, place = np.unique(table[:, 1], return_inverse=True)
    sums = np.bincount(place.reshape(-1), product)
    order = np.lexsort((numbers, sums))[::-1]
    return numbers[order][sums[order] > 0]


def kept(bucket: bytes, floor: int, dead: ArticleNumbers) -> bytes:
    """The bucket without entries below ``floor`` or of ``dead`` numbers; these ascending, each once."""
    table = _table([bucket])
    gone = table[:, 1] < np.uint64(floor)
    if len(dead):
        at = np.minimum(np.searchsorted(dead, table[:, 1]), len(dead) - 1)
        gone |= dead[at] == table[:, 1]
    return table[~gone].tobytes() if gone.any() else bucket


def _table(buckets: Iterable[bytes | None]) -> npt.NDArray[np.uint64]:
    return _words(buckets).reshape(-1, 2)


def _words(buckets: Iterable[bytes | None]) -> npt.NDArray[np.uint64]:
    """Values and numbers of all entries in turn. Raises StoreUnavailable when a bucket ends within an entry."""
    joined = b"".join(filter(None, buckets))
    if len(joined) % ENTRY_BYTES:
        raise damaged("A bucket", "it ends within an entry")
    return np.frombuffer(joined, "<u8")
