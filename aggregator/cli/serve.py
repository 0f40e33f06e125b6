"""``aggregator serve``: run the HTTP service in one web process, or in several under a supervisor.

A background process runs the event detector, index maintenance and webhooks. SIGTERM and SIGINT stop all
processes within ``web_process.SHUTDOWN_TIMEOUT_S``: requests in progress are answered, and the embedded store
writes its append-only file to disk. SIGHUP starts a rolling restart if there are several workers.
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
    """Serve until SIGTERM or SIGINT. Raises ConfigurationError, ModelError or StoreUnavailable at start."""
    with _demo_directory(args, settings) as chosen:
        print(f"aggregator: {describe_store(chosen)}", flush=True)
        if chosen.workers > 1:
            return supervise(chosen)
        with tempfile.TemporaryDirectory(prefix="aggregator-") as runtime_dir:
            peer_metrics = None if chosen.in_memory else PeerMetrics(Path(runtime_dir), SINGLE_PROCESS)
            return run_loop(_serve_single_process(chosen, peer_metrics))


async def _serve_single_process(settings: Settings, peer_metrics: PeerMetrics | None) -> int:
    """Serve in this process, which owns the embedded store and the background process."""

    async def on_ready(service: Service, port: int) -> None:
        await announce(settings, port)

    async with with_store_url(settings) as connected:
        return await run_server(connected, on_ready=on_ready, peer_metrics=peer_metrics)


@contextlib.contextmanager
def _demo_directory(args: argparse.Namespace, settings: Settings) -> Iterator[Settings]:
    """Settings with a temporary data directory for a demonstration, unless the user named a store."""
    if not settings.demo or settings.store_url or args.data_dir:
        yield settings
        return
    directory = tempfile.mkdtemp(prefix="aggregator-demo-")
    try:
        print(
            "aggregator: demonstration data is deleted at exit; use --data-dir to keep it.",
            file=sys.stderr,
            flush=True,
        )
        yield dataclasses.replace(settings, data_dir=directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
