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

from aggregator.concurrency.fair_semaphore import current_caller
from aggregator.contract.decoding import DecodeFunction, decode
from aggregator.errors import InputTooLarge, InvalidInput
from aggregator.http.app_keys import BODY_MEMORY_BUDGET, SERVICE
from aggregator.http.middleware.errors import BodyTimeout, UnsupportedEncoding

T = TypeVar("T")

CHUNK_BYTES = 64 * 1024
_GZIP_WBITS = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class BatchLine:
    """One line of a batch without its end; ``error`` stands in the place of a line that is too long."""

    number: int
    data: bytes = b""
    error: InvalidInput | None = None


def check_encoding(request: web.Request) -> None:
    """Raises UnsupportedEncoding for anything but identity and gzip: others fail in aiohttp, or pass raw."""
    encoding = ",".join(request.headers.getall("Content-Encoding", [])).strip().lower()
    if encoding not in ("", "identity", "gzip"):
        raise UnsupportedEncoding("Content-Encoding: only identity and gzip are understood.", field="body")


async def read_struct(request: web.Request, decoder: DecodeFunction[T]) -> T:
    """The body as ``decoder`` reads it. Raises as ``read_body`` does, and BadInput naming the field."""
    return decode(await read_body(request, request.app[SERVICE].settings.max_body_bytes), decoder)


async def read_body(request: web.Request, max_bytes: int) -> bytes:
    """The whole body. Raises TooLarge, SlowBody, BadInput (damaged gzip), Overloaded (``room.py``)."""
    seconds = request.app[SERVICE].settings.body_timeout_seconds
    check_encoding(request)
    if (request.content_length or 0) > max_bytes:
        raise _too_large_error("body", max_bytes)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            with request.app[BODY_MEMORY_BUDGET].reserve(current_caller.get()) as grew:
                async for part in _decompressed_chunks(request):
                    size += len(part)
                    if size > max_bytes:
                        raise _too_large_error("body", max_bytes)
                    grew(size)
                    parts.append(part)
    except TimeoutError:
        raise BodyTimeout(f"body: it did not arrive within {seconds:g} s.", field="body") from None
    return b"".join(parts)


async def read_lines(
    request: web.Request, max_line_bytes: int, max_lines: int
) -> AsyncIterator[list[BatchLine]]:
    """The lines of a batch as they arrive, some at a time; blank lines are counted, and left out.

    Ends with a Line that carries TooLarge when there are more than ``max_lines``, BadInput when the
    data is damaged, SlowBody when it stands still: what came before is answered all the same.
    """
    # It may go on for long, but not stand still for longer than this.
    pause_s = request.app[SERVICE].settings.body_timeout_seconds
    check_encoding(request)
    cutter = LineSplitter(max_line_bytes)
    parts = aiter(_decompressed_chunks(request))
    while True:
        try:
            async with asyncio.timeout(pause_s):
                part = await anext(parts, None)
        except TimeoutError:
            cut = [cutter.abort(BodyTimeout(f"body: nothing arrived for {pause_s:g} s.", field="body"))]
            part = None
        except InvalidInput as error:
            cut = [cutter.abort(error)]
            part = None
        else:
            cut = cutter.feed(part) if part is not None else cutter.flush()
        kept = [line for line in cut if line.number <= max_lines]
        if (
            len(kept) < len(cut) or cutter.line_number > max_lines
        ):  # blank ones too, or they could go on for ever
            kept.append(BatchLine(max_lines + 1, error=_too_many_lines_error(max_lines)))
            part = None
        if kept:
            yield kept
        if part is None:
            return


async def _decompressed_chunks(request: web.Request) -> AsyncIterator[bytes]:
    """What has arrived, as it arrives and decompressed; damage becomes BadInput."""
    zipped = "gzip" in request.headers.get("Content-Encoding", "").lower()
    gunzip = _GzipDecompressor() if zipped else None
    try:
        while part := await request.content.readany():
            if gunzip is None:
                yield part
                continue
            for piece in gunzip.decompress(part):
                yield piece
                await asyncio.sleep(0)  # a bomb in one packet must not hold up everybody else
        if gunzip is not None:
            gunzip.check_complete()
    except (web.RequestPayloadError, HttpProcessingError, zlib.error):
        raise InvalidInput(
            "body: its transfer or gzip encoding is damaged or cut off.", field="body"
        ) from None


class _GzipDecompressor:
    """Undoes gzip, at most 64 KiB at a time. A body that is not compressed after all passes as it is."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP_WBITS)
        self._started = False
        self._is_uncompressed = False

    def decompress(self, data: bytes) -> Iterator[bytes]:
        """What ``data`` adds. Raises zlib.error."""
        if not self._started:
            self._started, self._is_uncompressed = True, data[:1] != b"\x1f"
        if self._is_uncompressed:
            yield data
            return
        while data:
            if self._member.eof:  # members may follow one another
                self._member = zlib.decompressobj(_GZIP_WBITS)
            piece = self._member.decompress(data, CHUNK_BYTES)
            data = self._member.unconsumed_tail or self._member.unused_data
            if piece:
                yield piece

    def check_complete(self) -> None:
        """Raises zlib.error when the end is missing."""
        if self._started and not self._is_uncompressed and not self._member.eof:
            raise zlib.error("cut off")


class LineSplitter:
    """Cuts a flow of bytes into lines, holding at most one line of ``max_bytes``."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.line_number = 0
        self._partial_line: list[bytes] = []
        self._partial_bytes = 0
        self._line_too_long = False

    def feed(self, chunk: bytes) -> list[BatchLine]:
        """Lines that end within ``part``."""
        found = []
        pieces = chunk.split(b"\n")
        for piece in pieces[:-1]:
            self._append(piece)
            found += self._finish_line()
        self._append(pieces[-1])
        return found

    def flush(self) -> list[BatchLine]:
        """The last line, when it has no end."""
        return self._finish_line() if self._partial_bytes or self._line_too_long else []

    def abort(self, error: InvalidInput) -> BatchLine:
        """What to answer when no more lines can be read."""
        return BatchLine(self.line_number + 1, error=error)

    def _append(self, chunk: bytes) -> None:
        self._partial_bytes += len(chunk)
        if self._partial_bytes > self._max_bytes + 1:  # one more for a carriage return
            self._line_too_long = True
            self._partial_line.clear()
        elif chunk:
            self._partial_line.append(chunk)

    def _finish_line(self) -> list[BatchLine]:
        self.line_number += 1
        data, too_long = b"".join(self._partial_line).strip(b" \t\r"), self._line_too_long
        self._partial_line, self._partial_bytes, self._line_too_long = [], 0, False
        if too_long or len(data) > self._max_bytes:
            return [BatchLine(self.line_number, error=_too_large_error("line", self._max_bytes))]
        return [BatchLine(self.line_number, data)] if data else []


def _too_large_error(field: str, max_bytes: int) -> InputTooLarge:
    return InputTooLarge(
        f"{field}: it is larger than {max_bytes} bytes (setting max_body_bytes).", field=field
    )


def _too_many_lines_error(max_lines: int) -> InputTooLarge:
    return InputTooLarge(
        f"body: more than {max_lines} lines (setting max_batch_lines); send this line and the rest in another batch.",
        field="body",
    )
