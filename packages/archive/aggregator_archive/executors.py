"""Executors of the tasks of a run: this process, worker processes of this machine, or a Dask cluster.

Two tasks per worker are submitted ahead, so memory does not limit the number of tasks.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from aggregator.errors import AggregatorError, StoreUnavailable
from aggregator_archive.optional_imports import import_optional

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Pool:
    """An executor (None: this process) and its number of workers."""

    executor: Executor | None
    worker_count: int

    def map(self, function: Callable[..., R], tasks: Iterable[tuple[Any, ...]]) -> Iterator[R]:
        """Yield ``function(*task)`` of all tasks in order of completion. Raises the first exception."""
        if self.executor is None:
            yield from (function(*task) for task in tasks)
            return
        pending: set[Future[R]] = set()
        try:
            for task in tasks:
                pending.add(self.executor.submit(function, *task))
                if len(pending) >= 2 * self.worker_count:
                    done, pending = wait(pending, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            while pending:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        except BrokenProcessPool:
            raise AggregatorError(
                "A worker process died (out of memory?); run the same command again to resume."
            ) from None
        finally:
            for future in pending:
                future.cancel()


@contextlib.contextmanager
def open_pool(processes: int, dask: str = "") -> Iterator[Pool]:
    """The pool of ``--processes`` (0: one per core), or of the Dask scheduler at ``dask``.

    Raises StoreUnavailable if the scheduler does not answer.
    """
    if dask:
        with _dask_pool(dask) as pool:
            yield pool
        return
    worker_count = processes or os.cpu_count() or 1
    if worker_count == 1:
        yield Pool(None, 1)
        return
    # "spawn": forked children would inherit the held locks of the libraries loaded here.
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(worker_count, mp_context=context, initializer=end_with_parent)
    try:
        yield Pool(executor, worker_count)
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def end_with_parent() -> None:
    """End this worker when the process that started it ends: it would wait for tasks forever."""
    parent = multiprocessing.parent_process()

    def wait_for_parent() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait_for_parent, name="parent", daemon=True).start()


@contextlib.contextmanager
def _dask_pool(address: str) -> Iterator[Pool]:
    distributed = import_optional("distributed", "newsdedup-archive[corpus]", "--dask")
    try:
        client = distributed.Client(address, set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise StoreUnavailable(f"No Dask scheduler answers at {address} ({error}).") from None
    with client:
        worker_count = sum(client.nthreads().values())
        with client.get_executor(pure=False, retries=3) as executor:
            yield Pool(executor, max(1, worker_count))


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
