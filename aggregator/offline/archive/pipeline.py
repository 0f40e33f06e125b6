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
from aggregator.offline.archive.char_ngrams import policy_for_letters
from aggregator.offline.archive.checkpoint import save, write
from aggregator.offline.archive.cluster import Clustering, Links, cluster, components, within
from aggregator.offline.archive.columns import Columns, Distinct, distinct, gather, mapped
from aggregator.offline.archive.encode import UNDATED, encode_block
from aggregator.offline.archive.executors import Pool
from aggregator.offline.archive.job import Job, Method
from aggregator.offline.archive.join import join_files, partitions
from aggregator.offline.archive.novelty import other_figures
from aggregator.offline.archive.pairs import Pairs, Rows, merged, rows_of
from aggregator.offline.archive.sketch_keys import write_entries
from aggregator.offline.archive.titles import titled
from aggregator.offline.archive.vector_candidates import ENCODERS, nearby
from aggregator.offline.archive.verify import Overlaps, is_copy, overlaps

CONFIRM_PAIRS = 1 << 18
WEAK_RESEMBLANCE = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Confirmed:
    """Pairs that passed, ascending, with their figures."""

    pairs: Pairs
    overlaps: Overlaps
    distance: npt.NDArray[np.uint8]  # Hamming, 0..64; of two spaces: 255
    weak: Pairs  # those that did not pass but share something ...
    weak_resemblance: npt.NDArray[np.float32]  # ... and how much


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """All that the reports are made of. ``labels``: (n,) the first row of each row's group."""

    columns: Columns
    distinct: Distinct
    candidates: int
    left_out: int  # pairs of large buckets that were not compared
    confirmed: Confirmed
    clustering: Clustering
    labels: Rows
    chunks: Sequence[Path]
    seconds: dict[str, float]


class Told:
    """How far a stage has got; the command line shows it."""

    def stage(self, name: str, total: int | None, unit: str) -> None:
        """A stage begins, of ``total`` units if that is known."""

    def advance(self, done: int) -> None:
        """So many more units are done."""


def run(job: Job, pool: Pool, told: Told) -> Result:
    """Everything up to the groups; nothing is written outside ``job.work``."""
    clock = _Clock(job.work / "seconds.json")
    with clock.measured("encode"):
        chunks = _encode(job, pool, told)
    with clock.measured("gather"):
        told.stage("gather", None, "rows")
        columns, alone = _gather(job, chunks)
    with clock.measured("join"):
        if job.method.encode in ENCODERS:
            told.stage("vectors", None, "rows")
            candidates, left_out = nearby(job, chunks, alone), 0
        else:
            candidates, left_out = _join(job, len(alone.rows), pool, told)
    with clock.measured("confirm"):
        near = candidates[near_in_time(alone, candidates, job.within_ms)]
        if job.method.verify == "titles":
            told.stage("titles", None, "pairs")
            near = titled(job, chunks, near)
        confirmed = _confirm(job, near, pool, told)
    with clock.measured("cluster"):
        told.stage("cluster", None, "pairs")
        links = _links(len(columns), confirmed)
        weak = None if job.method.cluster == "union-find" else _weak_links(columns, confirmed, links)
        clustering = cluster(links, job.method.cluster, job.method.threshold, job.cap, weak)
    labels = clustering.labels[alone.first]
    return Result(
        columns, alone, len(candidates), left_out, confirmed, clustering, labels, chunks, dict(clock.seconds)
    )


def _encode(job: Job, pool: Pool, told: Told) -> list[Path]:
    total = sum(Path(file).stat().st_size for file in job.inputs)
    told.stage("encode", total, "B")
    chunks: list[Path] = []

    def tasks() -> Iterator[tuple[Any, ...]]:
        for block in rows.blocks(job.inputs, told.advance):
            file = job.work / "chunks" / f"{block.number:08}.npz"
            chunks.append(file)
            if not file.exists():
                yield block, job.encoding, str(file)

    for _ in pool.map(encode_block, tasks()):
        pass
    return chunks


def _gather(job: Job, chunks: Sequence[Path]) -> tuple[Columns, Distinct]:
    directory = job.work / "columns"
    columns = gather(chunks, directory)
    alone = distinct(columns, job.within_ms)
    np.save(directory / "distinct.npy", alone.rows)
    write_entries(directory / "entries.npy", columns.bands, alone.rows)
    return columns, alone


def _join(job: Job, count: int, pool: Pool, told: Told) -> tuple[Pairs, int]:
    wanted = job.method.encode
    parts = partitions(count, bits=wanted != "sketch", bands=wanted != "simhash")
    told.stage("join", len(parts), "partitions")
    files = [job.work / "candidates" / f"{part.name}.npz" for part in parts]
    least = job.policy.min_containment if job.method.verify == "containment" else 0.0
    tasks = [
        (part, str(job.work / "columns"), job.method.radius_bits, least, str(file))
        for part, file in zip(parts, files, strict=True)
    ]
    left_out = 0
    for _, skipped in pool.map(join_files, tasks):
        left_out += skipped
        told.advance(1)
    return merged([np.load(file)["pairs"] for file in files]), left_out


def _confirm(job: Job, candidates: Pairs, pool: Pool, told: Told) -> Confirmed:
    starts = range(0, len(candidates), CONFIRM_PAIRS)
    told.stage("confirm", len(starts), "slices")
    files = [job.work / "confirmed" / f"{start:012}.npz" for start in starts]
    tasks = (
        (
            str(job.work / "columns"),
            candidates[start : start + CONFIRM_PAIRS],
            job.method,
            job.policy,
            str(file),
        )
        for start, file in zip(starts, files, strict=True)
    )
    for _ in pool.map(confirm_files, tasks):
        told.advance(1)
    return _joined([np.load(file) for file in files])


def confirm_files(directory: str, pairs: Pairs, method: Method, policy: Policy, out: str) -> int:
    """Confirm a slice of candidates into the file ``out``; how many passed."""
    file = Path(out)
    if not file.exists():
        found = confirm(mapped(Path(directory)), pairs, method, policy)
        arrays = {name: getattr(found, name) for name in ("pairs", "distance", "weak", "weak_resemblance")}
        arrays |= {name: getattr(found.overlaps, name).astype(np.float32) for name in _FIGURES}
        save(file, **arrays)
    return len(pairs)


_FIGURES = ("containment", "resemblance", "shared", "size_ratio", "error")


def confirm(columns: Columns, pairs: Pairs, method: Method, policy: Policy) -> Confirmed:
    """The pairs that are copies by the method's rule, with their figures."""
    found = overlaps(columns, pairs)
    kept = _copies(columns, pairs, found, method, policy)
    a, b = rows_of(pairs[kept])
    distance = np.bitwise_count(columns.fingerprint[a] ^ columns.fingerprint[b])
    distance = np.where(columns.space[a] == columns.space[b], distance, 255).astype(np.uint8)
    weak = ~kept & (found.resemblance >= WEAK_RESEMBLANCE)
    figures = Overlaps(*(getattr(found, name)[kept] for name in _FIGURES))
    return Confirmed(pairs[kept], figures, distance, pairs[weak], found.resemblance[weak].astype(np.float32))


def _copies(
    columns: Columns, pairs: Pairs, found: Overlaps, method: Method, policy: Policy
) -> npt.NDArray[np.bool_]:
    """By the method's rule; that of containment is for the kind of shingles that both articles have."""
    if method.verify == "classifier":
        return classifier.is_copy(method.weights, classifier.features(columns, pairs, found))
    if method.verify != "containment":
        return np.ones(len(pairs), bool)  # "none", or they were looked at before (``titles.py``)
    lettered = columns.lettered[rows_of(pairs)[0]] == 1
    alike = np.where(lettered, is_copy(found, policy_for_letters(policy)), is_copy(found, policy))
    at = np.flatnonzero(alike)
    alike[at] = ~other_figures(columns, pairs[at], found.at(at), policy)
    return alike


def near_in_time(alone: Distinct, pairs: Pairs, within_ms: int | None) -> npt.NDArray[np.bool_]:
    """Pairs whose dates differ by less than ``within_ms``; undated articles are near to all."""
    if within_ms is None:
        return np.ones(len(pairs), bool)
    a, b = rows_of(pairs)
    apart = np.maximum(
        alone.since_ms[b].astype(float) - alone.until_ms[a],
        alone.since_ms[a].astype(float) - alone.until_ms[b],
    )
    undated = (alone.since_ms[a] == UNDATED) | (alone.since_ms[b] == UNDATED)
    near: npt.NDArray[np.bool_] = undated | (apart < within_ms)
    return near


def _joined(parts: Sequence[Any]) -> Confirmed:
    def column(name: str, empty: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.concatenate([empty, *(part[name] for part in parts)])

    figures = [column(name, np.empty(0, np.float32)) for name in _FIGURES]
    return Confirmed(
        column("pairs", np.empty(0, np.uint64)),
        Overlaps(*figures),
        column("distance", np.empty(0, np.uint8)),
        column("weak", np.empty(0, np.uint64)),
        column("weak_resemblance", np.empty(0, np.float32)),
    )


def _links(count: int, found: Confirmed) -> Links:
    """What joins articles, by resemblance: a page of ten stories contains each of them, and would join them."""
    return Links(count, *rows_of(found.pairs), found.overlaps.resemblance.astype(np.float64))


def _weak_links(columns: Columns, found: Confirmed, strong: Links) -> Links:
    """What only counts in a split: all that the other pairs of one component share."""
    others = np.setdiff1d(within(components(strong)), found.pairs, assume_unique=True)
    more = overlaps(columns, others).resemblance
    apart = ~np.isin(found.weak, others)
    a, b = rows_of(np.concatenate([found.weak[apart], others]))
    strength = np.concatenate([found.weak_resemblance[apart].astype(np.float64), more])
    return Links(len(columns), a, b, strength)


class _Clock:
    """Seconds per stage, summed over the runs that it took."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.seconds: dict[str, float] = json.loads(file.read_bytes()) if file.exists() else {}

    @contextmanager
    def measured(self, stage: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.monotonic() - started
            write(self._file, json.dumps(self.seconds).encode())
