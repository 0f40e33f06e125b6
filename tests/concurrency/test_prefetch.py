"""Prefetcher: order, bound, errors and shutdown."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from aggregator.concurrency.prefetch import MAX_PREFETCHED_CHUNKS, Prefetcher


async def _parts(*parts: Sequence[int]) -> AsyncIterator[Sequence[int]]:
    for part in parts:
        yield part


async def _total(chunk: Sequence[int]) -> list[int]:
    await asyncio.sleep(0)
    return list(chunk)


async def test_results_keep_the_order_of_the_chunks() -> None:
    """Chunks have the chunk size, the last one of a part may be smaller; preparation times do not matter."""
    yields_by_first_item = {1: 5, 3: 1, 5: 3, 6: 0}

    async def prepare(chunk: Sequence[int]) -> list[int]:
        for _ in range(yields_by_first_item[chunk[0]]):
            await asyncio.sleep(0)
        return list(chunk)

    prefetcher = Prefetcher(_parts([1, 2, 3, 4, 5], [6]), 2, prepare)

    assert [chunk async for chunk in prefetcher] == [[1, 2], [3, 4], [5], [6]]


async def test_reading_stops_when_the_prefetch_limit_is_reached() -> None:
    """A consumer that takes nothing stops the reading."""
    begun: list[int] = []

    async def prepare(chunk: Sequence[int]) -> list[int]:
        begun.extend(chunk)
        return list(chunk)

    prefetcher = Prefetcher(_parts(*([i] for i in range(20))), 1, prepare)
    for _ in range(100):
        await asyncio.sleep(0)
    begun_before_take = len(begun)
    first = await anext(prefetcher)
    await prefetcher.close()

    assert (begun_before_take, first) == (MAX_PREFETCHED_CHUNKS + 1, [0])


async def test_take_ready_returns_only_finished_results() -> None:
    """In order, up to the first unfinished one; that one and the end follow when they are ready."""
    slow = asyncio.Event()

    async def prepare(chunk: Sequence[int]) -> list[int]:
        if chunk[0] == 3:
            await slow.wait()
        return list(chunk)

    prefetcher = Prefetcher(_parts([0, 1, 2, 3, 4]), 1, prepare)
    first = await anext(prefetcher)
    for _ in range(20):
        await asyncio.sleep(0)

    assert first == [0] and prefetcher.take_ready() == [[1], [2]] and prefetcher.take_ready() == []
    slow.set()
    assert [await anext(prefetcher), *prefetcher.take_ready()] == [[3], [4]]
    assert prefetcher.take_ready() == [] and [chunk async for chunk in prefetcher] == []


async def test_a_source_error_is_raised_after_earlier_results() -> None:
    """No item that was read is lost."""

    async def failing() -> AsyncIterator[Sequence[int]]:
        yield [1]
        raise ConnectionResetError("connection lost")

    prefetcher = Prefetcher(failing(), 2, _total)

    assert await anext(prefetcher) == [1]
    with pytest.raises(ConnectionResetError):
        await anext(prefetcher)
    await prefetcher.close()


async def test_close_cancels_source_and_preparations() -> None:
    """An endless source and endless preparations; closing twice is harmless."""
    ended: list[str] = []

    async def endless() -> AsyncIterator[Sequence[int]]:
        try:
            yield [1]
            await asyncio.Event().wait()
        finally:
            ended.append("source")

    async def prepare(chunk: Sequence[int]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("preparation")

    prefetcher = Prefetcher(endless(), 1, prepare)
    for _ in range(10):
        await asyncio.sleep(0)
    await prefetcher.close()
    await prefetcher.close()

    assert sorted(ended) == ["preparation", "source"]
