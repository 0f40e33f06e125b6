"""Scan of one block: every value once and in order, over several reads."""

import pytest

from aggregator.index import keys
from aggregator.index.bucket_scan import KEYS_PER_READ, scan_block
from aggregator.store.base import Put, Store
from tests.index.helpers import TAG

WIDTH = 12  # four reads
FILLED = {0: b"first", KEYS_PER_READ - 1: b"end", KEYS_PER_READ: b"start", (1 << WIDTH) - 1: b"last"}


@pytest.mark.parametrize("step", [1, 3, 1 << WIDTH])
async def test_every_nth_value_is_read_with_its_bucket(store: Store, step: int) -> None:
    """Absent buckets are empty; buckets of other blocks are not mixed in."""
    await store.put([Put(keys.block_bucket(TAG, 2, value), bucket) for value, bucket in FILLED.items()])
    await store.put([Put(keys.block_bucket(TAG, 1, 3), b"another block")])

    scanned = [pair async for pair in scan_block(store, TAG, 2, WIDTH, step)]

    assert scanned == [(value, FILLED.get(value, b"")) for value in range(0, 1 << WIDTH, step)]
