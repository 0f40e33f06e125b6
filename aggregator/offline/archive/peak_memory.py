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

EVERY_S = 1.0


@dataclass(slots=True)
class Peak:
    """Most so far, in bytes: of everything, and of what is no page of a file."""

    total: int = 0
    anonymous: int = 0

    def look(self) -> None:
        """How much it is now. Where the system does not tell: this process's own peak."""
        pids = ["self", *(str(child.pid) for child in multiprocessing.active_children())]
        shares = [_share(pid) for pid in pids]
        total, anonymous = (sum(column) for column in zip(*shares, strict=True))
        if not total:
            unit = 1 if sys.platform == "darwin" else 1024
            total = anonymous = unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.total, self.anonymous = max(self.total, total), max(self.anonymous, anonymous)


@contextmanager
def watched(every_s: float = EVERY_S) -> Iterator[Peak]:
    """Looks again and again until the block ends."""
    peak, ended = Peak(), threading.Event()

    def look() -> None:
        while not ended.wait(every_s):
            peak.look()

    thread = threading.Thread(target=look, name="memory", daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def _share(pid: str) -> tuple[int, int]:
    """(PSS, its anonymous part) of one process; (0, 0) when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return 0, 0
    sizes = {name: int(rest.split()[0]) * 1024 for name, rest in (line.split(":") for line in lines)}
    return sizes.get("Pss", 0), sizes.get("Pss_Anon", sizes.get("Anonymous", 0))
