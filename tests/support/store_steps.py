"""Checks and writes of one key, for tests of stores."""

from __future__ import annotations

from aggregator.store.base import AppendMany, LengthsUnchanged


def append(key: bytes, value: bytes) -> AppendMany:
    """Append ``value`` to ``key``."""
    return AppendMany((key,), (value,))


def length_equals(key: bytes, length: int) -> LengthsUnchanged:
    """Holds if ``key`` is ``length`` bytes long (0: absent)."""
    return LengthsUnchanged((key,), (bytes(length),))
