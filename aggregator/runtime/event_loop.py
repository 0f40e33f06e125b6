"""How does a process run that works on articles for a while? Its event loop, and what would hold that up."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

# How long a thread (one that compresses a checkpoint, say) may keep the interpreter from the requests (Python: 5 ms).
THREAD_SWITCH_INTERVAL_S = 0.0005
# Containers made between two looks for garbage (Python: 700). Each look goes over all that a chunk of articles has
# just read, which is held anyway: a fifteenth of a batch's time.
GC_YOUNG_THRESHOLD = 10_000
# ... and each third look goes further back. All there is is gone through about as often as Python would: what errors
# leave behind in circles can hold whole batches.
GC_OLDER_THRESHOLD = 3

T = TypeVar("T")


def run_loop(main: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop where it exists."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    result: T = uvloop.run(main)
    return result


def tune_interpreter() -> None:
    """What is loaded now stays: looking through it for garbage again and again would hold up requests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_YOUNG_THRESHOLD, GC_OLDER_THRESHOLD, GC_OLDER_THRESHOLD)
    sys.setswitchinterval(THREAD_SWITCH_INTERVAL_S)
