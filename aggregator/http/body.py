"""Reading request bodies: never more than allowed, never for ever, identity or gzip only.

gzip is undone here, a piece at a time, and every limit counts decompressed bytes: a bomb costs no
more than the limit. The server therefore runs with ``auto_decompress=False`` (``server.make_runner``),
which also keeps aiohttp from failing on encodings that we refuse.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TypeVar

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from aggregator.concurrency.fair_semaphore import CALLER
from aggregator.contract.decoding import Decode, decode
from aggregator.errors import BadInput, TooLarge
from aggregator.http.app_keys import ROOM, SERVICE
from aggregator.http.middleware.errors import SlowBody, UnsupportedEncoding

T = TypeVar("T")

PIECE_BYTES = 64 * 1024
_GZIP = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a batch without its end; ``error`` stands in the place of a line that is too long."""

    number: int
    data: bytes = b""
    error: BadInput | None = None


def check_encoding(request: web.Request) -> None:
    """Raises UnsupportedEncoding for anything but identity and gzip: others fail in aiohttp, or pass raw."""
    encoding = ",".join(request.headers.getall("Content-Encoding", [])).strip().lower()
    if encoding not in ("", "identity", "gzip"):
        raise UnsupportedEncoding("Content-Encoding: only identity and gzip are understood.", field="body")


async def decoded(request: web.Request, decoder: Decode[T]) -> T:
    """The body as ``decoder`` reads it. Raises as ``read_body`` does, and BadInput naming the field."""
    return decode(await read_body(request, request.app[SERVICE].settings.max_body_bytes), decoder)


async def read_body(request: web.Request, max_bytes: int) -> bytes:
    """The whole body. Raises TooLarge, SlowBody, BadInput (damaged gzip), Overloaded (``room.py``)."""
    seconds = request.app[SERVICE].settings.body_seconds
    check_encoding(request)
    if (request.content_length or 0) > max_bytes:
        raise _too_large("body", max_bytes)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            with request.app[ROOM].body(CALLER.get()) as grew:
                async for part in _parts(request):
                    size += len(part)
                    if size > max_bytes:
                        raise _too_large("body", max_bytes)
                    grew(size)
                    parts.append(part)
    except TimeoutError:
        raise SlowBody(f"body: it did not arrive within {seconds:g} s.", field="body") from None
    return b"".join(parts)


async def lines(request: web.Request, max_line_bytes: int, max_lines: int) -> AsyncIterator[list[Line]]:
    """The lines of a batch as they arrive, some at a time; blank lines are counted, and left out.

    Ends with a Line that carries TooLarge when there are more than ``max_lines``, BadInput when the
    data is damaged, SlowBody when it stands still: what came before is answered all the same.
    """
    # It may go on for long, but not stand still for longer than this.
    pause_s = request.app[SERVICE].settings.body_seconds
    check_encoding(request)
    cutter = _Cutter(max_line_bytes)
    parts = aiter(_parts(request))
    while True:
        try:
            async with asyncio.timeout(pause_s):
                part = await anext(parts, None)
        except TimeoutError:
            cut = [cutter.ended_by(SlowBody(f"body: nothing arrived for {pause_s:g} s.", field="body"))]
            part = None
        except BadInput as error:
            cut = [cutter.ended_by(error)]
            part = None
        else:
            cut = cutter.cut(part) if part is not None else cutter.rest()
        kept = [line for line in cut if line.number <= max_lines]
        if len(kept) < len(cut) or cutter.number > max_lines:  # blank ones too, or they could go on for ever
            kept.append(Line(max_lines + 1, error=_too_many(max_lines)))
            part = None
        if kept:
            yield kept
        if part is None:
            return


async def _parts(request: web.Request) -> AsyncIterator[bytes]:
    """What has arrived, as it arrives and decompressed; damage becomes BadInput."""
    zipped = "gzip" in request.headers.get("Content-Encoding", "").lower()
    gunzip = _Gunzip() if zipped else None
    try:
        while part := await request.content.readany():
            if gunzip is None:
                yield part
                continue
            for piece in gunzip.pieces(part):
                yield piece
                await asyncio.sleep(0)  # a bomb in one packet must not hold up everybody else
        if gunzip is not None:
            gunzip.check_whole()
    except (web.RequestPayloadError, HttpProcessingError, zlib.error):
        raise BadInput("body: its transfer or gzip encoding is damaged or cut off.", field="body") from None


class _Gunzip:
    """Undoes gzip, at most 64 KiB at a time. A body that is not compressed after all passes as it is."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._begun = False
        self._plain = False

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """What ``data`` adds. Raises zlib.error."""
        if not self._begun:
            self._begun, self._plain = True, data[:1] != b"\x1f"
        if self._plain:
            yield data
            return
        while data:
            if self._member.eof:  # members may follow one another
                self._member = zlib.decompressobj(_GZIP)
            piece = self._member.decompress(data, PIECE_BYTES)
            data = self._member.unconsumed_tail or self._member.unused_data
            if piece:
                yield piece

    def check_whole(self) -> None:
        """Raises zlib.error when the end is missing."""
        if self._begun and not self._plain and not self._member.eof:
            raise zlib.error("cut off")


class _Cutter:
    """Cuts a flow of bytes into lines, holding at most one line of ``max_bytes``."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.number = 0
        self._open: list[bytes] = []
        self._open_bytes = 0
        self._too_long = False

    def cut(self, part: bytes) -> list[Line]:
        """Lines that end within ``part``."""
        found = []
        pieces = part.split(b"\n")
        for piece in pieces[:-1]:
            self._keep(piece)
            found += self._end()
        self._keep(pieces[-1])
        return found

    def rest(self) -> list[Line]:
        """The last line, when it has no end."""
        return self._end() if self._open_bytes or self._too_long else []

    def ended_by(self, error: BadInput) -> Line:
        """What to answer when no more lines can be read."""
        return Line(self.number + 1, error=error)

    def _keep(self, piece: bytes) -> None:
        self._open_bytes += len(piece)
        if self._open_bytes > self._max_bytes + 1:  # one more for a carriage return
            self._too_long = True
            self._open.clear()
        elif piece:
            self._open.append(piece)

    def _end(self) -> list[Line]:
        self.number += 1
        data, too_long = b"".join(self._open).strip(b" \t\r"), self._too_long
        self._open, self._open_bytes, self._too_long = [], 0, False
        if too_long or len(data) > self._max_bytes:
            return [Line(self.number, error=_too_large("line", self._max_bytes))]
        return [Line(self.number, data)] if data else []


def _too_large(what: str, max_bytes: int) -> TooLarge:
    return TooLarge(f"{what}: it is larger than {max_bytes} bytes (setting max_body_bytes).", field=what)


def _too_many(max_lines: int) -> TooLarge:
    return TooLarge(
        f"body: more than {max_lines} lines (setting max_batch_lines); send this line and the rest in another batch.",
        field="body",
    )
