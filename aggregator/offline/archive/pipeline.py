"""The stages of a run, from input files to duplicate groups. Read this module first.

    encode    rows -> fingerprints and samples, one chunk per block      encode.py
    gather    chunks -> columns on disk, groups of equal texts           columns.py
    join      columns -> candidate pairs, by partition                   join.py
    confirm   candidates -> pairs that the rule confirms                 verify.py, pair_rule.py
    cluster   pairs -> groups                                            cluster.py

Encode, join and confirm are maps over independent tasks. Each task writes one file, whole or not at all. A
resumed run skips the tasks whose file exists, and the other stages depend on the files only, so the result
is the same.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aggregator.dedup.policy import Policy
from aggregator.offline.archive import classifier, rows
from aggregator.offline.archive.arrays import Array, Flags, Rows
from aggregator.offline.archive.checkpoint import save_once, write_bytes
from aggregator.offline.archive.cluster import Clustering, Links, cluster, components, pairs_within_components
from aggregator.offline.archive.columns import (
    Columns,
    DistinctTexts,
    gather_columns,
    group_equal_texts,
    open_columns,
)
from aggregator.offline.archive.encode import UNDATED, encode_block
from aggregator.offline.archive.executors import Pool
from aggregator.offline.archive.job import Job, Method
from aggregator.offline.archive.join import join_to_file, partitions
from aggregator.offline.archive.pair_rule import PairRule, containment_floor, order_by_arrival
from aggregator.offline.archive.pairs import Pairs, merge_pairs, unpack_pairs
from aggregator.offline.archive.sketch_keys import write_entries
from aggregator.offline.archive.titles import filter_by_title_rule
from aggregator.offline.archive.vector_candidates import VECTOR_ENCODERS, vector_candidates
from aggregator.offline.archive.verify import OVERLAP_FIELDS, PairOverlaps, estimate_overlaps

PAIRS_PER_TASK = 1 << 18
MIN_WEAK_RESEMBLANCE = 0.01
DIFFERENT_SPACES = 255  # in place of the distance of fingerprints that are not comparable
_PAIR_FIELDS = ("pairs", "distance", "weak", "weak_resemblance")  # arrays of a file, with OVERLAP_FIELDS


@dataclass(frozen=True, slots=True, eq=False)
class ConfirmedPairs:
    """Pairs that passed verification, ascending, with their estimates; and weak pairs, which did not pass."""

    pairs: Pairs
    overlaps: PairOverlaps
    distance: npt.NDArray[np.uint8]  # Hamming distance, 0 to 64; DIFFERENT_SPACES if not comparable
    weak: Pairs  # failed pairs with a resemblance of at least MIN_WEAK_RESEMBLANCE
    weak_resemblance: npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class DedupeResult:
    """Result of a run. ``labels``: (n,) the first row of each row's group."""

    columns: Columns
    distinct_texts: DistinctTexts
    candidate_count: int
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


def run_pipeline(job: Job, pool: Pool, progress: ProgressListener) -> DedupeResult:
    """Run all stages up to the groups; files are written in ``job.work_dir`` only."""
    clock = _StageTimer(job.work_dir / "seconds.json")
    with clock.measure("encode"):
        chunks = _encode(job, pool, progress)
    with clock.measure("gather"):
        progress.start_stage("gather", None, "rows")
        columns, distinct = _gather(job, chunks)
    with clock.measure("join"):
        if job.method.encode in VECTOR_ENCODERS:
            progress.start_stage("vectors", None, "rows")
            candidates, uncompared = vector_candidates(job, chunks, distinct), 0
        else:
            candidates, uncompared = _join(job, len(distinct.rows), pool, progress)
    with clock.measure("confirm"):
        near = candidates[near_in_time(distinct, candidates, job.within_ms)]
        if job.method.verify == "titles":
            progress.start_stage("titles", None, "pairs")
            near = filter_by_title_rule(job, chunks, near)
        confirmed = _confirm(job, columns, near, pool, progress)
    with clock.measure("cluster"):
        progress.start_stage("cluster", None, "pairs")
        links = _strong_links(len(columns), confirmed)
        weak = None if job.method.cluster == "union-find" else _weak_links(columns, confirmed, links)
        clustering = cluster(links, job.method.cluster, job.method.threshold, job.cap, weak)
    return DedupeResult(
        columns=columns,
        distinct_texts=distinct,
        candidate_count=len(candidates),
        uncompared_pairs=uncompared,
        confirmed=confirmed,
        clustering=clustering,
        labels=clustering.labels[distinct.first_row],
        chunks=chunks,
        stage_seconds=dict(clock.seconds),
    )


def _encode(job: Job, pool: Pool, progress: ProgressListener) -> list[Path]:
    total = sum(Path(file).stat().st_size for file in job.inputs)
    progress.start_stage("encode", total, "B")
    chunks: list[Path] = []

    def tasks() -> Iterator[tuple[Any, ...]]:
        for block in rows.read_blocks(job.inputs, progress.advance):
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
    encode = job.method.encode
    parts = partitions(row_count, bits=encode != "sketch", sketch_keys=encode != "simhash")
    progress.start_stage("join", len(parts), "partitions")
    files = [job.work_dir / "candidates" / f"{part.name}.npz" for part in parts]
    min_containment = containment_floor(job.policy) if job.method.verify == "containment" else 0.0
    tasks = [
        (part, str(job.work_dir / "columns"), job.method.radius_bits, min_containment, str(file))
        for part, file in zip(parts, files, strict=True)
    ]
    uncompared = 0
    for uncompared_in_part in pool.map(join_to_file, tasks):
        uncompared += uncompared_in_part
        progress.advance(1)
    return merge_pairs([np.load(file)["pairs"] for file in files]), uncompared


def _confirm(
    job: Job, columns: Columns, candidates: Pairs, pool: Pool, progress: ProgressListener
) -> ConfirmedPairs:
    candidates, ends = _slices_by_later_article(columns, candidates)
    starts = [0, *ends][: len(ends)]
    progress.start_stage("confirm", len(starts), "slices")
    files = [job.work_dir / "confirmed" / f"{start:012}.npz" for start in starts]
    tasks = (
        (
            str(job.work_dir / "columns"),
            candidates[start:end],
            job.method,
            job.policy,
            str(file),
        )
        for start, end, file in zip(starts, ends, files, strict=True)
    )
    for _ in pool.map(confirm_to_file, tasks):
        progress.advance(1)
    return _concatenate_parts([np.load(file) for file in files])


def confirm_to_file(directory: str, pairs: Pairs, method: Method, policy: Policy, out: str) -> None:
    """Verify candidates of the columns in ``directory``; writes the file ``out``, unless it exists."""

    def compute() -> dict[str, Array]:
        confirmed = confirm_pairs(open_columns(Path(directory)), pairs, method, policy)
        arrays = {name: getattr(confirmed, name) for name in _PAIR_FIELDS}
        overlaps = {name: getattr(confirmed.overlaps, name).astype(np.float32) for name in OVERLAP_FIELDS}
        return arrays | overlaps

    save_once(Path(out), compute)


def confirm_pairs(columns: Columns, pairs: Pairs, method: Method, policy: Policy) -> ConfirmedPairs:
    """The pairs that are duplicates by the method's rule, with their estimates."""
    overlaps = estimate_overlaps(columns, pairs)
    kept = _copy_mask(columns, pairs, overlaps, method, policy)
    a, b = unpack_pairs(pairs[kept])
    distance = np.bitwise_count(columns.fingerprint[a] ^ columns.fingerprint[b])
    distance = np.where(columns.space[a] == columns.space[b], distance, DIFFERENT_SPACES).astype(np.uint8)
    weak = ~kept & (overlaps.resemblance >= MIN_WEAK_RESEMBLANCE)
    weak_resemblance = overlaps.resemblance[weak].astype(np.float32)
    return ConfirmedPairs(pairs[kept], overlaps.select(kept), distance, pairs[weak], weak_resemblance)


def _copy_mask(
    columns: Columns, pairs: Pairs, pair_overlaps: PairOverlaps, method: Method, policy: Policy
) -> Flags:
    """Which pairs are duplicates by the method's rule."""
    if method.verify == "classifier":
        return classifier.are_copies(method.weights, classifier.features(columns, pairs, pair_overlaps))
    if method.verify != "containment":
        return np.ones(len(pairs), bool)  # "none", or filtered before (``titles.py``)
    return PairRule(columns, policy).are_copies(pairs, pair_overlaps.containment)


def _slices_by_later_article(columns: Columns, pairs: Pairs) -> tuple[Pairs, list[int]]:
    """The pairs ordered by their later article, and the ends of slices of about ``PAIRS_PER_TASK``.

    No slice ends between two pairs of one later article: its boilerplate is estimated from all of them.
    """
    later = order_by_arrival(columns, pairs)[1]
    order = np.argsort(later, kind="stable")
    later = later[order]
    last = later[np.arange(PAIRS_PER_TASK - 1, len(later), PAIRS_PER_TASK)]
    ends = np.searchsorted(later, last, side="right").tolist()
    return pairs[order], sorted({*ends, len(later)} - {0})


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


def _concatenate_parts(parts: Sequence[Any]) -> ConfirmedPairs:
    def column(name: str, empty: Array) -> Array:
        return np.concatenate([empty, *(part[name] for part in parts)])

    pairs, weak = column("pairs", np.empty(0, np.uint64)), column("weak", np.empty(0, np.uint64))
    order, weak_order = np.argsort(pairs), np.argsort(weak)
    overlaps = [column(name, np.empty(0, np.float32))[order] for name in OVERLAP_FIELDS]
    return ConfirmedPairs(
        pairs[order],
        PairOverlaps(*overlaps),
        column("distance", np.empty(0, np.uint8))[order],
        weak[weak_order],
        column("weak_resemblance", np.empty(0, np.float32))[weak_order],
    )


def _strong_links(count: int, confirmed: ConfirmedPairs) -> Links:
    """Links of the confirmed pairs, weighted by resemblance.

    By containment, a page of ten stories would join all of them.
    """
    return Links(count, *unpack_pairs(confirmed.pairs), confirmed.overlaps.resemblance.astype(np.float64))


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
