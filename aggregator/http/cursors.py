"""Opaque pagination cursors: the sort key of a page's last entry, base64-encoded. Pure.

A cursor of another order than that of time begins with the name of its order and a dot.
"""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, TypeVar

import msgspec

from aggregator.errors import InvalidInput
from aggregator.events.event_order import EventOrder, PageKey
from aggregator.queries.search import ResultKey

Key = TypeVar("Key")
Unsigned = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]

_event_keys: msgspec.json.Decoder[PageKey] = msgspec.json.Decoder(PageKey)
_result_keys: msgspec.json.Decoder[ResultKey] = msgspec.json.Decoder(tuple[Unsigned, Unsigned])


def encode_cursor(page_key: PageKey | ResultKey, order: EventOrder = "time") -> str:
    """The cursor of the page after ``page_key``."""
    encoded = base64.urlsafe_b64encode(msgspec.json.encode(page_key)).rstrip(b"=").decode()
    return encoded if order == "time" else f"{order}.{encoded}"


def decode_cursor(cursor: str, order: EventOrder = "time") -> PageKey:
    """The sort key of a cursor of events. Raises InvalidInput, also for a cursor of another order."""
    named, dot, encoded = cursor.rpartition(".")
    if (dot and named != order) or (not dot and order != "time"):
        raise InvalidInput(
            f"cursor: it belongs to another order than sort={order}; repeat `sort` with each page.",
            field="cursor",
        )
    return _decode(_event_keys, encoded)


def decode_result_cursor(cursor: str) -> ResultKey:
    """The sort key of a cursor of a search. Raises InvalidInput."""
    return _decode(_result_keys, cursor)


def _decode(keys: msgspec.json.Decoder[Key], cursor: str) -> Key:
    try:
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        return keys.decode(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, msgspec.MsgspecError, UnicodeError, ValueError):
        raise InvalidInput(
            "cursor: invalid cursor; use `next` of the previous page.", field="cursor"
        ) from None
