"""Who is let in next: one of each caller in turn."""

import asyncio
import itertools

from aggregator.concurrency.fair_semaphore import FairSemaphore, current_caller


async def entered(places: FairSemaphore, order: list[str], caller: str, name: str, go: asyncio.Event) -> None:
    """Note the name when it is let in; stay until ``go``."""
    current_caller.set(caller)
    async with places.slot():
        order.append(name)
        await go.wait()


async def settled() -> None:
    """Whatever can go on has gone on."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_callers_take_turns() -> None:
    """Three of one caller came first; the others do not wait for all of them."""
    places, order, go = FairSemaphore(1), list[str](), asyncio.Event()
    coming = [("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1"), ("c", "c1"), ("b", "b2")]
    tasks = [asyncio.create_task(entered(places, order, *one, go)) for one in coming]
    await settled()
    assert (order, places.queued("a"), places.queued("b"), places.queued("z")) == (["a1"], 2, 2, 0)
    go.set()
    await asyncio.gather(*tasks)

    assert order == ["a1", "b1", "c1", "a2", "b2", "a3"]


async def test_who_goes_away_leaves_no_place_taken() -> None:
    """While waiting, at the moment of being let in, and inside, in any order."""
    names = ("a", "b", "c", "d")
    for going in itertools.permutations(range(3)):
        places, order, go = FairSemaphore(1), list[str](), asyncio.Event()
        tasks = [asyncio.create_task(entered(places, order, name, name, go)) for name in names]
        await settled()
        for which in going:
            tasks[which].cancel()
            if which == 0:
                await asyncio.sleep(0)  # it has left, and whoever follows has not heard of it
        go.set()
        await asyncio.gather(*tasks, return_exceptions=True)

        assert order[0] == "a" and order[-1] == "d"
        assert not any(places.queued(name) for name in names)
        async with asyncio.timeout(30), places.slot():
            pass


async def test_as_many_as_there_are_places() -> None:
    """No more at once, and all of them in the end."""
    places, order, go = FairSemaphore(2), list[str](), asyncio.Event()
    tasks = [asyncio.create_task(entered(places, order, "a", str(i), go)) for i in range(5)]
    await settled()
    assert order == ["0", "1"]
    go.set()
    await asyncio.gather(*tasks)
    assert order == ["0", "1", "2", "3", "4"]
