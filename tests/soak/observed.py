"""``aggregator serve`` whose clock runs fast and which counts its own tasks: observed.py FILE SPEED serve [options].

Every half second one line is appended to FILE: tasks of the event loop, threads, entries in caches. The caches of
words are filled before it serves: they are bounded, but new words come so slowly that it would take them hours.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aggregator import app, overlap, titled, topics
from aggregator.cli import main
from aggregator.features import FeatureModel
from aggregator.store import records

PERIOD_S = 0.5
WORDS = 60_000  # with their terms nearly as many as an analyser keeps
OF_WORDS = (overlap.word_hash, topics.term_hash)
CACHES = (*OF_WORDS, titled._counts, records.decode_record)


def fill_caches() -> None:
    """As after weeks: as many words and headlines as are kept, of the length that words have."""
    for cache in OF_WORDS:
        for number in range(cache.cache_parameters()["maxsize"]):
            cache(f"filling{number:06}")
    for number in range(titled._counts.cache_parameters()["maxsize"]):
        titled._counts(f"filling headline {number:06} of six words", "eo")


def run() -> int:
    """Serve."""
    file, speed = Path(sys.argv.pop(1)), float(sys.argv.pop(1))
    fill_caches()
    lines = file.open("a")
    started_ms = app.wall_clock_ms()
    opened = app.open_service

    def clock() -> int:
        return int(started_ms + speed * (app.wall_clock_ms() - started_ms))

    async def count() -> None:
        while True:
            seen = {
                "tasks": len(asyncio.all_tasks()),
                "threads": threading.active_count(),
                "cached": sum(cache.cache_info().currsize for cache in CACHES),
            }
            print(json.dumps(seen), file=lines, flush=True)
            await asyncio.sleep(PERIOD_S)

    @asynccontextmanager
    async def open_observed(*given: Any, **more: Any) -> AsyncIterator[app.Service]:
        async with opened(*given, clock=clock, **more) as service:
            _, model = service.analyser._model_of("en")
            assert isinstance(model, FeatureModel)
            service.analyser._vocabulary("en", model).words([f"filling{number:06}" for number in range(WORDS)])
            counting = asyncio.create_task(count())
            yield service
            counting.cancel()

    app.open_service = open_observed  # type: ignore[assignment]
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())
