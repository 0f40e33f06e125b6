"""Lower process priority: nice value and time slice, tested in child processes."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

from aggregator.concurrency.process_priority import TIME_SLICE_NS

SCHED = Path("/proc/self/sched")
KERNEL = tuple(int(part) for part in platform.release().split(".")[:2] if part.isdigit())
LOWER_PRIORITY = "from aggregator.concurrency.process_priority import lower_priority; lower_priority(3)"


def _evaluate_in_child(expression: str) -> str:
    """Value of an expression in a child of a process that lowered its priority by 3."""
    child = f"import os; print({expression})"
    start_child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    parent = f"{LOWER_PRIORITY}; {start_child}"
    return subprocess.check_output([sys.executable, "-c", parent], text=True)


def test_the_priority_is_lowered_for_children_too() -> None:
    """The nice value increases by the given amount, up to 19."""
    expected = min(19, os.getpriority(os.PRIO_PROCESS, 0) + 3)

    assert int(_evaluate_in_child("os.getpriority(os.PRIO_PROCESS, 0)")) == expected


def test_time_slices_are_short() -> None:
    """The minimum of the kernel, if it supports and reports slices per process."""
    report = _evaluate_in_child(f"open('{SCHED}').read()") if SCHED.exists() and KERNEL >= (6, 12) else ""
    slices = [int(line.split(":")[1]) for line in report.splitlines() if line.startswith("se.slice")]

    assert slices == [TIME_SLICE_NS] * len(slices)
