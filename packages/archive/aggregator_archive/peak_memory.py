"""Peak memory of a run: this process and its workers together, sampled while they run.

Working files are memory-mapped by several processes, so the proportional set size is summed (PSS, proc(5)),
and its anonymous part; the rest are pages of files, which the kernel can reclaim.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SAMPLE_INTERVAL_S = 1.0


@dataclass(slots=True)
class PeakMemory:
    """Largest sample so far, in bytes: of all memory, and of anonymous memory (not pages of files)."""

    total_bytes: int = 0
    anonymous_bytes: int = 0

    def sample(self) -> None:
        """Sample now. Systems without PSS report the peak resident size of this process only."""
        pids = ["self", *(str(child.pid) for child in multiprocessing.active_children())]
        shares = [_proportional_set_bytes(pid) for pid in pids]
        total, anonymous = (sum(column) for column in zip(*shares, strict=True))
        if not total:
            unit = 1 if sys.platform == "darwin" else 1024
            total = anonymous = unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.total_bytes = max(self.total_bytes, total)
        self.anonymous_bytes = max(self.anonymous_bytes, anonymous)


@contextmanager
def track_peak_memory(interval_s: float = SAMPLE_INTERVAL_S) -> Iterator[PeakMemory]:
    """Sample every ``interval_s`` seconds in a thread until the block ends."""
    peak, ended = PeakMemory(), threading.Event()

    def sample_until_ended() -> None:
        while not ended.wait(interval_s):
            peak.sample()

    thread = threading.Thread(target=sample_until_ended, name="memory", daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def _proportional_set_bytes(pid: str) -> tuple[int, int]:
    """(PSS, its anonymous part) of a process; (0, 0) if it has ended or the system has no PSS."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return 0, 0
    sizes = {name: int(rest.split()[0]) * 1024 for name, rest in (line.split(":") for line in lines)}
    return sizes.get("Pss", 0), sizes.get("Pss_Anon", sizes.get("Anonymous", 0))
