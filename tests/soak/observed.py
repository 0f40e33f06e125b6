"""``aggregator serve`` whose clock runs fast and which counts its own tasks: observed.py FILE SPEED serve [options].

Every half second one line is appended to FILE: tasks of the event loop, threads.
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

from aggregator import app
from aggregator.cli import main

PERIOD_S = 0.5


def run() -> int:
    """Serve."""
    file, speed = Path(sys.argv.pop(1)), float(sys.argv.pop(1))
    lines = file.open("a")
    started_ms = app.wall_clock_ms()
    opened = app.open_service

    def clock() -> int:
        return int(started_ms + speed * (app.wall_clock_ms() - started_ms))

    async def count() -> None:
        while True:
            seen = {"tasks": len(asyncio.all_tasks()), "threads": threading.active_count()}
            print(json.dumps(seen), file=lines, flush=True)
            await asyncio.sleep(PERIOD_S)

    @asynccontextmanager
    async def open_observed(*given: Any, **more: Any) -> AsyncIterator[app.Service]:
        async with opened(*given, clock=clock, **more) as service:
            counting = asyncio.create_task(count())
            yield service
            counting.cancel()

    app.open_service = open_observed  # type: ignore[assignment]
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())
