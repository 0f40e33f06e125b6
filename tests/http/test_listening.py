"""Listening: how many connections one turn of the event loop accepts."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable

import pytest
import uvloop

from aggregator.http import listening


class Counted(asyncio.Protocol):
    """Counts connections."""

    def __init__(self, accepted: list[asyncio.BaseTransport]) -> None:
        self._accepted = accepted

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count it."""
        self._accepted.append(transport)


async def turns_until_accepted(number: int) -> int:
    """Turns of the event loop until ``number`` connections that wait already are accepted."""
    accepted: list[asyncio.BaseTransport] = []
    servers = await listening.listen(lambda: Counted(accepted), "127.0.0.1", 0)
    address = servers[0].sockets[0].getsockname()
    with contextlib.ExitStack() as clients:
        for _ in range(number):
            clients.enter_context(socket.create_connection(address))  # complete without an accept
        turns = 0
        while len(accepted) < number:
            await asyncio.sleep(0)
            turns += 1
        for transport in accepted:
            transport.abort()  # type: ignore[attr-defined]
    for server in servers:
        server.close()
    return turns


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_waiting_connections_are_accepted_together(run: Callable[..., int]) -> None:
    """Not one in each turn, whichever event loop runs."""
    assert run(turns_until_accepted(320)) < 40


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_bound_socket_is_listened_on(run: Callable[..., int]) -> None:
    """A socket that several processes share; it takes connections until all servers are closed."""

    async def connect() -> int:
        accepted: list[asyncio.BaseTransport] = []
        listener = socket.create_server(("127.0.0.1", 0), backlog=1)
        address = listener.getsockname()
        servers = await listening.listen(lambda: Counted(accepted), "", 0, listener=listener)
        with socket.create_connection(address):
            while not accepted:  # noqa: ASYNC110  nothing tells of an accepted connection
                await asyncio.sleep(0)
        for server in servers:
            server.close()
        for _ in range(3):  # the event loop closes the sockets in its next turn
            await asyncio.sleep(0)
        with socket.socket() as client:
            return client.connect_ex(address)

    assert run(connect()) == errno.ECONNREFUSED
