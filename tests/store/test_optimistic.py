"""Optimistic concurrency control: bounded retries, and edits of one stored value on every kind of store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.errors import CommitConflict, Conflict, DamagedValue, NotFound, StoreUnavailable
from aggregator.store.base import Put, Store, Transaction
from aggregator.store.memory import MemoryStore
from aggregator.store.optimistic import StoredValue, ValueFormat, VersionedMap, commit_attempts

KEY = b"{list}"
Numbers = tuple[int, ...]
FORMAT = ValueFormat(msgspec.msgpack.Decoder(Numbers), "The list of numbers", tuple, b"\x07")


class InterleavedStore(MemoryStore):
    """A memory store whose operations first let other tasks run, as often as ``pauses`` say in turn."""

    def __init__(self, pauses: Sequence[int]) -> None:
        super().__init__()
        self._pauses = list(pauses)

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Values after a pause."""
        await self._pause()
        return await super().read(keys)

    async def commit(self, transaction: Transaction) -> tuple[int, ...]:
        """Apply after a pause."""
        await self._pause()
        return await super().commit(transaction)

    async def _pause(self) -> None:
        for _ in range(self._pauses.pop() if self._pauses else 0):
            await asyncio.sleep(0)


def test_attempts_are_numbered_until_the_loop_body_returns() -> None:
    """A body that succeeds leaves the loop, and nothing is raised."""
    seen = []
    for attempt in commit_attempts("Conflict.", limit=5):
        seen.append(attempt)
        if attempt == 2:
            break

    assert seen == [0, 1, 2]


def test_the_last_failed_attempt_raises_a_conflict() -> None:
    """After ``limit`` attempts the caller gets the given sentence."""
    attempts = []
    with pytest.raises(CommitConflict, match="changed too often"):
        for attempt in commit_attempts("It changed too often.", limit=3):
            attempts.append(attempt)

    assert attempts == [0, 1, 2]


async def test_an_edit_replaces_the_value_and_returns_it(store: Store) -> None:
    """An absent value reads as the default; the stored form begins with the version byte."""
    value = StoredValue(store, KEY, FORMAT)

    assert await value.read() == ()
    assert await value.edit(lambda numbers: (*numbers, 3)) == (3,)
    assert await value.edit_with_result(lambda numbers: ((*numbers, 4), "done")) == "done"
    assert await value.read() == (3, 4)
    assert (await store.read([KEY]))[0] == b"\x07" + msgspec.msgpack.encode((3, 4))


async def test_an_equal_value_is_not_written(store: Store) -> None:
    """Also not in place of an absent one."""
    value = StoredValue(store, KEY, FORMAT)
    await value.edit(lambda numbers: numbers)

    assert await store.read([KEY]) == [None]


async def test_a_value_expires_after_the_time_to_live_that_it_asks_for() -> None:
    """The time is that of the value that was written last."""
    now_ms = 1_000
    store = MemoryStore(lambda: now_ms)
    value = StoredValue(store, KEY, FORMAT, lambda numbers: 100 * len(numbers))
    await value.edit(lambda _: (1,))
    await value.edit(lambda numbers: (*numbers, 2))
    now_ms += 199
    assert await value.read() == (1, 2)
    now_ms += 1

    assert await value.read() == ()


async def test_replace_applies_further_writes_only_with_the_value(store: Store) -> None:
    """It fails once the value is another one than the one read."""
    value = StoredValue(store, KEY, FORMAT)
    raw, _ = await value.read_with_raw()

    assert await value.replace(raw, (1,), [Put(b"{list}log", b"first")])
    assert not await value.replace(raw, (2,), [Put(b"{list}log", b"second")])
    assert await store.read([b"{list}log"]) == [b"first"]
    assert await value.read() == (1,)


async def test_a_value_that_keeps_changing_is_a_conflict(store: Store) -> None:
    """The sentence names the kind of value; the edit was tried as often as allowed."""
    value, other = StoredValue(store, KEY, FORMAT), StoredValue(store, KEY, FORMAT)
    calls: list[Numbers] = []

    class Overtaken(StoredValue[Numbers]):
        async def read_with_raw(self) -> tuple[bytes | None, Numbers]:
            found = await super().read_with_raw()
            await other.edit(lambda numbers: (*numbers, len(numbers)))
            return found

    def change(numbers: Numbers) -> tuple[Numbers, None]:
        calls.append(numbers)
        return (*numbers, 99), None

    with pytest.raises(CommitConflict, match="The list of numbers kept changing; try again"):
        await Overtaken(store, KEY, FORMAT).edit_with_result(change, attempts=3)

    assert calls == [(), (0,), (0, 1)]
    assert await value.read() == (0, 1, 2)


async def test_damaged_values_and_other_versions_are_reported(store: Store) -> None:
    """With the kind of value; an edit changes neither."""
    value = StoredValue(store, KEY, FORMAT)
    for stored, error, match in (
        (b"\x07\xc1", DamagedValue, "The list of numbers in the store is damaged"),
        (
            b"\x08\x90",
            StoreUnavailable,
            "The list of numbers in the store has format 08, this version reads 07",
        ),
        (b"", StoreUnavailable, "has format none"),
    ):
        await store.put([Put(KEY, stored)])
        with pytest.raises(error, match=match):
            await value.edit(lambda _: (1,))
        assert await store.read([KEY]) == [stored]


async def test_concurrent_edits_are_never_lost(store: Store) -> None:
    """Ten editors of one value, each with its own object as in ten processes."""
    editors = [StoredValue(store, KEY, FORMAT) for _ in range(10)]
    await asyncio.gather(*(e.edit(lambda v, i=i: (*v, i)) for i, e in enumerate(editors)))  # type: ignore[misc]

    assert sorted(await editors[0].read()) == list(range(10))


@given(st.lists(st.integers(0, 5), max_size=120), st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_any_interleaving_equals_some_order_of_the_edits(pauses: list[int], counts: list[int]) -> None:
    """Each editor's entries are in its order, all are there, and each result is what was stored then."""

    async def edit_all() -> None:
        store = InterleavedStore(pauses)
        results: list[Numbers] = []

        async def editor(name: int, count: int) -> None:
            value = StoredValue(store, KEY, FORMAT)
            for i in range(count):
                results.append(await value.edit(lambda v, entry=10 * name + i: (*v, entry)))  # type: ignore[misc]

        await asyncio.gather(*(editor(name, count) for name, count in enumerate(counts)))
        final = await StoredValue(store, KEY, FORMAT).read()

        assert len(final) == len(results) == sum(counts)
        assert all(result == final[: len(result)] for result in results)
        for name, count in enumerate(counts):
            assert [n for n in final if n // 10 == name] == [10 * name + i for i in range(count)]

    asyncio.run(edit_all())


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
    await add_note(notes, "b", "first")
    await add_note(notes, "a", "second")
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
        await add_note(notes, str(i), str(i))
    with pytest.raises(Conflict, match="4 of the kind note"):
        await add_note(notes, "4", "4")


async def test_concurrent_updates_are_never_lost(notes: VersionedMap[Note]) -> None:
    """Ten concurrent increments add up to ten."""
    await add_note(notes, "n", "")
    await asyncio.gather(*(notes.update("n", lambda note: Note("", note.count + 1)) for _ in range(10)))

    assert (await notes.get("n")).count == 10
