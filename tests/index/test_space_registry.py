"""The list of spaces: copies that count, and concurrent changes."""

from __future__ import annotations

import asyncio

from aggregator.index import keys, space_registry
from aggregator.index.space_registry import StoredSpace, covered_spaces, set_copied
from aggregator.store.base import Put, Store

OLD, MIDDLE, NEW = "en.0001", "en.0002", "en.0003"


async def register(store: Store, *spaces: str) -> None:
    """Add spaces of which nothing is known."""

    def edit(registry: space_registry.Registry) -> space_registry.Registry:
        return registry | {space: StoredSpace() for space in spaces}

    await space_registry.change(store, edit)


async def covered(store: Store, *read: str) -> set[str]:
    """The covered spaces."""
    return await covered_spaces(store, await space_registry.read(store), read)


async def test_a_space_is_covered_while_its_copies_are(store: Store) -> None:
    """Copies of copies count; two spaces that are copies of each other alone do not."""
    await register(store, OLD, MIDDLE, NEW)
    assert await covered(store, NEW) == {NEW}

    await set_copied(store, {OLD: b""}, [MIDDLE])
    assert await covered(store, NEW) == {NEW}
    await set_copied(store, {MIDDLE: b""}, [OLD])
    assert await covered(store, NEW) == {NEW}, "a cycle"
    await set_copied(store, {MIDDLE: b""}, [NEW])
    assert await covered(store, NEW) == {OLD, MIDDLE, NEW}

    await space_registry.forget(store, MIDDLE)
    assert await covered(store, NEW) == {NEW}


async def test_a_copy_no_longer_counts_once_the_space_is_written(store: Store) -> None:
    """An older version of the program may still be serving it."""
    version = keys.version(keys.tag(OLD, 0))
    await store.put([Put(version, b"first")])
    await register(store, OLD, NEW)
    await set_copied(store, {OLD: await space_registry.space_version(store, OLD)}, [NEW])
    assert await covered(store, NEW) == {OLD, NEW}

    await store.put([Put(version, b"second")])
    assert await covered(store, NEW) == {NEW}


async def test_concurrent_changes_are_all_kept(store: Store) -> None:
    """The list is one value."""
    await asyncio.gather(*(register(store, f"en.{n:04x}") for n in range(8)))
    assert len(await space_registry.read(store)) == 8
