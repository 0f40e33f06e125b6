"""Where does the time of an article go? ``scripts/bench shares [--single RATE] [--articles N]``

Samples all Python code of a running service and its processes (py-spy, 200 times a second) while it takes batches, or
single posts at a rate, and tells the share of each part: the innermost line of the program that a sample is in.
Shares, unlike times, hardly change on a busy machine. The store, a program of its own, is not in them.
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

from tests.benchmarks.bench_http import batches, bodies, offered, tell
from tests.benchmarks.bench_service import own_service

# Part -> what its lines have in their file's name; the first that fits decides.
PARTS = {
    "detector": ("aggregator/bursts/", "aggregator/event"),
    "analysis: language": ("text/language.py", "py3langid/"),
    "analysis: words and stems": ("text/tokens.py", "text/characters.py", "nltk/", "collections/__init__.py",
                                  "aggregator/vocabulary.py"),
    "analysis: fingerprint": ("aggregator/features.py", "aggregator/fingerprint.py"),
    "analysis: the rest": ("aggregator/analyse.py", "aggregator/text/"),
    "between processes": ("analysis_worker.py", "analysis_pool.py"),
    "store connection": ("aggregator/store/pipe", "aggregator/store/link", "aggregator/store/redis", "aggregator/store/runs",
                         "aggregator/store/wire"),
    "index: look-up, records, commit": ("aggregator/index/", "aggregator/changes.py", "aggregator/store/",
                                        "aggregator/recording.py", "aggregator/beside.py", "aggregator/succession.py"),
    "decision": ("aggregator/ingest.py", "aggregator/verdict.py", "aggregator/similarity.py", "aggregator/arrivals.py",
                 "aggregator/gathering.py", "aggregator/rounds.py", "aggregator/deciding.py", "aggregator/titled.py"),
    "JSON": ("http/decoding.py", "http/views.py", "http/responses.py", "http/answers.py", "aggregator/urls.py"),
    "HTTP": ("aggregator/http/", "aiohttp/"),
}  # fmt: skip
IDLE = ("_worker (concurrent/futures/thread.py", "select (selectors.py", "readinto (socket.py")


def part_of(frames: list[str]) -> str | None:
    """The part that a stack, outermost first, belongs to; None for a thread that waits."""
    if frames and any(waits in frames[-1] for waits in IDLE):
        return None
    for frame in reversed(frames):
        if "aggregator/overlap.py" in frame:
            return "analysis: shingles" if any("Analyser." in f for f in frames) else "decision"
        for part, names in PARTS.items():
            if any(name in frame for name in names):
                return part
    return "event loop and system calls"


def shares(path: Path) -> dict[str, float]:
    """Per cent of the samples in a file of py-spy's raw format."""
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
    """Samples are taken of the process and those below it."""
    command = shutil.which("py-spy") or str(Path(sys.executable).parent / "py-spy")
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
    stream = bodies("en")
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "samples.txt"
        async with own_service() as running:
            warm = list(itertools.islice(stream, 500))
            await batches(running, warm)
            async with sampled(running.pid, file):
                if single:
                    figures = await offered(running, stream, single, articles / single)
                else:
                    figures = await batches(running, list(itertools.islice(stream, articles)))
        tell("single posts" if single else "batch", load=os.getloadavg()[0], shares=shares(file), **figures)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench shares", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--single", type=float, default=0, metavar="RATE", help="single posts a second (0: batches)"
    )
    parser.add_argument("--articles", type=int, default=2000)
    args = parser.parse_args()
    uvloop.run(run(args.single, args.articles))


if __name__ == "__main__":
    main()
