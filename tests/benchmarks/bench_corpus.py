"""A synthetic corpus through ``aggregator dedupe``: time, memory, recall per kind of copy, precision.

    python tests/benchmarks/bench_corpus.py --articles 250000 --dir DIR [--processes 2] [--words 400]

DIR gets the corpus (about 2.6 kB an article) and the result. The last column extrapolates to 7,193,990 articles,
the size of Zhang's corpus (2023).
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

from aggregator.offline.archive import synthetic

ZHANG = 7_193_990
AFTER_ENCODING = ("gather", "join", "confirm", "cluster")


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--articles", type=int, required=True)
    options.add_argument("--words", type=int, default=400)
    options.add_argument("--dir", type=Path, required=True)
    options.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options.add_argument("--shingles", default="letters", help="passed on to dedupe")
    args = options.parse_args()
    plan = synthetic.SyntheticPlan(args.articles, args.words)
    files = corpus(plan, args.dir / f"corpus-{args.articles}-{args.words}", args.processes)
    out = args.dir / f"out-{args.articles}-{args.words}"
    command = [sys.executable, "-m", "aggregator", "dedupe", *map(str, files), "--out", str(out), "--fresh"]
    more = ["--shingles", args.shingles, "--processes", str(args.processes)]
    subprocess.run([*command, "--no-copy", *more], check=True)
    report(plan, json.loads((out / "summary.json").read_bytes()), score(plan, out / "pairs.jsonl"))


def corpus(plan: synthetic.SyntheticPlan, directory: Path, processes: int) -> list[Path]:
    """The corpus, made unless it is there."""
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
    wrong = 0
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            kind = planted.get(frozenset((row["id1"], row["id2"])))
            wrong += kind is None
            found.update([kind] if kind else [])
    wanted = Counter(planted.values())
    right = found.total()
    return {
        "recall": {kind: found[kind] / wanted[kind] for kind in synthetic.COPY_KINDS},
        "all": right / wanted.total(),
        "precision": right / max(1, right + wrong),
    }


def report(plan: synthetic.SyntheticPlan, summary: dict[str, Any], scored: dict[str, Any]) -> None:
    """A row of Markdown under its heading, and the seconds by stage."""
    seconds = summary["seconds"]
    join_s = sum(seconds[stage] for stage in AFTER_ENCODING)
    scale = ZHANG / plan.articles
    kinds = " | ".join(f"{scored['recall'][kind]:.4f}" for kind in synthetic.COPY_KINDS)
    heads = " | ".join(synthetic.COPY_KINDS)
    print(
        f"| articles | total s | encode s | encodings to clusters s | CPU s | GB (of it no page of a file) | {heads} | recall | precision | 7.19 M min |"
    )
    print(
        f"| {plan.articles:,} | {summary['total_seconds']:.0f} | {seconds['encode']:.0f} | {join_s:.0f} | "
        f"{summary['cpu_seconds']:.0f} | {summary['peak_memory_gb']:.2f} ({summary['peak_anonymous_gb']:.2f}) | {kinds} | {scored['all']:.4f} | "
        f"{scored['precision']:.4f} | {summary['total_seconds'] * scale / 60:.0f}, of it {join_s * scale / 60:.1f} |"
    )
    print("seconds: " + ", ".join(f"{stage} {seconds[stage]:.1f}" for stage in AFTER_ENCODING))


if __name__ == "__main__":
    main()
