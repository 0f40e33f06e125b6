"""Preparing what comes next while what came before is answered."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from aggregator.http.prefetch import MAX_PREFETCHED_CHUNKS, Prefetcher


async def _given(*parts: Sequence[int]) -> AsyncIterator[Sequence[int]]:
    for part in parts:
        yield part


async def _total(chunk: Sequence[int]) -> list[int]:
    await asyncio.sleep(0)
    return list(chunk)


async def test_chunks_come_in_order_whatever_their_preparation_takes() -> None:
    """Cut to size, a rest by itself."""
    turns = {1: 5, 3: 1, 5: 3, 6: 0}

    async def prepare(chunk: Sequence[int]) -> list[int]:
        for _ in range(turns[chunk[0]]):
            await asyncio.sleep(0)
        return list(chunk)

    ahead = Prefetcher(_given([1, 2, 3, 4, 5], [6]), 2, prepare)

    assert [chunk async for chunk in ahead] == [[1, 2], [3, 4], [5], [6]]


async def test_no_more_is_read_than_a_few_chunks_ahead() -> None:
    """Who takes nothing makes the reading stand still."""
    begun: list[int] = []

    async def prepare(chunk: Sequence[int]) -> list[int]:
        begun.extend(chunk)
        return list(chunk)

    ahead = Prefetcher(_given(*([i] for i in range(20))), 1, prepare)
    for _ in range(100):
        await asyncio.sleep(0)
    stood_at = len(begun)
    first = await anext(ahead)
    await ahead.close()

    assert (stood_at, first) == (MAX_PREFETCHED_CHUNKS + 1, [0])


async def test_what_is_prepared_already_is_at_hand() -> None:
    """In order, up to the first that is not; that one, and the end, come when they are ready."""
    slow = asyncio.Event()

    async def prepare(chunk: Sequence[int]) -> list[int]:
        if chunk[0] == 3:
            await slow.wait()
        return list(chunk)

    ahead = Prefetcher(_given([0, 1, 2, 3, 4]), 1, prepare)
    first = await anext(ahead)
    for _ in range(20):
        await asyncio.sleep(0)

    assert first == [0] and ahead.take_ready() == [[1], [2]] and ahead.take_ready() == []
    slow.set()
    assert [await anext(ahead), *ahead.take_ready()] == [[3], [4]]
    assert ahead.take_ready() == [] and [chunk async for chunk in ahead] == []


async def test_a_failure_of_the_source_comes_behind_what_came_before_it() -> None:
    """Nothing that was read is lost."""

    async def failing() -> AsyncIterator[Sequence[int]]:
        yield [1]
        raise ConnectionResetError("the caller is gone")

    ahead = Prefetcher(failing(), 2, _total)

    assert await anext(ahead) == [1]
    with pytest.raises(ConnectionResetError):
        await anext(ahead)
    await ahead.close()


async def test_closing_ends_what_is_under_way() -> None:
    """The source that never ends, and preparations that do not either."""
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

    ahead = Prefetcher(endless(), 1, prepare)
    for _ in range(10):
        await asyncio.sleep(0)
    await ahead.close()
    await ahead.close()

    assert sorted(ended) == ["preparation", "source"]
