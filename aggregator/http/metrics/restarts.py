"""Counts of the processes of a service that were started again after they had died or hung.

The process that supervises the others counts its restarts and serves them as ``SUPERVISOR`` over
``multiprocess.py``, although it may serve no requests itself. A web process counts the restarts of its
analysis workers' fork server (``collectors.py``).
"""

from __future__ import annotations

from enum import Enum

METRIC_NAME = "aggregator_process_restarts"
LABEL = "process"
HELP_TEXT = "Processes started again after they had died or hung: worker, background, store or analysis."
ANALYSIS = "analysis"  # the fork server of the analysis workers
SUPERVISOR = "supervisor"


class Supervised(Enum):
    """Kinds of processes whose restarts the supervisor counts; the value is the label."""

    WORKER = "worker"
    BACKGROUND = "background"
    STORE = "store"


class RestartCounts:
    """Restarts by kind of process since the start of this process."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(Supervised, 0)

    def add(self, kind: Supervised) -> None:
        """Count one restart."""
        self._counts[kind] += 1

    async def render(self) -> bytes:
        """The exposition in Prometheus text format, written here: a supervisor loads no metrics library."""
        name = f"{METRIC_NAME}_total"
        lines = [f"# HELP {name} {HELP_TEXT}", f"# TYPE {name} counter"]
        lines += [f'{name}{{{LABEL}="{kind.value}"}} {count}.0' for kind, count in self._counts.items()]
        return ("\n".join(lines) + "\n").encode()
