"""Listening sockets: several handles per socket, so that a busy event loop accepts fast enough.

uvloop (libuv since 1.45) accepts one connection per listening handle in each turn of the event loop;
asyncio's own loop accepts the whole backlog. Under load a turn takes 50 ms, so of 1,000 connections that
wait, with their requests sent already, the last one would wait for 50 s. Each duplicate of a listening socket
is a handle of its own.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable

BACKLOG = 1024
# 32 new connections hold others up for 2 ms; a single one costs 50 us more than with one handle.
ACCEPTS_PER_TURN = 32


async def listen(
    protocol_factory: Callable[[], asyncio.BaseProtocol],
    host: str,
    port: int,
    *,
    listener: socket.socket | None = None,
) -> list[asyncio.Server]:
    """Servers that accept on all addresses of ``host``, or from ``listener``, a bound socket; close them all.

    ``port`` 0 selects a free one. Raises OSError when the address cannot be bound.
    """
    loop = asyncio.get_running_loop()
    if listener is not None:
        first = await loop.create_server(protocol_factory, sock=listener, backlog=BACKLOG)
    else:
        first = await loop.create_server(protocol_factory, host, port, backlog=BACKLOG)
    servers = [first]
    for listening in first.sockets:
        for _ in range(ACCEPTS_PER_TURN - 1):
            duplicate = socket.socket(fileno=os.dup(listening.fileno()))
            servers.append(await loop.create_server(protocol_factory, sock=duplicate, backlog=BACKLOG))
    return servers
