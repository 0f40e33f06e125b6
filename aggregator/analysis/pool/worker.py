"""Client of one worker process: sends articles through a pipe and reads the analyses.

The event loop does the I/O itself. An executor would add threads, each of which has to wait for the
interpreter lock while this process is busy.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
from typing import Any, cast

from aggregator.analysis.pool.codec import LENGTH_BYTES, AnalysisResult, decode_result, length_prefixed
from aggregator.analysis.pool.fork_server import ForkServer
from aggregator.domain import Article

_BUFFER_BYTES = 1 << 20


class WorkerDied(Exception):
    """The worker process ended, or did not answer in time. The ``AnalysisWorker`` cannot be used again."""


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

    async def run(self, articles: list[Article], timeout_s: float) -> list[AnalysisResult]:
        """Analyze ``articles``: one result per article, in order. Raises WorkerDied."""
        try:
            if not self._pid:
                await self._start()
            async with asyncio.timeout(timeout_s):
                encoded_results = await self._exchange(articles)
        except (OSError, EOFError, TimeoutError) as error:
            raise WorkerDied from error
        return [
            decode_result(encoded, article)
            for encoded, article in zip(encoded_results, articles, strict=True)
        ]

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

    async def _exchange(self, articles: list[Article]) -> list[Any]:
        self._writer.write(length_prefixed(pickle.dumps(articles, pickle.HIGHEST_PROTOCOL)))
        await self._writer.drain()
        size = int.from_bytes(await self._reader.readexactly(LENGTH_BYTES))
        return cast(list[Any], pickle.loads(await self._reader.readexactly(size)))
