"""Event loop of a process: uvloop, stop signals, and tuning of the interpreter for low latency."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

# Longest time that a thread (checkpoint compression, for example) holds the interpreter. Python: 5 ms.
THREAD_SWITCH_INTERVAL_S = 0.0005
# Container allocations between two collections of the young generation. Python: 700. Each collection
# traverses the live objects of the current batch: 1/15 of a batch's time with Python's value.
GC_YOUNG_THRESHOLD = 10_000
# Every third collection includes the older generation, so full collections are about as frequent as with
# Python's defaults: reference cycles left by errors can hold whole batches in memory.
GC_OLDER_THRESHOLD = 3

T = TypeVar("T")


def run_loop(main: Coroutine[Any, Any, T]) -> T:
    """Run ``main`` on uvloop."""
    import uvloop

    result: T = uvloop.run(main)
    return result


def on_stop_signal(handler: Callable[[], None]) -> None:
    """Call ``handler`` in the running loop at SIGTERM and SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, handler)


def tune_interpreter() -> None:
    """Exempt everything loaded so far from garbage collection, and collect and switch threads as above."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_YOUNG_THRESHOLD, GC_OLDER_THRESHOLD, GC_OLDER_THRESHOLD)
    sys.setswitchinterval(THREAD_SWITCH_INTERVAL_S)
