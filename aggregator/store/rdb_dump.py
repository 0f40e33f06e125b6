"""RDB dump of a running server, written to a file: what the server sends to a new replica.

Asked by SYNC, a server forks and sends its data as of that instant in the RDB format, while it continues to
serve. No setting is changed and no file written on its side. The file ends with a CRC-64, which the server
checks that loads it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from redis import exceptions as driver
from redis.connection import ConnectionPool
from redis.sentinel import Sentinel

from aggregator.errors import ConfigurationError, StoreUnavailable
from aggregator.store.address import parse_address
from aggregator.store.diagnostics import Node, describe, describe_version, first_line
from aggregator.store.disk import open_private

TIMEOUT_S = 60.0  # the server sends a byte per second until it has forked: it waits 5 s for further replicas
_CHUNK_BYTES = 1 << 20
_MARK_BYTES = 40


@dataclass(frozen=True, slots=True)
class RdbDump:
    """A complete file: its size and SHA-256 in hex, and the server that sent it ("valkey 9.1.2").

    ``keys``: in ``database``, which the URL selects, just before the server forked.
    """

    size_bytes: int
    sha256: str
    server: str
    database: int
    keys: int


def download_rdb(url: str, path: Path) -> RdbDump:
    """Write a snapshot of the server at ``url`` to ``path``, and flush it to the disk. Blocks.

    Raises StoreUnavailable, ConfigurationError if the server does not send snapshots, OSError. An incomplete
    file remains.
    """
    if "+cluster://" in url:
        raise ConfigurationError(
            "store_url: the servers of a Redis Cluster cannot be copied at one instant; use the snapshots of "
            "your provider, or file system snapshots of all servers."
        )
    with _connection(url) as connection:
        info = dict(re.findall(r"\b(\w+):(\S+)", _call(connection, "INFO", "server").decode("latin-1")))
        server = describe_version(Node("", info, {}))
        keys = int(_call(connection, "DBSIZE"))
        for words in (("rdb-only", "1"), ("capa", "eof")):  # the snapshot, no later writes
            _call(connection, "REPLCONF", *words)
        connection.send_command("SYNC")
        # redis-py cannot read a reply of this form; everything before it has been read.
        with connection._sock.makefile("rb") as stream:
            hashed, size_bytes = hashlib.sha256(), 0
            with open(path, "xb", opener=open_private) as file:
                for part in _payload(stream):
                    file.write(part)
                    hashed.update(part)
                    size_bytes += len(part)
                file.flush()
                os.fsync(file.fileno())
        return RdbDump(size_bytes, hashed.hexdigest(), server, connection.db, keys)


def _call(connection: Any, *words: str) -> Any:
    connection.send_command(*words)
    return connection.read_response()


@contextmanager
def _connection(url: str) -> Iterator[Any]:
    at = parse_address(url)
    options: dict[str, Any] = {"socket_timeout": TIMEOUT_S, "socket_connect_timeout": 5.0, "protocol": 2}
    pool = ConnectionPool.from_url(at.url, **options)
    if at.name:
        try:
            sentinel: Any = Sentinel(at.sentinels, sentinel_kwargs=at.sentinel_options)  # type: ignore[no-untyped-call]
            host, port = sentinel.discover_master(at.name)
        except driver.RedisError as error:
            raise StoreUnavailable(describe(error, at.shown)) from error
        pool.connection_kwargs |= {"host": host, "port": port}
    connection: Any = pool.make_connection()
    address = getattr(connection, "path", "") or f"{connection.host}:{connection.port}"
    try:
        connection.connect()
        yield connection
    except driver.ResponseError as error:
        raise _refusal(first_line(error)) from error
    except driver.RedisError as error:
        raise StoreUnavailable(describe(error, address)) from error
    finally:
        connection.disconnect()


def _refusal(message: str) -> Exception:
    if message.startswith(("LOADING", "MASTERDOWN", "NOMASTERLINK", "Can't SYNC")):
        return StoreUnavailable(f"The store cannot send a snapshot now: {message}.")
    return ConfigurationError(
        f"store_url: the store does not send snapshots ({message}); allow SYNC and REPLCONF to this user, or "
        "use the snapshots of your provider."
    )


def _payload(stream: BinaryIO) -> Iterator[bytes]:
    """The RDB file in parts: "$LENGTH" and as many bytes, or "$EOF:MARK" and bytes until the mark."""
    line = b""
    while not line:  # a newline per second until the server has forked
        line = _read(stream.readline).strip()
    if line.startswith(b"-"):
        raise _refusal(line[1:].decode(errors="replace").removeprefix("ERR "))
    if line.startswith(b"$EOF:"):
        yield from _until_mark(stream, line[5:])
        return
    remaining = int(line[1:])
    while remaining:
        part = _read(stream.read1, min(_CHUNK_BYTES, remaining))  # type: ignore[attr-defined]
        remaining -= len(part)
        yield part


def _until_mark(stream: BinaryIO, mark: bytes) -> Iterator[bytes]:
    held = b""
    while not held.endswith(mark):
        yield held[:-_MARK_BYTES]
        held = held[-_MARK_BYTES:] + _read(stream.read1, _CHUNK_BYTES)  # type: ignore[attr-defined]
    yield held[:-_MARK_BYTES]


def _read(read: Any, *arguments: int) -> bytes:
    """Bytes of the connection. Raises StoreUnavailable at its end and if the server stops sending."""
    try:
        data: bytes = read(*arguments)
    except OSError as error:
        raise StoreUnavailable(f"The store stopped sending its snapshot ({error}).") from error
    if not data:
        raise StoreUnavailable("The store broke off its snapshot; its log says why (memory, for example).")
    return data
