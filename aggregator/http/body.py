"""Reading of request bodies within limits on size, time and encoding (identity or gzip).

The limit applies to the bytes that arrive and to the decompressed ones, so neither a decompression bomb nor
data that decompresses to nothing costs more. Handlers run after authentication, so nothing is read before it,
except the small uncompressed form of /sign-in. The server runs with ``auto_decompress=False``
(``server.make_runner``), which also keeps aiohttp from failing on encodings that are rejected here.
"""

from __future__ import annotations

import asyncio
import binascii
import re
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TypeVar

from aiohttp import HttpVersion11, web
from aiohttp.http_exceptions import HttpProcessingError

from aggregator.concurrency import current_caller
from aggregator.contract.decoding import convert_strings, decode
from aggregator.errors import BodyTimeout, InputTooLarge, InvalidInput, UnsupportedEncoding
from aggregator.http.app_keys import BODY_MEMORY_BUDGET, SERVICE
from aggregator.http.limits import EXEMPT_BYTES

T = TypeVar("T")

_MAX_FORM_FIELDS = 24  # the form of a desk has 16
_MAX_LINE_FACTOR = 8
_FORM_ENCODING_FACTOR = 3  # percent-encoding makes up to three bytes of one
_LONE_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")  # browsers escape it
CHUNK_BYTES = 64 * 1024
BODY_TIMEOUT_S = 30.0  # for a batch to make no progress, and for any other body to arrive
MIN_STEP_BYTES = 1024
STEPS_PER_YIELD = 256  # about 0.5 ms of CPU
_GZIP_WBITS = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class BatchLine:
    """One line of a batch without its line end; ``error`` replaces the data of a line that cannot be used."""

    number: int
    data: bytes = b""
    error: InvalidInput | None = None


def check_encoding(request: web.Request) -> bool:
    """Whether the body is compressed by gzip. Raises UnsupportedEncoding for all but identity and gzip."""
    if "Content-Encoding" not in request.headers:
        return False
    encoding = ",".join(request.headers.getall("Content-Encoding", [])).strip().lower()
    if encoding not in ("", "identity", "gzip"):
        raise UnsupportedEncoding("Content-Encoding: only identity and gzip are supported.", field="body")
    return encoding == "gzip"


async def send_continue(request: web.Request) -> None:
    """Answer ``Expect: 100-continue``: the client may send the body. To be called before the response."""
    if request.version >= HttpVersion11 and request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0


async def read_struct(request: web.Request, struct_type: type[T]) -> T:
    """The decoded JSON body. Raises as ``read_body`` does, and InvalidInput naming the field."""
    return decode(await read_body(request), struct_type)


async def read_form(request: web.Request, struct_type: type[T], max_bytes: int | None = None) -> T:
    """The fields of an uncompressed form. Raises as ``read_body`` does, and InvalidInput."""
    if check_encoding(request):  # browsers never compress forms
        raise UnsupportedEncoding("Content-Encoding: a form must not be compressed.", field="body")
    body = await read_body(
        request, max_bytes or _FORM_ENCODING_FACTOR * request.app[SERVICE].settings.max_body_bytes
    )
    return parse_form(body, struct_type)


def parse_form(body: bytes, struct_type: type[T]) -> T:
    """The fields of a form (WHATWG URL, application/x-www-form-urlencoded). Raises InvalidInput."""
    pairs = (field.partition(b"=") for field in body.split(b"&") if field)
    try:
        if not body.isascii() or body.count(b"&") >= _MAX_FORM_FIELDS or _LONE_PERCENT.search(body):
            raise ValueError
        fields = [(_decode_component(name), _decode_component(value)) for name, _, value in pairs]
    except ValueError:
        raise InvalidInput("body: expected percent-encoded form fields.", field="body") from None
    values = dict(fields)
    if len(values) < len(fields):
        raise InvalidInput("body: a form field is given more than once; name each field once.", field="body")
    return convert_strings(values, struct_type)


def _decode_component(data: bytes) -> str:
    """The UTF-8 text. Raises UnicodeDecodeError.

    Escapes of quoted-printable differ in their sign only, and are decoded in C. ``urllib`` takes 1 us of the
    event loop for each, and a pasted Chinese text of 200,000 characters has 600,000.
    """
    return binascii.a2b_qp(data.replace(b"+", b" ").replace(b"=", b"=3D").replace(b"%", b"=")).decode()


async def read_body(request: web.Request, max_bytes: int | None = None) -> bytes:
    """The whole body, of at most ``max_bytes`` (default: the limit of the application).

    Raises InputTooLarge, UnsupportedEncoding, BodyTimeout, InvalidInput (damaged), Overloaded (no memory).
    """
    max_bytes = request.app[SERVICE].settings.max_body_bytes if max_bytes is None else max_bytes
    is_gzip = check_encoding(request)
    length = request.content_length
    if (length or 0) > max_bytes:
        raise _too_large_error("body", max_bytes)
    await send_continue(request)
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            if length is not None and length <= EXEMPT_BYTES and not is_gzip:  # the parser ends it there
                return await request.content.read()
            return await _read_in_parts(request, max_bytes, is_gzip)
    except TimeoutError:
        raise BodyTimeout(f"body: not received within {BODY_TIMEOUT_S:g} s.", field="body") from None
    except (web.RequestPayloadError, HttpProcessingError):
        raise _damaged_error() from None


async def _read_in_parts(request: web.Request, max_bytes: int, is_gzip: bool) -> bytes:
    chunks: list[bytes] = []
    size = 0
    with request.app[BODY_MEMORY_BUDGET].reserve(current_caller.get()) as resize:
        async for chunk in _decompressed_chunks(request, max_bytes, is_gzip):
            size += len(chunk)
            if size > max_bytes:
                raise _too_large_error("body", max_bytes)
            resize(size)
            chunks.append(chunk)
    return b"".join(chunks)


async def read_lines(request: web.Request) -> AsyncIterator[list[BatchLine]]:
    """The lines of a batch as they arrive, several at a time; blank lines are counted and omitted.

    Does not raise: the last line carries the error (InputTooLarge for too many lines, InvalidInput for
    damaged data, BodyTimeout for a stalled body), so the lines before it are still answered.
    """
    settings = request.app[SERVICE].settings
    splitter = LineSplitter(settings.max_body_bytes)
    # A line that is longer than the limit is dropped; one that is so many times longer ends the batch.
    most_bytes, line_bytes = _MAX_LINE_FACTOR * settings.max_body_bytes + CHUNK_BYTES, 0
    chunk: bytes | None = b""
    try:
        chunks = aiter(_decompressed_chunks(request, most_bytes, check_encoding(request)))
        while chunk is not None:
            try:
                async with asyncio.timeout(BODY_TIMEOUT_S):  # bounds a pause only
                    chunk = await anext(chunks, None)
            except TimeoutError:
                message = f"body: nothing received for {BODY_TIMEOUT_S:g} s."
                raise BodyTimeout(message, field="body") from None
            lines = splitter.feed(chunk) if chunk is not None else splitter.flush()
            line_bytes = 0 if lines else line_bytes + len(chunk or b"")
            if line_bytes > most_bytes:
                raise _too_large_error("line", settings.max_body_bytes)
            if accepted := [line for line in lines if line.number <= settings.max_batch_lines]:
                yield accepted
            # Blank lines count as well, otherwise a batch of them would never end.
            if splitter.line_number > settings.max_batch_lines:
                raise InputTooLarge(
                    f"body: more than {settings.max_batch_lines} lines (setting max_batch_lines); send the "
                    "rest in another batch.",
                    field="body",
                )
    except InvalidInput as error:
        yield [BatchLine(min(splitter.line_number, settings.max_batch_lines) + 1, error=error)]


async def _decompressed_chunks(request: web.Request, max_bytes: int, is_gzip: bool) -> AsyncIterator[bytes]:
    """The decompressed data as it arrives. Raises InvalidInput, InputTooLarge (decompresses to nothing)."""
    decompressor, received, produced = GzipDecompressor() if is_gzip else None, 0, 0
    try:
        while data := await request.content.readany():
            if decompressor is None:
                yield data
                continue
            received += len(data)
            if received > max_bytes + 2 * produced:
                raise _too_large_error("body", request.app[SERVICE].settings.max_body_bytes)
            for chunk in decompressor.decompress(data):
                produced += len(chunk)
                yield chunk
                await asyncio.sleep(0)  # a decompression bomb in one packet must not block the event loop
        if decompressor is not None:
            decompressor.check_complete()
    except (web.RequestPayloadError, HttpProcessingError, zlib.error):
        raise _damaged_error() from None


class GzipDecompressor:
    """Decompresses in chunks of at most CHUNK_BYTES (RFC 1952); uncompressed data passes unchanged.

    Its processor time is linear in the bytes received and produced. ``zlib`` copies whatever follows the end
    of a gzip member, so a body of many small members would be copied once per member. The input is therefore
    passed in steps that are about as long as a member: after the end of a member a step has MIN_STEP_BYTES,
    and each further step of the same member is twice as long as the one before.
    """

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP_WBITS)
        self._step_bytes = MIN_STEP_BYTES
        self._started = False
        self._is_uncompressed = False

    def decompress(self, data: bytes) -> Iterator[bytes]:
        """Chunks that ``data`` adds, or empty ones to yield to the event loop. Raises zlib.error."""
        if not self._started:
            self._started, self._is_uncompressed = True, data[:1] != b"\x1f"
        if self._is_uncompressed:
            yield data
            return
        unread, steps = memoryview(data), 0
        while unread:
            if self._member.eof:  # a gzip file may have several members
                self._member = zlib.decompressobj(_GZIP_WBITS)
                self._step_bytes = MIN_STEP_BYTES
            step = unread[: self._step_bytes]
            chunk = self._member.decompress(step, CHUNK_BYTES)
            rest = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            unread = unread[len(step) - len(rest) :]
            self._step_bytes = min(2 * self._step_bytes, CHUNK_BYTES)
            steps += 1
            if chunk or steps % STEPS_PER_YIELD == 0:
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


def _damaged_error() -> InvalidInput:
    return InvalidInput("body: its transfer or gzip encoding is damaged or truncated.", field="body")
