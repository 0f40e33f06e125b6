"""Columns of all articles of an archive, stored as .npy files and memory-mapped.

Row r of every column is the r-th usable row of the input. Values of variable length are concatenated in one
array, with the end of each row in a second one.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from xxhash import xxh3_64_intdigest

from aggregator_archive.arrays import Array, Hashes, Rows, batches, write_bytes
from aggregator_archive.cluster import Links, components
from aggregator_archive.encode import (
    FIXED_WIDTH_COLUMNS,
    UNDATED,
    Signature,
    arrays_from_signatures,
    chunk_metadata,
)
from aggregator_archive.sketch_keys import (
    KEYS_PER_ARTICLE,
    ROWS_PER_BATCH,
    SketchKeySelector,
    select_sketch_keys,
)

_METADATA_FILE = "about.json"
_VARIABLE_LENGTH_COLUMNS = ("sample", "figure", "id", "detail")
_SIZE_COLUMNS = ("sample_size", "figure_count", "id_size", "detail_size")  # their lengths in a chunk


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Columns of n articles; each array has n rows unless said otherwise.

    fingerprint         uint64
    text_hash           (n, 2) uint64
    text_key            uint64 (``encode.text_key``)
    space, source       index into ``spaces`` and ``sources``
    date_ms             int64, ``UNDATED`` if unknown
    has_text            uint8, 1 if it has words besides its headline
    words, size         uint32, number of words and of distinct shingles
    sample_size         uint16, number of hashes in the sample
    figure_count        uint8, number of hashes of figures
    uses_char_ngrams    uint8, 1 for character n-grams, 0 for word shingles
    sketch_keys         (n, 32) uint32, ascending (``sketch_keys.py``)
    bitmap              (n, 32) uint64 (``bitmap_filter.py``)
    sample, sample_end  concatenated samples (uint32), and the end of each (int64)
    figure, figure_end  likewise the hashes of figures (uint32), ascending in each article
    id, id_end          likewise the ids, UTF-8 bytes
    detail, detail_end  likewise headline, terms and opening (``encode.py``)
    """

    fingerprint: Array
    text_hash: Array
    text_key: Array
    space: Array
    source: Array
    date_ms: Array
    has_text: Array
    words: Array
    size: Array
    sample_size: Array
    figure_count: Array
    uses_char_ngrams: Array
    sketch_keys: Array
    bitmap: Array
    sample: Array
    sample_end: Array
    figure: Array
    figure_end: Array
    id: Array
    id_end: Array
    detail: Array
    detail_end: Array
    spaces: Sequence[str]
    sources: Sequence[str]

    def __len__(self) -> int:
        return len(self.fingerprint)

    def id_of(self, row: int) -> str:
        """The id of the article in this row."""
        return self.variable("id", row).tobytes().decode("utf-8", "surrogatepass")

    def repeated_ids(self) -> int:
        """Number of rows whose id an earlier row has, too; counted by 64-bit hash."""
        hashes = (xxh3_64_intdigest(self.variable("id", row).tobytes()) for row in range(len(self)))
        return len(self) - len(np.unique(np.fromiter(hashes, np.uint64)))

    def variable(self, name: str, row: int) -> Array:
        """The values of a column of variable length in this row."""
        ends: Array = getattr(self, f"{name}_end")
        values: Array = getattr(self, name)
        return values[int(ends[row - 1]) if row else 0 : int(ends[row])]


def repeated_ids_problem(count: int, named_by: str) -> str:
    """A sentence on rows whose id an earlier row has, too, and how results name rows; empty if none are."""
    problem = "rows with the id (without one: the URL or text) of an earlier row"
    return f"{problem}: {count:,}; results name rows by {named_by}" if count else ""


ARRAY_NAMES = tuple(field.name for field in fields(Columns) if field.name not in ("spaces", "sources"))


def columns_from_signatures(signatures: Sequence[Signature]) -> Columns:
    """Columns in memory, for small corpora."""
    arrays, spaces, sources = arrays_from_signatures(signatures)
    arrays["sample_end"] = np.cumsum(arrays["sample_size"], dtype=np.int64)
    arrays["figure_end"] = np.cumsum(arrays["figure_count"], dtype=np.int64)
    for name in ("id", "detail"):
        arrays[f"{name}_end"] = np.cumsum(arrays.pop(f"{name}_size"), dtype=np.int64)
    arrays["sketch_keys"] = select_sketch_keys(arrays["sample"], arrays["sample_end"], arrays["sample_size"])
    return _build_columns(arrays, spaces, sources)


def gather_columns(chunks: Sequence[Path], directory: Path) -> Columns:
    """Write the columns of these chunks into ``directory`` unless they exist, and map them."""
    if not (directory / _METADATA_FILE).exists():
        directory.mkdir(parents=True, exist_ok=True)
        _write_columns(chunks, directory)
    return open_columns(directory)


def open_columns(directory: Path) -> Columns:
    """Map the columns that ``gather_columns`` wrote."""
    metadata = json.loads((directory / _METADATA_FILE).read_text(encoding="utf-8"))
    arrays = {name: open_array(directory / f"{name}.npy") for name in ARRAY_NAMES}
    return _build_columns(arrays, **metadata)


def open_array(file: Path) -> Array:
    """Map the array in ``file``, as a plain ndarray: slicing np.memmap costs extra bookkeeping."""
    mapped: Array = np.load(file, mmap_mode="r")
    return np.asarray(mapped)


def _build_columns(arrays: Mapping[str, Array], spaces: Sequence[str], sources: Sequence[str]) -> Columns:
    values: dict[str, Any] = {**arrays, "spaces": spaces, "sources": sources}
    return Columns(**values)


def _write_columns(chunks: Sequence[Path], directory: Path) -> None:
    """Append the columns of each chunk to their files; one chunk at a time is in memory."""
    sizes = np.array([_chunk_sizes(chunk) for chunk in chunks], np.int64).reshape(-1, 5)
    rows, samples, figures, ids, details = sizes.sum(axis=0).tolist()
    layouts: dict[str, tuple[str, tuple[int, ...]]] = {
        name: (dtype, (rows, width) if width > 1 else (rows,)) for name, dtype, width in FIXED_WIDTH_COLUMNS
    }
    layouts |= {"sample": ("<u4", (samples,)), "figure": ("<u4", (figures,))}
    layouts |= {"id": ("|u1", (ids,)), "detail": ("|u1", (details,))}
    layouts |= {f"{name}_end": ("<i8", (rows,)) for name in _VARIABLE_LENGTH_COLUMNS}
    before = np.cumsum(sizes, axis=0) - sizes
    key_selector = SketchKeySelector(rows)
    names: dict[str, dict[str, int]] = {"space": {}, "source": {}}
    with contextlib.ExitStack() as stack:
        out = {
            name: stack.enter_context(_create_array_file(directory / f"{name}.npy", *layout))
            for name, layout in layouts.items()
        }
        for chunk, (_, *starts) in zip(chunks, before.tolist(), strict=True):
            for name, values in _chunk_columns(chunk, starts, names, key_selector).items():
                out[name].write(values.data)
    with _create_array_file(directory / "sketch_keys.npy", "<u4", (rows, KEYS_PER_ARTICLE)) as file:
        for keys in _sketch_key_batches(directory, key_selector):
            file.write(keys.data)
    metadata = {f"{name}s": list(positions) for name, positions in names.items()}
    write_bytes(directory / _METADATA_FILE, json.dumps(metadata).encode())


@contextlib.contextmanager
def _create_array_file(file: Path, dtype: str, shape: tuple[int, ...]) -> Iterator[BinaryIO]:
    """Open a .npy file with its header written, to append the values of the array to."""
    with open(file, "wb") as out:
        header = {"descr": dtype, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(out, header)
        yield out


def _chunk_sizes(chunk: Path) -> tuple[int, ...]:
    """Number of rows, sampled hashes, hashes of figures, bytes of ids and of details in a chunk."""
    with np.load(chunk) as arrays:
        sizes = [arrays[name] for name in _SIZE_COLUMNS]
        return len(sizes[0]), *(int(size.sum(dtype=np.int64)) for size in sizes)


def _chunk_columns(
    chunk: Path, starts: Sequence[int], names: Mapping[str, dict[str, int]], key_selector: SketchKeySelector
) -> dict[str, Array]:
    """All columns of a chunk except the sketch keys, for which its samples are counted.

    ``starts``: number of values of each column of variable length in the chunks before;
    ``names``: index of each space and source so far, extended here.
    """
    metadata = chunk_metadata(chunk)
    with np.load(chunk) as arrays:
        fixed = (name for name, _, _ in FIXED_WIDTH_COLUMNS)
        columns = {name: arrays[name] for name in (*fixed, *_VARIABLE_LENGTH_COLUMNS)}
        lengths = [arrays[name] for name in _SIZE_COLUMNS]
    for column, index_of in names.items():
        index = [index_of.setdefault(name, len(index_of)) for name in metadata[f"{column}s"]]
        if len(columns[column]):
            columns[column] = np.array(index, columns[column].dtype)[columns[column]]
    ends = [np.cumsum(length, dtype=np.int64) for length in lengths]
    key_selector.add_samples(columns["sample"], ends[0], columns["sample_size"])
    return columns | {
        f"{name}_end": start + end
        for name, start, end in zip(_VARIABLE_LENGTH_COLUMNS, starts, ends, strict=True)
    }


def _sketch_key_batches(directory: Path, key_selector: SketchKeySelector) -> Iterator[Hashes]:
    """Sketch keys of batches of rows; each maps the samples again, so that memory does not grow."""
    ends, sizes = (open_array(directory / f"{name}.npy") for name in ("sample_end", "sample_size"))
    for batch in batches(len(ends), ROWS_PER_BATCH):
        start = int(ends[batch.start]) - int(sizes[batch.start])
        sample = open_array(directory / "sample.npy")[start : int(ends[batch][-1])]
        yield key_selector.select(sample, ends[batch] - start, sizes[batch])


@dataclass(frozen=True, slots=True, eq=False)
class DistinctTexts:
    """Rows grouped by equal text; only the first row of each group is compared with others.

    first_row                    (n,) the first row of each row's group
    rows                         the first rows, ascending
    first_date_ms, last_date_ms  (n,) int64 earliest and latest date of the group, valid at ``rows``, or
                                 UNDATED
    """

    first_row: Rows
    rows: Rows
    first_date_ms: Rows
    last_date_ms: Rows


def group_equal_texts(columns: Columns, within_ms: int | None = None) -> DistinctTexts:
    """Group rows of equal text in any language. Undated copies belong to the first group of their text.

    With ``within_ms``, a copy at least that much later than the one before it starts a new group.
    """
    count = len(columns)
    date: Rows = np.array(columns.date_ms)
    # Rows of one hash are linked, and rows of one key: what is hashed is spelled by language.
    rows = np.arange(count)
    firsts = np.concatenate([_first_rows(columns.text_hash[:, 0]), _first_rows(columns.text_key)])
    text = components(Links(count, firsts, np.tile(rows, 2), np.ones(2 * count)))
    order = np.lexsort((rows, date, text))
    texts, dates = text[order], date[order]
    starts = np.ones(count, bool)
    starts[1:] = texts[1:] != texts[:-1]
    if within_ms is not None:
        both_dated = (dates[1:] != UNDATED) & (dates[:-1] != UNDATED)
        gap = np.zeros(len(both_dated), np.int64)
        np.subtract(dates[1:], dates[:-1], out=gap, where=both_dated)
        starts[1:] |= gap >= within_ms
    group = np.cumsum(starts) - 1
    groups = int(group[-1]) + 1 if count else 0
    first_of_group = np.full(groups, count, np.int64)
    np.minimum.at(first_of_group, group, order)
    first_row = np.empty(count, np.int64)
    first_row[order] = first_of_group[group]
    earliest, latest = np.full(groups, np.iinfo(np.int64).max), np.full(groups, UNDATED)
    dated = dates != UNDATED
    np.minimum.at(earliest, group[dated], dates[dated])
    np.maximum.at(latest, group[dated], dates[dated])
    first_date, last_date = np.full(count, UNDATED), np.full(count, UNDATED)
    first_date[first_of_group] = np.where(latest == UNDATED, UNDATED, earliest)
    last_date[first_of_group] = latest
    return DistinctTexts(first_row, np.flatnonzero(first_row == rows), first_date, last_date)


def _first_rows(values: Hashes) -> Rows:
    """(n,) the first row that has each row's value."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    rows: Rows = first[inverse]
    return rows
