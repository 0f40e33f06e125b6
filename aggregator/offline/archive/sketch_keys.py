"""Under which of its shingles is an article looked for? The smallest ones, but for those that crowds have.

The smallest hashes of a text are a random choice of its shingles, and the same choice for its copies. But some
shingles are in every tenth article ("one of the"), more of them the larger the archive: whoever is compared with
all that have one is compared in vain, or with none when the bucket is too large. So how many articles have each
hash is counted first, over all articles, and the crowded ones are passed over. Some more bands are of hashes that
few have: they find the one copy of a text, where those of middling buckets ask for more agreement than a copy that
was cut can give. Of those alone a text that was copied hundreds of times would not be found: all that its copies
share is common.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from aggregator.offline.archive.checkpoint import atomic_write
from aggregator.offline.archive.pairs import Pairs, pack_pairs

SMALLEST_KEYS = 16  # twice the service's: nobody waits, and copies cut to a third are still found
RARE_KEYS = 16  # of hashes that few have; most of these are among the former too
KEYS_PER_ARTICLE = SMALLEST_KEYS + RARE_KEYS
CONSIDERED_HASHES = 48  # of the smallest hashes, to choose from
COMMON_ABOVE_ARTICLES, RARE_UP_TO_ARTICLES = (
    256,
    16,
)  # articles that have a hash: above one they are a crowd, up to the other few
_ROWS_PER_SLICE = 20_000
_COUNT_TABLE_BITS = (16, 26)  # of the table of counts: four for each hash when there is room, at most 256 MB
_HASH_MULTIPLIER = np.uint32(0x9E3779B1)

Hashes = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]
Sizes = npt.NDArray[np.uint16]


class SketchKeySelector:
    """Chooses bands, of samples that are all counted first: ``sample`` holds them one after another, each ascending,
    ``ends`` says where each ends and ``sampled`` how long it is.
    """

    def __init__(self, articles: int) -> None:
        low, high = _COUNT_TABLE_BITS
        bits = min(high, max(low, int(articles * CONSIDERED_HASHES).bit_length() + 2))
        self._cell_shift = np.uint32(32 - bits)
        self._articles_per_cell = np.zeros(1 << bits, np.uint32)

    def add_samples(self, sample: Hashes, ends: Counts, sample_sizes: Sizes) -> None:
        """Take the smallest hashes of these samples into account."""
        for some in _slices(len(ends)):
            first, valid = _smallest_hashes(sample, ends[some], sample_sizes[some])
            cells = np.sort(
                self._cells(first)[valid]
            )  # so that the table is walked through, not jumped about in
            starts = np.flatnonzero(np.diff(cells, prepend=~cells[:1]))
            self._articles_per_cell[cells[starts]] += np.diff(starts, append=len(cells)).astype(np.uint32)

    def select(self, sample: Hashes, ends: Counts, sample_sizes: Sizes) -> Hashes:
        """(n, BANDS) ascending; what is both smallest and rare stands twice, a short sample repeats its last hash."""
        found = np.empty((len(ends), KEYS_PER_ARTICLE), np.uint32)
        for some in _slices(len(ends)):
            first, valid = _smallest_hashes(sample, ends[some], sample_sizes[some])
            having = self._articles_per_cell[self._cells(first)]
            chosen = [
                _preferred_columns(having > COMMON_ABOVE_ARTICLES, valid, SMALLEST_KEYS),
                _preferred_columns(having > RARE_UP_TO_ARTICLES, valid, RARE_KEYS),
            ]
            found[some] = np.sort(np.take_along_axis(first, np.concatenate(chosen, axis=1), 1), axis=1)
        return found

    def _cells(self, hashes: Hashes) -> Hashes:
        """Where each is counted; they crowd near zero, so they are mixed. Two in one cell only seem commoner."""
        cells: Hashes = (hashes * _HASH_MULTIPLIER) >> self._cell_shift
        return cells


def select_sketch_keys(sample: Hashes, ends: Counts, sample_sizes: Sizes) -> Hashes:
    """The bands of all articles of a corpus, in memory."""
    found = SketchKeySelector(len(ends))
    found.add_samples(sample, ends, sample_sizes)
    return found.select(sample, ends, sample_sizes)


def first_occurrences(keys: Hashes) -> npt.NDArray[np.bool_]:
    """(n, BANDS): which of the ascending bands of a row are not those before again."""
    first = np.ones(keys.shape, bool)
    np.not_equal(keys[:, 1:], keys[:, :-1], out=first[:, 1:])
    return first


def sorted_entries(keys: Hashes, rows: Counts) -> Pairs:
    """Ascending (hash, row) of all distinct bands of these rows, a band in the upper half."""
    listed = [np.empty(0, np.uint64), *_entry_slices(keys, rows)]
    return np.sort(np.concatenate(listed))


def write_entries(file: Path, keys: Hashes, rows: Counts) -> None:
    """``entries`` as an array in ``file``, whole or not at all; in memory a slice at a time."""
    total = sum(int(first_occurrences(keys[rows[some]]).sum()) for some in _slices(len(rows)))
    with atomic_write(file) as out:
        np.lib.format.write_array_header_1_0(out, {"descr": "<u8", "fortran_order": False, "shape": (total,)})
        for part in _entry_slices(keys, rows):
            out.write(part.data)
        out.flush()
        if total:  # an empty file cannot be mapped
            np.load(out.name, mmap_mode="r+").sort()


def _entry_slices(keys: Hashes, rows: Counts) -> Iterator[Pairs]:
    for some in _slices(len(rows)):
        chosen = rows[some]
        bands = keys[chosen]
        row, column = np.nonzero(first_occurrences(bands))
        yield pack_pairs(bands[row, column], chosen[row])


def _slices(count: int) -> Iterator[slice]:
    return (slice(at, at + _ROWS_PER_SLICE) for at in range(0, count, _ROWS_PER_SLICE))


def _preferred_columns(
    too_common: npt.NDArray[np.bool_], valid: npt.NDArray[np.bool_], count: int
) -> npt.NDArray[np.int64]:
    """(n, most) columns: the first that are not passed over, then those that are, repeats last."""
    last = np.where(valid, too_common, 2).astype(np.uint8)
    return np.argsort(last, axis=1, kind="stable")[:, :count]


def _smallest_hashes(
    sample: Hashes, ends: Counts, sample_sizes: Sizes
) -> tuple[Hashes, npt.NDArray[np.bool_]]:
    """(n, WINDOW) hashes of each sample, its last one repeated, and which of them are not repeats."""
    sizes = sample_sizes.astype(np.int64)[:, None]
    column = np.arange(CONSIDERED_HASHES)[None]
    at = ends[:, None] - sizes + np.minimum(column, sizes - 1)
    return sample[at], column < sizes
