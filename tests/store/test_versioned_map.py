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


def add_note(notes: VersionedMap[Note], id_: str, text: str, owner: str = "") -> Awaitable[tuple[Note, bool]]:
    """Add a note, whose count encodes its owner, unless one with this text exists."""
    return notes.add_once(id_, Note(text, len(owner)), lambda a, b: a.text == b.text, lambda n: "x" * n.count)


async def test_a_repeated_insert_adds_one_entry(notes: VersionedMap[Note]) -> None:
    """Also when all repetitions arrive at the same moment; all of them get the one that is stored."""
    results = await asyncio.gather(*(add_note(notes, str(n), "same") for n in range(8)))

    assert [is_new for _, is_new in results].count(True) == 1
    assert len(await notes.all()) == 1
    assert {note for note, _ in results} == set(await notes.values())


async def test_one_owner_fills_half_of_a_map(notes: VersionedMap[Note]) -> None:
    """The next owner still gets in; a repetition is not counted; unknown owners share all."""
    for n in range(2):
        await add_note(notes, f"a{n}", f"a{n}", "x")
    with pytest.raises(
        Conflict, match=r"created 2 of the kind note, its share \(half of the limit of 4\); delete"
    ):
        await add_note(notes, "a2", "a2", "x")

    assert not (await add_note(notes, "a2", "a1", "x"))[1]
    assert (await add_note(notes, "b", "b", "xx"))[1]
    assert (await add_note(notes, "c", "c"))[1]
    with pytest.raises(Conflict, match="There are 4 of the kind note already, the limit"):
        await add_note(notes, "d", "d", "xxx")


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
