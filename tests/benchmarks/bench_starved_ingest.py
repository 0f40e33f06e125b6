"""Ingest without processor time: a quota of 0.3 processors, and a machine with busy processes.

    scripts/bench starved [--articles 10000] [--busy 8] [--busy-nice 15] [--quota 0.3]

``aggregator ingest --store memory`` processes the same articles in five languages on a calm machine, in a
control group with a quota, and in parallel with processes that use all processors. It prints what was refused
and how many verdicts differ from the calm run: verdict, duplicates, related articles and their distances.
Similarities are counted apart, since their third decimal may differ between runs. Exit code 1 if anything was
refused or a verdict differs. Without the data, or without a writable control group (Linux, root), it says
what it skips.

``ingest`` runs at nice 10 and its analysis workers at nice 15, so that they leave a machine to its services.
By default the busy processes have the nice value of the workers: in parallel with processes of nice 0 the
workers would get 1 % of a processor, and the run would take hours.

The input must be large enough for ``ingest`` to use analysis workers, which are what a busy machine starves.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice, zip_longest
from pathlib import Path

from aggregator.cli.ingest_targets import PARALLEL_ABOVE_BYTES
from tests.support.development_data import DATA

FILES = {
    "en": "reuters21578_dev", "zh": "xinwenlianbo_dev", "ru": "ru_telegram_dev", "de": "gnad10k_dev",
    "es": "cltls_crisis_es_dev",
}  # fmt: skip
CGROUP = Path("/sys/fs/cgroup/cpu")  # version 1
PERIOD_US = 100_000
BUSY = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): pass"


def articles(count: int) -> Iterator[bytes]:
    """Lines of the files in turn, as many of each language as it has, ``count`` in all."""
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(gzip.open(DATA / f"{name}.jsonl.gz", "rb")) for name in FILES.values()]
        mixed = (line for group in zip_longest(*opened) for line in group if line)
        yield from islice(mixed, count)


@contextlib.contextmanager
def quota(processors: float) -> Iterator[list[str]]:
    """A command prefix that runs a command with this number of processors."""
    group = CGROUP / f"starved-ingest-{os.getpid()}"
    group.mkdir()
    try:
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(int(processors * PERIOD_US)))
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
    finally:
        group.rmdir()


@contextlib.contextmanager
def busy(count: int, nice: int) -> Iterator[list[str]]:
    """Processes of this nice value that use all processors; the command has no prefix."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            command = ["nice", "-n", str(nice), sys.executable, "-S", "-c", BUSY, str(os.getpid())]
            process = subprocess.Popen(command)
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield []


def ingest(prefix: list[str], source: Path, out: Path) -> tuple[list[str], float, int]:
    """The answers without durations, the seconds and the exit code of one run."""
    command = [sys.executable, "-m", "aggregator", "ingest", "--store", "memory", "--no-progress"]
    started = time.monotonic()
    code = subprocess.run(
        [*prefix, *command, "--out", str(out), str(source)], check=False, stderr=subprocess.DEVNULL
    ).returncode
    elapsed_s = time.monotonic() - started
    answers = []
    for line in out.read_text(encoding="utf-8").splitlines():
        answer = json.loads(line)
        answer.pop("timings_ms", None)
        answers.append(json.dumps(answer, sort_keys=True))
    return answers, elapsed_s, code


def verdict(line: str | None) -> object:
    """An answer without the similarities of related articles, which are numbers with rounding errors."""
    if line is None:
        return None
    answer = json.loads(line)
    for related in answer.get("related", ()):
        related.pop("similarity", None)
    answer.get("related", []).sort(key=lambda related: str(related["id"]))
    return answer


def main() -> int:
    """Run and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--articles", type=int, default=10_000)
    parser.add_argument("--busy", type=int, default=8, help="number of busy processes; 0: skip")
    parser.add_argument("--busy-nice", type=int, default=15, help="nice value of the busy processes")
    parser.add_argument("--quota", type=float, default=0.3, help="processors of the quota; 0: skip")
    options = parser.parse_args()
    if missing := [name for name in FILES.values() if not (DATA / f"{name}.jsonl.gz").exists()]:
        print(f"skipped: {', '.join(missing)} not found in {DATA}")
        return 0
    failed = False
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory, "articles.jsonl")
        lines = list(articles(options.articles))
        source.write_bytes(b"".join(lines))
        if source.stat().st_size <= PARALLEL_ABOVE_BYTES:
            sys.exit(
                f"error: --articles: give more; input up to {PARALLEL_ABOVE_BYTES:,} bytes uses no worker"
            )
        print(f"{len(lines)} articles in {len(FILES)} languages, {source.stat().st_size / 1e6:.1f} MB")
        calm, elapsed_s, code = ingest([], source, Path(directory, "calm.jsonl"))
        print(f"calm: {elapsed_s:.1f} s, {describe(calm)}, exit code {code}", flush=True)
        cases = []
        if options.quota and os.access(CGROUP, os.W_OK) and (CGROUP / "cpu.cfs_quota_us").exists():
            cases.append((f"quota of {options.quota:g} processors", quota(options.quota)))
        elif options.quota:
            print(f"skipped: quota, since {CGROUP} is not a writable control group")
        if options.busy:
            name = f"{options.busy} busy processes of nice {options.busy_nice}"
            cases.append((name, busy(options.busy, options.busy_nice)))
        for name, starved in cases:
            with starved as prefix:
                answers, elapsed_s, code = ingest(prefix, source, Path(directory, "starved.jsonl"))
            pairs = list(zip_longest(calm, answers))
            differing = sum(verdict(a) != verdict(b) for a, b in pairs)
            similarities = sum(a != b for a, b in pairs) - differing
            failed |= bool(differing) or refused(answers) > 0
            print(
                f"{name}: {elapsed_s:.1f} s, {describe(answers)}, exit code {code}; "
                f"{differing} of {len(calm)} verdicts and {similarities} similarities differ",
                flush=True,
            )
    return int(failed)


def describe(answers: list[str]) -> str:
    """Counts of verdicts and of refusals by code."""
    counts: Counter[str] = Counter()
    for line in answers:
        answer = json.loads(line)
        counts[answer.get("verdict") or f"refused {answer['error']['code']}"] += 1
    named = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    return f"{len(answers)} answers ({named}), {refused(answers)} refused"


def refused(answers: list[str]) -> int:
    """Answers without a verdict."""
    return sum("verdict" not in json.loads(answer) for answer in answers)


if __name__ == "__main__":
    sys.exit(main())
