"""What a forked process does first: ask for a signal when its parent ends (Linux only), and close files."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def close_inherited_files(kept: int) -> None:
    """Close all files but the standard ones and ``kept``: others must see when their owner closes them."""
    for number in map(int, os.listdir("/proc/self/fd") if Path("/proc/self/fd").exists() else ()):
        if number > 2 and number != kept:
            with contextlib.suppress(OSError):  # the one that listed the directory
                os.close(number)


def parent_death_hook(number: signal.Signals) -> Callable[[], None] | None:
    """Function that a forked child of this process calls so that ``number`` ends it with this process.

    None unless on Linux and in the main thread: the kernel watches the thread that forked. All names are
    resolved before the fork, since little is safe between fork and exec.
    """
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def set_death_signal() -> None:
        prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # the parent died before the call
            os._exit(1)

    return set_death_signal
