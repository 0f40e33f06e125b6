"""``aggregator serve`` under a clock that somebody else moves: clocked.py OFFSET_FILE serve [options].

The file holds eight bytes, a signed number of milliseconds to be added to the real time.
"""

from __future__ import annotations

import functools
import mmap
import sys
from pathlib import Path

from aggregator import app
from aggregator.cli import main

SIZE = 8


def encoded(offset_ms: int) -> bytes:
    """What stands in the file."""
    return offset_ms.to_bytes(SIZE, "little", signed=True)


def run() -> int:
    """Serve; the service reads the clock through a mapping of the file."""
    with Path(sys.argv.pop(1)).open("rb") as file:
        shared = mmap.mmap(file.fileno(), SIZE, access=mmap.ACCESS_READ)

    def clock() -> int:
        return app.wall_clock_ms() + int.from_bytes(shared[:], "little", signed=True)

    app.open_service = functools.partial(app.open_service, clock=clock)  # type: ignore[assignment]
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())
