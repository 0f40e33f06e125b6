"""Analysis workers that get little or no processor time."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from aggregator.analysis.pool import worker as worker_module


def stop_most_of_the_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Stop the workers for three checks of four; returns a function that returns the number of checks."""
    checks = 0
    cpu_time_s = worker_module._cpu_time_s

    def stop_or_continue(pid: int) -> float | None:
        nonlocal checks
        checks += 1
        os.kill(pid, signal.SIGSTOP if checks % 4 else signal.SIGCONT)
        return cpu_time_s(pid)

    monkeypatch.setattr(worker_module, "STALL_CHECK_INTERVAL_S", 0.001)
    monkeypatch.setattr(worker_module, "STALL_CHECKS", 10**9)
    monkeypatch.setattr(worker_module, "_cpu_time_s", stop_or_continue)
    return lambda: checks
