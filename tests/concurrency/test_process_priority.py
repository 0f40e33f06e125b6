"""Stepping back: a lower priority, in short slices where the kernel can, and none of it to the process that tests."""

import os
import platform
import subprocess
import sys
from pathlib import Path

from aggregator.concurrency.process_priority import TIME_SLICE_NS

SCHED = Path("/proc/self/sched")
KERNEL = tuple(int(part) for part in platform.release().split(".")[:2] if part.isdigit())
STEP_BACK = "from aggregator.concurrency.process_priority import lower_priority; lower_priority(3)"


def _of_a_child(expression: str) -> str:
    """What a child of a process that stepped back by 3 says of itself."""
    child = f"import os; print({expression})"
    parent = (
        f"{STEP_BACK}; import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    )
    return subprocess.check_output([sys.executable, "-c", parent], text=True)


def test_a_process_and_its_children_are_lower_in_priority() -> None:
    """By as much as was said."""
    assert int(_of_a_child("os.getpriority(os.PRIO_PROCESS, 0)")) == min(
        19, os.getpriority(os.PRIO_PROCESS, 0) + 3
    )


def test_their_slices_are_short() -> None:
    """The shortest there are, where the kernel has slices of a process's own and tells of them."""
    told = _of_a_child(f"open('{SCHED}').read()") if SCHED.exists() and KERNEL >= (6, 12) else ""
    slices = [int(line.split(":")[1]) for line in told.splitlines() if line.startswith("se.slice")]

    assert slices == [TIME_SLICE_NS] * len(slices)
