"""Reproduction of section 2.2.3 and Table 1 of Hu & You (2017) (``scripts/bench table1``).

    scripts/bench table1 [--stored 9.6e6] [--queries 10000]

The paper cuts 64 bits into 8, 4 or 5 blocks and reads the bucket of each block's own value. For 9.6 million
fingerprints, which it approximates by 2^23, it computes 262,144, 512 and 5,120 candidates, and measures
0.0197 s for 13 bits and 0.0036 s for 16. Here the same plans hold uniform fingerprints in an embedded Valkey,
as packed buckets; the queries are stored fingerprints, half with 3 bits flipped and half with 7. Last, the
look-ups of the service on the same buckets: own values only up to 3 bits, also one-bit neighbors up to 7
(``index/blocks.py``).

    recall   share of the flipped fingerprints whose original is found
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import uvloop

from aggregator.index import keys
from aggregator.index.blocks import BlockPlan
from aggregator.index.codec.postings import NUMBER_BYTES, numbers_within
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import open_redis_store
from tests.benchmarks.indexing import fingerprints
from tests.benchmarks.indexing.fingerprints import Fingerprints
from tests.benchmarks.indexing.layouts import SPACE, Packed
from tests.support.index_layout import PLANS, bucket_probes, exact_radius, expected_candidates, plan_name

PAPER_CANDIDATES = {"8x8": 262_144, "5x13": 5_120, "4x16": 512}
PAPER_S = {"5x13": 0.0197, "4x16": 0.0036}
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Line:
    """One plan with one kind of look-up; times in seconds per look-up."""

    plan: str
    look_up: str
    keys: int
    paper_candidates: int | None
    expected_candidates: float
    candidates: float
    mean_s: float
    p50_s: float
    paper_s: float | None
    recall_at_3: float | None
    recall_at_7: float | None


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/bench table1",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--stored", type=float, default=9.6e6)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--json", help="write all figures to this file")
    args = parser.parse_args()
    stored = fingerprints.uniform(int(args.stored))
    rng = np.random.default_rng(7)
    members = rng.choice(len(stored), args.queries, replace=False)
    bits = np.where(np.arange(args.queries) % 2, 7, 3)
    queries = fingerprints.flipped(stored[members], bits, rng)
    print(f"{len(stored):,} fingerprints, {args.queries:,} queries, one at a time")
    print(
        f"{'plan':6}{'keys read':>22}{'paper says':>12}{'expected':>10}{'measured':>10}{'mean s':>10}"
        f"{'p50 s':>10}{'paper s':>9}{'recall 3':>10}{'recall 7':>10}"
    )
    lines = []
    for name in ("8x8", "5x13", "4x16"):
        with tempfile.TemporaryDirectory() as directory, EmbeddedServer(directory) as server:
            layout = Packed(server.url, PLANS[name])
            layout.load(stored)
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                lines += runner.run(
                    measure_plan(server.url, PLANS[name], len(stored), queries, members + 1, bits)
                )
    if args.json:
        Path(args.json).write_text(json.dumps([asdict(line) for line in lines], indent=1), encoding="utf-8")


async def measure_plan(
    url: str, plan: BlockPlan, stored: int, queries: Fingerprints, numbers: Integers, bits: Integers
) -> list[Line]:
    """The look-up of the paper; for 4x16 also those of the service."""
    lines = [
        await measure_look_up(url, plan, stored, exact_radius(plan), "own values", queries, numbers, bits)
    ]
    if plan_name(plan) == "4x16":
        three = bits == 3
        selected = queries[three], numbers[three], bits[three]
        lines.append(await measure_look_up(url, plan, stored, 3, "ours r<=3", *selected))
        lines.append(await measure_look_up(url, plan, stored, 7, "ours r<=7", queries, numbers, bits))
    return lines


async def measure_look_up(
    url: str,
    plan: BlockPlan,
    stored: int,
    radius: int,
    look_up: str,
    queries: Fingerprints,
    numbers: Integers,
    bits: Integers,
) -> Line:
    """Read the buckets for ``radius``, and compare their entries with 7 bits."""
    store, tag = open_redis_store(url), keys.tag(SPACE, 0)
    taken, candidates = np.empty(len(queries)), np.empty(len(queries))
    found = np.zeros(len(queries), bool)
    for i, fingerprint in enumerate(queries.tolist()):
        started = time.perf_counter()
        probes = plan.probe_plan(fingerprint, radius)
        buckets = await store.read(keys.block_buckets(tag, [probes]))
        near, _ = numbers_within(buckets, probes, 7, 0)
        taken[i] = time.perf_counter() - started
        candidates[i] = sum(len(b) for b in buckets if b) // (plan.remainder_bytes + NUMBER_BYTES)
        found[i] = numbers[i] in near
    await store.close()
    paper = PAPER_CANDIDATES[plan_name(plan)] if look_up == "own values" else None
    result = Line(
        plan_name(plan), look_up, len(bucket_probes(plan, 0, radius)), paper,
        expected_candidates(plan, stored, radius),
        float(candidates.mean()),
        float(taken.mean()), float(np.median(taken)), PAPER_S.get(plan_name(plan)) if paper else None,
        _share(found[bits == 3]), _share(found[bits == 7]),
    )  # fmt: skip
    show(result)
    return result


def show(line: Line) -> None:
    """Print one line."""

    def number(value: float | None, form: str) -> str:
        return "-" if value is None else format(value, form)

    print(
        f"{line.plan:6}{f'{line.keys} ({line.look_up})':>22}{number(line.paper_candidates, ',.0f'):>12}"
        f"{line.expected_candidates:10,.0f}{line.candidates:10,.0f}{line.mean_s:10.5f}{line.p50_s:10.5f}"
        f"{number(line.paper_s, '.4f'):>9}{number(line.recall_at_3, '.3f'):>10}"
        f"{number(line.recall_at_7, '.3f'):>10}",
        flush=True,
    )


def _share(found: npt.NDArray[np.bool_]) -> float | None:
    return float(found.mean()) if len(found) else None


if __name__ == "__main__":
    main()
