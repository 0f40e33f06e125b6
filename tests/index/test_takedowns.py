"""Marks of what was taken down: found by every process, lifted by id, without text or id in the store."""

from __future__ import annotations

import pytest

from aggregator.backup.restore import OWN_PREFIXES
from aggregator.errors import NotFound
from aggregator.index import Snapshot
from aggregator.index.takedowns import SECRET, Takedowns
from aggregator.store.base import Store
from aggregator.time_units import HOUR_MS
from tests.support.store_steps import scan

pytestmark = pytest.mark.integration

FERRY, MILL, OTHER = b"f" * 16, b"m" * 16, b"o" * 16


async def is_taken_down(store: Store, takedowns: Takedowns, *hashes: bytes) -> list[bool]:
    """What a lookup of these texts finds."""
    read = takedowns.keys_to_read(hashes)
    values = dict(zip(read, await store.read(read), strict=True))
    return await takedowns.find(Snapshot(values=values), hashes)


async def test_a_text_is_found_by_every_process_until_its_id_is_lifted(store: Store) -> None:
    """Also by one that began before the first take-down; a second one adds to the texts of an id."""
    own, other = Takedowns(store, None), Takedowns(store, None)
    assert await is_taken_down(store, other, FERRY, MILL) == [False, False]

    await own.add("ferry-1", [FERRY])
    await own.add("ferry-1", [MILL])

    for process in (own, other, Takedowns(store, None)):
        assert await is_taken_down(store, process, FERRY, OTHER, MILL) == [True, False, True]

    await other.lift("ferry-1")

    for process in (own, other):
        assert await is_taken_down(store, process, FERRY, MILL) == [False, False]
    for id_ in ("ferry-1", "never"):
        with pytest.raises(NotFound, match="is not taken down"):
            await own.lift(id_)


async def test_lookups_read_no_text_before_the_first_take_down(store: Store) -> None:
    """One key per batch, whatever its size."""
    takedowns = Takedowns(store, None)

    assert takedowns.keys_to_read([FERRY, MILL]) == [SECRET]
    await is_taken_down(store, takedowns, FERRY)
    assert takedowns.keys_to_read([FERRY, MILL]) == [SECRET]
    await takedowns.add("ferry-1", [FERRY])
    assert len(takedowns.keys_to_read([FERRY, MILL])) == 3


async def test_the_store_has_neither_id_nor_hash(store: Store) -> None:
    """And two installations have different hashes of one article."""
    takedowns = Takedowns(store, HOUR_MS)
    await takedowns.add("https://gazette.example/anna-muster", [FERRY])
    first = await scan(store, b"{takedowns}")
    stored = b" ".join([*first, *(value or b"" for value in await store.read(first))])
    assert not any(part in stored for part in (b"anna", FERRY, FERRY.hex().encode()))

    await store.delete(first)
    await Takedowns(store, HOUR_MS).add("https://gazette.example/anna-muster", [FERRY])

    assert set(first) & set(await scan(store, b"{takedowns}")) == {SECRET}
    # The process that knew the former key follows.
    assert await is_taken_down(store, takedowns, FERRY) == [True]


def test_backups_have_the_marks() -> None:
    """And a restore copies them with their times to live."""
    assert SECRET.startswith(OWN_PREFIXES)


async def test_marks_expire(store: Store) -> None:
    """With the retention of the index; the key of the hashes stays."""
    takedowns = Takedowns(store, 1)

    await takedowns.add("ferry-1", [FERRY])

    while await is_taken_down(store, takedowns, FERRY) == [True]:
        pass
    assert await scan(store, b"{takedowns}") == [SECRET]
