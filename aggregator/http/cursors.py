"""Cursors of long lists: where a page ended, opaque to the caller. Pure."""

from __future__ import annotations

import base64
import binascii

import msgspec

from aggregator.errors import BadInput
from aggregator.events.repository import Place

_place = msgspec.json.Decoder(Place).decode


def encode(place: Place) -> str:
    """A place in the list of events as text for an address."""
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).rstrip(b"=").decode()


def decode(cursor: str) -> Place:
    """The place. Raises BadInput for what is no cursor of ours."""
    try:
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        place: Place = _place(base64.b64decode(padded, altchars=b"-_", validate=True))
        return place
    except (binascii.Error, msgspec.MsgspecError, UnicodeError, ValueError):
        raise BadInput(
            "cursor: it is none of this list; take `next` from the page before.", field="cursor"
        ) from None
