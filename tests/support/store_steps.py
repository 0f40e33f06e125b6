"""Checks and writes of one key, and all keys of a prefix, for tests of stores."""

from __future__ import annotations

from aggregator.store.base import AppendMany, LengthsUnchanged, Store


def append(key: bytes, value: bytes) -> AppendMany:
    """Append ``value`` to ``key``."""
    return AppendMany((key,), (value,))


def length_equals(key: bytes, length: int) -> LengthsUnchanged:
    """Holds if ``key`` is ``length`` bytes long (0: absent)."""
    return LengthsUnchanged((key,), (bytes(length),))


async def scan(store: Store, prefix: bytes) -> list[bytes]:
    """All keys that start with ``prefix``, sorted."""
    return sorted({key async for found in store.scan_batches(prefix) for key in found})
