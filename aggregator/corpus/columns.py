"""All chunks as one set of columns, on disk and mapped, so that no process holds more than what it looks at.

Row r of every column is the r-th usable row of the input. Samples and ids are one long array each with the
ends of the rows beside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aggregator.corpus.bands import bands
from aggregator.corpus.checkpoint import write
from aggregator.corpus.encode import COLUMNS, UNDATED, Signature, about_chunk, arrays_of
from aggregator.corpus.marks import marks

Array = npt.NDArray[Any]
_ABOUT = "about.json"


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """n articles; each array has n rows unless said otherwise.

    fingerprint uint64 · text_hash (n, 2) uint64 · date_ms int64, UNDATED when none · words, size uint32 ·
    lettered uint8: 1 for shingles of letters · bands (n, 32) uint32 · marks (n, 32) uint64 (``marks.py``) · space, source: positions in ``spaces`` and
    ``sources`` · sample: all samples one after another, ``sample_end`` where each ends (int64) · id, id_end:
    likewise, UTF-8 bytes
    """

    fingerprint: Array
    text_hash: Array
    space: Array
    source: Array
    date_ms: Array
    words: Array
    size: Array
    sampled: Array
    lettered: Array
    bands: Array
    marks: Array
    sample: Array
    sample_end: Array
    id: Array
    id_end: Array
    spaces: Sequence[str]
    sources: Sequence[str]

    def __len__(self) -> int:
        return len(self.fingerprint)

    def id_of(self, row: int) -> str:
        start = int(self.id_end[row - 1]) if row else 0
        return self.id[start : int(self.id_end[row])].tobytes().decode("utf-8", "surrogatepass")

    def sample_of(self, row: int) -> npt.NDArray[np.uint32]:
        end = int(self.sample_end[row])
        found: npt.NDArray[np.uint32] = self.sample[end - int(self.sampled[row]) : end]
        return found


ARRAYS = (*(name for name, _, _ in COLUMNS), "bands", "marks", "sample", "sample_end", "id", "id_end")


def of_signatures(found: Sequence[Signature]) -> Columns:
    """Columns in memory, for small corpora."""
    arrays, spaces, sources = arrays_of(found)
    arrays["sample_end"] = np.cumsum(arrays["sampled"], dtype=np.int64)
    arrays["id_end"] = np.cumsum(arrays.pop("id_size"), dtype=np.int64)
    sampled = arrays["sample"], arrays["sample_end"], arrays["sampled"]
    arrays |= {"bands": bands(*sampled), "marks": marks(*sampled)}
    return _columns(arrays, spaces, sources)


def gather(chunks: Sequence[Path], directory: Path) -> Columns:
    """Write the columns of these chunks into ``directory`` unless they are there already, and map them."""
    if not (directory / _ABOUT).exists():
        directory.mkdir(parents=True, exist_ok=True)
        _write(chunks, directory)
    return mapped(directory)


def mapped(directory: Path) -> Columns:
    """The columns that ``gather`` wrote."""
    about = json.loads((directory / _ABOUT).read_text(encoding="utf-8"))
    arrays = {name: _mapped(directory / f"{name}.npy") for name in ARRAYS}
    return _columns(arrays, **about)


def _columns(arrays: Mapping[str, Array], spaces: Sequence[str], sources: Sequence[str]) -> Columns:
    named: dict[str, Any] = {**arrays, "spaces": spaces, "sources": sources}
    return Columns(**named)


def _mapped(file: Path) -> Array:
    found: Array = np.load(file, mmap_mode="r")
    return np.asarray(found)  # a plain array over the same pages: memmap's own bookkeeping is slow on slices


def _write(chunks: Sequence[Path], directory: Path) -> None:
    counted = [_sizes(chunk) for chunk in chunks]
    totals = np.array(counted, np.int64).reshape(-1, 3).sum(axis=0)
    rows, samples, ids = (int(total) for total in totals)
    spec = [(name, dtype, (rows, width) if width > 1 else (rows,)) for name, dtype, width in COLUMNS]
    spec += [
        ("sample", "<u4", (samples,)),
        ("sample_end", "<i8", (rows,)),
        ("id", "|u1", (ids,)),
        ("id_end", "<i8", (rows,)),
    ]
    out = {name: _create(directory / f"{name}.npy", dtype, shape) for name, dtype, shape in spec}
    spaces: dict[str, int] = {}
    sources: dict[str, int] = {}
    at = [0, 0, 0]
    for chunk, size in zip(chunks, counted, strict=True):
        _copy(chunk, out, at, spaces, sources)
        at = [a + b for a, b in zip(at, size, strict=True)]
    sampled = out["sample"], out["sample_end"], out["sampled"]
    np.save(directory / "bands.npy", bands(*sampled))
    np.save(directory / "marks.npy", marks(*sampled))
    for array in out.values():
        if isinstance(array, np.memmap):
            array.flush()
    write(directory / _ABOUT, json.dumps({"spaces": list(spaces), "sources": list(sources)}).encode())


def _create(file: Path, dtype: str, shape: tuple[int, ...]) -> Array:
    if not np.prod(shape):  # an empty file cannot be mapped
        np.save(file, np.empty(shape, dtype))
        return np.empty(shape, dtype)
    return np.lib.format.open_memmap(file, mode="w+", dtype=np.dtype(dtype), shape=shape)


def _sizes(chunk: Path) -> tuple[int, int, int]:
    """Rows, sampled hashes and bytes of ids in a chunk."""
    with np.load(chunk) as arrays:
        sampled = arrays["sampled"]
        return len(sampled), int(sampled.sum(dtype=np.int64)), int(arrays["id_size"].sum(dtype=np.int64))


def _copy(
    chunk: Path, out: dict[str, Array], at: Sequence[int], spaces: dict[str, int], sources: dict[str, int]
) -> None:
    row, sample, id_ = at
    about = about_chunk(chunk)
    with np.load(chunk) as arrays:
        for name, _, _ in COLUMNS:
            values = arrays[name]
            if name in ("space", "source"):
                known = spaces if name == "space" else sources
                table = [known.setdefault(one, len(known)) for one in about[f"{name}s"]]
                values = np.array(table, values.dtype)[values] if len(values) else values
            out[name][row : row + len(values)] = values
        ends = sample + np.cumsum(arrays["sampled"], dtype=np.int64)
        out["sample_end"][row : row + len(ends)] = ends
        out["sample"][sample : sample + len(arrays["sample"])] = arrays["sample"]
        id_ends = id_ + np.cumsum(arrays["id_size"], dtype=np.int64)
        out["id_end"][row : row + len(id_ends)] = id_ends
        out["id"][id_ : id_ + len(arrays["id"])] = arrays["id"]


@dataclass(frozen=True, slots=True, eq=False)
class Distinct:
    """Rows of equal text taken together: only the first of each is compared with others.

    first    (n,) int64: the row that stands for each row (itself, when it is the first)
    rows     those that stand for themselves, ascending
    since_ms, until_ms   (n,) int64 dates of the first and last copy, valid at ``rows``; UNDATED: none
    """

    first: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    since_ms: npt.NDArray[np.int64]
    until_ms: npt.NDArray[np.int64]


def distinct(columns: Columns, within_ms: int | None = None) -> Distinct:
    """Group rows of equal text; with ``within_ms`` a copy so much later than the last one starts a group anew.

    Undated copies belong to the first group of their text.
    """
    count = len(columns)
    date = np.array(columns.date_ms)
    order = np.lexsort((np.arange(count), date, columns.text_hash[:, 1], columns.text_hash[:, 0]))
    hashes, dates = columns.text_hash[order], date[order]
    starts = np.ones(count, bool)
    starts[1:] = (hashes[1:] != hashes[:-1]).any(axis=1)
    if within_ms is not None:
        known = (dates[1:] != UNDATED) & (dates[:-1] != UNDATED)
        gap = np.zeros(len(known), np.int64)
        np.subtract(dates[1:], dates[:-1], out=gap, where=known)
        starts[1:] |= gap >= within_ms
    group = np.cumsum(starts) - 1
    groups = int(group[-1]) + 1 if count else 0
    earliest_row = np.full(groups, count, np.int64)
    np.minimum.at(earliest_row, group, order)
    first = np.empty(count, np.int64)
    first[order] = earliest_row[group]
    since, until = np.full(count, UNDATED), np.full(count, UNDATED)
    low, high = np.full(groups, np.iinfo(np.int64).max), np.full(groups, UNDATED)
    dated = dates != UNDATED
    np.minimum.at(low, group[dated], dates[dated])
    np.maximum.at(high, group[dated], dates[dated])
    since[earliest_row] = np.where(high == UNDATED, UNDATED, low)
    until[earliest_row] = high
    return Distinct(first, np.flatnonzero(first == np.arange(count)), since, until)
