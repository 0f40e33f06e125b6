"""Opaque pagination cursors: the sort key of a page's last event, base64-encoded. Pure."""

from __future__ import annotations

import base64
import binascii

import msgspec

from aggregator.errors import InvalidInput
from aggregator.events.repository import PageKey

_decode_page_key = msgspec.json.Decoder(PageKey).decode


def encode_cursor(page_key: PageKey) -> str:
    """The cursor of the page after ``page_key``."""
    return base64.urlsafe_b64encode(msgspec.json.encode(page_key)).rstrip(b"=").decode()


def decode_cursor(cursor: str) -> PageKey:
    """The sort key of a cursor. Raises InvalidInput."""
    try:
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        page_key: PageKey = _decode_page_key(base64.b64decode(padded, altchars=b"-_", validate=True))
        return page_key
    except (binascii.Error, msgspec.MsgspecError, UnicodeError, ValueError):
        raise InvalidInput(
            "cursor: invalid cursor; use `next` of the previous page.", field="cursor"
        ) from None
