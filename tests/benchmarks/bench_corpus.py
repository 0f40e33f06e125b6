"""``aggregator dedupe`` on a synthetic corpus: time, memory, recall per kind of copy, and precision.

    python -m tests.benchmarks.bench_corpus --articles 250000 --dir DIR [--processes 2] [--words 400]

DIR gets the corpus (about 2.6 kB per article) and the result. The last column extrapolates the time to
7,193,990 articles, the size of the corpus of Zhang (2023).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from tests.support import synthetic_corpus as synthetic

ZHANG_ARTICLES = 7_193_990
AFTER_ENCODING = ("gather", "join", "confirm", "cluster")


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--articles", type=int, required=True)
    options.add_argument("--words", type=int, default=400)
    options.add_argument("--dir", type=Path, required=True)
    options.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options.add_argument("--shingles", default="words", help="passed on to dedupe")
    args = options.parse_args()
    plan = synthetic.SyntheticPlan(args.articles, args.words)
    files = generate_corpus(plan, args.dir / f"corpus-{args.articles}-{args.words}", args.processes)
    out = args.dir / f"out-{args.articles}-{args.words}"
    command = [sys.executable, "-m", "aggregator", "dedupe", *map(str, files), "--out", str(out), "--fresh"]
    more = ["--shingles", args.shingles, "--processes", str(args.processes)]
    subprocess.run([*command, "--no-copy", *more], check=True)
    report(plan, json.loads((out / "summary.json").read_bytes()), score(plan, out / "pairs.jsonl"))


def generate_corpus(plan: synthetic.SyntheticPlan, directory: Path, processes: int) -> list[Path]:
    """Generate the corpus unless it exists; its files."""
    done = directory / "done"
    if not done.exists():
        started = time.monotonic()
        with ProcessPoolExecutor(processes) as executor:
            synthetic.write_corpus(plan, directory, executor)
        done.touch()
        print(f"generated {plan.articles:,} articles in {time.monotonic() - started:.0f} s")
    return sorted(directory.glob("part-*.jsonl"))


def score(plan: synthetic.SyntheticPlan, file: Path) -> dict[str, Any]:
    """Recall per kind and precision of the confirmed pairs against the planted ones."""
    planted = {frozenset(pair): kind for kind, *pair in synthetic.planted_pairs(plan)}
    found: Counter[str] = Counter()
    false_pairs = 0
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            kind = planted.get(frozenset((row["id1"], row["id2"])))
            false_pairs += kind is None
            found.update([kind] if kind else [])
    planted_of_kind = Counter(planted.values())
    correct = found.total()
    return {
        "recall": {kind: found[kind] / planted_of_kind[kind] for kind in synthetic.COPY_KINDS},
        "all": correct / planted_of_kind.total(),
        "precision": correct / max(1, correct + false_pairs),
    }


def report(plan: synthetic.SyntheticPlan, summary: dict[str, Any], scored: dict[str, Any]) -> None:
    """Print a Markdown table of one row, and the seconds by stage."""
    seconds = summary["seconds"]
    join_s = sum(seconds[stage] for stage in AFTER_ENCODING)
    scale = ZHANG_ARTICLES / plan.articles
    kinds = " | ".join(f"{scored['recall'][kind]:.4f}" for kind in synthetic.COPY_KINDS)
    heads = " | ".join(synthetic.COPY_KINDS)
    print(
        f"| articles | total s | encode s | encodings to clusters s | CPU s | GB (without pages of files) "
        f"| {heads} | recall | precision | 7.19 M min |"
    )
    print(
        f"| {plan.articles:,} | {summary['total_seconds']:.0f} | {seconds['encode']:.0f} | {join_s:.0f} | "
        f"{summary['cpu_seconds']:.0f} | {summary['peak_memory_gb']:.2f} "
        f"({summary['peak_anonymous_gb']:.2f}) | {kinds} | {scored['all']:.4f} | "
        f"{scored['precision']:.4f} | "
        f"{summary['total_seconds'] * scale / 60:.0f}, of it {join_s * scale / 60:.1f} |"
    )
    print("seconds: " + ", ".join(f"{stage} {seconds[stage]:.1f}" for stage in AFTER_ENCODING))


if __name__ == "__main__":
    main()
