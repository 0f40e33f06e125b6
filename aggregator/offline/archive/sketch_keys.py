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

from aggregator.offline.archive.checkpoint import whole
from aggregator.offline.archive.pairs import Pairs, packed

SMALLEST = 16  # twice the service's: nobody waits, and copies cut to a third are still found
RARE = 16  # of hashes that few have; most of these are among the former too
BANDS = SMALLEST + RARE
WINDOW = 48  # of the smallest hashes, to choose from
CROWD, FEW = 256, 16  # articles that have a hash: above one they are a crowd, up to the other few
_ROWS_AT_ONCE = 20_000
_CELL_BITS = (16, 26)  # of the table of counts: four for each hash when there is room, at most 256 MB
_ODD = np.uint32(0x9E3779B1)

Hashes = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]
Sizes = npt.NDArray[np.uint16]


class Bands:
    """Chooses bands, of samples that are all counted first: ``sample`` holds them one after another, each ascending,
    ``ends`` says where each ends and ``sampled`` how long it is.
    """

    def __init__(self, articles: int) -> None:
        low, high = _CELL_BITS
        bits = min(high, max(low, int(articles * WINDOW).bit_length() + 2))
        self._shift = np.uint32(32 - bits)
        self._having = np.zeros(1 << bits, np.uint32)

    def count(self, sample: Hashes, ends: Counts, sampled: Sizes) -> None:
        """Take the smallest hashes of these samples into account."""
        for some in _slices(len(ends)):
            first, valid = _smallest(sample, ends[some], sampled[some])
            cells = np.sort(
                self._cells(first)[valid]
            )  # so that the table is walked through, not jumped about in
            starts = np.flatnonzero(np.diff(cells, prepend=~cells[:1]))
            self._having[cells[starts]] += np.diff(starts, append=len(cells)).astype(np.uint32)

    def of(self, sample: Hashes, ends: Counts, sampled: Sizes) -> Hashes:
        """(n, BANDS) ascending; what is both smallest and rare stands twice, a short sample repeats its last hash."""
        found = np.empty((len(ends), BANDS), np.uint32)
        for some in _slices(len(ends)):
            first, valid = _smallest(sample, ends[some], sampled[some])
            having = self._having[self._cells(first)]
            chosen = [_first(having > CROWD, valid, SMALLEST), _first(having > FEW, valid, RARE)]
            found[some] = np.sort(np.take_along_axis(first, np.concatenate(chosen, axis=1), 1), axis=1)
        return found

    def _cells(self, hashes: Hashes) -> Hashes:
        """Where each is counted; they crowd near zero, so they are mixed. Two in one cell only seem commoner."""
        cells: Hashes = (hashes * _ODD) >> self._shift
        return cells


def bands(sample: Hashes, ends: Counts, sampled: Sizes) -> Hashes:
    """The bands of all articles of a corpus, in memory."""
    found = Bands(len(ends))
    found.count(sample, ends, sampled)
    return found.of(sample, ends, sampled)


def first_of_each(found: Hashes) -> npt.NDArray[np.bool_]:
    """(n, BANDS): which of the ascending bands of a row are not those before again."""
    first = np.ones(found.shape, bool)
    np.not_equal(found[:, 1:], found[:, :-1], out=first[:, 1:])
    return first


def entries(found: Hashes, rows: Counts) -> Pairs:
    """Ascending (hash, row) of all distinct bands of these rows, a band in the upper half."""
    listed = [np.empty(0, np.uint64), *_entries(found, rows)]
    return np.sort(np.concatenate(listed))


def write_entries(file: Path, found: Hashes, rows: Counts) -> None:
    """``entries`` as an array in ``file``, whole or not at all; in memory a slice at a time."""
    total = sum(int(first_of_each(found[rows[some]]).sum()) for some in _slices(len(rows)))
    with whole(file) as out:
        np.lib.format.write_array_header_1_0(out, {"descr": "<u8", "fortran_order": False, "shape": (total,)})
        for part in _entries(found, rows):
            out.write(part.data)
        out.flush()
        if total:  # an empty file cannot be mapped
            np.load(out.name, mmap_mode="r+").sort()


def _entries(found: Hashes, rows: Counts) -> Iterator[Pairs]:
    for some in _slices(len(rows)):
        chosen = rows[some]
        bands = found[chosen]
        row, column = np.nonzero(first_of_each(bands))
        yield packed(bands[row, column], chosen[row])


def _slices(count: int) -> Iterator[slice]:
    return (slice(at, at + _ROWS_AT_ONCE) for at in range(0, count, _ROWS_AT_ONCE))


def _first(
    passed_over: npt.NDArray[np.bool_], valid: npt.NDArray[np.bool_], most: int
) -> npt.NDArray[np.int64]:
    """(n, most) columns: the first that are not passed over, then those that are, repeats last."""
    last = np.where(valid, passed_over, 2).astype(np.uint8)
    return np.argsort(last, axis=1, kind="stable")[:, :most]


def _smallest(sample: Hashes, ends: Counts, sampled: Sizes) -> tuple[Hashes, npt.NDArray[np.bool_]]:
    """(n, WINDOW) hashes of each sample, its last one repeated, and which of them are not repeats."""
    sizes = sampled.astype(np.int64)[:, None]
    column = np.arange(WINDOW)[None]
    at = ends[:, None] - sizes + np.minimum(column, sizes - 1)
    return sample[at], column < sizes
