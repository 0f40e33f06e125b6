"""The process that workers come from: it has libraries and models loaded, and forks.

To start a process takes seconds of imports and models; to fork one that has them takes milliseconds, and what is only
read is in memory once. So a worker whose work explodes can be ended as soon as that is fair to those who wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import multiprocessing
import os
import pickle
import resource
import signal
import socket
import traceback
from collections.abc import Sequence
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, BinaryIO

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.pool.codec import LENGTH_BYTES, AnalysisResult, encode_result, length_prefixed
from aggregator.concurrency.process_priority import lower_priority
from aggregator.domain import Article
from aggregator.errors import AnalysisLimitExceeded

START_TIMEOUT_S = 60.0  # it imports the libraries and gets the models
BASE_NICE_INCREMENT = 5  # what comes here are batches and pages; the service beside it answers single posts
_MESSAGE_BYTES = (
    8  # of each message: to it, how nice a worker is (with its pipe) or which one to end; from it, a worker
)

_WARMUP_ARTICLE = Article(
    id="",
    html="<html><body><p>Die Brücke über den Fluss bleibt wegen des Sturmes geschlossen.</p></body></html>",
)


class ForkServer:
    """That process, started by the first ``fork``. ``memory_bytes``: what a worker may take beyond what it begins with."""

    def __init__(self, analyzer: Analyzer, memory_bytes: int) -> None:
        self._analyzer = analyzer
        self._memory_bytes = memory_bytes
        self._process: SpawnProcess | None = None
        self._control: socket.socket
        self._lock = asyncio.Lock()

    async def fork(self, pipe: socket.socket, nice_increment: int) -> int:
        """A worker that serves ``pipe``, lower in priority by ``nicer``: its process id.

        Raises OSError, EOFError, TimeoutError when there is none to be had.
        """
        async with self._lock, asyncio.timeout(START_TIMEOUT_S):
            try:
                try:
                    return await self._request_fork(pipe, nice_increment)
                except (OSError, EOFError):  # it was ended from outside: once more, with a new one
                    self.close()
                    return await self._request_fork(pipe, nice_increment)
            except BaseException:  # what it says next would be taken for another's
                self.close()
                raise

    async def _request_fork(self, pipe: socket.socket, nice_increment: int) -> int:
        if self._process is None:
            await self._start()
        socket.send_fds(self._control, [_encode_message(nice_increment)], [pipe.fileno()])
        return await self._read_reply()

    def kill_worker(self, pid: int) -> None:
        """End a worker, whatever it does."""
        if self._process is not None:
            with contextlib.suppress(OSError):
                self._control.send(_encode_message(pid))

    def close(self) -> None:
        """End the process and all its workers. Idempotent."""
        if self._process is not None:
            self._control.close()
            if self._process.pid is not None:
                self._process.terminate()
                self._process.join()
            self._process = None

    async def _start(self) -> None:
        self._control, theirs = socket.socketpair()
        self._control.setblocking(False)
        # "spawn": a child forked from here would inherit the event loop's sockets and threads' locks.
        self._process = multiprocessing.get_context("spawn").Process(
            target=_serve, args=(theirs, self._analyzer, self._memory_bytes), daemon=True
        )
        # It hands the models over, which takes a while, and the socket, which must stay open until then.
        starting = asyncio.ensure_future(asyncio.to_thread(self._process.start))
        starting.add_done_callback(lambda _: theirs.close())
        await asyncio.shield(starting)
        await self._read_reply()

    async def _read_reply(self) -> int:
        told = b""
        while len(told) < _MESSAGE_BYTES:
            more = await asyncio.get_running_loop().sock_recv(self._control, _MESSAGE_BYTES - len(told))
            if not more:
                raise EOFError("The process that analyses are forked from is gone.")
            told += more
        return int.from_bytes(told)


def _encode_message(number: int) -> bytes:
    return number.to_bytes(_MESSAGE_BYTES)


# -- in that process ---------------------------------------------------------------------------


def _serve(control: socket.socket, analyzer: Analyzer, memory_bytes: int) -> None:
    """Fork and end workers until the other side is gone."""
    workers: set[int] = set()
    for number in (signal.SIGINT, signal.SIGHUP):  # a terminal tells them all of us
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(_kill_workers(workers)))
    _warm_up(analyzer)
    with contextlib.suppress(OSError):
        control.sendall(_encode_message(0))
        while (message := socket.recv_fds(control, _MESSAGE_BYTES, 1))[0]:
            asked, pipes = int.from_bytes(message[0]), message[1]
            if pipes:
                workers.add(pid := _fork_worker(control, pipes[0], analyzer, asked, memory_bytes))
                control.sendall(_encode_message(pid))
            elif asked in workers:
                workers.discard(asked)
                _kill_workers({asked})
    os._exit(_kill_workers(workers))


def _fork_worker(
    control: socket.socket, pipe: int, analyzer: Analyzer, nice_increment: int, memory_bytes: int
) -> int:
    if pid := os.fork():
        os.close(pipe)
        return pid
    control.close()
    _run_worker(socket.socket(fileno=pipe), analyzer, nice_increment, memory_bytes)
    raise AssertionError("A worker never returns.")


def _kill_workers(workers: set[int]) -> int:
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return 0


def _warm_up(analyzer: Analyzer) -> None:
    lower_priority(BASE_NICE_INCREMENT)
    # What is loaded when first needed (extraction, languages) is not the first article's time and memory.
    analyzer.analyze_many([_WARMUP_ARTICLE])
    gc.collect()
    gc.freeze()  # dictionaries and models stay, and stay shared: no need to look through them again and again


# -- in a worker -------------------------------------------------------------------------------


def _run_worker(pipe: socket.socket, analyzer: Analyzer, nice_increment: int, memory_bytes: int) -> None:
    """Answer until the other side is gone. Never returns: what would follow is the life of the process it is forked from."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        lower_priority(nice_increment)
        _limit_memory(memory_bytes)
        with pipe, pipe.makefile("rb") as reading:
            while (request := _read_request(reading)) is not None:
                articles = pickle.loads(request)
                answer: list[Any] = [
                    encode_result(one, a)
                    for one, a in zip(_analyze(analyzer, articles), articles, strict=True)
                ]
                pipe.sendall(length_prefixed(pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)))
    except OSError:  # the other side is gone
        pass
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(0)


def _limit_memory(memory_bytes: int) -> None:
    statm = Path("/proc/self/statm")  # Linux; elsewhere there is only the limit of time
    if statm.exists():
        data_pages = int(statm.read_text(encoding="ascii").split()[5])
        limit = data_pages * resource.getpagesize() + memory_bytes
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _read_request(stream: BinaryIO) -> bytes | None:
    head = stream.read(LENGTH_BYTES)
    return stream.read(int.from_bytes(head)) if len(head) == LENGTH_BYTES else None


def _analyze(analyzer: Analyzer, articles: Sequence[Article]) -> list[AnalysisResult]:
    try:
        return analyzer.analyze_many(articles)
    except MemoryError:
        return [resource_limit_error() for _ in articles]


def resource_limit_error() -> AnalysisLimitExceeded:
    """What is said of an article that explodes."""
    return AnalysisLimitExceeded(
        "Analysing this article took too much time or memory; send its plain text instead."
    )
