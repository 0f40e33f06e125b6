"""Memory store: expiry by its clock and accounting of memory. The rest is in test_contract.py."""

from __future__ import annotations

from aggregator.store.base import Put, StreamAdd, Transaction, parse_position
from aggregator.store.memory import MemoryStore
from aggregator.store.periodic_task import Lease
from tests.support.store_steps import append


class Clock:
    """A manual clock."""

    def __init__(self) -> None:
        self.now_ms = 1_000

    def __call__(self) -> int:
        return self.now_ms


async def test_a_value_expires_exactly_at_its_time_to_live() -> None:
    """Put at 1000 ms with 50 ms to live: present at 1049 ms, absent at 1050 ms."""
    clock = Clock()
    store = MemoryStore(clock)
    await store.put([Put(b"a", b"x", 50)])

    clock.now_ms = 1_049
    assert await store.read([b"a"]) == [b"x"]
    clock.now_ms = 1_050
    assert await store.read([b"a"]) == [None]


async def test_append_keeps_and_put_replaces_the_time_to_live() -> None:
    """Append does not change the expiry of a key; a second Put replaces it."""
    clock = Clock()
    store = MemoryStore(clock)
    await store.put([Put(b"grown", b"x", 50), Put(b"longer", b"x", 50), Put(b"shorter", b"x", 50)])
    await store.commit(Transaction((), (append(b"grown", b"y"),)))
    await store.put([Put(b"longer", b"y", 500), Put(b"shorter", b"y", 5)])

    clock.now_ms = 1_010
    assert await store.read([b"grown", b"longer", b"shorter"]) == [b"xy", b"y", None]
    clock.now_ms = 1_060
    assert await store.read([b"grown", b"longer"]) == [None, b"y"]


async def test_a_lease_expires_by_the_clock() -> None:
    """Acquired at 1000 ms for 100 ms and renewed at 1090 ms: free for another replica at 1190 ms."""
    clock = Clock()
    store = MemoryStore(clock)
    first, second = Lease(store, b"l", 100), Lease(store, b"l", 100)
    assert await first.acquire()
    clock.now_ms = 1_090
    assert await first.acquire()

    clock.now_ms = 1_189
    assert not await second.acquire()
    clock.now_ms = 1_190
    assert await second.acquire()


async def test_positions_increase_when_the_clock_is_set_back() -> None:
    """Positions are ms-sequence and never repeat."""
    clock = Clock()
    store = MemoryStore(clock)
    add = Transaction((), (StreamAdd(b"s", b""),))
    await store.commit(add)
    await store.commit(add)
    clock.now_ms = 900
    await store.commit(add)
    clock.now_ms = 2_000
    await store.commit(add)

    (entries,) = await store.stream_read([b"s"], [b""], 9)

    assert [position for position, _ in entries] == [b"1000-0", b"1000-1", b"1000-2", b"2000-0"]


async def test_memory_is_counted_and_released() -> None:
    """After all keys are removed or expired the count is 0 bytes."""
    clock = Clock()
    store = MemoryStore(clock)
    await store.put([Put(b"a", b"12345", 10), Put(b"b", b"1")])
    await store.commit(Transaction((), (append(b"b", b"23"), StreamAdd(b"s", b"1234"))))
    assert (await store.info()).memory_bytes == 6 + 4 + 4

    clock.now_ms = 5_000
    await store.delete([b"b", b"s", b"none"])

    assert (await store.info()).memory_bytes == 0


def test_positions_compare_as_numbers() -> None:
    """Not as text: 9 is before 10."""
    assert (
        parse_position(b"9-0") < parse_position(b"10-0") < parse_position(b"10-2") < parse_position(b"10-10")
    )
    assert parse_position(b"") == (0, 0)
