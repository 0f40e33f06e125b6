"""First bytes of an RDB file: version of the format, program that wrote it, and number of keys.

The server writes the number of keys of each database before its entries, at the instant of the snapshot. Only
the first database is read. Format: https://github.com/redis/redis/blob/7.0/src/rdb.c (``rdbSaveRio``).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

# The header is shorter, unless libraries of functions are stored in the server.
MAX_HEADER_BYTES = 1 << 16
_AUX, _FUNCTION, _SELECT_DATABASE, _SIZES, _EOF = 0xFA, 0xF5, 0xFE, 0xFB, 0xFF


@dataclass(frozen=True, slots=True)
class RdbHeader:
    """``server``: "redis 7.0.15"; ``keys``: of ``database``, of which ``expiring`` have a time to live."""

    version: int
    server: str
    database: int
    keys: int
    expiring: int


def parse_header(data: bytes) -> RdbHeader:
    """Parse the beginning of a file. Raises ValueError if it is not an RDB file or has no number of keys."""
    if data[:5] not in (b"REDIS", b"VALKE") or not data[6:9].isdigit():
        raise ValueError("this is not an RDB file")
    version, server = int(data[6:9]), "unknown"
    reader = _Reader(data, 9)
    while True:
        opcode = reader.byte()
        if opcode == _AUX:
            name, value = reader.string(), reader.string()
            if name in (b"redis-ver", b"valkey-ver"):
                server = f"{name.decode().removesuffix('-ver')} {value.decode(errors='replace')}"
        elif opcode == _FUNCTION:
            reader.string()
        elif opcode == _SELECT_DATABASE:
            database = reader.length()
            if reader.byte() != _SIZES:
                raise ValueError("the number of keys is missing")
            return RdbHeader(version, server, database, reader.length(), reader.length())
        elif opcode == _EOF:
            return RdbHeader(version, server, 0, 0, 0)
        else:
            raise ValueError(f"unexpected opcode {opcode:#x}")


class _Reader:
    """Cursor over the encodings of lengths and strings. Raises ValueError at the end of the data."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position

    def take(self, count: int) -> bytes:
        end = self._position + count
        if end > len(self._data):
            raise ValueError("the header is too long")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def byte(self) -> int:
        return self.take(1)[0]

    def length(self) -> int:
        first = self.byte()
        kind, low = first >> 6, first & 0x3F
        if kind == 0:
            return low
        if kind == 1:
            return low << 8 | self.byte()
        if first in (0x80, 0x81):
            return int(
                struct.unpack(">I" if first == 0x80 else ">Q", self.take(4 if first == 0x80 else 8))[0]
            )
        raise ValueError(f"unexpected length {first:#x}")

    def string(self) -> bytes:
        """A string; numbers are stored as 1, 2 or 4 bytes."""
        first = self._data[self._position : self._position + 1]
        if first and 0xC0 <= first[0] <= 0xC2:
            self.byte()
            return b"%d" % int.from_bytes(self.take(1 << (first[0] - 0xC0)), "little", signed=True)
        return self.take(self.length())
