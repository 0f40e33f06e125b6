"""Settings of the services in this package."""

from __future__ import annotations

import pytest


@pytest.fixture
def without_analysis_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Services and commands start no analysis processes, which saves 1 s of processor time per start.

    For tests that post single plain texts: only batches and pages go to these processes.
    """
    monkeypatch.setenv("AGGREGATOR_ANALYSIS_PROCESSES", "0")
