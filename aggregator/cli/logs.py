"""Log records go to standard error, one line each."""

from __future__ import annotations

import logging


def configure(level: str, *, with_process: bool = False) -> None:
    """Show records from ``level`` on; ``with_process`` names the worker that wrote them."""
    process = " %(process)d" if with_process else ""
    logging.basicConfig(level=level, format=f"%(asctime)s %(levelname)s{process} %(name)s: %(message)s")
    if level != "DEBUG":  # the scheduler reports every tick of the detector
        logging.getLogger("apscheduler").setLevel(logging.WARNING)
