"""Peak memory includes worker processes, sampled while they run."""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing.synchronize import Event

import pytest

from aggregator_archive.executors import PeakMemory

MIB = 1 << 20


def _hold_memory(size: int, held: Event, gate: Event) -> None:
    block = bytearray(b"x" * size)
    held.set()
    gate.wait(60)
    del block


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux reports proportional set sizes")
def test_memory_of_workers_counts() -> None:
    """64 MiB in a child process are counted while it lives, and remain in the peak afterwards."""
    context = multiprocessing.get_context("spawn")
    held, gate = context.Event(), context.Event()
    peak = PeakMemory()
    peak.sample()
    before = peak.anonymous_bytes
    child = context.Process(target=_hold_memory, args=(64 * MIB, held, gate))
    child.start()
    assert held.wait(60)
    peak.sample()
    gate.set()
    child.join(60)

    highest = peak.anonymous_bytes
    peak.sample()
    assert highest - before >= 64 * MIB
    assert peak.anonymous_bytes == highest <= peak.total_bytes
