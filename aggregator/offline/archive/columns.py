"""All chunks as one set of columns, on disk and mapped, so that no process holds more than what it looks at.

Row r of every column is the r-th usable row of the input. Samples and ids are one long array each with the
ends of the rows beside it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from aggregator.offline.archive.checkpoint import write_bytes
from aggregator.offline.archive.encode import (
    FIXED_WIDTH_COLUMNS,
    UNDATED,
    Signature,
    arrays_from_signatures,
    chunk_metadata,
)
from aggregator.offline.archive.sketch_keys import KEYS_PER_ARTICLE, SketchKeySelector, select_sketch_keys

Array = npt.NDArray[Any]
_METADATA_FILE = "about.json"
_ROWS_PER_SLICE = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """n articles; each array has n rows unless said otherwise.

    fingerprint uint64 · text_hash (n, 2) uint64 · date_ms int64, UNDATED when none · words, size uint32 ·
    lettered uint8: 1 for shingles of letters · bands (n, 32) uint32 · marks (n, 32) uint64 (``marks.py``) · space, source: positions in ``spaces`` and
    ``sources`` · sample: all samples one after another, ``sample_end`` where each ends (int64) · figure, figure_end:
    likewise, each article's hashes of figures ascending · id, id_end: likewise, UTF-8 bytes
    """

    fingerprint: Array
    text_hash: Array
    space: Array
    source: Array
    date_ms: Array
    words: Array
    size: Array
    sampled: Array
    figured: Array
    lettered: Array
    bands: Array
    marks: Array
    sample: Array
    sample_end: Array
    figure: Array
    figure_end: Array
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


_VARIABLE_LENGTH = ("sample", "figure", "id")
ARRAY_NAMES = (
    *(name for name, _, _ in FIXED_WIDTH_COLUMNS),
    "bands",
    *_VARIABLE_LENGTH,
    *(f"{name}_end" for name in _VARIABLE_LENGTH),
)


def columns_from_signatures(signatures: Sequence[Signature]) -> Columns:
    """Columns in memory, for small corpora."""
    arrays, spaces, sources = arrays_from_signatures(signatures)
    arrays["sample_end"] = np.cumsum(arrays["sampled"], dtype=np.int64)
    arrays["figure_end"] = np.cumsum(arrays["figured"], dtype=np.int64)
    arrays["id_end"] = np.cumsum(arrays.pop("id_size"), dtype=np.int64)
    arrays["bands"] = select_sketch_keys(arrays["sample"], arrays["sample_end"], arrays["sampled"])
    return _build_columns(arrays, spaces, sources)


def gather_columns(chunks: Sequence[Path], directory: Path) -> Columns:
    """Write the columns of these chunks into ``directory`` unless they are there already, and map them."""
    if not (directory / _METADATA_FILE).exists():
        directory.mkdir(parents=True, exist_ok=True)
        _write_columns(chunks, directory)
    return open_columns(directory)


def open_columns(directory: Path) -> Columns:
    """The columns that ``gather`` wrote."""
    about = json.loads((directory / _METADATA_FILE).read_text(encoding="utf-8"))
    arrays = {name: _open_array(directory / f"{name}.npy") for name in ARRAY_NAMES}
    return _build_columns(arrays, **about)


def _build_columns(arrays: Mapping[str, Array], spaces: Sequence[str], sources: Sequence[str]) -> Columns:
    named: dict[str, Any] = {**arrays, "spaces": spaces, "sources": sources}
    return Columns(**named)


def _open_array(file: Path) -> Array:
    found: Array = np.load(file, mmap_mode="r")
    return np.asarray(found)  # a plain array over the same pages: memmap's own bookkeeping is slow on slices


def _write_columns(chunks: Sequence[Path], directory: Path) -> None:
    """Column by column into files, chunk after chunk: little of it is in memory at a time."""
    counted = np.array([_chunk_sizes(chunk) for chunk in chunks], np.int64).reshape(-1, 4)
    rows, samples, figures, ids = counted.sum(axis=0).tolist()
    forms: dict[str, tuple[str, tuple[int, ...]]] = {
        name: (dtype, (rows, width) if width > 1 else (rows,)) for name, dtype, width in FIXED_WIDTH_COLUMNS
    }
    forms |= {"sample": ("<u4", (samples,)), "sample_end": ("<i8", (rows,))}
    forms |= {"figure": ("<u4", (figures,)), "figure_end": ("<i8", (rows,))}
    forms |= {"id": ("|u1", (ids,)), "id_end": ("<i8", (rows,))}
    before = np.cumsum(counted, axis=0) - counted
    chosen = SketchKeySelector(rows)
    names: dict[str, dict[str, int]] = {"space": {}, "source": {}}
    with contextlib.ExitStack() as stack:
        out = {
            name: stack.enter_context(_array_file(directory / f"{name}.npy", *form))
            for name, form in forms.items()
        }
        for chunk, (_, *starts) in zip(chunks, before.tolist(), strict=True):
            for name, values in _chunk_columns(chunk, starts, names, chosen).items():
                out[name].write(values.data)
    with _array_file(directory / "bands.npy", "<u4", (rows, KEYS_PER_ARTICLE)) as file:
        for found in _sketch_key_slices(directory, chosen):
            file.write(found.data)
    write_bytes(
        directory / _METADATA_FILE, json.dumps({f"{name}s": list(names[name]) for name in names}).encode()
    )


@contextlib.contextmanager
def _array_file(file: Path, dtype: str, shape: tuple[int, ...]) -> Iterator[BinaryIO]:
    """A file to write the values of an array of this form into, one after another."""
    with open(file, "wb") as out:
        form = {"descr": dtype, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(out, form)
        yield out


def _chunk_sizes(chunk: Path) -> tuple[int, ...]:
    """Rows, sampled hashes, figures and bytes of ids in a chunk."""
    with np.load(chunk) as arrays:
        sizes = [arrays[name] for name in ("sampled", "figured", "id_size")]
        return len(sizes[0]), *(int(size.sum(dtype=np.int64)) for size in sizes)


def _chunk_columns(
    chunk: Path, starts: Sequence[int], names: Mapping[str, dict[str, int]], key_selector: SketchKeySelector
) -> dict[str, Array]:
    """All columns of a chunk but its bands, for which it is counted; ``starts``: what of each list goes before it."""
    about = chunk_metadata(chunk)
    with np.load(chunk) as arrays:
        found = {
            name: arrays[name] for name in (*(name for name, _, _ in FIXED_WIDTH_COLUMNS), *_VARIABLE_LENGTH)
        }
        id_size = arrays["id_size"]
    for name, known in names.items():
        table = [known.setdefault(one, len(known)) for one in about[f"{name}s"]]
        if len(found[name]):
            found[name] = np.array(table, found[name].dtype)[found[name]]
    ends = np.cumsum(found["sampled"], dtype=np.int64)
    key_selector.add_samples(found["sample"], ends, found["sampled"])
    lists = (ends, np.cumsum(found["figured"], dtype=np.int64), np.cumsum(id_size, dtype=np.int64))
    return found | {
        f"{name}_end": start + end for name, start, end in zip(_VARIABLE_LENGTH, starts, lists, strict=True)
    }


def _sketch_key_slices(directory: Path, key_selector: SketchKeySelector) -> Iterator[npt.NDArray[np.uint32]]:
    """Bands of a slice of rows after the other; each maps the samples anew, so that they do not stay in memory."""
    ends, sampled = (_open_array(directory / f"{name}.npy") for name in ("sample_end", "sampled"))
    for at in range(0, len(ends), _ROWS_PER_SLICE):
        some = slice(at, at + _ROWS_PER_SLICE)
        start = int(ends[at]) - int(sampled[at])
        sample = _open_array(directory / "sample.npy")[start : int(ends[some][-1])]
        yield key_selector.select(sample, ends[some] - start, sampled[some])


@dataclass(frozen=True, slots=True, eq=False)
class DistinctTexts:
    """Rows of equal text taken together: only the first of each is compared with others.

    first    (n,) int64: the row that stands for each row (itself, when it is the first)
    rows     those that stand for themselves, ascending
    since_ms, until_ms   (n,) int64 dates of the first and last copy, valid at ``rows``; UNDATED: none
    """

    first_row: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    first_date_ms: npt.NDArray[np.int64]
    last_date_ms: npt.NDArray[np.int64]


def group_equal_texts(columns: Columns, within_ms: int | None = None) -> DistinctTexts:
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
    return DistinctTexts(first, np.flatnonzero(first == np.arange(count)), since, until)
