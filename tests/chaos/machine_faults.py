"""Faults of one machine by name (``machine.py``). Each returns when its cause has ended."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable

from aggregator.index.upkeep.clock_guard import MAX_AHEAD_MS
from aggregator.store.append_log import RECORD_NAME
from tests.chaos.deployment import POLL_S
from tests.chaos.faults import HALF_A_COMMAND, far_offset_ms
from tests.chaos.machine import Machine, send
from tests.support.processes import background_process_of, descendants

REPORT_TIMEOUT_S = 30.0
REFUSAL_TIMEOUT_S = 90.0
MINUTE_S = 60
HELD_S = 1.5  # longer than the clock of a process is cached
DUTY_CYCLE_S = (0.8, 0.2)  # stopped, running
MachineFault = Callable[[Machine, int], Awaitable[None]]


async def kill_worker(machine: Machine, turn: int) -> None:
    """SIGKILL of one of two workers."""
    send([machine.rng.choice(machine.workers())], signal.SIGKILL)


async def kill_replacements(machine: Machine, turn: int) -> None:
    """SIGKILL of a worker, and of up to three replacements at any moment of their start."""
    staying = machine.rng.choice(machine.workers())
    for _ in range(1 + turn % 3):
        send([pid for pid in machine.workers() if pid != staying], signal.SIGKILL)
        await _until(lambda: len(machine.workers()) > 1)
        await asyncio.sleep(machine.rng.uniform(0.0, 2.0))
    send([pid for pid in machine.workers() if pid != staying], signal.SIGKILL)


async def kill_workers(machine: Machine, turn: int) -> None:
    """SIGKILL of all workers at once."""
    send(machine.workers(), signal.SIGKILL)


async def kill_analysis(machine: Machine, turn: int) -> None:
    """SIGKILL of all processes that the workers started: analysis, and what it is forked from."""
    for worker in machine.workers():
        send(descendants(worker), signal.SIGKILL)


async def kill_background(machine: Machine, turn: int) -> None:
    """SIGKILL of the background process, every other time of its replacement too."""
    for _ in range(1 + turn % 2):
        await _until(lambda: background_process_of(machine.pid) is not None)
        send([background_process_of(machine.pid) or 0], signal.SIGKILL)


async def kill_store(machine: Machine, turn: int) -> None:
    """SIGKILL of the embedded store; every third time also of its replacement."""
    for _ in range(2 if turn % 3 == 0 else 1):
        await _until(lambda: machine.store_pid() is not None)
        send([machine.store_pid() or 0], signal.SIGKILL)


async def kill_machine(machine: Machine, turn: int) -> None:
    """SIGKILL of everything, and a restart."""
    await machine.kill()
    await machine.launch()


async def suspend(machine: Machine, turn: int) -> None:
    """All processes are stopped for some seconds, while the clock advances by up to 40 minutes."""
    pids = [machine.pid, *descendants(machine.pid)]
    send(pids, signal.SIGSTOP)
    await asyncio.sleep(machine.rng.uniform(1.0, 8.0))
    machine.move_clock(machine.rng.randrange(40 * MINUTE_S))
    send(pids, signal.SIGCONT)
    await asyncio.sleep(HELD_S)
    machine.move_clock(0)


async def starve(machine: Machine, turn: int) -> None:
    """A CPU quota: all processes run for a fifth of each second only."""
    stopped_s, running_s = DUTY_CYCLE_S
    for _ in range(5):
        pids = [machine.pid, *descendants(machine.pid)]
        send(pids, signal.SIGSTOP)
        await asyncio.sleep(stopped_s)
        send(pids, signal.SIGCONT)
        await asyncio.sleep(running_s)


async def fill_disk(machine: Machine, turn: int) -> None:
    """No free byte on the disk of the store, until the service has said so."""
    with machine.full_disk():
        await machine.expect_report("disk full", "disk", REPORT_TIMEOUT_S)
    await machine.until_ready()


async def tear_log(machine: Machine, turn: int) -> None:
    """SIGKILL of everything in the middle of a write: the log ends with half a command."""
    await machine.kill()
    with machine.newest_log().open("ab") as log:
        log.write(HALF_A_COMMAND[: machine.rng.randrange(1, len(HALF_A_COMMAND))])
    await machine.launch()


async def damage_log(machine: Machine, turn: int) -> None:
    """The log is damaged while nothing runs; the service must refuse to serve, until it is restored.

    The damage is within the recorded length, which leaves out the newest 10 to 20 s.
    """
    await _until(lambda: _covered_bytes(machine) > 0)
    await machine.kill()
    with machine.kept_log():
        log = machine.newest_log()
        middle = _covered_bytes(machine) // 2
        if turn % 2 == 0:
            for manifest in log.parent.glob("*.manifest"):
                manifest.unlink()
        else:
            os.truncate(log, middle)
        await machine.launch()
        damage = ("manifest removed", "log cut in half")[turn % 2]
        await _expect_refusal(machine, damage)
        await machine.kill()
    await machine.launch()


def _covered_bytes(machine: Machine) -> int:
    """Recorded length of the newest log."""
    try:
        recorded = json.loads((machine.data_dir / RECORD_NAME).read_bytes())
    except FileNotFoundError:
        return 0
    return int(recorded.get(machine.newest_log().name, 0))


async def _expect_refusal(machine: Machine, damage: str) -> None:
    """Wait until the service exits or says that it is not ready; not if it is ready, or silent."""
    async with asyncio.timeout(REFUSAL_TIMEOUT_S):
        while not machine.has_ended():
            said = await machine.apis[0].not_ready_reason()
            if said is None:
                machine.unreported.append(f"{damage}: the service says that it is ready")
                return
            if "damaged" in said.lower() or "missing" in said.lower():
                return
            await asyncio.sleep(POLL_S)
    if "aggregator" not in machine.log_tail():
        machine.unreported.append(f"{damage}: the service exited without a reason")


async def clock_ahead(machine: Machine, turn: int) -> None:
    """The clock of the machine, of its store too, is ahead: by minutes, or by two days to years."""
    await _wrong_clock(machine, far_offset_ms(machine.rng, turn) / 1000)


async def clock_behind(machine: Machine, turn: int) -> None:
    """The clock of the machine, of its store too, is behind: by minutes, or by two days to years."""
    await _wrong_clock(machine, -far_offset_ms(machine.rng, turn) / 1000)


async def _wrong_clock(machine: Machine, offset_s: float) -> None:
    is_far = abs(offset_s) * 1000 > MAX_AHEAD_MS
    machine.move_clock(offset_s)
    try:
        if is_far:
            await machine.expect_report(f"clock off by {offset_s:+.0f} s", "clock", REPORT_TIMEOUT_S)
        await asyncio.sleep(HELD_S)
    finally:
        machine.move_clock(0)
    await asyncio.sleep(HELD_S)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(REFUSAL_TIMEOUT_S):
        while not condition():  # noqa: ASYNC110  other processes
            await asyncio.sleep(POLL_S)


MACHINE_FAULTS: dict[str, MachineFault] = {
    "worker killed": kill_worker,
    "replacement killed": kill_replacements,
    "all workers killed": kill_workers,
    "analysis killed": kill_analysis,
    "background killed": kill_background,
    "embedded store killed": kill_store,
    "machine killed": kill_machine,
    "machine suspended": suspend,
    "cpu quota": starve,
    "disk full": fill_disk,
    "machine's log torn": tear_log,
    "log damaged": damage_log,
    "clock ahead": clock_ahead,
    "clock behind": clock_behind,
}
