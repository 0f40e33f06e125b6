"""Which articles may be copies of one another? Those that share a key.

Two joins over sorted entries, the offline counterpart of the service's look-ups: fingerprints that agree in two blocks
(``join_bits.py``), and articles that share some of their smallest shingle hashes (``join_bands.py``).

A partition is a range of keys of one table of blocks, or a range of rows whose partners are looked for in the list of
bands. Partitions need nothing of one another, so ``join(partition)`` can run in any order, in any process, on any
machine that reads the columns. Most of what shares a key shares little else, which is seen at a glance
(``marks.py``) and goes no further.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from aggregator.offline.archive.bitmap_filter import may_share
from aggregator.offline.archive.buckets import Entries
from aggregator.offline.archive.checkpoint import save_arrays
from aggregator.offline.archive.columns import Columns, open_columns
from aggregator.offline.archive.join_bits import BLOCK_PAIRS, KEY_BITS, join_bits
from aggregator.offline.archive.join_sketch_keys import join_sketch_keys
from aggregator.offline.archive.pairs import Pairs, Rows, merge_pairs, unpack_pairs
from aggregator.offline.archive.sketch_keys import sorted_entries

_ROWS_PER_TABLE_RANGE = 1 << 22
_ROWS_PER_ROW_RANGE = 1 << 16
_PAIRS_PER_FILTER_BATCH = 1 << 14


@dataclass(frozen=True, slots=True)
class Partition:
    """Keys ``low`` <= key < ``high`` of the table of two blocks, or (``blocks`` None) positions among the rows."""

    low: int
    high: int
    blocks: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        kind = "bands" if self.blocks is None else "blocks{}{}".format(*self.blocks)
        return f"{kind}-{self.low:010}"


def partitions(row_count: int, *, bits: bool, sketch_keys: bool) -> list[Partition]:
    """Ranges of some seconds' work each."""
    found = []
    if bits:
        parts = row_count // _ROWS_PER_TABLE_RANGE + 1
        edges = [(k << KEY_BITS) // parts for k in range(parts + 1)]
        found += [Partition(low, high, blocks) for blocks in BLOCK_PAIRS for low, high in pairwise(edges)]
    if sketch_keys:
        found += [
            Partition(low, min(row_count, low + _ROWS_PER_ROW_RANGE))
            for low in range(0, row_count, _ROWS_PER_ROW_RANGE)
        ]
    return found


def join_to_file(
    partition: Partition, directory: str, radius_bits: int, min_containment: float, out: str
) -> tuple[int, int]:
    """``join`` of the columns in ``directory`` into the file ``out``, of it what may have a containment of ``least``.

    (pairs, pairs left out)
    """
    file, where = Path(out), Path(directory)
    if not file.exists():
        columns = open_columns(where)
        rows, listed = (
            np.asarray(np.load(where / f"{name}.npy", mmap_mode="r")) for name in ("distinct", "entries")
        )
        pairs, left_out = join_partition(partition, columns, rows, listed, radius_bits)
        save_arrays(
            file,
            pairs=pairs[may_reach_containment(columns, pairs, min_containment)],
            left_out=np.array(left_out),
        )
    with np.load(file) as found:
        return len(found["pairs"]), int(found["left_out"])


def find_candidates(
    columns: Columns, rows: Rows, radius_bits: int, *, bits: bool = True, sketch_keys: bool = True
) -> Pairs:
    """Both joins of ``rows`` (ascending) in memory, for small corpora: ascending pairs."""
    listed = sorted_entries(columns.bands, rows)
    parts = partitions(len(rows), bits=bits, sketch_keys=sketch_keys)
    return merge_pairs([join_partition(part, columns, rows, listed, radius_bits)[0] for part in parts])


def join_partition(
    partition: Partition, columns: Columns, rows: Rows, key_entries: Entries, radius_bits: int
) -> tuple[Pairs, int]:
    """Ascending candidates among ``rows`` in one partition, and how many pairs were left out of large buckets.

    ``listed``: ``bands.entries`` of these rows.
    """
    low, high = partition.low, partition.high
    if partition.blocks is not None:
        return join_bits(partition.blocks, low, high, columns, rows, radius_bits)
    return join_sketch_keys(np.asarray(rows[low:high]), columns, key_entries)


def may_reach_containment(columns: Columns, pairs: Pairs, min_containment: float) -> npt.NDArray[np.bool_]:
    """Which pairs may have this containment, at a glance; all when it is 0."""
    found = np.ones(len(pairs), bool)
    for at in range(0, len(pairs) if min_containment > 0 else 0, _PAIRS_PER_FILTER_BATCH):
        a, b = unpack_pairs(pairs[at : at + _PAIRS_PER_FILTER_BATCH])
        sampled_a, sampled_b = columns.sampled[a].astype(np.int64), columns.sampled[b].astype(np.int64)
        size_a, size_b = columns.size[a], columns.size[b]
        # A sample is complete up to some hash: of the hashes of the shorter text this share can be in both.
        share = np.minimum(sampled_a / np.maximum(1, size_a), sampled_b / np.maximum(1, size_b))
        needed = min_containment * share * np.minimum(size_a, size_b)
        found[at : at + _PAIRS_PER_FILTER_BATCH] = may_share(
            columns.marks[a], columns.marks[b], sampled_a, sampled_b, needed
        )
    return found
