"""From files of articles to groups of copies. Read this first.

    encode    rows -> fingerprints and samples, a chunk per block        encode.py
    gather    chunks -> columns on disk; equal texts taken together      columns.py
    join      columns -> candidate pairs, by partitions                  join.py
    confirm   candidates -> pairs that share their wording               confirm.py
    cluster   pairs -> groups                                            cluster.py

Encode, join and confirm are maps over independent tasks. Each task leaves one file, whole or not at all; a run
that was interrupted skips the tasks whose file is there, and all that follows depends on the files alone, so it
ends with the same result.
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

from aggregator.dedup.verdict import Policy
from aggregator.offline.archive import classifier, rows
from aggregator.offline.archive.char_ngrams import policy_for_char_ngrams
from aggregator.offline.archive.checkpoint import save_arrays, write_bytes
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
from aggregator.offline.archive.novelty import have_different_figures
from aggregator.offline.archive.pairs import Pairs, Rows, merge_pairs, unpack_pairs
from aggregator.offline.archive.sketch_keys import write_entries
from aggregator.offline.archive.titles import filter_by_title_rule
from aggregator.offline.archive.vector_candidates import VECTOR_ENCODERS, vector_candidates
from aggregator.offline.archive.verify import PairOverlaps, are_copies, estimate_overlaps

PAIRS_PER_TASK = 1 << 18
MIN_WEAK_RESEMBLANCE = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class ConfirmedPairs:
    """Pairs that passed, ascending, with their figures."""

    pairs: Pairs
    overlaps: PairOverlaps
    distance: npt.NDArray[np.uint8]  # Hamming, 0..64; of two spaces: 255
    weak: Pairs  # those that did not pass but share something ...
    weak_resemblance: npt.NDArray[np.float32]  # ... and how much


@dataclass(frozen=True, slots=True, eq=False)
class DedupeResult:
    """All that the reports are made of. ``labels``: (n,) the first row of each row's group."""

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
    """How far a stage has got; the command line shows it."""

    def start_stage(self, name: str, total: int | None, unit: str) -> None:
        """A stage begins, of ``total`` units if that is known."""

    def advance(self, done: int) -> None:
        """So many more units are done."""


def run_pipeline(job: Job, pool: Pool, progress: ProgressListener) -> DedupeResult:
    """Everything up to the groups; nothing is written outside ``job.work``."""
    clock = _StageTimer(job.work_dir / "seconds.json")
    with clock.measure("encode"):
        chunks = _encode(job, pool, progress)
    with clock.measure("gather"):
        progress.start_stage("gather", None, "rows")
        columns, alone = _gather(job, chunks)
    with clock.measure("join"):
        if job.method.encode in VECTOR_ENCODERS:
            progress.start_stage("vectors", None, "rows")
            candidates, left_out = vector_candidates(job, chunks, alone), 0
        else:
            candidates, left_out = _join(job, len(alone.rows), pool, progress)
    with clock.measure("confirm"):
        near = candidates[near_in_time(alone, candidates, job.within_ms)]
        if job.method.verify == "titles":
            progress.start_stage("titles", None, "pairs")
            near = filter_by_title_rule(job, chunks, near)
        confirmed = _confirm(job, near, pool, progress)
    with clock.measure("cluster"):
        progress.start_stage("cluster", None, "pairs")
        links = _strong_links(len(columns), confirmed)
        weak = None if job.method.cluster == "union-find" else _weak_links(columns, confirmed, links)
        clustering = cluster(links, job.method.cluster, job.method.threshold, job.cap, weak)
    labels = clustering.labels[alone.first_row]
    return DedupeResult(
        columns, alone, len(candidates), left_out, confirmed, clustering, labels, chunks, dict(clock.seconds)
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
    alone = group_equal_texts(columns, job.within_ms)
    np.save(directory / "distinct.npy", alone.rows)
    write_entries(directory / "entries.npy", columns.bands, alone.rows)
    return columns, alone


def _join(job: Job, row_count: int, pool: Pool, progress: ProgressListener) -> tuple[Pairs, int]:
    wanted = job.method.encode
    parts = partitions(row_count, bits=wanted != "sketch", sketch_keys=wanted != "simhash")
    progress.start_stage("join", len(parts), "partitions")
    files = [job.work_dir / "candidates" / f"{part.name}.npz" for part in parts]
    least = job.policy.min_containment if job.method.verify == "containment" else 0.0
    tasks = [
        (part, str(job.work_dir / "columns"), job.method.radius_bits, least, str(file))
        for part, file in zip(parts, files, strict=True)
    ]
    left_out = 0
    for _, skipped in pool.map(join_to_file, tasks):
        left_out += skipped
        progress.advance(1)
    return merge_pairs([np.load(file)["pairs"] for file in files]), left_out


def _confirm(job: Job, candidates: Pairs, pool: Pool, progress: ProgressListener) -> ConfirmedPairs:
    starts = range(0, len(candidates), PAIRS_PER_TASK)
    progress.start_stage("confirm", len(starts), "slices")
    files = [job.work_dir / "confirmed" / f"{start:012}.npz" for start in starts]
    tasks = (
        (
            str(job.work_dir / "columns"),
            candidates[start : start + PAIRS_PER_TASK],
            job.method,
            job.policy,
            str(file),
        )
        for start, file in zip(starts, files, strict=True)
    )
    for _ in pool.map(confirm_to_file, tasks):
        progress.advance(1)
    return _concatenate_parts([np.load(file) for file in files])


def confirm_to_file(directory: str, pairs: Pairs, method: Method, policy: Policy, out: str) -> int:
    """Confirm a slice of candidates into the file ``out``; how many passed."""
    file = Path(out)
    if not file.exists():
        found = confirm_pairs(open_columns(Path(directory)), pairs, method, policy)
        arrays = {name: getattr(found, name) for name in ("pairs", "distance", "weak", "weak_resemblance")}
        arrays |= {name: getattr(found.overlaps, name).astype(np.float32) for name in _OVERLAP_FIELDS}
        save_arrays(file, **arrays)
    return len(pairs)


_OVERLAP_FIELDS = ("containment", "resemblance", "shared", "size_ratio", "error")


def confirm_pairs(columns: Columns, pairs: Pairs, method: Method, policy: Policy) -> ConfirmedPairs:
    """The pairs that are copies by the method's rule, with their figures."""
    found = estimate_overlaps(columns, pairs)
    kept = _copy_mask(columns, pairs, found, method, policy)
    a, b = unpack_pairs(pairs[kept])
    distance = np.bitwise_count(columns.fingerprint[a] ^ columns.fingerprint[b])
    distance = np.where(columns.space[a] == columns.space[b], distance, 255).astype(np.uint8)
    weak = ~kept & (found.resemblance >= MIN_WEAK_RESEMBLANCE)
    figures = PairOverlaps(*(getattr(found, name)[kept] for name in _OVERLAP_FIELDS))
    return ConfirmedPairs(
        pairs[kept], figures, distance, pairs[weak], found.resemblance[weak].astype(np.float32)
    )


def _copy_mask(
    columns: Columns, pairs: Pairs, pair_overlaps: PairOverlaps, method: Method, policy: Policy
) -> npt.NDArray[np.bool_]:
    """By the method's rule; that of containment is for the kind of shingles that both articles have."""
    if method.verify == "classifier":
        return classifier.are_copies(method.weights, classifier.features(columns, pairs, pair_overlaps))
    if method.verify != "containment":
        return np.ones(len(pairs), bool)  # "none", or they were looked at before (``titles.py``)
    lettered = columns.lettered[unpack_pairs(pairs)[0]] == 1
    alike = np.where(
        lettered, are_copies(pair_overlaps, policy_for_char_ngrams(policy)), are_copies(pair_overlaps, policy)
    )
    at = np.flatnonzero(alike)
    alike[at] = ~have_different_figures(columns, pairs[at], pair_overlaps.select(at), policy)
    return alike


def near_in_time(distinct_texts: DistinctTexts, pairs: Pairs, within_ms: int | None) -> npt.NDArray[np.bool_]:
    """Pairs whose dates differ by less than ``within_ms``; undated articles are near to all."""
    if within_ms is None:
        return np.ones(len(pairs), bool)
    a, b = unpack_pairs(pairs)
    apart = np.maximum(
        distinct_texts.first_date_ms[b].astype(float) - distinct_texts.last_date_ms[a],
        distinct_texts.first_date_ms[a].astype(float) - distinct_texts.last_date_ms[b],
    )
    undated = (distinct_texts.first_date_ms[a] == UNDATED) | (distinct_texts.first_date_ms[b] == UNDATED)
    near: npt.NDArray[np.bool_] = undated | (apart < within_ms)
    return near


def _concatenate_parts(parts: Sequence[Any]) -> ConfirmedPairs:
    def column(name: str, empty: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.concatenate([empty, *(part[name] for part in parts)])

    figures = [column(name, np.empty(0, np.float32)) for name in _OVERLAP_FIELDS]
    return ConfirmedPairs(
        column("pairs", np.empty(0, np.uint64)),
        PairOverlaps(*figures),
        column("distance", np.empty(0, np.uint8)),
        column("weak", np.empty(0, np.uint64)),
        column("weak_resemblance", np.empty(0, np.float32)),
    )


def _strong_links(count: int, confirmed: ConfirmedPairs) -> Links:
    """What joins articles, by resemblance: a page of ten stories contains each of them, and would join them."""
    return Links(count, *unpack_pairs(confirmed.pairs), confirmed.overlaps.resemblance.astype(np.float64))


def _weak_links(columns: Columns, confirmed: ConfirmedPairs, strong: Links) -> Links:
    """What only counts in a split: all that the other pairs of one component share."""
    others = np.setdiff1d(pairs_within_components(components(strong)), confirmed.pairs, assume_unique=True)
    more = estimate_overlaps(columns, others).resemblance
    apart = ~np.isin(confirmed.weak, others)
    a, b = unpack_pairs(np.concatenate([confirmed.weak[apart], others]))
    strength = np.concatenate([confirmed.weak_resemblance[apart].astype(np.float64), more])
    return Links(len(columns), a, b, strength)


class _StageTimer:
    """Seconds per stage, summed over the runs that it took."""

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
