"""Stored values that start with a format byte."""

from __future__ import annotations

from typing import TypeVar

from aggregator.errors import StoreUnavailable
from aggregator.store.decoding import Decoder, decode_value

FORMAT_1 = b"\x01"
FORMAT_2 = b"\x02"
FORMAT_3 = b"\x03"
T = TypeVar("T")


def decode_formatted(decoder: Decoder[T], data: bytes, kind_name: str, format_byte: bytes = FORMAT_1) -> T:
    """Decode what follows the format byte. ``kind_name`` names the value in errors, e.g. "A record".

    Raises StoreUnavailable if the value is damaged or has another format.
    """
    if data[:1] != format_byte:
        raise StoreUnavailable(
            f"{kind_name} in the store has format {data[:1].hex() or 'none'}, this version reads "
            f"{format_byte.hex()}: run the version that wrote it, or reindex."
        )
    return decode_value(decoder, data[1:], kind_name)
