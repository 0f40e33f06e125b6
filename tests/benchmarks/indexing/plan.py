"""Comparison of block plans by a cost model (``scripts/bench plan [--measured FILE.json ...]``).

The time of a look-up is modeled as linear, memory as entries plus a constant per bucket:

    us = base + per_key * keys + per_entry * entries read
    bytes = entry * blocks * stored * slack + buckets in use * per_bucket

``--measured`` takes the output of ``scripts/bench index --json`` for packed layouts: the constants are fitted
to it, and every measured row is printed with the prediction. Without it, the constants are those of the
machine of docs/benchmarks/index-and-memory.md. Then plans are compared at 10^7, 10^8 and 10^9 uniform
fingerprints: keys and megabytes per look-up at 7 bits, times at 3 and 7, memory, and the number of nodes.
Real fingerprints cluster, so the number of entries is a lower bound. "segments": the same in segments of
``--segment`` articles, all queried at once, each on its own node; the time is that of one segment, keys and
bytes are totals.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

from aggregator.index.blocks import BlockPlan
from aggregator.index.codec.postings import NUMBER_BYTES
from tests.support.index_layout import expected_candidates

PLANS = {
    "8x8": (8,) * 8, "6x11": (11,) * 4 + (10,) * 2, "5x13": (13,) * 4 + (12,), "4x16": (16,) * 4,
    "3x21/22": (22, 21, 21), "2x32": (32, 32),
}  # fmt: skip
MEASURED = {"ours 4x16": "4x16", "packed 5x13": "5x13"}


@dataclass(frozen=True, slots=True)
class Model:
    """Constants of the cost model, in microseconds and bytes; see the module docstring."""

    base: float = 30.0
    per_key: float = 1.2
    per_entry: float = 0.01
    slack: float = 1.02
    per_bucket: float = 55.0

    def time_us(self, plan: BlockPlan, stored: float, radius: int) -> float:
        """Time of one look-up in microseconds."""
        return (
            self.base
            + self.per_key * keys(plan, radius)
            + self.per_entry * expected_candidates(plan, int(stored), radius)
        )

    def bytes_each(self, plan: BlockPlan, stored: float) -> float:
        """Memory per fingerprint."""
        used: float = sum(2**w * -math.expm1(-stored / 2**w) for w in plan.widths)
        return (plan.remainder_bytes + NUMBER_BYTES) * len(
            plan.widths
        ) * self.slack + self.per_bucket * used / stored


def keys(plan: BlockPlan, radius: int) -> int:
    """Number of buckets that one look-up reads."""
    return sum(
        math.comb(width, bits)
        for width, block_radius in zip(plan.widths, plan.block_radii(radius), strict=True)
        for bits in range(block_radius + 1)
    )


def fitted(rows: Sequence[dict[str, Any]]) -> Model:
    """Constants fitted to measurements by relative error, so that small times count as much as large ones."""
    plans = [BlockPlan(PLANS[MEASURED[row["layout"]]]) for row in rows]
    factors = np.array([
        [1.0, keys(p, r["radius"]), expected_candidates(p, r["size"], r["radius"])]
        for p, r in zip(plans, rows, strict=True)
    ])  # fmt: skip
    times = np.array([row["p50_ms"] * 1e3 for row in rows])
    (base, per_key, per_entry), _ = nnls(factors / times[:, None], np.ones(len(times)))
    unit = Model(slack=0.0, per_bucket=1.0)
    sizes = np.array([
        [(p.remainder_bytes + NUMBER_BYTES) * len(p.widths), unit.bytes_each(p, r["size"])]
        for p, r in zip(plans, rows, strict=True)
    ])  # fmt: skip
    measured = np.array([row["bytes_per_fingerprint"] for row in rows])
    (slack, per_bucket), _ = nnls(sizes / measured[:, None], np.ones(len(measured)))
    return Model(float(base), float(per_key), float(per_entry), float(slack), float(per_bucket))


def check(model: Model, rows: Iterable[dict[str, Any]]) -> None:
    """Print measured and computed values."""
    print(f"{'measured':14}{'stored':>12}{'r':>3}{'p50 ms':>9}{'model':>8}{'B/fp':>7}{'model':>7}")
    for row in rows:
        plan = BlockPlan(PLANS[MEASURED[row["layout"]]])
        us, bytes_each = (
            model.time_us(plan, row["size"], row["radius"]),
            model.bytes_each(plan, row["size"]),
        )
        print(
            f"{row['layout']:14}{row['size']:12,}{row['radius']:3}{row['p50_ms']:9.3f}{us / 1e3:8.3f}"
            f"{row['bytes_per_fingerprint']:7.0f}{bytes_each:7.0f}"
        )


def compare(model: Model, stored: float, node_gib: float, segment: float) -> list[dict[str, Any]]:
    """All plans at one size, the fastest at 7 bits first."""
    parts = max(1, math.ceil(stored / segment))
    rows: list[dict[str, Any]] = []
    for name, widths in PLANS.items():
        plan = BlockPlan(widths)
        total = model.bytes_each(plan, stored) * stored
        entry_bytes = plan.remainder_bytes + NUMBER_BYTES
        rows.append({
            "plan": name, "stored": stored, "keys": keys(plan, 7),
            "megabytes": expected_candidates(plan, int(stored), 7) * entry_bytes / 1e6,
            "r3_ms": model.time_us(plan, stored, 3) / 1e3, "r7_ms": model.time_us(plan, stored, 7) / 1e3,
            "bytes_each": total / stored, "gib": total / 2**30, "nodes": math.ceil(total / 2**30 / node_gib),
            "segments": parts, "segments_keys": keys(plan, 7) * parts,
            "segments_r7_ms": model.time_us(plan, stored / parts, 7) / 1e3,
        })  # fmt: skip
    rows.sort(key=lambda row: row["r7_ms"])
    print(
        f"\n{stored:14,.0f}{'keys':>8}{'MB':>9}{'r3 ms':>9}{'r7 ms':>10}{'B/fp':>7}{'GiB':>8}{'nodes':>7}"
        f"   in {parts} segments:{'keys':>9}{'r7 ms':>9}"
    )
    for row in rows:
        print(
            f"{row['plan']:>14}{row['keys']:8,}{row['megabytes']:9.2f}{row['r3_ms']:9.3f}{row['r7_ms']:10.3f}"
            f"{row['bytes_each']:7.0f}{row['gib']:8.1f}{row['nodes']:7}"
            f"{'':16}{row['segments_keys']:9,}{row['segments_r7_ms']:9.3f}"
        )
    least = min(rows, key=lambda row: row["megabytes"])["plan"]
    print(f"  fastest at 7 bits: {rows[0]['plan']}; fewest bytes: {least}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/bench plan", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measured", nargs="*", default=[], help="output of scripts/bench index --json")
    parser.add_argument("--node-gib", type=float, default=32.0, help="memory of one node (default 32)")
    parser.add_argument("--segment", type=float, default=1e7, help="articles per segment (default 1e7)")
    parser.add_argument("--json", help="write all figures to this file")
    args = parser.parse_args()
    files = [json.loads(Path(name).read_text(encoding="utf-8"))["layouts"] for name in args.measured]
    rows = [row for file in files for row in file if row["layout"] in MEASURED and "p50_ms" in row]
    model = fitted(rows) if rows else Model()
    print(
        f"us = {model.base:.1f} + {model.per_key:.2f} * keys + {model.per_entry:.4f} * entries;  "
        f"bytes = entry * blocks * stored * {model.slack:.2f} + buckets * {model.per_bucket:.0f}"
    )
    check(model, rows)
    found = [row for stored in (1e7, 1e8, 1e9) for row in compare(model, stored, args.node_gib, args.segment)]
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
