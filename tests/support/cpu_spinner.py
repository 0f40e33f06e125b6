"""Idle-priority spinner per processor: none halts during a measurement (benchmark option ``--awake``).

A request to the store and its reply are two wake-ups. A virtual processor without work halts, and waking it
goes through the host: tens of microseconds, more than a look-up takes. The spinner runs in the kernel's
scheduling class for idle work (SCHED_IDLE), so any other task preempts it immediately. Linux only.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

# The spinner ends with its parent, even a killed one. It has a separate session because autogroup
# scheduling would otherwise count its time as the benchmark's.
_SPINNER = """
import os, sys
parent, processor = map(int, sys.argv[1:])
os.sched_setaffinity(0, {processor})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
try:
    open("/proc/self/autogroup", "w").write("19")
except OSError:
    pass
while os.getppid() == parent:
    for _ in range(100_000):
        pass
"""


@contextmanager
def awake(enabled: bool = True) -> Iterator[None]:
    """Keep all processors that this process may use from halting; a no-op unless ``enabled``."""
    with ExitStack() as stack:
        for processor in os.sched_getaffinity(0) if enabled else ():
            command = [sys.executable, "-S", "-c", _SPINNER, str(os.getpid()), str(processor)]
            spinner = subprocess.Popen(command, start_new_session=True)
            stack.callback(spinner.wait)
            stack.callback(spinner.kill)
        yield


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--awake``."""
    parser.add_argument(
        "--awake", action="store_true", help="keep the processors from halting (tests/support/cpu_spinner.py)"
    )
