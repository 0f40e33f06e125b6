"""Small mappings under one key, on every kind of store."""

import asyncio

import msgspec
import pytest

from aggregator.errors import Conflict, NotFound
from aggregator.store.versioned_map import VersionedMap


class Note(msgspec.Struct, frozen=True):
    """Something small."""

    text: str = ""
    count: int = 0


@pytest.fixture
def shelf(store):
    """An empty shelf for four notes."""
    return VersionedMap(store, b"{notes}all", Note, "note", 4)


async def test_put_get_change_remove(shelf):
    """In the order of being put there."""
    await shelf.add("b", Note("first"))
    await shelf.add("a", Note("second"))
    changed = await shelf.update("b", lambda note: Note(note.text, 7))

    assert await shelf.get("b") == changed == Note("first", 7)
    assert list(await shelf.all()) == ["b", "a"]
    await shelf.remove("b")
    assert list(await shelf.all()) == ["a"]


async def test_unknown_and_full(shelf):
    """Said with the name of the thing."""
    for call in (shelf.get("x"), shelf.remove("x"), shelf.update("x", lambda n: n)):
        with pytest.raises(NotFound, match="no note 'x'"):
            await call
    for i in range(4):
        await shelf.add(str(i), Note())
    with pytest.raises(Conflict, match="4 of the kind note"):
        await shelf.add("4", Note())
    await shelf.add("3", Note("replaced"))


async def test_nobody_overwrites_anybody(shelf):
    """Ten at once, each counts."""
    await shelf.add("n", Note())
    await asyncio.gather(*(shelf.update("n", lambda note: Note("", note.count + 1)) for _ in range(10)))

    assert (await shelf.get("n")).count == 10
