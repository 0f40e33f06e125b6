"""CPU of the detector's process per article, by the number of articles in the window.

    python -m tests.benchmarks.bench_detector_window [FILE ...] [--sizes 5000 40000] [--rate N] [--modes ...]

Headlines of FILE (default: 12 terms each, drawn by a power law), whatever their times, arrive at ``--rate``
per second and are read from an article stream in memory by a ``DetectorRunner``, as in the background
process, with a poll per second and checkpoints in a store in memory. Prints the CPU of the last ``MEASURED``
articles before each of ``--sizes`` have arrived. Modes: ``now``, dated at their arrival, so that all are in
the window; ``late``, published a day earlier; ``old``, published a month earlier, which teach nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from aggregator.domain import StreamItem, article_number_at
from aggregator.events.consumer import DetectorRunner
from aggregator.events.detection import BurstDetector, BurstRule
from aggregator.events.repository import EventRepository
from aggregator.offline.jsonl import read_rows
from aggregator.offline.replay import read_items
from aggregator.store.memory import MemoryStore
from aggregator.time_units import DAY_MS, HOUR_MS

MEASURED = 4_000
START_MS = 500_000 * HOUR_MS
AGE_MS = {"now": 0, "late": DAY_MS, "old": 30 * DAY_MS}


class StreamInMemory:
    """Article stream that holds what has arrived and was not read yet."""

    def __init__(self) -> None:
        self.waiting: list[StreamItem] = []

    async def read(
        self, positions: Mapping[bytes, bytes], count: int
    ) -> tuple[list[StreamItem], dict[bytes, bytes]]:
        """The next articles, which are then forgotten."""
        read, self.waiting = self.waiting[:count], self.waiting[count:]
        return read, dict(positions)


def drawn_items() -> Iterator[StreamItem]:
    """Articles without a topic in common."""
    rng = random.Random(1)
    while True:
        terms = {f"w{int(rng.paretovariate(0.7)) % 60_000}": 1.0 for _ in range(12)}
        yield StreamItem(
            number=1,
            first_version=1,
            id="",
            verdict="new",
            arrived_ms=START_MS,
            title="News",
            terms=tuple(terms.items()),
        )


async def measure(items: list[StreamItem], mode: str, rate: int, sizes: list[int]) -> list[float]:
    """CPU in ms per article of the last articles before each size."""
    now_ms = START_MS
    runner = DetectorRunner(EventRepository(MemoryStore(clock=lambda: now_ms)), BurstRule())
    stream = StreamInMemory()
    spent, found = [0.0], []
    for second in range(sizes[-1] // rate + 1):
        now_ms = START_MS + second * 1_000
        for item in items[second * rate : (second + 1) * rate]:
            published_ms = now_ms - AGE_MS[mode]
            number = article_number_at(now_ms, len(spent))
            stream.waiting.append(
                replace(
                    item,
                    number=number,
                    first_version=number,
                    id=f"a{number}",
                    arrived_ms=now_ms,
                    published_at_ms=published_ms,
                    verdict="new",
                    canonical_first=None,
                    exact=False,
                )
            )
            spent.append(spent[-1])
        start_s = time.process_time()
        await runner.poll(stream, now_ms)
        spent[-1] += time.process_time() - start_s
    for size in sizes:
        found.append((spent[size] - spent[size - MEASURED]) / MEASURED * 1_000)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*")
    parser.add_argument("--sizes", type=int, nargs="+", default=[5_000, 40_000])
    parser.add_argument("--rate", type=int, default=250)
    parser.add_argument("--modes", nargs="+", default=list(AGE_MS))
    options = parser.parse_args()
    rows = read_rows(options.files)
    read = read_items(rows, BurstDetector(BurstRule())) if options.files else drawn_items()
    items = list(itertools.islice(read, options.sizes[-1]))
    for mode in options.modes:
        found = asyncio.run(measure(items, mode, options.rate, options.sizes))
        cells = "  ".join(f"{size}: {ms:.3f} ms" for size, ms in zip(options.sizes, found, strict=True))
        print(f"{mode:<5} {cells}  ratio {found[-1] / found[0]:.2f}", flush=True)


if __name__ == "__main__":
    main()
