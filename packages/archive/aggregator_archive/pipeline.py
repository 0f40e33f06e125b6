"""The stages of a run, from input files to duplicate groups. Read this module first.

    encode    rows -> fingerprints and samples, one chunk per block      encode.py
    gather    chunks -> columns on disk, groups of equal texts           columns.py
    join      columns -> candidate pairs, by partition                   join.py
    confirm   candidates -> pairs that the rule confirms                 confirm.py, pair_rule.py
    cluster   pairs -> groups                                            cluster.py

Encode, join and confirm are maps over independent tasks. Each task writes one file, whole or not at all. A
resumed run skips the tasks whose file exists, and the other stages depend on the files only, so the result
is the same.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aggregator_archive import rows
from aggregator_archive.arrays import Flags, Pairs, Rows, merge_pairs, unpack_pairs, write_bytes
from aggregator_archive.cluster import (
    Clustering,
    Links,
    average_linkage,
    cluster,
    components,
    pairs_within_components,
)
from aggregator_archive.columns import Columns, DistinctTexts, gather_columns, group_equal_texts
from aggregator_archive.confirm import (
    ConfirmedPairs,
    collect_confirmed,
    confirm_to_file,
    estimate_overlaps,
    slices_by_later_article,
)
from aggregator_archive.encode import UNDATED, encode_block
from aggregator_archive.executors import Pool
from aggregator_archive.job import Job
from aggregator_archive.join import join_to_file, partitions
from aggregator_archive.pair_rule import containment_floor
from aggregator_archive.sketch_keys import write_entries


@dataclass(frozen=True, slots=True, eq=False)
class DedupeResult:
    """Result of a run. ``labels``: (n,) the first row of each row's group."""

    columns: Columns
    distinct_texts: DistinctTexts
    candidate_count: int
    near_count: int  # of them, candidates that ``Job.within_ms`` allows
    uncompared_pairs: int  # pairs of large buckets that were not compared
    confirmed: ConfirmedPairs
    clustering: Clustering
    labels: Rows
    chunks: Sequence[Path]
    stage_seconds: dict[str, float]


class ProgressListener:
    """Receiver of the progress of a run; this one ignores it."""

    def start_stage(self, name: str, total: int | None, unit: str) -> None:
        """Start a stage of ``total`` units; None: unknown."""

    def advance(self, done: int) -> None:
        """Add ``done`` completed units."""


def run_pipeline(
    job: Job, pool: Pool, progress: ProgressListener, blocks: Iterable[rows.Block] | None = None
) -> DedupeResult:
    """Run all stages up to the groups; files are written in ``job.work_dir`` only.

    ``blocks``: rows in memory; None: those of the files ``job.inputs``.
    """
    clock = _StageTimer(job.work_dir / "seconds.json")
    with clock.measure("encode"):
        chunks = _encode(job, pool, progress, blocks)
    with clock.measure("gather"):
        progress.start_stage("gather", None, "rows")
        columns, distinct = _gather(job, chunks)
    with clock.measure("join"):
        candidates, uncompared = _join(job, len(distinct.rows), pool, progress)
    with clock.measure("confirm"):
        near = candidates[near_in_time(distinct, candidates, job.within_ms)]
        confirmed = _confirm(job, columns, distinct, near, pool, progress)
    with clock.measure("cluster"):
        progress.start_stage("cluster", None, "pairs")
        # By resemblance: containment would join all stories of one page.
        strength = confirmed.overlaps.resemblance.astype(np.float64)
        links = Links(len(columns), *unpack_pairs(confirmed.pairs), strength)
        weak = _weak_links(columns, confirmed, links)
        clustering = cluster(links, average_linkage, job.threshold, job.cap, weak)
    return DedupeResult(
        columns=columns,
        distinct_texts=distinct,
        candidate_count=len(candidates),
        near_count=len(near),
        uncompared_pairs=uncompared,
        confirmed=confirmed,
        clustering=clustering,
        labels=clustering.labels[distinct.first_row],
        chunks=chunks,
        stage_seconds=dict(clock.seconds),
    )


def _encode(
    job: Job, pool: Pool, progress: ProgressListener, blocks: Iterable[rows.Block] | None
) -> list[Path]:
    total = sum(Path(file).stat().st_size for file in job.inputs)
    progress.start_stage("encode", total, "B")
    chunks: list[Path] = []

    def tasks() -> Iterator[tuple[Any, ...]]:
        for block in blocks or rows.read_blocks(job.inputs, progress.advance):
            file = job.work_dir / "chunks" / f"{block.number:08}.npz"
            chunks.append(file)
            if not file.exists():
                yield block, job.encoding, str(file)

    for _ in pool.map(encode_block, tasks()):
        pass
    return chunks


def _gather(job: Job, chunks: Sequence[Path]) -> tuple[Columns, DistinctTexts]:
    directory = job.work_dir / "columns"
    columns = gather_columns(chunks, directory)
    distinct = group_equal_texts(columns, job.within_ms)
    np.save(directory / "distinct.npy", distinct.rows)
    write_entries(directory / "entries.npy", columns.sketch_keys, distinct.rows)
    return columns, distinct


def _join(job: Job, row_count: int, pool: Pool, progress: ProgressListener) -> tuple[Pairs, int]:
    parts = partitions(row_count, bits=True, sketch_keys=True)
    progress.start_stage("join", len(parts), "partitions")
    files = [job.work_dir / "candidates" / f"{part.name}.npz" for part in parts]
    tasks = [
        (part, str(job.work_dir / "columns"), job.radius_bits, containment_floor(job.policy), str(file))
        for part, file in zip(parts, files, strict=True)
    ]
    uncompared = 0
    for uncompared_in_part in pool.map(join_to_file, tasks):
        uncompared += uncompared_in_part
        progress.advance(1)
    return merge_pairs([np.load(file)["pairs"] for file in files]), uncompared


def _confirm(
    job: Job,
    columns: Columns,
    distinct: DistinctTexts,
    candidates: Pairs,
    pool: Pool,
    progress: ProgressListener,
) -> ConfirmedPairs:
    candidates, ends = slices_by_later_article(columns, candidates)
    starts = [0, *ends][: len(ends)]
    progress.start_stage("confirm", len(starts), "slices")
    files = [job.work_dir / "confirmed" / f"{start:012}.npz" for start in starts]
    tasks = (
        (str(job.work_dir / "columns"), candidates[start:end], job.policy, str(file))
        for start, end, file in zip(starts, ends, files, strict=True)
    )
    for _ in pool.map(confirm_to_file, tasks):
        progress.advance(1)
    return collect_confirmed(columns, distinct, files, job.policy)


def near_in_time(distinct_texts: DistinctTexts, pairs: Pairs, within_ms: int | None) -> Flags:
    """Which pairs have dates that differ by less than ``within_ms``; undated articles always do."""
    if within_ms is None:
        return np.ones(len(pairs), bool)
    a, b = unpack_pairs(pairs)
    apart = np.maximum(
        distinct_texts.first_date_ms[b].astype(float) - distinct_texts.last_date_ms[a],
        distinct_texts.first_date_ms[a].astype(float) - distinct_texts.last_date_ms[b],
    )
    undated = (distinct_texts.first_date_ms[a] == UNDATED) | (distinct_texts.first_date_ms[b] == UNDATED)
    near: Flags = undated | (apart < within_ms)
    return near


def _weak_links(columns: Columns, confirmed: ConfirmedPairs, strong: Links) -> Links:
    """Links that count only when a component is split: the resemblance of its unconfirmed pairs."""
    others = np.setdiff1d(pairs_within_components(components(strong)), confirmed.pairs, assume_unique=True)
    resemblance = estimate_overlaps(columns, others).resemblance
    outside = ~np.isin(confirmed.weak, others)
    a, b = unpack_pairs(np.concatenate([confirmed.weak[outside], others]))
    strength = np.concatenate([confirmed.weak_resemblance[outside].astype(np.float64), resemblance])
    return Links(len(columns), a, b, strength)


class _StageTimer:
    """Seconds per stage, summed over all runs until the result is complete; stored in ``file``."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.seconds: dict[str, float] = json.loads(file.read_bytes()) if file.exists() else {}

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.monotonic() - started
            write_bytes(self._file, json.dumps(self.seconds).encode())
