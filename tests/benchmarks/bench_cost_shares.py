"""CPU shares of the stages of an article (``scripts/bench shares [--single RATE] [--articles N]``).

Samples the Python stacks of a running service and its child processes (py-spy, 200 times per second) while it
receives batches, or single posts at RATE per second, and prints the share of each part. A sample is counted
for the innermost frame that belongs to the program. Shares, unlike times, hardly change on a busy machine.
The store is another program and is not included.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvloop

from tests.benchmarks.bench_http import measure_batches, open_loop, record_result, request_bodies
from tests.benchmarks.bench_service import running_service

# Part -> substrings of the file names in its frames; the first part that matches wins.
PARTS = {
    "detector": ("aggregator/events/",),
    "analysis: language": ("text/language.py", "py3langid/"),
    "analysis: words and stems": ("text/tokenizer.py", "text/normalization.py", "text/normalization.py",
                                  "text/morphology.py", "nltk/", "collections/__init__.py",
                                  "analysis/vocabulary.py"),
    "analysis: fingerprint": ("analysis/features.py", "analysis/simhash.py"),
    "between processes": ("analysis/pool/",),
    "analysis: the rest": ("analysis/analyzer.py", "aggregator/analysis/text/"),
    "store connection": ("store/pipelining.py", "store/client.py", "store/redis.py"),
    "index: look-up, records, commit": ("aggregator/index/", "aggregator/store/", "ingest/commit.py",
                                        "ingest/dual_write.py"),
    "decision": ("aggregator/ingest/", "aggregator/dedup/"),
    "JSON": ("aggregator/contract/", "http/responses.py", "analysis/article_id.py"),
    "HTTP": ("aggregator/http/", "aiohttp/"),
}  # fmt: skip
IDLE = ("_worker (concurrent/futures/thread.py", "select (selectors.py", "readinto (socket.py")


def part_of(frames: list[str]) -> str | None:
    """Part that a stack, outermost frame first, belongs to; None for an idle thread."""
    if frames and any(idle in frames[-1] for idle in IDLE):
        return None
    for frame in reversed(frames):
        if "analysis/shingles.py" in frame:
            return "analysis: shingles" if any("analysis/analyzer.py" in f for f in frames) else "decision"
        for part, names in PARTS.items():
            if any(name in frame for name in names):
                return part
    return "event loop and system calls"


def shares(path: Path) -> dict[str, float]:
    """Percentage of samples per part, from a file in py-spy's raw format."""
    found: Counter[str] = Counter()
    for line in path.read_text(encoding="utf-8").splitlines():
        stack, _, count = line.rpartition(" ")
        frames = [f for f in stack.split(";") if not f.startswith(("process ", "thread "))]
        part = part_of(frames)
        if part is not None:
            found[part] += int(count)
    return {part: round(100 * n / found.total(), 1) for part, n in found.most_common()}


@asynccontextmanager
async def sampled(pid: int, file: Path) -> AsyncIterator[None]:
    """Sample a process and its descendants into ``file``."""
    command = shutil.which("py-spy", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if command is None:
        sys.exit("py-spy is not installed; run scripts/setup bench.")
    options = ("--format", "raw", "--rate", "200", "--subprocesses", "--threads", "--output", str(file))
    spy = await asyncio.create_subprocess_exec(
        command, "record", "--pid", str(pid), *options, stdout=asyncio.subprocess.DEVNULL
    )
    await asyncio.sleep(1.5)
    yield
    spy.send_signal(signal.SIGINT)
    await spy.wait()


async def run(single: float, articles: int) -> None:
    """Warm up, sample, print."""
    stream = request_bodies("en")
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "samples.txt"
        async with running_service() as running:
            await measure_batches(running, list(itertools.islice(stream, 500)))  # warm-up
            async with sampled(running.pid, file):
                if single:
                    figures = await open_loop(running, stream, single, articles / single)
                else:
                    figures = await measure_batches(running, list(itertools.islice(stream, articles)))
        name = "single posts" if single else "batch"
        record_result(name, load=os.getloadavg()[0], shares=shares(file), **figures)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/bench shares", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--single", type=float, default=0, metavar="RATE", help="single posts per second (0: batches)"
    )
    parser.add_argument("--articles", type=int, default=2000)
    args = parser.parse_args()
    uvloop.run(run(args.single, args.articles))


if __name__ == "__main__":
    main()
