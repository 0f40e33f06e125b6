"""Where do the partitions run? In this process, in processes of this machine, or on a Dask cluster.

All three are a ``concurrent.futures.Executor``; nothing else here knows which it is. Work is handed out a few
tasks ahead and results are taken as they come, so inputs of any length pass through.
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
from aggregator.offline.archive.optional_imports import import_optional

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Pool:
    """An executor (None: this process) and how many tasks keep it busy."""

    executor: Executor | None
    worker_count: int

    def map(self, function: Callable[..., R], tasks: Iterable[tuple[Any, ...]]) -> Iterator[R]:
        """Results of ``work(*task)`` in the order in which they come. Raises what the first failure raised."""
        if self.executor is None:
            yield from (function(*task) for task in tasks)
            return
        waiting: set[Future[R]] = set()
        try:
            for task in tasks:
                waiting.add(self.executor.submit(function, *task))
                if len(waiting) >= 2 * self.worker_count:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (one.result() for one in done)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (one.result() for one in done)
        except BrokenProcessPool:
            raise AggregatorError(
                "A worker process died (out of memory?); run the same command again to go on from here."
            ) from None
        finally:
            for one in waiting:
                one.cancel()


@contextlib.contextmanager
def open_pool(processes: int, dask: str = "") -> Iterator[Pool]:
    """The pool for ``--processes`` (0: one per core) or ``--dask``."""
    if dask:
        with _dask_pool(dask) as pool:
            yield pool
        return
    width = processes or os.cpu_count() or 1
    if width == 1:
        yield Pool(None, 1)
        return
    # "spawn": forked children would share the locks of whatever libraries were loaded here.
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(width, mp_context=context)
    try:
        yield Pool(executor, width)
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


@contextlib.contextmanager
def _dask_pool(address: str) -> Iterator[Pool]:
    distributed = import_optional("distributed", "corpus", "--dask")
    try:
        client = distributed.Client(address, set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise StoreUnavailable(f"No Dask scheduler answers at {address} ({error}).") from None
    with client:
        width = sum(client.nthreads().values())
        with client.get_executor(pure=False, retries=3) as executor:
            yield Pool(executor, max(1, width))
