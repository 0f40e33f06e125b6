"""Bytes of the store as values. Damage is one clear error, whichever value it is in."""

from __future__ import annotations

from typing import Protocol, TypeVar

import msgspec

from aggregator.errors import StoreUnavailable

T = TypeVar("T", covariant=True)


class Decoder(Protocol[T]):
    """Those of msgspec, for MessagePack and JSON."""

    def decode(self, buf: bytes, /) -> T: ...


def decode_value(decoder: Decoder[T], data: bytes, kind_name: str) -> T:
    """What ``data`` says. Raises StoreUnavailable, which names ``noun`` ("A record"), when it is damaged."""
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise corrupt_error(kind_name, error) from error


def corrupt_error(kind_name: str, reason: object) -> StoreUnavailable:
    """The error that says so."""
    return StoreUnavailable(f"{kind_name} in the store is damaged ({reason}): run `aggregator doctor`.")
