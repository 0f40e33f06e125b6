"""``aggregator serve``: one process that answers requests (``worker.py``), or several (``workers.py``), until told to stop.

What nobody waits for is done in a process beside it (``scheduler.py``). SIGTERM and SIGINT end both within
``worker.SHUTDOWN_S`` seconds: requests under way are answered, the embedded store writes its log to disk. Several workers
are renewed on SIGHUP; for one there is nobody to take over, so SIGHUP is only logged.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from aggregator.http.metrics.multiprocess import SINGLE_PROCESS, PeerMetrics
from aggregator.runtime.addresses import describe_store
from aggregator.runtime.event_loop import run_loop
from aggregator.runtime.startup import announce
from aggregator.runtime.supervisor import supervise
from aggregator.runtime.web_process import run_server
from aggregator.settings import Settings
from aggregator.store.factory import with_store_url

if TYPE_CHECKING:
    from aggregator.app import Service


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Serve until told to stop. Raises ConfigurationError, ModelError or StoreUnavailable at start."""
    with _demo_directory(args, settings) as settings:
        print(f"aggregator: {describe_store(settings)}", flush=True)
        if settings.workers > 1:
            return supervise(settings)
        with tempfile.TemporaryDirectory(prefix="aggregator-") as meeting:
            siblings = None if settings.in_memory else PeerMetrics(Path(meeting), SINGLE_PROCESS)
            return run_loop(_serve_single_process(settings, siblings))


async def _serve_single_process(settings: Settings, peer_metrics: PeerMetrics | None) -> int:
    """This process has all there is: the store if it is ours, and the process of the scheduled work."""

    async def then(service: Service, port: int) -> None:
        await announce(settings, port)

    async with with_store_url(settings) as found:
        return await run_server(found, on_ready=then, peer_metrics=peer_metrics)


@contextlib.contextmanager
def _demo_directory(args: argparse.Namespace, settings: Settings) -> Iterator[Settings]:
    """A demonstration gets a directory that is removed at the end, unless the user named a store."""
    named = bool(settings.store_url or args.data_dir)
    if not settings.demo or named:
        yield settings
        return
    directory = tempfile.mkdtemp(prefix="aggregator-demo-")
    try:
        print(
            "aggregator: demonstration data is removed at the end; give --data-dir to keep it.",
            file=sys.stderr,
            flush=True,
        )
        yield dataclasses.replace(settings, data_dir=directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
