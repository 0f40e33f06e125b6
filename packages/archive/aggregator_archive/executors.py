"""Executors of the tasks of a run: this process, worker processes of this machine, or a Dask cluster.

Two tasks per worker are submitted ahead, so memory does not limit the number of tasks.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
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
    executor = ProcessPoolExecutor(worker_count, mp_context=context)
    try:
        yield Pool(executor, worker_count)
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


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
