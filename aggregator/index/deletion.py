"""Deletion of a whole space: segments, records, texts that no other space needs, and its registry entry."""

from __future__ import annotations

from aggregator.index import keys, space_registry
from aggregator.store.base import Store


async def delete_space(store: Store, space: str) -> int:
    """Delete a space that no service reads; the number of keys. Scans the store; may be repeated."""
    others = sorted((await space_registry.read(store)).keys() - {space})
    deleted = 0
    prefix = keys.record_prefix(space)
    async for found in store.scan_batches(prefix):
        numbers = [int(key[len(prefix) :], 16) for key in found]
        shared = await store.read([keys.record(other, number) for number in numbers for other in others])
        texts = [
            keys.text(number)
            for i, number in enumerate(numbers)
            if not any(shared[i * len(others) : (i + 1) * len(others)])
        ]
        await store.delete([*texts, *found])
        deleted += len(found)
    async for found in store.scan_batches(keys.space_prefix(space)):
        await store.delete(found)
        deleted += len(found)
    await store.delete([keys.space_head(space), keys.compaction_cursor(space)])
    await space_registry.forget(store, space)
    return deleted
