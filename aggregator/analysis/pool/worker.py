"""One process that analyses articles, and the pipe to it.

The event loop writes articles and reads analyses itself: an executor would do so in threads of its own, and each
of them waits for the interpreter whenever this process is busy.
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
    """The process ended, or did not answer in time: it is of no more use."""


class AnalysisWorker:
    """A process of its own, started by the first ``run``. One piece of work at a time. ``nicer``: than others."""

    def __init__(self, fork_server: ForkServer, *, nice_increment: int = 0) -> None:
        self._fork_server = fork_server
        self._nice_increment = nice_increment
        self._pid = 0
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def run(self, articles: list[Article], timeout_s: float) -> list[AnalysisResult]:
        """One result per article. Raises WorkerGone."""
        try:
            if not self._pid:
                await self._start()
            async with asyncio.timeout(timeout_s):
                answers = await self._exchange(articles)
        except (OSError, EOFError, TimeoutError) as error:
            raise WorkerDied from error
        return [decode_result(one, article) for one, article in zip(answers, articles, strict=True)]

    def kill(self) -> None:
        """End it whatever it does. Idempotent."""
        if self._pid:
            self._writer.close()
            self._fork_server.kill_worker(self._pid)
            self._pid = 0

    async def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._reader, self._writer = await asyncio.open_connection(sock=ours, limit=_BUFFER_BYTES)
            try:
                self._pid = await self._fork_server.fork(theirs, self._nice_increment)
            except BaseException:
                self._writer.close()
                raise

    async def _exchange(self, articles: list[Article]) -> list[Any]:
        self._writer.write(length_prefixed(pickle.dumps(articles, pickle.HIGHEST_PROTOCOL)))
        await self._writer.drain()
        size = int.from_bytes(await self._reader.readexactly(LENGTH_BYTES))
        return cast(list[Any], pickle.loads(await self._reader.readexactly(size)))
