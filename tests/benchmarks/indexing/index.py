"""Latency, CPU and memory of index layouts and of other indexes (``scripts/bench index``).

    scripts/bench index [--sizes 1e5,1e6,1e7] [--layouts NAMES] [--json FILE]

For each size and layout, in turn, each on a new embedded Valkey (append-only log on): load uniform
fingerprints, then query one at a time. Half of the queries are stored fingerprints with up to r bits flipped,
half are unrelated. Printed per layout and radius:

    p50 p99     ms per look-up as an asynchronous client in one process sees it, over all samples
    redis       CPU of the server per look-up in microseconds; client: CPU of the querying process
    B/fp        the server's used_memory (in process: growth of resident memory) per fingerprint
    load, add   fingerprints per second: whole buckets at once; one by one, 1,000 per round trip
    recall      against an exhaustive scan, for the first queries

The last lines are about fingerprints of real news: largest bucket and candidates per look-up. Layouts that
cannot be run (package not installed, size would take too long) are printed as not run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import uvloop

from aggregator.index.blocks import PLAN
from aggregator.index.codec.postings import NUMBER_BYTES
from aggregator.store.embedded import EmbeddedServer
from tests.benchmarks.indexing import bulk, fingerprints
from tests.benchmarks.indexing.fingerprints import Fingerprints
from tests.benchmarks.indexing.layouts import Packed, Sets
from tests.benchmarks.indexing.measure import Latency, Server, latency
from tests.benchmarks.indexing.other_indexes import FaissFlat, FaissMultiHash, MinHashLsh, SimhashIndex
from tests.support.cpu_spinner import add_option, awake
from tests.support.index_layout import PLANS, bucket_probes, expected_candidates
from tests.support.processes import resident_bytes

CHECKED = 20  # queries compared with an exhaustive scan
ADDED = 20_000
Queries = dict[int, list[int]]  # by radius
Expected = dict[int, list[frozenset[int]]]  # numbers within the radius, by radius


@dataclass(frozen=True, slots=True)
class LayoutCase:
    """A layout, how it is opened (with or without a server's URL), and the measurements to make."""

    name: str
    open: Callable[..., Any]
    on_server: bool = True
    sizes: tuple[int, int] = (0, 10**7)
    radii: tuple[int, ...] = (3, 7)
    queries: int = 5_000
    added: int = ADDED
    exact: bool = True
    why_not: str = "it would take too long"


def _sets(plan: str, listpack: bool) -> Callable[..., Any]:
    return lambda url: Sets(url, PLANS[plan], listpack=listpack)


CASES = (
    LayoutCase("ours 4x16", lambda url: Packed(url, PLANS["4x16"])),
    LayoutCase("packed 5x13", lambda url: Packed(url, PLANS["5x13"]), queries=2_000),
    LayoutCase("SET 4x16", _sets("4x16", False), sizes=(0, 10**6), queries=2_000, added=5_000),
    LayoutCase("SET 4x16 listpack", _sets("4x16", True), sizes=(0, 10**6), queries=2_000, added=5_000),
    LayoutCase("SET 5x13", _sets("5x13", False), sizes=(0, 10**6), queries=500, added=5_000),
    LayoutCase("faiss flat", FaissFlat, on_server=False, queries=300),
    LayoutCase("faiss MultiHash 4x16", FaissMultiHash, on_server=False, queries=300),
    LayoutCase("simhash SimhashIndex", SimhashIndex, on_server=False, sizes=(0, 10**6), radii=(7,),
               queries=20, added=1_000),
    LayoutCase("datasketch MinHashLSH", MinHashLsh, sizes=(0, 10**5), radii=(7,), queries=500,
               added=1_000, exact=False),
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/bench index",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sizes", default="1e5,1e6,1e7")
    parser.add_argument(
        "--layouts", default="", help="only layouts whose name contains one of these (separated by commas)"
    )
    parser.add_argument("--json", help="write all figures to this file")
    parser.add_argument("--no-real", action="store_true", help="skip the fingerprints of real news")
    add_option(parser)
    args = parser.parse_args()
    spinners = ", kept awake" if args.awake else ""
    print(f"{os.cpu_count()} cores{spinners}, Python {platform.python_version()}, numpy {np.__version__}")
    rows = []
    with awake(args.awake):
        for size in (int(float(s)) for s in args.sizes.split(",")):
            rows += measure(size, [part for part in args.layouts.split(",") if part])
        real = {} if args.no_real else asyncio_run(real_news())
    if args.json:
        Path(args.json).write_text(json.dumps({"layouts": rows, "real": real}, indent=1), encoding="utf-8")


def asyncio_run(coroutine: Any) -> Any:
    """Run a coroutine on uvloop, as the service does."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(coroutine)


def measure(size: int, only: list[str]) -> list[dict[str, Any]]:
    """Measure all layouts at one size."""
    stored = fingerprints.uniform(size)
    print(f"\n{size:,} uniform fingerprints")
    print(
        f"{'layout':22}{'r':>2}{'p50 ms':>10}{'p99 ms':>10}{'redis us':>10}{'client us':>10}"
        f"{'B/fp':>8}{'load/s':>11}{'add/s':>9}{'recall':>8}"
    )
    queries = {radius: fingerprints.queries(stored, 5_000, radius) for radius in (3, 7)}
    expected = {radius: exhaustive(stored, queries[radius][:CHECKED], radius) for radius in queries}
    rows = []
    for case in CASES:
        if only and not any(part in case.name for part in only):
            continue
        rows += measure_case(case, stored, queries, expected)
    return rows


def exhaustive(stored: Fingerprints, queries: list[int], radius: int) -> list[frozenset[int]]:
    """Numbers within the radius per query, by comparison with all fingerprints."""
    return [
        frozenset((np.flatnonzero(np.bitwise_count(stored ^ np.uint64(f)) <= radius) + 1).tolist())
        for f in queries
    ]


def measure_case(
    case: LayoutCase, stored: Fingerprints, queries: Queries, expected: Expected
) -> list[dict[str, Any]]:
    """Measure one layout at one size, or print why it is not run."""
    size = len(stored)
    if not case.sizes[0] <= size <= case.sizes[1]:
        reason = case.why_not
    else:
        try:
            with opened(case) as layout:
                return [*asyncio_run(figures(case, layout, stored, queries, expected))]
        except ImportError as error:
            reason = f"{error.name} is not installed"
    print(f"{case.name:22}   not run at {size:,}: {reason}")
    return [{"layout": case.name, "size": size, "not_run": reason}]


@contextmanager
def opened(case: LayoutCase) -> Iterator[Callable[[], Any]]:
    """Factory of the layout, with a new server if it needs one."""
    if not case.on_server:
        yield case.open
        return
    with tempfile.TemporaryDirectory() as directory, EmbeddedServer(directory) as server:
        yield lambda: case.open(server.url)


async def figures(
    case: LayoutCase, make: Callable[[], Any], stored: Fingerprints, queries: Queries, expected: Expected
) -> list[dict[str, Any]]:
    """Load, query, add."""
    layout = make()
    server = Server(layout.client)
    before = resident_bytes() if layout.client is None else server.memory_bytes()
    started = time.perf_counter()
    layout.load(stored)
    load = len(stored) / (time.perf_counter() - started)
    measured = []
    for radius in case.radii:
        correct = expected[radius] if case.exact else []
        measured.append(await latency(layout.near, queries[radius][: case.queries], radius, server, correct))
    # Measured after the queries: buffers of the load are not part of the index.
    after = resident_bytes() if layout.client is None else server.memory_bytes()
    server.settle()
    fresh = fingerprints.uniform(case.added, seed=9)
    started = time.perf_counter()
    layout.insert(fresh, len(stored) + 1)
    add = len(fresh) / (time.perf_counter() - started)
    await layout.close()
    return [row(case.name, len(stored), m, (after - before) / len(stored), load, add) for m in measured]


def row(name: str, size: int, m: Latency, bytes_each: float, load: float, add: float) -> dict[str, Any]:
    """Print one line and return its values."""
    server = "-" if m.redis_cpu_us is None else f"{m.redis_cpu_us:.0f}"
    recall = "-" if m.recall is None else f"{m.recall:.3f}"
    print(
        f"{name:22}{m.radius:2}{m.p50_ms:10.3f}{m.p99_ms:10.3f}{server:>10}{m.client_cpu_us:10.0f}"
        f"{bytes_each:8.0f}{load:11,.0f}{add:9,.0f}{recall:>8}",
        flush=True,
    )
    return {
        "layout": name,
        "size": size,
        **asdict(m),
        "bytes_per_fingerprint": bytes_each,
        "load_per_second": load,
        "add_per_second": add,
    }


async def real_news() -> dict[str, Any]:
    """The default plan on fingerprints of real news: buckets, candidates, latencies."""
    stored, what = fingerprints.real()
    if not len(stored):
        print(f"\nreal news: not run, {what}")
        return {"not_run": what}
    plan = PLAN
    entry = plan.remainder_bytes + NUMBER_BYTES
    sizes = [len(packed) // entry for _, _, packed in bulk.buckets(plan, stored)]
    print(f"\n{len(stored):,} fingerprints of {what}, shipped English model")
    print(f"largest bucket {max(sizes):,}, mean of non-empty buckets {np.mean(sizes):.1f}")
    result: dict[str, Any] = {"fingerprints": len(stored), "of": what, "largest_bucket": max(sizes)}
    with tempfile.TemporaryDirectory() as directory, EmbeddedServer(directory) as server:
        layout = Packed(server.url, plan)
        layout.load(stored)
        queries = [int(f) for f in np.random.default_rng(5).choice(stored, 5_000)]
        filled = {(b, v): len(packed) // entry for b, v, packed in bulk.buckets(plan, stored)}
        for radius in (3, 7):
            read = [sum(filled.get(key, 0) for key in bucket_probes(plan, f, radius)) for f in queries]
            correct = exhaustive(stored, queries[:CHECKED], radius)
            m = await latency(layout.near, queries, radius, Server(layout.client), correct)
            print(
                f"r <= {radius}: candidates mean {np.mean(read):,.0f}, p99 {np.percentile(read, 99):,.0f} "
                f"(uniform: {expected_candidates(plan, len(stored), radius):,.0f}), p50 {m.p50_ms:.3f} ms, "
                f"p99 {m.p99_ms:.3f} ms, recall {m.recall}"
            )
            result[f"r{radius}"] = {"candidates_mean": float(np.mean(read)), **asdict(m)}
        await layout.close()
    return result


if __name__ == "__main__":
    main()
