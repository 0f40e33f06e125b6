"""Client of one worker process: sends articles through a pipe and reads the analyses.

The event loop does the I/O itself. An executor would add threads, each of which has to wait for the
interpreter lock while this process is busy.

Work is limited by processor time, which the worker measures. A worker that gets no processor (busy or
suspended machine, container quota) is waited for. Only one that uses no processor time at all for
``STALL_CHECKS`` checks in sequence is given up; its articles may be tried again.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from aggregator.analysis.pool.fork_server import ForkServer
from aggregator.analysis.pool.fork_server_main import (
    LENGTH_BYTES,
    AnalysisResult,
    decode_result,
    length_prefixed,
)
from aggregator.domain import Article

# Checks are counted instead of seconds: this process may have been stopped together with the worker.
STALL_CHECK_INTERVAL_S = 5.0
STALL_CHECKS = 12

_BUFFER_BYTES = 1 << 20
_CPU_LIMIT_SIGNALS = (signal.SIGPROF, signal.SIGXCPU)
# Sent by the operating system or an operator, not caused by an article.
_OUTSIDE_SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class WorkerDied(Exception):
    """The worker process ended for a reason outside the articles; its ``AnalysisWorker`` is useless."""


class WorkerCrashed(WorkerDied):
    """The articles ended the process: it crashed, or a library called exit."""


class CpuLimitExceeded(WorkerDied):
    """The articles took more processor time than allowed."""


class AnalysisWorker:
    """One worker process, started by the first ``run``; handles one request at a time.

    ``nice_increment`` is added to the nice value of the fork server.
    """

    def __init__(self, fork_server: ForkServer, *, nice_increment: int = 0) -> None:
        self._fork_server = fork_server
        self._nice_increment = nice_increment
        self._pid = 0
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def run(self, articles: list[Article], cpu_limit_s: float) -> list[AnalysisResult]:
        """Analyze ``articles``: one result per article, in order.

        ``cpu_limit_s``: processor time for all of them together. Raises WorkerDied or a subclass.
        """
        try:
            if not self._pid:
                await self._start()
        except (OSError, EOFError, TimeoutError) as error:
            raise WorkerDied("no analysis worker could be started") from error
        watch = _StallWatch(self._pid, self._writer.transport.abort)
        try:
            encoded_results = await self._exchange(articles, cpu_limit_s)
        except (OSError, EOFError) as error:
            if watch.stalled:
                raise WorkerDied("an analysis worker got no processor time") from error
            raise await self._death() from error
        finally:
            watch.cancel()
        return [
            decode_result(encoded, article)
            for encoded, article in zip(encoded_results, articles, strict=True)
        ]

    async def _death(self) -> WorkerDied:
        """Return why the process ended."""
        try:
            code = os.waitstatus_to_exitcode(await self._fork_server.end_worker(self._pid))
        except (OSError, EOFError, TimeoutError):
            return WorkerDied("the fork server of the analysis workers ended")
        if code in [-number for number in _CPU_LIMIT_SIGNALS]:
            return CpuLimitExceeded()
        if code == 0 or code in [-number for number in _OUTSIDE_SIGNALS]:
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

    async def _exchange(self, articles: list[Article], cpu_limit_s: float) -> list[Any]:
        request = pickle.dumps((cpu_limit_s, articles), pickle.HIGHEST_PROTOCOL)
        self._writer.write(length_prefixed(request))
        await self._writer.drain()
        size = int.from_bytes(await self._reader.readexactly(LENGTH_BYTES))
        return cast(list[Any], pickle.loads(await self._reader.readexactly(size)))


class _StallWatch:
    """Calls ``on_stall`` when a process used no processor time between ``STALL_CHECKS`` checks."""

    def __init__(self, pid: int, on_stall: Callable[[], None]) -> None:
        self._pid, self._on_stall = pid, on_stall
        self._used_s: float | None = None
        self._checks_without_progress = 0
        self.stalled = False
        self._timer = self._schedule()

    def cancel(self) -> None:
        """Stop checking."""
        self._timer.cancel()

    def _schedule(self) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(STALL_CHECK_INTERVAL_S, self._check)

    def _check(self) -> None:
        used_s = _cpu_time_s(self._pid)
        self._checks_without_progress = (
            self._checks_without_progress + 1 if used_s is None or used_s == self._used_s else 0
        )
        self._used_s = used_s
        if self._checks_without_progress >= STALL_CHECKS:
            self.stalled = True
            self._on_stall()
        else:
            self._timer = self._schedule()


def _cpu_time_s(pid: int) -> float | None:
    """Return the processor time of a process, None if it has ended or the platform has no /proc."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()  # the name before may contain spaces
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
