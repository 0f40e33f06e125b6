"""TCP proxy between a service and its store that delays, cuts or corrupts replies on demand."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

NONSENSE = (
    b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n",
    b"\x00\xff\x15\x03\x01 no reply of a store\r\n",
    b"+OK\r\n:1\r\nnobody asked for this\r\n",
    b"$400000000\r\nand then nothing",
)
CHUNK = 65536


class FaultyProxy:
    """Forwards connections to ``target`` (a loopback port) unchanged until a fault is requested."""

    def __init__(self, target: int, rng: random.Random) -> None:
        self.port = 0
        self.delay_s = 0.0
        self.target, self._rng = target, rng
        self._links: set[_Link] = set()

    async def start(self) -> None:
        """Listen on a free port, ``port``."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Close the connections and stop listening."""
        self._server.close()
        for link in list(self._links):
            link.abort()
        await asyncio.sleep(0)

    def cut(self) -> None:
        """Close every connection within its next reply."""
        for link in list(self._links):
            link.final_bytes = b""

    def heal(self) -> None:
        """End ``cut`` and ``corrupt`` for the connections that were idle and have not been affected."""
        for link in list(self._links):
            link.heal()

    def corrupt(self) -> None:
        """Make every connection return a part of its next reply, then nonsense, then nothing more."""
        for link in list(self._links):
            link.final_bytes = self._rng.choice(NONSENSE)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            store_reader, store_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:  # the store is down
            writer.transport.abort()
            return
        link = _Link(self, writer, store_writer)
        self._links.add(link)
        if not self._server.is_serving():  # closed while this connection was opened
            link.abort()
        try:
            with suppress(OSError):
                await asyncio.gather(
                    link.forward_requests(reader), link.forward_replies(store_reader, self._rng)
                )
        finally:
            link.abort()
            self._links.discard(link)


class _Link:
    def __init__(self, proxy: FaultyProxy, client: asyncio.StreamWriter, store: asyncio.StreamWriter) -> None:
        self.final_bytes: bytes | None = None  # sent within the next reply, after which the link is faulty
        self._is_faulty = False
        self._proxy, self._client, self._store = proxy, client, store

    async def forward_requests(self, requests: asyncio.StreamReader) -> None:
        while data := await requests.read(CHUNK):
            await self._pause()
            if self._store.is_closing():
                return
            self._store.write(data)
        self._store.close()

    async def forward_replies(self, replies: asyncio.StreamReader, rng: random.Random) -> None:
        while data := await replies.read(CHUNK):
            await self._pause()
            if self.final_bytes is not None:
                self._is_faulty = True
                self._client.write(data[: rng.randrange(len(data))] + self.final_bytes)
                break
            self._client.write(data)
        if not self.final_bytes:
            self._client.close()
        # After nonsense nothing follows; the client has to close the connection.
        while await replies.read(CHUNK):
            pass

    def heal(self) -> None:
        if not self._is_faulty:
            self.final_bytes = None

    async def _pause(self) -> None:
        if self._proxy.delay_s:
            await asyncio.sleep(self._proxy.delay_s)

    def abort(self) -> None:
        self._client.transport.abort()
        self._store.transport.abort()
