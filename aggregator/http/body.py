"""Reading of request bodies within limits on size, time and encoding (identity or gzip).

gzip is decompressed here in parts, and every limit counts decompressed bytes, so a decompression bomb costs
no more than the limit. The server runs with ``auto_decompress=False`` (``server.make_runner``), which also
keeps aiohttp from failing on encodings that are rejected here.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import parse_qsl

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from aggregator.concurrency.fair_semaphore import current_caller
from aggregator.contract.decoding import DecodeFunction, convert_strings, decode
from aggregator.errors import BodyTimeout, InputTooLarge, InvalidInput, UnsupportedEncoding
from aggregator.http.app_keys import BODY_LIMITS, BODY_MEMORY_BUDGET

T = TypeVar("T")

CHUNK_BYTES = 64 * 1024
_MAX_FORM_FIELDS = 8
# Percent-encoding makes up to three bytes of one.
_FORM_ENCODING_FACTOR = 3
_GZIP_WBITS = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class BatchLine:
    """One line of a batch without its line end; ``error`` replaces the data of a line that cannot be used."""

    number: int
    data: bytes = b""
    error: InvalidInput | None = None


def check_encoding(request: web.Request) -> None:
    """Raise UnsupportedEncoding unless the encoding is identity or gzip; aiohttp would fail or ignore it."""
    encoding = ",".join(request.headers.getall("Content-Encoding", [])).strip().lower()
    if encoding not in ("", "identity", "gzip"):
        raise UnsupportedEncoding("Content-Encoding: only identity and gzip are supported.", field="body")


async def read_struct(request: web.Request, decoder: DecodeFunction[T]) -> T:
    """The decoded JSON body. Raises as ``read_body`` does, and InvalidInput naming the field."""
    return decode(await read_body(request), decoder)


async def read_form(request: web.Request, struct_type: type[T]) -> T:
    """The fields of a form. Raises as ``read_body`` does, and InvalidInput naming the field."""
    body = await read_body(request, _FORM_ENCODING_FACTOR * request.app[BODY_LIMITS].max_bytes)
    try:
        fields = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_FORM_FIELDS, errors="strict"
        )
    except (UnicodeDecodeError, ValueError):
        raise InvalidInput("body: expected percent-encoded form fields.", field="body") from None
    return convert_strings(dict(fields), struct_type)


async def read_body(request: web.Request, max_bytes: int | None = None) -> bytes:
    """The whole body, of at most ``max_bytes`` (default: the limit of the application).

    Raises InputTooLarge, UnsupportedEncoding, BodyTimeout, InvalidInput (damaged gzip), Overloaded (no memory
    budget left, see ``limits/body_memory.py``).
    """
    limits = request.app[BODY_LIMITS]
    max_bytes = limits.max_bytes if max_bytes is None else max_bytes
    check_encoding(request)
    if (request.content_length or 0) > max_bytes:
        raise _too_large_error("body", max_bytes)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.timeout_s):
            with request.app[BODY_MEMORY_BUDGET].reserve(current_caller.get()) as resize:
                async for chunk in _decompressed_chunks(request):
                    size += len(chunk)
                    if size > max_bytes:
                        raise _too_large_error("body", max_bytes)
                    resize(size)
                    chunks.append(chunk)
    except TimeoutError:
        raise BodyTimeout(f"body: not received within {limits.timeout_s:g} s.", field="body") from None
    return b"".join(chunks)


async def read_lines(request: web.Request) -> AsyncIterator[list[BatchLine]]:
    """The lines of a batch as they arrive, several at a time; blank lines are counted and omitted.

    A failure does not raise: the last line then carries the error (InputTooLarge for too many lines,
    InvalidInput for damaged data, BodyTimeout for a stalled body), so that the lines before it are still
    answered.
    """
    limits = request.app[BODY_LIMITS]
    check_encoding(request)
    splitter = LineSplitter(limits.max_bytes)
    chunks = aiter(_decompressed_chunks(request))
    while True:
        try:
            async with asyncio.timeout(limits.timeout_s):  # bounds a pause; the whole batch may take longer
                chunk = await anext(chunks, None)
        except TimeoutError:
            stalled = BodyTimeout(f"body: nothing received for {limits.timeout_s:g} s.", field="body")
            lines, chunk = [splitter.abort(stalled)], None
        except InvalidInput as error:
            lines, chunk = [splitter.abort(error)], None
        else:
            lines = splitter.feed(chunk) if chunk is not None else splitter.flush()
        accepted = [line for line in lines if line.number <= limits.max_lines]
        # Blank lines count as well, otherwise a batch of them would never end.
        if len(accepted) < len(lines) or splitter.line_number > limits.max_lines:
            accepted.append(BatchLine(limits.max_lines + 1, error=_too_many_lines_error(limits.max_lines)))
            chunk = None
        if accepted:
            yield accepted
        if chunk is None:
            return


async def _decompressed_chunks(request: web.Request) -> AsyncIterator[bytes]:
    """The body's data as it arrives, decompressed. Raises InvalidInput for damaged data."""
    is_gzip = "gzip" in request.headers.get("Content-Encoding", "").lower()
    decompressor = _GzipDecompressor() if is_gzip else None
    try:
        while data := await request.content.readany():
            if decompressor is None:
                yield data
                continue
            for chunk in decompressor.decompress(data):
                yield chunk
                await asyncio.sleep(0)  # a decompression bomb in one packet must not block the event loop
        if decompressor is not None:
            decompressor.check_complete()
    except (web.RequestPayloadError, HttpProcessingError, zlib.error):
        raise InvalidInput(
            "body: its transfer or gzip encoding is damaged or truncated.", field="body"
        ) from None


class _GzipDecompressor:
    """Incremental gzip decompression in chunks of at most CHUNK_BYTES; uncompressed data passes unchanged."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP_WBITS)
        self._started = False
        self._is_uncompressed = False

    def decompress(self, data: bytes) -> Iterator[bytes]:
        """Chunks that ``data`` adds. Raises zlib.error."""
        if not self._started:
            self._started, self._is_uncompressed = True, data[:1] != b"\x1f"
        if self._is_uncompressed:
            yield data
            return
        while data:
            if self._member.eof:  # a gzip file may have several members
                self._member = zlib.decompressobj(_GZIP_WBITS)
            chunk = self._member.decompress(data, CHUNK_BYTES)
            data = self._member.unconsumed_tail or self._member.unused_data
            if chunk:
                yield chunk

    def check_complete(self) -> None:
        """Raise zlib.error when the end is missing."""
        if self._started and not self._is_uncompressed and not self._member.eof:
            raise zlib.error("truncated")


class LineSplitter:
    """Incremental line splitting; buffers at most one line of ``max_bytes``."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.line_number = 0
        self._partial_line: list[bytes] = []
        self._partial_bytes = 0
        self._line_too_long = False

    def feed(self, chunk: bytes) -> list[BatchLine]:
        """Lines that end within ``chunk``."""
        found = []
        pieces = chunk.split(b"\n")
        for piece in pieces[:-1]:
            self._append(piece)
            found += self._finish_line()
        self._append(pieces[-1])
        return found

    def flush(self) -> list[BatchLine]:
        """The last line, if it has no line end."""
        return self._finish_line() if self._partial_bytes or self._line_too_long else []

    def abort(self, error: InvalidInput) -> BatchLine:
        """The line that reports why no more lines can be read."""
        return BatchLine(self.line_number + 1, error=error)

    def _append(self, piece: bytes) -> None:
        self._partial_bytes += len(piece)
        if self._partial_bytes > self._max_bytes + 1:  # one more for a carriage return
            self._line_too_long = True
            self._partial_line.clear()
        elif piece:
            self._partial_line.append(piece)

    def _finish_line(self) -> list[BatchLine]:
        self.line_number += 1
        data, too_long = b"".join(self._partial_line).strip(b" \t\r"), self._line_too_long
        self._partial_line, self._partial_bytes, self._line_too_long = [], 0, False
        if too_long or len(data) > self._max_bytes:
            return [BatchLine(self.line_number, error=_too_large_error("line", self._max_bytes))]
        return [BatchLine(self.line_number, data)] if data else []


def _too_large_error(field: str, max_bytes: int) -> InputTooLarge:
    return InputTooLarge(f"{field}: larger than {max_bytes} bytes (setting max_body_bytes).", field=field)


def _too_many_lines_error(max_lines: int) -> InputTooLarge:
    return InputTooLarge(
        f"body: more than {max_lines} lines (setting max_batch_lines); send the rest in another batch.",
        field="body",
    )
