"""What a process is and has: alive, memory, open files, and CPU with its children. From /proc (Linux)."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

import redis

from aggregator.runtime.background_process import NICE_INCREMENT

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
PATIENCE_S = 60


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds so far and resident MB, per role: service (with all its processes), store, generator.

    ``parts_s``: CPU seconds of the service's own processes: requests (and supervisor), scheduler, analysis.
    """

    cpu_s: dict[str, float]
    resident_mb: dict[str, float]
    parts_s: dict[str, float]

    def since(self, before: Usage) -> dict[str, float]:
        """CPU seconds per role between two readings."""
        return {role: s - before.cpu_s.get(role, 0.0) for role, s in self.cpu_s.items()}

    def parts_since(self, before: Usage) -> dict[str, float]:
        """The same of the service's processes."""
        return {part: s - before.parts_s.get(part, 0.0) for part, s in self.parts_s.items()}


def usage(service: int) -> Usage:
    """Of the service with this process id, the store among its children, and this process."""
    cpu: dict[str, float] = {}
    resident: dict[str, float] = {}
    parts: dict[str, float] = {}
    behind = niceness(service)
    for pid in (service, *below(service), os.getpid()):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue  # it ended meanwhile
        name, fields = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :].split()
        role = "generator" if pid == os.getpid() else "store" if "server" in name else "service"
        seconds = (int(fields[11]) + int(fields[12])) / TICKS
        cpu[role] = cpu.get(role, 0.0) + seconds
        if role == "service" and behind is not None:
            nicer = int(fields[16]) - behind
            part = "scheduler" if nicer == NICE_INCREMENT else "analysis" if nicer > 0 else "requests"
            parts[part] = parts.get(part, 0.0) + seconds
        resident[role] = resident.get(role, 0.0) + own_bytes(pid) / 1e6
    return Usage(cpu, resident, parts)


def own_bytes(pid: int) -> int:
    """Memory now, of pages shared with others its share; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def resident_bytes(pid: int | str = "self") -> int:
    """Memory now, pages shared with others included."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE


def server_cpu_s(client: redis.Redis) -> float:
    """CPU seconds of a store so far, by its own account."""
    cpu = client.info("cpu")
    return float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"])


def open_files(pid: int) -> int:
    """Files and connections."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def is_alive(pid: int) -> bool:
    """Whether it runs; an entry that waits to be read (a zombie) does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def scheduler_of(service: int) -> int | None:
    """The process of the scheduled work below this one; None while it is not there. Told by its priority."""
    for child in _children(service):
        if niceness(child) == niceness(service) + NICE_INCREMENT:
            return child
    return None


async def the_scheduler(service: int) -> int:
    """The same, as soon as it is there."""
    async with asyncio.timeout(PATIENCE_S):
        while (found := scheduler_of(service)) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return found


def niceness(pid: int) -> int | None:
    """None when it ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[16])
    except OSError:
        return None


def _children(pid: int) -> list[int]:
    try:
        return [
            int(child)
            for path in Path(f"/proc/{pid}/task").glob("*/children")
            for child in path.read_text().split()
        ]
    except OSError:
        return []


def below(pid: int) -> list[int]:
    """Its children, and theirs."""
    found: list[int] = []
    for child in _children(pid):
        found += [child, *below(child)]
    return found
