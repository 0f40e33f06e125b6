"""Reads all buckets of one block of a segment, for statistics and recall checks."""

from __future__ import annotations

from collections.abc import AsyncIterator

from aggregator.index import keys
from aggregator.store.base import Store

KEYS_PER_READ = 1024


async def scan_block(
    store: Store, tag: bytes, block: int, width: int, step: int = 1
) -> AsyncIterator[tuple[int, bytes]]:
    """Every ``step``-th block value of ``width`` bits and its bucket; b"" if the bucket is absent."""
    values = range(0, 1 << width, step)
    for start in range(0, len(values), KEYS_PER_READ):
        chunk = values[start : start + KEYS_PER_READ]
        buckets = await store.read([keys.block_bucket(tag, block, value) for value in chunk])
        for value, bucket in zip(chunk, buckets, strict=True):
            yield value, bucket or b""
