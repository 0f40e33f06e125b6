"""``aggregator serve``: run the HTTP service in one web process, or in several under a supervisor.

SIGTERM and SIGINT stop all processes within ``web_process.SHUTDOWN_TIMEOUT_S``: requests in progress are
answered, and the embedded store writes its append-only file to disk.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import logging
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aggregator.config_file import record_start
from aggregator.errors import AggregatorError
from aggregator.http.peer_metrics import SINGLE_PROCESS, PeerMetrics
from aggregator.runtime.addresses import announce, bound_socket, describe_store, say
from aggregator.runtime.background_process import fork_background
from aggregator.runtime.event_loop import run_loop
from aggregator.runtime.processes import ForkedProcess
from aggregator.runtime.supervisor import shared_store, supervise
from aggregator.runtime.web_process import fork_analysis, run_server
from aggregator.settings import Settings
from aggregator.store.disk import temporary_directory
from aggregator.store.factory import with_running_store_url

if TYPE_CHECKING:
    from aggregator.app import AnalysisPools

log = logging.getLogger("aggregator.serve")


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT. Raises ConfigurationError, ModelError or StoreUnavailable at start."""
    if settings.policy_profiles_file:  # each process reads it; a fault is reported once, before they start
        from aggregator.policy_file import load_policies

        load_policies(settings)
    with _demo_directory(args, settings) as chosen, bound_socket(chosen) as listener:
        if not chosen.in_memory and with_running_store_url(chosen) is chosen:  # no other service's record
            record_start(args.config_file, Path(chosen.data_dir))
        if args.config_file is not None:
            say(chosen, f"configuration file: {args.config_file.path.absolute()}")
        say(chosen, f"store: {describe_store(chosen)}")
        code = run_loop(supervise(chosen, listener)) if chosen.workers > 1 else _serve(chosen, listener)
    log.info("stopped")
    return code


def _serve(settings: Settings, listener: socket.socket) -> int:
    with temporary_directory() as runtime_dir:
        pools = fork_analysis(settings)
        if settings.in_memory:
            return run_loop(run_server(settings, pools, listener, on_ready=partial(announce, settings)))
        forked = fork_background()
        try:
            return run_loop(_serve_single_process(settings, listener, runtime_dir, pools, forked))
        finally:
            if forked is not None:
                forked.close()


async def _serve_single_process(
    settings: Settings,
    listener: socket.socket,
    runtime_dir: Path,
    pools: AnalysisPools,
    forked_background: ForkedProcess | None,
) -> int:
    async with shared_store(settings, runtime_dir) as (connected, restarts):
        if settings.demo:
            await _load_demo_history(connected)
        return await run_server(
            connected,
            pools,
            listener,
            on_ready=partial(announce, settings),
            peer_metrics=PeerMetrics(runtime_dir, SINGLE_PROCESS),
            restarts=restarts,
            forked_background=forked_background,
        )


async def _load_demo_history(settings: Settings) -> None:
    from aggregator.runtime.demo.history import load_history

    say(settings, "demonstration: loading a day of invented news, which takes some seconds")
    try:
        await load_history(settings)
    except AggregatorError:
        log.exception("the history of the demonstration could not be loaded; the service continues")


@contextlib.contextmanager
def _demo_directory(args: argparse.Namespace, settings: Settings) -> Iterator[Settings]:
    """Settings with a temporary data directory for a demonstration, unless the user named a store."""
    if not settings.demo or settings.store_url or args.data_dir:
        yield settings
        return
    with temporary_directory() as directory:
        say(settings, "demonstration data is deleted at exit; use --data-dir to keep it.")
        yield dataclasses.replace(settings, data_dir=str(directory / "data"))
