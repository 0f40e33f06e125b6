"""Decoding of stored values; a damaged value raises DamagedValue with a remedy, is logged and counted.

Most values start with a format byte, and some also end with a checksum: an XXH32 of what precedes it. Its
seed is what the value's key says, so that a value under the key of another one is damaged too.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec
import xxhash

from aggregator.errors import DamagedValue, StoreUnavailable
from aggregator.log_limits import LogThrottle

LOG_INTERVAL_S = 10.0
PLAIN = b"\x01"
CHECKSUMMED = b"\x04"
CHECKSUM_BYTES = 4
_SEED_MASK = 0xFFFF_FFFF

log = logging.getLogger("aggregator.store")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Decoder(Protocol[T_co]):
    """A msgspec decoder, for MessagePack or JSON."""

    def decode(self, buf: bytes, /) -> T_co:
        """The decoded value; raises MsgspecError."""


@dataclass(slots=True)
class DamageCounter:
    """Number of times that this process met a damaged value."""

    values: int = 0


damage = DamageCounter()
_throttle = LogThrottle(LOG_INTERVAL_S)


def decode_value(decoder: Decoder[T], data: bytes, kind_name: str) -> T:
    """Decode ``data``. Raises DamagedValue that names ``kind_name`` ("A record") if it is damaged."""
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise corrupt_error(kind_name, error) from error


def decode_formatted(decoder: Decoder[T], data: bytes, kind_name: str, format_byte: bytes = PLAIN) -> T:
    """Decode what follows the format byte (b"": there is none). Raises StoreUnavailable."""
    if not data.startswith(format_byte):
        raise _format_error(data, format_byte, kind_name)
    return decode_value(decoder, data[len(format_byte) :], kind_name)


def append_checksum(payload: bytes, seed: int = 0) -> bytes:
    """The value of ``payload``: format byte, payload, checksum. ``seed``: its lowest 32 bits are used."""
    data = CHECKSUMMED + payload
    return data + xxhash.xxh32_intdigest(data, seed & _SEED_MASK).to_bytes(CHECKSUM_BYTES, "little")


def decode_checked(decoder: Decoder[T], data: bytes, kind_name: str, seed: int = 0) -> T:
    """Decode a value with a checksum; as ``decode_formatted``."""
    if not data.startswith(CHECKSUMMED):
        raise _format_error(data, CHECKSUMMED, kind_name)
    end = len(data) - CHECKSUM_BYTES
    if xxhash.xxh32_intdigest(data[:end], seed & _SEED_MASK) != int.from_bytes(data[end:], "little"):
        raise corrupt_error(kind_name, "its checksum does not match")
    return decode_value(decoder, data[1:end], kind_name)


def _format_error(data: bytes, expected: bytes, kind_name: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"{kind_name} in the store has format {data[:1].hex() or 'none'}, this version reads "
        f"{expected.hex()}: run the version that wrote it, or migrate."
    )


def corrupt_error(kind_name: str, reason: object) -> DamagedValue:
    """The error for a damaged value of this kind; it is counted, and logged at most every LOG_INTERVAL_S."""
    error = DamagedValue(f"{kind_name} in the store is damaged ({reason}): run `aggregator doctor --audit`.")
    damage.values += 1
    if _throttle.admit() is not None:
        log.error("%s", error)
    return error
