"""Client of the fork server: starts the process, requests workers from it, kills workers through it.

The process is forked from this one, if ``fork_now`` was called before the event loop started: models,
dictionaries and libraries, 150 MB, are then in memory once. Otherwise, and when it is started again, it is
spawned and loads its own: a fork would inherit the event loop's sockets and locks held by threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import pickle
import socket
import sys
from multiprocessing.process import BaseProcess

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.pool.fork_server_main import (
    MESSAGE_BYTES,
    STATUS_WANTED,
    encode_message,
    length_prefixed,
    load,
    serve,
    serve_spawned,
)

STOP_TIMEOUT_S = 1.0
# Importing the libraries and loading models and dictionaries takes 5 s of processor time: 10 minutes suffice
# where a process gets 1/100 of a processor.
START_TIMEOUT_S = 600.0


class ForkServer:
    """The fork server process, started by ``fork_now`` or the first ``fork``.

    Its code is in ``fork_server_main.py``.

    ``memory_bytes`` limits what a worker may allocate beyond what it has right after the fork.
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
        """Load what analysis needs into this process and fork the fork server from it.

        Only for a process without event loop and threads. Does nothing where forks are not safe (only Linux
        is known to be).
        """
        if sys.platform != "linux":
            return
        load(self._analyzer)
        self._control, remote = socket.socketpair()
        self._control.setblocking(False)
        self._process = multiprocessing.get_context("fork").Process(
            target=serve, args=(remote, self._analyzer, self._memory_bytes), daemon=True
        )
        with remote:
            self._process.start()
        self._starts += 1

    async def fork(self, pipe: socket.socket, nice_increment: int) -> int:
        """Fork a worker that serves ``pipe`` and return its process id.

        ``nice_increment`` is added to the nice value of the fork server. A server that died is restarted
        once. Raises OSError, EOFError or TimeoutError when no worker could be started.
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

        Raises OSError, EOFError or TimeoutError when the fork server is gone.
        """
        return await asyncio.shield(self._end_worker(pid))

    async def _end_worker(self, pid: int) -> int:
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
                self._process.kill()  # a stopped process does not handle SIGTERM
                self._process.join()
            self._process = None

    async def _start(self) -> None:
        # Megabytes, so in a thread. As an argument of the process it would block that thread forever if the
        # process is killed before it has read it: ``Process.start`` holds both ends of its pipe.
        analyzer = await asyncio.to_thread(pickle.dumps, self._analyzer, pickle.HIGHEST_PROTOCOL)
        self._control, remote = socket.socketpair()
        self._control.setblocking(False)
        self._process = multiprocessing.get_context("spawn").Process(
            target=serve_spawned, args=(remote, self._memory_bytes), daemon=True
        )
        with remote:
            self._process.start()
        self._starts += 1
        await asyncio.get_running_loop().sock_sendall(self._control, length_prefixed(analyzer))
        await self._read_reply()

    async def _read_reply(self) -> int:
        reply = b""
        while len(reply) < MESSAGE_BYTES:
            received = await asyncio.get_running_loop().sock_recv(self._control, MESSAGE_BYTES - len(reply))
            if not received:
                raise EOFError("The fork server of the analysis workers has exited.")
            reply += received
        return int.from_bytes(reply)
