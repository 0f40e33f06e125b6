"""Incremental gzip decompression (RFC 1952) whose CPU time is linear in the bytes received and produced.

``zlib`` copies whatever follows the end of a gzip member. A body of many small members would therefore be
copied once per member, so the input is passed in steps that are about as long as a member: after the end of a
member a step has MIN_STEP_BYTES, and each further step of the same member is twice as long as the one before.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

CHUNK_BYTES = 64 * 1024
MIN_STEP_BYTES = 1024
# About 0.5 ms of CPU.
STEPS_PER_YIELD = 256
_GZIP_WBITS = 16 + zlib.MAX_WBITS


class GzipDecompressor:
    """Decompresses in chunks of at most CHUNK_BYTES; uncompressed data passes unchanged."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP_WBITS)
        self._step_bytes = MIN_STEP_BYTES
        self._started = False
        self._is_uncompressed = False

    def decompress(self, data: bytes) -> Iterator[bytes]:
        """Chunks that ``data`` adds, some of them empty: the caller yields to the event loop after each.

        Raises zlib.error.
        """
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
