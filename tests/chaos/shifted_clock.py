"""``aggregator serve`` with a clock that another process shifts.

    shifted_clock.py OFFSET_FILE serve [options]

OFFSET_FILE holds a signed 64-bit number of milliseconds that is added to the real time. All processes of the
service use this clock: its child processes import this module as ``__mp_main__``.
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
from aggregator.runtime import background_main

OFFSET_BYTES = 8
FILE_VARIABLE = "CHAOS_CLOCK"


def encode_offset(offset_ms: int) -> bytes:
    """Content of the offset file."""
    return offset_ms.to_bytes(OFFSET_BYTES, "little", signed=True)


def shifted_clock(file: Path) -> Callable[[], int]:
    """Wall clock plus the offset, which is read from a memory mapping of ``file``."""
    with file.open("rb") as opened:
        shared = mmap.mmap(opened.fileno(), OFFSET_BYTES, access=mmap.ACCESS_READ)
    real = time_units.wall_clock_ms

    def clock() -> int:
        return real() + int.from_bytes(shared[:], "little", signed=True)

    return clock


def run() -> int:
    """Serve with the shifted clock; the exit code."""
    os.environ[FILE_VARIABLE] = sys.argv.pop(1)
    clock = shifted_clock(Path(os.environ[FILE_VARIABLE]))
    app.open_service = functools.partial(app.open_service, clock=clock)
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())
elif __name__ == "__mp_main__":
    clock = shifted_clock(Path(os.environ[FILE_VARIABLE]))
    background_main.wall_clock_ms = clock  # type: ignore[attr-defined]  # imported name
