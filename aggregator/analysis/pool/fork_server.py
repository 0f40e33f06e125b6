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

from aggregator.analysis.analyzer import Analyser
from aggregator.analysis.pool.codec import LENGTH_BYTES, Result, framed, packed
from aggregator.concurrency.process_priority import step_back
from aggregator.domain import Article
from aggregator.errors import TooCostly

START_TIMEOUT_S = 60.0  # it imports the libraries and gets the models
NICE = 5  # what comes here are batches and pages; the service beside it answers single posts
_NUMBER_BYTES = (
    8  # of each message: to it, how nice a worker is (with its pipe) or which one to end; from it, a worker
)

_FIRST = Article(
    id="",
    html="<html><body><p>Die Brücke über den Fluss bleibt wegen des Sturmes geschlossen.</p></body></html>",
)


class AnalysisForks:
    """That process, started by the first ``fork``. ``memory_bytes``: what a worker may take beyond what it begins with."""

    def __init__(self, analyser: Analyser, memory_bytes: int) -> None:
        self._analyser = analyser
        self._memory_bytes = memory_bytes
        self._process: SpawnProcess | None = None
        self._control: socket.socket
        self._one_at_a_time = asyncio.Lock()

    async def fork(self, pipe: socket.socket, nicer: int) -> int:
        """A worker that serves ``pipe``, lower in priority by ``nicer``: its process id.

        Raises OSError, EOFError, TimeoutError when there is none to be had.
        """
        async with self._one_at_a_time, asyncio.timeout(START_TIMEOUT_S):
            try:
                try:
                    return await self._ask(pipe, nicer)
                except (OSError, EOFError):  # it was ended from outside: once more, with a new one
                    self.close()
                    return await self._ask(pipe, nicer)
            except BaseException:  # what it says next would be taken for another's
                self.close()
                raise

    async def _ask(self, pipe: socket.socket, nicer: int) -> int:
        if self._process is None:
            await self._start()
        socket.send_fds(self._control, [_number(nicer)], [pipe.fileno()])
        return await self._told()

    def end(self, pid: int) -> None:
        """End a worker, whatever it does."""
        if self._process is not None:
            with contextlib.suppress(OSError):
                self._control.send(_number(pid))

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
            target=_serve, args=(theirs, self._analyser, self._memory_bytes), daemon=True
        )
        # It hands the models over, which takes a while, and the socket, which must stay open until then.
        starting = asyncio.ensure_future(asyncio.to_thread(self._process.start))
        starting.add_done_callback(lambda _: theirs.close())
        await asyncio.shield(starting)
        await self._told()

    async def _told(self) -> int:
        told = b""
        while len(told) < _NUMBER_BYTES:
            more = await asyncio.get_running_loop().sock_recv(self._control, _NUMBER_BYTES - len(told))
            if not more:
                raise EOFError("The process that analyses are forked from is gone.")
            told += more
        return int.from_bytes(told)


def _number(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES)


# -- in that process ---------------------------------------------------------------------------


def _serve(control: socket.socket, analyser: Analyser, memory_bytes: int) -> None:
    """Fork and end workers until the other side is gone."""
    workers: set[int] = set()
    for number in (signal.SIGINT, signal.SIGHUP):  # a terminal tells them all of us
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(_ended(workers)))
    _prepare(analyser)
    with contextlib.suppress(OSError):
        control.sendall(_number(0))
        while (message := socket.recv_fds(control, _NUMBER_BYTES, 1))[0]:
            asked, pipes = int.from_bytes(message[0]), message[1]
            if pipes:
                workers.add(pid := _forked(control, pipes[0], analyser, asked, memory_bytes))
                control.sendall(_number(pid))
            elif asked in workers:
                workers.discard(asked)
                _ended({asked})
    os._exit(_ended(workers))


def _forked(control: socket.socket, pipe: int, analyser: Analyser, nicer: int, memory_bytes: int) -> int:
    if pid := os.fork():
        os.close(pipe)
        return pid
    control.close()
    _work(socket.socket(fileno=pipe), analyser, nicer, memory_bytes)
    raise AssertionError("A worker never returns.")


def _ended(workers: set[int]) -> int:
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return 0


def _prepare(analyser: Analyser) -> None:
    step_back(NICE)
    # What is loaded when first needed (extraction, languages) is not the first article's time and memory.
    analyser.analyse_many([_FIRST])
    gc.collect()
    gc.freeze()  # dictionaries and models stay, and stay shared: no need to look through them again and again


# -- in a worker -------------------------------------------------------------------------------


def _work(pipe: socket.socket, analyser: Analyser, nicer: int, memory_bytes: int) -> None:
    """Answer until the other side is gone. Never returns: what would follow is the life of the process it is forked from."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        step_back(nicer)
        _limit(memory_bytes)
        with pipe, pipe.makefile("rb") as reading:
            while (request := _read(reading)) is not None:
                articles = pickle.loads(request)
                answer: list[Any] = [
                    packed(one, a) for one, a in zip(_analyse(analyser, articles), articles, strict=True)
                ]
                pipe.sendall(framed(pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)))
    except OSError:  # the other side is gone
        pass
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(0)


def _limit(memory_bytes: int) -> None:
    statm = Path("/proc/self/statm")  # Linux; elsewhere there is only the limit of time
    if statm.exists():
        data_pages = int(statm.read_text(encoding="ascii").split()[5])
        limit = data_pages * resource.getpagesize() + memory_bytes
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _read(reading: BinaryIO) -> bytes | None:
    head = reading.read(LENGTH_BYTES)
    return reading.read(int.from_bytes(head)) if len(head) == LENGTH_BYTES else None


def _analyse(analyser: Analyser, articles: Sequence[Article]) -> list[Result]:
    try:
        return analyser.analyse_many(articles)
    except MemoryError:
        return [too_much() for _ in articles]


def too_much() -> TooCostly:
    """What is said of an article that explodes."""
    return TooCostly("Analysing this article took too much time or memory; send its plain text instead.")
