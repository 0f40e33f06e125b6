"""Compression of stored article texts (setting ``store_texts``): zlib over UTF-8."""

from __future__ import annotations

import zlib

_LEVEL = 6


def compress_text(text: str) -> bytes:
    """The stored form of a text; lone surrogates are allowed."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"), _LEVEL)


def decompress_text(data: bytes) -> str:
    """The text of its stored form."""
    return zlib.decompress(data).decode("utf-8", "surrogatepass")
