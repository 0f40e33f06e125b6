"""``aggregator serve`` under a clock that somebody else moves: clocked.py OFFSET_FILE serve [options].

The file holds eight bytes, a signed number of milliseconds to be added to the real time. All processes of the service
follow it: those that it starts import this module as its own main module was, under another name.
"""

from __future__ import annotations

import functools
import mmap
import os
import sys
from collections.abc import Callable
from pathlib import Path

from aggregator import app, time_units
from aggregator.cli import main
from aggregator.runtime import background_main as process

SIZE = 8
FILE = "CHAOS_CLOCK"


def encoded(offset_ms: int) -> bytes:
    """What stands in the file."""
    return offset_ms.to_bytes(SIZE, "little", signed=True)


def moved(file: Path) -> Callable[[], int]:
    """The clock: the service reads it through a mapping of the file."""
    with file.open("rb") as opened:
        shared = mmap.mmap(opened.fileno(), SIZE, access=mmap.ACCESS_READ)
    real = time_units.wall_clock_ms

    def clock() -> int:
        return real() + int.from_bytes(shared[:], "little", signed=True)

    return clock


def run() -> int:
    """Serve."""
    os.environ[FILE] = sys.argv.pop(1)
    app.open_service = functools.partial(app.open_service, clock=moved(Path(os.environ[FILE])))  # type: ignore[assignment]
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())
elif __name__ == "__mp_main__":
    process.wall_clock_ms = moved(Path(os.environ[FILE]))
