"""A TCP proxy between a service and its store that delays, cuts and babbles when told to."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

NONSENSE = (
    b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n",
    b"\x00\xff\x15\x03\x01 no answer of a store\r\n",
    b"+OK\r\n:1\r\nnobody asked for this\r\n",
    b"$400000000\r\nand then nothing",
)
CHUNK = 65536


class FaultyProxy:
    """Forwards every connection to ``target`` (a port of loopback) as it is, until a fault is ordered."""

    def __init__(self, target: int, rng: random.Random) -> None:
        self.port = 0
        self.delay_s = 0.0
        self._target, self._rng = target, rng
        self._links: set[_Link] = set()

    async def start(self) -> None:
        """Listen on any free port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """End the connections and listen no more."""
        self._server.close()
        for link in list(self._links):
            link.abort()
        await asyncio.sleep(0)

    def cut(self) -> None:
        """Every connection ends within its next answer."""
        for link in list(self._links):
            link.last_words = b""

    def babble(self) -> None:
        """Every connection answers a part of its next answer, then nonsense, and nothing that is true again."""
        for link in list(self._links):
            link.last_words = self._rng.choice(NONSENSE)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:  # the store is down, and so are we
            writer.transport.abort()
            return
        link = _Link(self, writer, back)
        self._links.add(link)
        try:
            with suppress(OSError):
                await asyncio.gather(link.ask(reader), link.answer(there, self._rng))
        finally:
            link.abort()
            self._links.discard(link)


class _Link:
    def __init__(self, proxy: FaultyProxy, client: asyncio.StreamWriter, store: asyncio.StreamWriter) -> None:
        self.last_words: bytes | None = None
        self._proxy, self._client, self._store = proxy, client, store

    async def ask(self, requests: asyncio.StreamReader) -> None:
        while data := await requests.read(CHUNK):
            await self._pause()
            if self._store.is_closing():
                return
            self._store.write(data)
        self._store.close()

    async def answer(self, answers: asyncio.StreamReader, rng: random.Random) -> None:
        while data := await answers.read(CHUNK):
            await self._pause()
            if self.last_words is not None:
                self._client.write(data[: rng.randrange(len(data))] + self.last_words)
                break
            self._client.write(data)
        if not self.last_words:
            self._client.close()
        while await answers.read(
            CHUNK
        ):  # of one that babbles nothing follows, until the client has enough of it
            pass

    async def _pause(self) -> None:
        if self._proxy.delay_s:
            await asyncio.sleep(self._proxy.delay_s)

    def abort(self) -> None:
        self._client.transport.abort()
        self._store.transport.abort()
