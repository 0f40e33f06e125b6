"""Stored values that start with a format byte, and those that also end with a checksum.

The checksum is an XXH32 of what precedes it. Its seed is what the value's key says, so that a value under the
key of another one is damaged too.
"""

from __future__ import annotations

from typing import TypeVar

import xxhash

from aggregator.errors import StoreUnavailable
from aggregator.store.decoding import Decoder, corrupt_error, decode_value

PLAIN = b"\x01"
CHECKSUMMED = b"\x04"
CHECKSUM_BYTES = 4
_SEED_MASK = 0xFFFF_FFFF
T = TypeVar("T")


def decode_formatted(decoder: Decoder[T], data: bytes, kind_name: str) -> T:
    """Decode what follows the format byte; errors name the value ``kind_name``. Raises StoreUnavailable."""
    _check_format(data, PLAIN, kind_name)
    return decode_value(decoder, data[1:], kind_name)


def append_checksum(payload: bytes, seed: int = 0) -> bytes:
    """The value of ``payload``: format byte, payload, checksum. ``seed``: its lowest 32 bits are used."""
    data = CHECKSUMMED + payload
    return data + xxhash.xxh32_intdigest(data, seed & _SEED_MASK).to_bytes(CHECKSUM_BYTES, "little")


def decode_checked(decoder: Decoder[T], data: bytes, kind_name: str, seed: int = 0) -> T:
    """Decode a value with a checksum; as ``decode_formatted``."""
    _check_format(data, CHECKSUMMED, kind_name)
    end = len(data) - CHECKSUM_BYTES
    if xxhash.xxh32_intdigest(data[:end], seed & _SEED_MASK) != int.from_bytes(data[end:], "little"):
        raise corrupt_error(kind_name, "its checksum does not match")
    return decode_value(decoder, data[1:end], kind_name)


def _check_format(data: bytes, expected: bytes, kind_name: str) -> None:
    if data[:1] != expected:
        raise StoreUnavailable(
            f"{kind_name} in the store has format {data[:1].hex() or 'none'}, this version reads "
            f"{expected.hex()}: run the version that wrote it, or reindex."
        )
