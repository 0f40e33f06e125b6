"""How much memory does a run take? This process and its workers together, looked at while they work.

The working files are mapped, and a page that three processes look at is in memory once; the sum of the processes'
own peaks counts it three times. Linux tells each process's share (PSS, "proportional set size", proc(5)), and how
much of it is anonymous: the rest are pages of files, which the system takes back when it needs them.
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
    """Most so far, in bytes: of everything, and of what is no page of a file."""

    total_bytes: int = 0
    anonymous_bytes: int = 0

    def sample(self) -> None:
        """How much it is now. Where the system does not tell: this process's own peak."""
        pids = ["self", *(str(child.pid) for child in multiprocessing.active_children())]
        shares = [_proportional_set_bytes(pid) for pid in pids]
        total, anonymous = (sum(column) for column in zip(*shares, strict=True))
        if not total:
            unit = 1 if sys.platform == "darwin" else 1024
            total = anonymous = unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.total_bytes, self.anonymous_bytes = (
            max(self.total_bytes, total),
            max(self.anonymous_bytes, anonymous),
        )


@contextmanager
def track_peak_memory(interval_s: float = SAMPLE_INTERVAL_S) -> Iterator[PeakMemory]:
    """Looks again and again until the block ends."""
    peak, ended = PeakMemory(), threading.Event()

    def look() -> None:
        while not ended.wait(interval_s):
            peak.sample()

    thread = threading.Thread(target=look, name="memory", daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def _proportional_set_bytes(pid: str) -> tuple[int, int]:
    """(PSS, its anonymous part) of one process; (0, 0) when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return 0, 0
    sizes = {name: int(rest.split()[0]) * 1024 for name, rest in (line.split(":") for line in lines)}
    return sizes.get("Pss", 0), sizes.get("Pss_Anon", sizes.get("Anonymous", 0))
