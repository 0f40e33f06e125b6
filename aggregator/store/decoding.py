"""Bytes of the store as values. Damage is one clear error, whichever value it is in."""

from __future__ import annotations

from typing import Protocol, TypeVar

import msgspec

from aggregator.errors import StoreUnavailable

T = TypeVar("T", covariant=True)


class Decoder(Protocol[T]):
    """Those of msgspec, for MessagePack and JSON."""

    def decode(self, buf: bytes, /) -> T: ...


def value_of(decoder: Decoder[T], data: bytes, noun: str) -> T:
    """What ``data`` says. Raises StoreUnavailable, which names ``noun`` ("A record"), when it is damaged."""
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise damaged(noun, error) from error


def damaged(noun: str, why: object) -> StoreUnavailable:
    """The error that says so."""
    return StoreUnavailable(f"{noun} in the store is damaged ({why}): run `aggregator doctor`.")
