"""Reading of request bodies within limits on size, time and encoding (identity or gzip).

Two limits apply to each body: one on its decompressed bytes, counted here while gzip is decompressed in
parts, and one on the bytes that arrive for it, compressed and with the overhead of HTTP chunks, counted by
the connection (``connections.py``). So neither a decompression bomb nor data that decompresses to nothing
costs more than the limits. Handlers run after authentication, so nothing is read before it, except the small
uncompressed form of /sign-in. The server runs with ``auto_decompress=False`` (``server.make_runner``), which
also keeps aiohttp from failing on encodings that are rejected here.
"""

from __future__ import annotations

import asyncio
import binascii
import re
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TypeVar

from aiohttp import HttpVersion11, web
from aiohttp.http_exceptions import HttpProcessingError

from aggregator.concurrency.fair_semaphore import current_caller
from aggregator.contract.decoding import DecodeFunction, convert_strings, decode
from aggregator.errors import BodyTimeout, InputTooLarge, InvalidInput, UnsupportedEncoding
from aggregator.http.app_keys import BODY_LIMITS, BODY_MEMORY_BUDGET
from aggregator.http.connections import MAX_BUFFERED_BYTES, limit_received_bytes
from aggregator.http.gzip_decoding import GzipDecompressor

T = TypeVar("T")

_KEPT_BODY = web.RequestKey("kept_body", bytes)
_MAX_FORM_FIELDS = 24  # the form of a desk has 16
# A line that is longer than the limit is dropped; one that is so many times longer ends the batch.
_MAX_LINE_FACTOR = 8
# Percent-encoding makes up to three bytes of one.
_FORM_ENCODING_FACTOR = 3
_LONE_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")  # browsers escape it


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


async def send_continue(request: web.Request) -> None:
    """Answer ``Expect: 100-continue``: the client may send the body. To be called before the response."""
    if request.version >= HttpVersion11 and request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0


async def read_struct(request: web.Request, decoder: DecodeFunction[T]) -> T:
    """The decoded JSON body. Raises as ``read_body`` does, and InvalidInput naming the field."""
    return decode(await read_body(request), decoder)


async def read_form(request: web.Request, struct_type: type[T], max_bytes: int | None = None) -> T:
    """The fields of an uncompressed form of at most ``max_bytes`` (default: the limit of the application).

    Raises as ``read_body`` does, and InvalidInput naming the field.
    """
    if _is_gzip(request):  # browsers never compress forms
        raise UnsupportedEncoding("Content-Encoding: a form must not be compressed.", field="body")
    body = await read_body(request, max_bytes or _FORM_ENCODING_FACTOR * request.app[BODY_LIMITS].max_bytes)
    return parse_form(body, struct_type)


def parse_form(body: bytes, struct_type: type[T]) -> T:
    """The fields of a form that was read. Raises InvalidInput naming the field."""
    try:
        fields = _decode_fields(body)
    except ValueError:
        raise InvalidInput("body: expected percent-encoded form fields.", field="body") from None
    values = dict(fields)
    if len(values) < len(fields):
        raise InvalidInput("body: a form field is given more than once; name each field once.", field="body")
    return convert_strings(values, struct_type)


def _decode_fields(body: bytes) -> list[tuple[str, str]]:
    """Names and values (WHATWG URL, application/x-www-form-urlencoded). Raises ValueError."""
    if not body.isascii() or body.count(b"&") >= _MAX_FORM_FIELDS or _LONE_PERCENT.search(body):
        raise ValueError
    pairs = (field.partition(b"=") for field in body.split(b"&") if field)
    return [(_decode_component(name), _decode_component(value)) for name, _, value in pairs]


def _decode_component(data: bytes) -> str:
    """The UTF-8 text. Raises UnicodeDecodeError.

    Escapes of quoted-printable differ in their sign only, and are decoded in C. ``urllib`` takes 1 us of the
    event loop for each, and a pasted Chinese text of 200,000 characters has 600,000.
    """
    return binascii.a2b_qp(data.replace(b"+", b" ").replace(b"=", b"=3D").replace(b"%", b"=")).decode()


async def keep_body(request: web.Request) -> bytes:
    """As ``read_body``; the body stays available to the handler of the request."""
    request[_KEPT_BODY] = body = await read_body(request)
    return body


async def read_body(request: web.Request, max_bytes: int | None = None) -> bytes:
    """The whole body, of at most ``max_bytes`` (default: the limit of the application).

    Raises InputTooLarge, UnsupportedEncoding, BodyTimeout, InvalidInput (damaged gzip), Overloaded (no memory
    budget left, see ``limits/body_memory.py``).
    """
    if _KEPT_BODY in request:
        return request[_KEPT_BODY]
    limits = request.app[BODY_LIMITS]
    max_bytes = limits.max_bytes if max_bytes is None else max_bytes
    check_encoding(request)
    if (request.content_length or 0) > max_bytes:
        raise _too_large_error("body", max_bytes)
    limit_received_bytes(request, max_bytes)
    await send_continue(request)
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

    The caller has called ``send_continue`` before it started its response.

    A failure does not raise: the last line then carries the error (InputTooLarge for too many lines,
    InvalidInput for damaged data, BodyTimeout for a stalled body), so that the lines before it are still
    answered.
    """
    limits = request.app[BODY_LIMITS]
    check_encoding(request)
    splitter, counted_lines = LineSplitter(limits.max_bytes), -1
    chunks = aiter(_decompressed_chunks(request))
    while True:
        if splitter.line_number > counted_lines:  # the limit applies to each line, as to a body
            counted_lines = splitter.line_number
            limit_received_bytes(request, _MAX_LINE_FACTOR * limits.max_bytes + MAX_BUFFERED_BYTES)
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
    decompressor = GzipDecompressor() if _is_gzip(request) else None
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


def _is_gzip(request: web.Request) -> bool:
    return "gzip" in request.headers.get("Content-Encoding", "").lower()


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
