"""Optimistically locked map, on every kind of store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import msgspec
import pytest

from aggregator.errors import Conflict, NotFound
from aggregator.store.base import Store
from aggregator.store.versioned_map import VersionedMap


class Note(msgspec.Struct, frozen=True):
    """A small value."""

    text: str = ""
    count: int = 0


@pytest.fixture
def notes(store: Store) -> VersionedMap[Note]:
    """An empty map for four notes."""
    return VersionedMap(store, b"{notes}all", Note, "note", 4)


async def test_add_get_update_remove(notes: VersionedMap[Note]) -> None:
    """Entries keep their insertion order."""
    await notes.add("b", Note("first"))
    await notes.add("a", Note("second"))
    changed = await notes.update("b", lambda note: Note(note.text, 7))

    assert await notes.get("b") == changed == Note("first", 7)
    assert list(await notes.all()) == ["b", "a"]
    await notes.remove("b")
    assert list(await notes.all()) == ["a"]


async def test_unknown_id_and_full_map(notes: VersionedMap[Note]) -> None:
    """The errors name the kind of entry."""
    calls: list[Awaitable[object]] = [notes.get("x"), notes.remove("x"), notes.update("x", lambda n: n)]
    for call in calls:
        with pytest.raises(NotFound, match="no note 'x'"):
            await call
    for i in range(4):
        await notes.add(str(i), Note())
    with pytest.raises(Conflict, match="4 of the kind note"):
        await notes.add("4", Note())
    await notes.add("3", Note("replaced"))


async def test_concurrent_updates_are_never_lost(notes: VersionedMap[Note]) -> None:
    """Ten concurrent increments add up to ten."""
    await notes.add("n", Note())
    await asyncio.gather(*(notes.update("n", lambda note: Note("", note.count + 1)) for _ in range(10)))

    assert (await notes.get("n")).count == 10
