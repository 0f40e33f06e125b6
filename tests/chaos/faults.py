"""Faults of two replicas by name (``replicas.py``). Each returns when its cause has ended."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Awaitable, Callable

from redis.exceptions import OutOfMemoryError

from aggregator.time_units import DAY_MS
from tests.chaos.replicas import REPLICAS, Replicas

LONGEST_STALL_S = 5.5  # more than the store time limit of the service
CLOCK_MS = 40 * 60_000  # reports of one topic stay within the 4 hours of an event
FAR_DAYS = (2, 20, 100, 400, 1200)
REPORT_TIMEOUT_S = 30.0
HALF_A_COMMAND = b"*3\r\n$3\r\nSET\r\n$9\r\nchaos:tor"
TORN_BYTES = (1, 20_000)
Fault = Callable[[Replicas, int], Awaitable[None]]


async def kill_service(deployment: Replicas, turn: int) -> None:
    """SIGKILL of one replica, and its restart."""
    replica = deployment.rng.choice(deployment.replicas)
    await replica.end(signal.SIGKILL)
    await replica.start()


async def kill_store(deployment: Replicas, turn: int) -> None:
    """SIGKILL of the store, and its restart from its log."""
    await deployment.kill_store()
    deployment.store.restart_if_dead()


async def stall_store(deployment: Replicas, turn: int) -> None:
    """SIGSTOP, then SIGCONT after up to 1 s; every tenth time after more than the store time limit."""
    assert deployment.store.pid is not None
    os.kill(deployment.store.pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(deployment.rng.uniform(0.2, 1.0) if turn % 10 else LONGEST_STALL_S)
    finally:
        os.kill(deployment.store.pid, signal.SIGCONT)


async def fill_store(deployment: Replicas, turn: int) -> None:
    """Out of memory: maxmemory far below the used memory, noeviction."""
    await deployment.direct.config_set("maxmemory", "100kb")
    refused = False
    try:
        await deployment.direct.set("one more", "")
    except OutOfMemoryError:
        refused = True
    assert refused, "the store is not full"
    await asyncio.sleep(deployment.rng.uniform(0.2, 0.8))
    await deployment.direct.config_set("maxmemory", 0)


async def tear_log(deployment: Replicas, turn: int) -> None:
    """SIGKILL of the store in the middle of a write: its log ends with half a command."""
    await deployment.kill_store()
    torn = HALF_A_COMMAND[: deployment.rng.randrange(1, len(HALF_A_COMMAND))]
    with deployment.newest_log().open("ab") as log:
        log.write(torn)
    deployment.store.restart_if_dead()


async def cut_connections(deployment: Replicas, turn: int) -> None:
    """All connections to the store are cut within a reply, those in use."""
    deployment.proxy.cut()
    await asyncio.sleep(0.2)
    deployment.proxy.heal()


async def delay_answers(deployment: Replicas, turn: int) -> None:
    """Requests to the store and its replies are delayed."""
    deployment.proxy.delay_s = deployment.rng.uniform(0.02, 0.3)
    await asyncio.sleep(0.8)
    deployment.proxy.delay_s = 0.0


async def answer_nonsense(deployment: Replicas, turn: int) -> None:
    """All connections return bytes that violate the protocol, within a reply."""
    deployment.proxy.corrupt()
    await asyncio.sleep(0.2)
    deployment.proxy.heal()


async def restart_in_rotation(deployment: Replicas, turn: int) -> None:
    """SIGTERM of the next replica, and its restart."""
    replica = deployment.replicas[turn % REPLICAS]
    await replica.end(signal.SIGTERM)
    await replica.start()


async def move_clock(deployment: Replicas, turn: int) -> None:
    """The clock of each replica jumps forwards or back; every other time both by the same offset."""
    same_ms = deployment.rng.randrange(-CLOCK_MS, CLOCK_MS)
    for replica in deployment.replicas:
        replica.move_clock(deployment.rng.randrange(-CLOCK_MS, CLOCK_MS) if turn % 2 else same_ms)


def far_offset_ms(rng: random.Random, turn: int) -> int:
    """How far a clock is off: every third time by up to 40 minutes, else by two days to years."""
    return rng.randrange(CLOCK_MS) if turn % 3 == 0 else rng.choice(FAR_DAYS) * DAY_MS


async def set_wrong_clock(deployment: Replicas, turn: int) -> None:
    """The clock of one replica, every fourth time of both, is ahead or behind by minutes to years."""
    offset_ms = far_offset_ms(deployment.rng, turn) * deployment.rng.choice((1, -1))
    wrong = deployment.replicas if turn % 4 == 3 else [deployment.rng.choice(deployment.replicas)]
    for replica in wrong:
        replica.move_clock(offset_ms)
    try:
        if abs(offset_ms) > CLOCK_MS:
            days = offset_ms / DAY_MS
            await deployment.expect_report(f"clock off by {days:+.0f} d", "clock", REPORT_TIMEOUT_S)
        await asyncio.sleep(deployment.rng.uniform(0.2, 1.5))
    finally:
        for replica in wrong:
            replica.move_clock(0)


async def lose_power(deployment: Replicas, turn: int) -> None:
    """SIGKILL of the store and loss of the end of its log, with acknowledged articles."""
    await deployment.kill_store()
    log = deployment.newest_log()
    os.truncate(log, max(0, log.stat().st_size - deployment.rng.randrange(*TORN_BYTES)))
    deployment.store.restart_if_dead()


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
    "clock wrong": set_wrong_clock,
}
POWER_LOSS: dict[str, Fault] = {"power lost": lose_power}
