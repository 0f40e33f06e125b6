"""Decoding of stored values; a damaged value raises DamagedValue with a remedy, is logged and counted."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec

from aggregator.errors import DamagedValue
from aggregator.log_limits import LogThrottle

LOG_INTERVAL_S = 10.0

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


def corrupt_error(kind_name: str, reason: object) -> DamagedValue:
    """The error for a damaged value of the kind ``kind_name``; ``reason`` is the decoder's message.

    It is counted, and logged at most every LOG_INTERVAL_S.
    """
    error = DamagedValue(
        f"{kind_name} in the store is damaged ({reason}): run `aggregator doctor --audit 200`."
    )
    damage.values += 1
    if _throttle.admit() is not None:
        log.error("%s", error)
    return error
