"""Clients of the fork server and of its workers: articles go through a pipe, analyses come back.

The event loop does the I/O itself: the threads of an executor would have to wait for the interpreter lock. A
worker that gets no processor is waited for; one that uses none for ``STALL_CHECKS`` checks in sequence is
given up, and its articles may be tried again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import os
import pickle
import signal
import socket
import sys
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, cast

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.pool.fork_server_main import (
    MESSAGE_BYTES,
    STATUS_WANTED,
    AnalysisResult,
    encode_message,
    length_prefixed,
    load,
    serve,
    serve_spawned,
)
from aggregator.domain import Article

# Checks are counted instead of seconds: this process may have been stopped together with the worker.
STALL_CHECK_INTERVAL_S = 5.0
STALL_CHECKS = 12
STOP_TIMEOUT_S = 1.0
# Loading libraries, models and dictionaries takes 5 s of processor time: enough with 1/100 of a processor.
START_TIMEOUT_S = 600.0

_BUFFER_BYTES = 1 << 20
_CPU_LIMIT_CODES = (-signal.SIGPROF, -signal.SIGXCPU)
# Sent by the operating system or an operator, not caused by an article.
_OUTSIDE_CODES = (0, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP)
log = logging.getLogger(__name__)


class WorkerDied(Exception):
    """The worker process ended for a reason outside the articles; its ``AnalysisWorker`` is useless."""


class WorkerCrashed(WorkerDied):
    """The articles ended the process: it crashed, or a library called exit."""


class CpuLimitExceeded(WorkerDied):
    """The articles took more processor time than allowed."""


class AnalysisWorker:
    """One worker process, started by the first ``run``; handles one request at a time."""

    def __init__(self, fork_server: ForkServer, *, nice_increment: int = 0) -> None:
        self._fork_server = fork_server
        self._nice_increment = nice_increment
        self._pid = 0
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def run(self, articles: list[Article], cpu_limit_s: float) -> list[AnalysisResult]:
        """One result per article, in order; ``cpu_limit_s``: for all together. Raises WorkerDied."""
        try:
            if not self._pid:
                await self._start()
        except (OSError, EOFError, TimeoutError) as error:
            raise WorkerDied("no analysis worker could be started") from error
        watch = asyncio.create_task(self._abort_when_stalled())
        try:
            return await self._exchange(articles, cpu_limit_s)
        except (OSError, EOFError) as error:
            if watch.done():
                raise WorkerDied("an analysis worker got no processor time") from error
            raise await self._death() from error
        finally:
            watch.cancel()

    async def _abort_when_stalled(self) -> None:
        """Close the pipe when the process used no processor time between ``STALL_CHECKS`` checks."""
        used_s, checks_without_progress = None, 0
        while checks_without_progress < STALL_CHECKS:
            await asyncio.sleep(STALL_CHECK_INTERVAL_S)
            before_s, used_s = used_s, _cpu_time_s(self._pid)
            is_stuck = used_s is None or used_s == before_s
            checks_without_progress = checks_without_progress + 1 if is_stuck else 0
        self._writer.transport.abort()

    async def _death(self) -> WorkerDied:
        try:
            code = os.waitstatus_to_exitcode(await asyncio.shield(self._fork_server.end_worker(self._pid)))
        except (OSError, EOFError, TimeoutError):
            return WorkerDied("the fork server of the analysis workers ended")
        if code in _CPU_LIMIT_CODES:
            return CpuLimitExceeded()
        if code in _OUTSIDE_CODES:
            return WorkerDied(f"an analysis worker was ended from outside (signal {-code})")
        return WorkerCrashed(f"exit code {code}")

    def kill(self) -> None:
        """Kill the process, whatever it is doing. Idempotent."""
        if self._pid:
            self._writer.close()
            self._fork_server.kill_worker(self._pid)
            self._pid = 0

    async def _start(self) -> None:
        local, remote = socket.socketpair()
        with remote:
            self._reader, self._writer = await asyncio.open_connection(sock=local, limit=_BUFFER_BYTES)
            try:
                self._pid = await self._fork_server.fork(remote, self._nice_increment)
            except BaseException:
                self._writer.close()
                raise

    async def _exchange(self, articles: list[Article], cpu_limit_s: float) -> list[AnalysisResult]:
        self._writer.write(length_prefixed(pickle.dumps((cpu_limit_s, articles), pickle.HIGHEST_PROTOCOL)))
        await self._writer.drain()
        size = int.from_bytes(await self._reader.readexactly(MESSAGE_BYTES))
        return cast("list[AnalysisResult]", pickle.loads(await self._reader.readexactly(size)))


def _cpu_time_s(pid: int) -> float | None:
    """Return the processor time of a process, None if it has ended or the platform has no /proc."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()  # the name before may contain spaces
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class ForkServer:
    """The fork server process (``fork_server_main.py``), started by ``fork_now`` or the first ``fork``.

    ``fork_now`` forks it from this process: models, dictionaries and libraries, 150 MB, are in memory once.
    Otherwise, and when it is started again, it is spawned and loads its own: a fork would inherit the event
    loop's sockets and locks held by threads. ``memory_bytes``: what a worker may allocate after the fork.
    """

    def __init__(self, analyzer: Analyzer, memory_bytes: int) -> None:
        self._analyzer = analyzer
        self._memory_bytes = memory_bytes
        self._process: BaseProcess | None = None
        self._starts = 0
        self._control: socket.socket
        self._lock = asyncio.Lock()

    @property
    def restarts(self) -> int:
        """How often the process was started again."""
        return max(0, self._starts - 1)

    def fork_now(self) -> None:
        """Load what analysis needs and fork the server, where forks are safe: on Linux, without threads."""
        if sys.platform != "linux":
            return
        load(self._analyzer)
        self._start_process("fork", serve, self._analyzer, self._memory_bytes)

    async def fork(self, pipe: socket.socket, nice_increment: int) -> int:
        """Fork a worker that serves ``pipe`` and return its process id; a server that died is restarted once.

        Raises OSError, EOFError or TimeoutError when no worker could be started.
        """
        async with self._lock, asyncio.timeout(START_TIMEOUT_S):
            try:
                try:
                    return await self._request_fork(pipe, nice_increment)
                except (OSError, EOFError):  # killed from outside: retry once with a new process
                    self.close()
                    return await self._request_fork(pipe, nice_increment)
            except BaseException:  # a late reply would be read as the answer to the next request
                self.close()
                raise

    async def _request_fork(self, pipe: socket.socket, nice_increment: int) -> int:
        if self._process is None:
            await self._start()
        socket.send_fds(self._control, [encode_message(nice_increment)], [pipe.fileno()])
        return await self._read_reply()

    def kill_worker(self, pid: int) -> None:
        """Kill a worker with SIGKILL."""
        if self._process is not None:
            with contextlib.suppress(OSError):
                self._control.send(encode_message(pid))

    async def end_worker(self, pid: int) -> int:
        """End a worker, unless it has ended; return its wait status (``os.waitstatus_to_exitcode``).

        Raises OSError, EOFError or TimeoutError when the fork server is gone. Not to be cancelled.
        """
        async with self._lock, asyncio.timeout(START_TIMEOUT_S):
            if self._process is None:
                raise EOFError("The fork server of the analysis workers has exited.")
            try:
                self._control.send(encode_message(pid | STATUS_WANTED))
                return await self._read_reply()
            except BaseException:  # as in ``fork``
                self.close()
                raise

    def close(self) -> None:
        """End the process and all its workers. Idempotent."""
        if self._process is not None:
            self._control.close()
            if self._process.pid is not None:
                self._process.terminate()
                self._process.join(STOP_TIMEOUT_S)
                if (code := self._process.exitcode or 0) < 0 and code != -signal.SIGTERM:
                    log.warning("the fork server of the analysis workers had ended (signal %d)", -code)
                self._process.kill()  # a stopped process does not handle SIGTERM
                self._process.join()
            self._process = None

    async def _start(self) -> None:
        # Megabytes, so in a thread. As an argument of the process it would block that thread forever if the
        # process is killed before it has read it: ``Process.start`` holds both ends of its pipe.
        analyzer = await asyncio.to_thread(pickle.dumps, self._analyzer, pickle.HIGHEST_PROTOCOL)
        self._start_process("spawn", serve_spawned, self._memory_bytes)
        await asyncio.get_running_loop().sock_sendall(self._control, length_prefixed(analyzer))
        await self._read_reply()

    def _start_process(self, method: str, target: Callable[..., None], *args: Any) -> None:
        """Start ``target`` with one end of a new control socket, and ``args``."""
        self._control, remote = socket.socketpair()
        self._control.setblocking(False)
        context: Any = multiprocessing.get_context(method)
        self._process = context.Process(target=target, args=(remote, *args), daemon=True)
        with remote:
            self._process.start()
        self._starts += 1

    async def _read_reply(self) -> int:
        reply = b""
        while len(reply) < MESSAGE_BYTES:
            received = await asyncio.get_running_loop().sock_recv(self._control, MESSAGE_BYTES - len(reply))
            if not received:
                raise EOFError("The fork server of the analysis workers has exited.")
            reply += received
        return int.from_bytes(reply)
