"""``aggregator serve`` with a clock that another process shifts.

    shifted_clock.py OFFSET_FILE serve [options]

OFFSET_FILE holds a signed 64-bit number of milliseconds that is added to the real time. All processes of the
service use this clock: its child processes import this module as ``__mp_main__``, before any module that
imports the clock. An embedded store is started by the program that ``CHAOS_STORE`` names, if it is set: a
script that gives the store a shifted clock too (``store_script``).
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable
from pathlib import Path

from aggregator import time_units

OFFSET_BYTES = 8
FILE_VARIABLE = "CHAOS_CLOCK"
STORE_VARIABLE = "CHAOS_STORE"


def encode_offset(offset_ms: int) -> bytes:
    """Content of the offset file."""
    return offset_ms.to_bytes(OFFSET_BYTES, "little", signed=True)


def store_script(binary: str, library: str, clock: Path) -> str:
    """A script that runs a store under libfaketime (``library``), with the offset in the file ``clock``."""
    variables = {
        "LD_PRELOAD": library,
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }
    settings = " ".join(f"{name}='{value}'" for name, value in variables.items())
    return f"#!/bin/sh\nexec env {settings} '{binary}' \"$@\"\n"


def shifted_clock(file: Path) -> Callable[[], int]:
    """Wall clock plus the offset, which is read from a memory mapping of ``file``."""
    with file.open("rb") as opened:
        shared = mmap.mmap(opened.fileno(), OFFSET_BYTES, access=mmap.ACCESS_READ)
    real = time_units.wall_clock_ms

    def clock() -> int:
        return real() + int.from_bytes(shared[:], "little", signed=True)

    return clock


def _install() -> None:
    """Replace the clock, and the program of the embedded store, in this process."""
    time_units.wall_clock_ms = shifted_clock(Path(os.environ[FILE_VARIABLE]))
    if script := os.environ.get(STORE_VARIABLE):
        from aggregator.store import embedded

        embedded.bundled_binary = lambda: script


if __name__ == "__main__":
    os.environ[FILE_VARIABLE] = sys.argv.pop(1)
    _install()
    from aggregator.cli import main

    sys.exit(main(sys.argv[1:]))
elif __name__ == "__mp_main__":
    _install()
