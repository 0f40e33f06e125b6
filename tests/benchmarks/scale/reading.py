"""What a look-up reads in an index of generated articles, counted without a store. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from aggregator.analysis.shingles import MAX_QUERY_KEYS, sketch_keys
from aggregator.domain import Analysis
from aggregator.index import keys
from aggregator.index.blocks import BlockPlan
from aggregator.index.lookup import RADIUS_BITS
from tests.benchmarks.scale.loading import PARTITIONS, entries_left, grown_width
from tests.benchmarks.scale.replicas import NO_KEY, Replicas, gather
from tests.support.index_layout import block_column

Counts = npt.NDArray[np.int64]


def sketch_entries(
    replicas: Replicas, count: int, probes: Sequence[Analysis], *, rehash: bool = True
) -> tuple[int, Counts, Counts]:
    """Width of the buckets, entries of each look-up's own keys, and all in the buckets that it reads.

    ``rehash``: False for the first width, whatever is stored.
    """
    columns = [column[column != NO_KEY] for column in gather(replicas, replicas.rounds(count), "sketch_keys")]
    parts = [[column[column % PARTITIONS == part] for column in columns] for part in range(PARTITIONS)]
    del columns
    counted = [np.unique(np.concatenate(part).astype(np.uint32), return_counts=True) for part in parts]
    del parts
    left = [entries_left(counts) for _, counts in counted]
    bits = grown_width(int(sum(map(np.sum, left)))).bits if rehash else keys.SKETCH_BUCKET_BITS
    in_bucket = np.zeros(1 << bits, np.int64)
    for (known, _), entries in zip(counted, left, strict=True):
        np.add.at(in_bucket, known & ((1 << bits) - 1), entries)
    own, read = [], []
    for probe in probes:
        queried = np.array(sketch_keys(probe.sketch, MAX_QUERY_KEYS), np.uint32)
        own.append(sum(_entries_of(int(key), counted, left) for key in queried))
        read.append(int(in_bucket[queried & ((1 << bits) - 1)].sum()))
    return bits, np.array(own), np.array(read)


def _entries_of(
    key: int, counted: Sequence[tuple[npt.NDArray[np.uint32], Counts]], left: Sequence[Counts]
) -> int:
    known, _ = counted[key % PARTITIONS]
    at = int(known.searchsorted(np.uint32(key)))
    return int(left[key % PARTITIONS][at]) if at < len(known) and known[at] == key else 0


def block_entries(replicas: Replicas, count: int, probes: Sequence[Analysis], plan: BlockPlan) -> Counts:
    """Entries in the block buckets that each look-up reads."""
    prints = np.concatenate(list(gather(replicas, replicas.rounds(count), "fingerprints")))
    filled = [
        np.bincount(block_column(plan, prints, block).astype(np.int64), minlength=1 << width)
        for block, width in enumerate(plan.widths)
    ]
    return np.array(
        [
            sum(
                int(filled[block][value ^ flip])
                for block, value, _, flips in plan.probe_plan(probe.fingerprint, RADIUS_BITS).block_probes
                for flip in flips
            )
            for probe in probes
        ]
    )
