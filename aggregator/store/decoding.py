"""Decoding of stored values; a damaged value raises StoreUnavailable with a remedy."""

from __future__ import annotations

from typing import Protocol, TypeVar

import msgspec

from aggregator.errors import StoreUnavailable

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Decoder(Protocol[T_co]):
    """A msgspec decoder, for MessagePack or JSON."""

    def decode(self, buf: bytes, /) -> T_co:
        """The decoded value; raises MsgspecError."""


def decode_value(decoder: Decoder[T], data: bytes, kind_name: str) -> T:
    """Decode ``data``. Raises StoreUnavailable that names ``kind_name`` ("A record") if it is damaged."""
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise corrupt_error(kind_name, error) from error


def corrupt_error(kind_name: str, reason: object) -> StoreUnavailable:
    """The error for a damaged value of the kind ``kind_name``; ``reason`` is the decoder's message."""
    return StoreUnavailable(f"{kind_name} in the store is damaged ({reason}): run `aggregator doctor`.")
