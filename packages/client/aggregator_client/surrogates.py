"""Halves of surrogate pairs: what programs that count in UTF-16 leave where they cut in an emoji. Pure.

They are no characters and cannot be written as UTF-8; each is replaced by U+FFFD, and a whole pair by its
character.
"""

from __future__ import annotations

import re

# Escapes in JSON; group 1: those that are not half of a pair.
_ESCAPES = re.compile(
    rb"(\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[dD][0-7]|u[^dD]|[^u]))"
    rb"|\\u[dD][89a-fA-F][\da-fA-F]{2}"
)


def whole_text(text: str) -> str:
    """The text without halves."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def whole_json(data: bytes) -> bytes:
    """The JSON without halves, as escapes or as bytes; ``data`` itself if it is not in UTF-8 otherwise."""
    try:
        text = _ESCAPES.sub(lambda match: match[1] or rb"\ufffd", data).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data
    return whole_text(text).encode()
