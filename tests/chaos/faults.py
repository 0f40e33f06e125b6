"""The faults, by name. Each happens to a site that is at work and returns when its cause is over."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable

from redis.exceptions import OutOfMemoryError

from tests.chaos.newsroom_site import REPLICAS, Site

LONGEST_STALL_S = 5.5  # more than the service waits for its store
CLOCK_MS = 40 * 60_000  # reports of one matter stay within the four hours of an event
HALF_A_COMMAND = b"*3\r\n$3\r\nSET\r\n$9\r\nchaos:tor"
TORN_BYTES = (1, 20_000)
Fault = Callable[[Site, int], Awaitable[None]]


async def kill_service(site: Site, turn: int) -> None:
    """SIGKILL of one replica; another process takes its place."""
    replica = site.rng.choice(site.replicas)
    await replica.end(signal.SIGKILL)
    await replica.start()


async def kill_store(site: Site, turn: int) -> None:
    """SIGKILL of the store, and its restart from its log."""
    await site.kill_store()
    site.store.restart_if_dead()


async def stall_store(site: Site, turn: int) -> None:
    """SIGSTOP, and SIGCONT after a moment; each tenth time after longer than the service waits."""
    assert site.store.pid is not None
    os.kill(site.store.pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(site.rng.uniform(0.2, 1.0) if turn % 10 else LONGEST_STALL_S)
    finally:
        os.kill(site.store.pid, signal.SIGCONT)


async def fill_store(site: Site, turn: int) -> None:
    """The store takes no more data: maxmemory far below what it has, noeviction."""
    await site.direct.config_set("maxmemory", "100kb")
    refused = False
    try:
        await site.direct.set("one more", "")
    except OutOfMemoryError:
        refused = True
    assert refused, "the store is not full"
    await asyncio.sleep(site.rng.uniform(0.2, 0.8))
    await site.direct.config_set("maxmemory", 0)


async def tear_log(site: Site, turn: int) -> None:
    """The store dies in the middle of a write: its log ends with half a command."""
    await site.kill_store()
    whole = HALF_A_COMMAND[: site.rng.randrange(1, len(HALF_A_COMMAND))]
    with site.newest_log().open("ab") as log:
        log.write(whole)
    site.store.restart_if_dead()


async def cut_connections(site: Site, turn: int) -> None:
    """All connections to the store end within an answer."""
    site.proxy.cut()
    await asyncio.sleep(0.2)


async def delay_answers(site: Site, turn: int) -> None:
    """All that goes to and from the store takes longer."""
    site.proxy.delay_s = site.rng.uniform(0.02, 0.3)
    await asyncio.sleep(0.8)
    site.proxy.delay_s = 0.0


async def answer_nonsense(site: Site, turn: int) -> None:
    """All connections answer something that is not the store's language, in the midst of an answer."""
    site.proxy.babble()
    await asyncio.sleep(0.2)


async def restart_in_rotation(site: Site, turn: int) -> None:
    """The next replica is told to stop, and started again."""
    replica = site.replicas[turn % REPLICAS]
    await replica.end(signal.SIGTERM)
    await replica.start()


async def move_clock(site: Site, turn: int) -> None:
    """The clock of each replica jumps, forwards or back; every other time both to the same time."""
    same_ms = site.rng.randrange(-CLOCK_MS, CLOCK_MS)
    for replica in site.replicas:
        replica.move_clock(site.rng.randrange(-CLOCK_MS, CLOCK_MS) if turn % 2 else same_ms)


async def lose_power(site: Site, turn: int) -> None:
    """The store dies, and the end of its log was never written: bytes of acknowledged articles are gone."""
    await site.kill_store()
    log = site.newest_log()
    os.truncate(log, max(0, log.stat().st_size - site.rng.randrange(*TORN_BYTES)))
    site.store.restart_if_dead()


FAULTS: dict[str, Fault] = {
    "service killed": kill_service,
    "store killed": kill_store,
    "store stalled": stall_store,
    "store full": fill_store,
    "log torn": tear_log,
    "connections cut": cut_connections,
    "answers delayed": delay_answers,
    "answers nonsense": answer_nonsense,
    "rotation": restart_in_rotation,
    "clock moved": move_clock,
}
POWER_LOSS: dict[str, Fault] = {"power lost": lose_power}
