"""Cursors of long lists: where a page ended, opaque to the caller. Pure."""

from __future__ import annotations

import base64
import binascii

import msgspec

from aggregator.errors import InvalidInput
from aggregator.events.repository import PageKey

_decode_page_key = msgspec.json.Decoder(PageKey).decode


def encode_cursor(page_key: PageKey) -> str:
    """A place in the list of events as text for an address."""
    return base64.urlsafe_b64encode(msgspec.json.encode(page_key)).rstrip(b"=").decode()


def decode_cursor(cursor: str) -> PageKey:
    """The place. Raises BadInput for what is no cursor of ours."""
    try:
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        place: PageKey = _decode_page_key(base64.b64decode(padded, altchars=b"-_", validate=True))
        return place
    except (binascii.Error, msgspec.MsgspecError, UnicodeError, ValueError):
        raise InvalidInput(
            "cursor: it is none of this list; take `next` from the page before.", field="cursor"
        ) from None
