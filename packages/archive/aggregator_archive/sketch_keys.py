"""Sketch keys: the hashes of a sample under which an article is searched for.

The smallest hashes of a text are the same choice of shingles in its near-duplicates, but buckets of common
shingles ("one of the") are expensive and useless. So the articles of each hash are counted first, and each
sample gets two kinds of keys:

* the smallest hashes that are not common (at most ``COMMON_ABOVE_ARTICLES`` articles have them), the only
  ones of a text with hundreds of copies;
* the smallest hashes that are rare (at most ``RARE_UP_TO_ARTICLES``), which find a truncated single copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from aggregator_archive.arrays import Flags, Hashes, Keys, Rows, atomic_write, batches, pack_pairs

SMALLEST_KEYS = 16  # twice the service's: latency does not matter, and copies cut to 30 % are still found
RARE_KEYS = 16  # most of them are among the smallest too
KEYS_PER_ARTICLE = SMALLEST_KEYS + RARE_KEYS
CONSIDERED_HASHES = 48  # smallest hashes of a sample from which keys are chosen
COMMON_ABOVE_ARTICLES = 256
RARE_UP_TO_ARTICLES = 16
ROWS_PER_BATCH = 20_000
_COUNT_TABLE_BITS = (16, 26)  # size of the table of counts: four cells per hash if possible, at most 256 MB
_HASH_MULTIPLIER = np.uint32(0x9E3779B1)

Sizes = npt.NDArray[np.uint16]


class SketchKeySelector:
    """Select the sketch keys of samples after all samples have been counted.

    Samples are given as one array ``sample`` that holds them concatenated (each ascending), with ``ends`` and
    ``sample_sizes``: (n,) end and length of each.
    """

    def __init__(self, articles: int) -> None:
        low, high = _COUNT_TABLE_BITS
        bits = min(high, max(low, int(articles * CONSIDERED_HASHES).bit_length() + 2))
        self._cell_shift = np.uint32(32 - bits)
        self._articles_per_cell = np.zeros(1 << bits, np.uint32)

    def add_samples(self, sample: Hashes, ends: Rows, sample_sizes: Sizes) -> None:
        """Count the smallest hashes of these samples."""
        for batch in batches(len(ends), ROWS_PER_BATCH):
            smallest, valid = _smallest_hashes(sample, ends[batch], sample_sizes[batch])
            cells = np.sort(self._cells(smallest)[valid])  # sorted: the table is updated front to back
            starts = np.flatnonzero(np.diff(cells, prepend=~cells[:1]))
            self._articles_per_cell[cells[starts]] += np.diff(starts, append=len(cells)).astype(np.uint32)

    def select(self, sample: Hashes, ends: Rows, sample_sizes: Sizes) -> Hashes:
        """(n, KEYS_PER_ARTICLE) ascending keys.

        A hash that is both smallest and rare occurs twice; a short sample repeats its last hash.
        """
        keys = np.empty((len(ends), KEYS_PER_ARTICLE), np.uint32)
        for batch in batches(len(ends), ROWS_PER_BATCH):
            smallest, valid = _smallest_hashes(sample, ends[batch], sample_sizes[batch])
            articles = self._articles_per_cell[self._cells(smallest)]
            chosen = [
                _preferred_columns(articles > COMMON_ABOVE_ARTICLES, valid, SMALLEST_KEYS),
                _preferred_columns(articles > RARE_UP_TO_ARTICLES, valid, RARE_KEYS),
            ]
            keys[batch] = np.sort(np.take_along_axis(smallest, np.concatenate(chosen, axis=1), 1), axis=1)
        return keys

    def _cells(self, hashes: Hashes) -> Hashes:
        """Cell of each hash, mixed since the smallest are close to zero; a shared cell seems more common."""
        cells: Hashes = (hashes * _HASH_MULTIPLIER) >> self._cell_shift
        return cells


def select_sketch_keys(sample: Hashes, ends: Rows, sample_sizes: Sizes) -> Hashes:
    """(n, KEYS_PER_ARTICLE) sketch keys of all articles of a corpus in memory."""
    selector = SketchKeySelector(len(ends))
    selector.add_samples(sample, ends, sample_sizes)
    return selector.select(sample, ends, sample_sizes)


def first_occurrences(keys: Hashes) -> Flags:
    """(n, KEYS_PER_ARTICLE): which of the ascending keys of a row differ from the key before."""
    first = np.ones(keys.shape, bool)
    np.not_equal(keys[:, 1:], keys[:, :-1], out=first[:, 1:])
    return first


def sorted_entries(keys: Hashes, rows: Rows) -> Keys:
    """Ascending (key, row) entries of all distinct keys of these rows, the key in the upper half."""
    parts = [np.empty(0, np.uint64), *_entry_batches(keys, rows)]
    return np.sort(np.concatenate(parts))


def write_entries(file: Path, keys: Hashes, rows: Rows) -> None:
    """Write ``sorted_entries`` to ``file``, whole or not at all; one batch at a time is in memory."""
    total = sum(
        int(first_occurrences(keys[rows[batch]]).sum()) for batch in batches(len(rows), ROWS_PER_BATCH)
    )
    with atomic_write(file) as out:
        np.lib.format.write_array_header_1_0(out, {"descr": "<u8", "fortran_order": False, "shape": (total,)})
        for part in _entry_batches(keys, rows):
            out.write(part.data)
        out.flush()
        if total:  # an empty file cannot be mapped
            np.load(out.name, mmap_mode="r+").sort()


def _entry_batches(keys: Hashes, rows: Rows) -> Iterator[Keys]:
    for batch in batches(len(rows), ROWS_PER_BATCH):
        batch_rows = rows[batch]
        batch_keys = keys[batch_rows]
        row, column = np.nonzero(first_occurrences(batch_keys))
        yield pack_pairs(batch_keys[row, column], batch_rows[row])


def _preferred_columns(too_common: Flags, valid: Flags, count: int) -> Rows:
    """(n, count) columns: hashes that are not too common first, then those that are, then repeats."""
    order = np.where(valid, too_common, 2).astype(np.uint8)
    return np.argsort(order, axis=1, kind="stable")[:, :count]


def _smallest_hashes(sample: Hashes, ends: Rows, sample_sizes: Sizes) -> tuple[Hashes, Flags]:
    """(n, CONSIDERED_HASHES) hashes of each sample, its last one repeated; and which are not repeats."""
    sizes = sample_sizes.astype(np.int64)[:, None]
    column = np.arange(CONSIDERED_HASHES)[None]
    at = ends[:, None] - sizes + np.minimum(column, sizes - 1)
    return sample[at], column < sizes
