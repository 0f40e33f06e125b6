"""Processors that do not fall asleep while something is measured: option ``--awake`` of the benchmarks.

A question to the store and its answer are two wake-ups. A virtual processor that has nothing to do halts, and waking
it goes through the host: tens of microseconds, more than a look-up takes, and one that is busy with other work
answers sooner than one at rest. So a spinner is bound to each processor, in the kernel's class for idle work: it runs
where nobody else wants to, and gives way at once. Linux only.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

# It ends with its parent, also with one that was killed. A session of its own: schedulers that share out
# processors by session (autogroup) would otherwise count its time as the benchmark's.
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
def awake(wanted: bool = True) -> Iterator[None]:
    """No processor that this process may use halts inside; nothing is done unless ``wanted``."""
    with ExitStack() as stack:
        for processor in os.sched_getaffinity(0) if wanted else ():
            command = [sys.executable, "-S", "-c", _SPINNER, str(os.getpid()), str(processor)]
            spinner = subprocess.Popen(command, start_new_session=True)
            stack.callback(spinner.wait)
            stack.callback(spinner.kill)
        yield


def add_option(parser: argparse.ArgumentParser) -> None:
    """The option, for whoever measures."""
    parser.add_argument(
        "--awake", action="store_true", help="keep the processors from halting (tests/support/cpu_spinner.py)"
    )
