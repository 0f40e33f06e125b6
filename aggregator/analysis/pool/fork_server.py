"""Client of the fork server: starts the process, requests workers from it, kills workers through it."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import socket
from multiprocessing.context import SpawnProcess

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.pool.fork_server_main import MESSAGE_BYTES, encode_message, serve

START_TIMEOUT_S = 60.0  # covers importing the libraries and unpickling the models


class ForkServer:
    """The fork server process, started by the first ``fork``. Its code is in ``fork_server_main.py``.

    ``memory_bytes`` limits what a worker may allocate beyond what it has right after the fork.
    """

    def __init__(self, analyzer: Analyzer, memory_bytes: int) -> None:
        self._analyzer = analyzer
        self._memory_bytes = memory_bytes
        self._process: SpawnProcess | None = None
        self._control: socket.socket
        self._lock = asyncio.Lock()

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

    def close(self) -> None:
        """End the process and all its workers. Idempotent."""
        if self._process is not None:
            self._control.close()
            if self._process.pid is not None:
                self._process.terminate()
                self._process.join()
            self._process = None

    async def _start(self) -> None:
        self._control, remote = socket.socketpair()
        self._control.setblocking(False)
        # "spawn": a fork of this process would inherit the event loop's sockets and locks held by threads.
        self._process = multiprocessing.get_context("spawn").Process(
            target=serve, args=(remote, self._analyzer, self._memory_bytes), daemon=True
        )
        # Pickling the models takes a while; the remote socket must stay open until it is done.
        starting = asyncio.ensure_future(asyncio.to_thread(self._process.start))
        starting.add_done_callback(lambda _: remote.close())
        await asyncio.shield(starting)
        await self._read_reply()

    async def _read_reply(self) -> int:
        reply = b""
        while len(reply) < MESSAGE_BYTES:
            received = await asyncio.get_running_loop().sock_recv(self._control, MESSAGE_BYTES - len(reply))
            if not received:
                raise EOFError("The fork server of the analysis workers has exited.")
            reply += received
        return int.from_bytes(reply)
