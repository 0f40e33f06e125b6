"""State of processes, from /proc (Linux): alive, niceness, children, memory, open files, CPU time."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

import redis

from aggregator.runtime.background_process import NICE_INCREMENT
from tests.support.hang_limit import HANG_LIMIT_S

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds so far and memory in MB per role: service (with all its processes), store, generator.

    ``parts_s``: CPU seconds of the service's processes: requests (with the supervisor), background, analysis.
    """

    cpu_s: dict[str, float]
    resident_mb: dict[str, float]
    parts_s: dict[str, float]

    def since(self, before: Usage) -> dict[str, float]:
        """CPU seconds per role between two readings."""
        return {role: s - before.cpu_s.get(role, 0.0) for role, s in self.cpu_s.items()}

    def parts_since(self, before: Usage) -> dict[str, float]:
        """CPU seconds per part of the service between two readings."""
        return {part: s - before.parts_s.get(part, 0.0) for part, s in self.parts_s.items()}


def usage(service: int) -> Usage:
    """Usage of the service with this process id, of the store among its children, and of this process."""
    cpu: dict[str, float] = {}
    resident: dict[str, float] = {}
    parts: dict[str, float] = {}
    service_niceness = niceness(service)
    for pid in (service, *descendants(service), os.getpid()):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue  # the process has ended
        name, fields = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :].split()
        role = "generator" if pid == os.getpid() else "store" if "server" in name else "service"
        seconds = (int(fields[11]) + int(fields[12])) / TICKS
        cpu[role] = cpu.get(role, 0.0) + seconds
        if role == "service" and service_niceness is not None:
            nicer = int(fields[16]) - service_niceness
            part = "background" if nicer == NICE_INCREMENT else "analysis" if nicer > 0 else "requests"
            parts[part] = parts.get(part, 0.0) + seconds
        resident[role] = resident.get(role, 0.0) + own_bytes(pid) / 1e6
    return Usage(cpu, resident, parts)


def own_bytes(pid: int) -> int:
    """Proportional set size: shared pages are divided among their users; 0 if the process has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def resident_bytes(pid: int | str = "self") -> int:
    """Resident set size, including shared pages."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE


def server_cpu_s(client: redis.Redis) -> float:
    """CPU seconds of a store so far, as it reports them."""
    cpu = client.info("cpu")
    return float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"])


def open_files(pid: int) -> int:
    """Number of open files and connections."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def is_alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # ended before or while it was read
        return False


def background_process_of(service: int) -> int | None:
    """The background process of a service, recognized by its priority; None before it runs."""
    base = niceness(service)
    if base is None:
        return None
    return next((pid for pid in children(service) if niceness(pid) == base + NICE_INCREMENT), None)


async def wait_for_background_process(service: int) -> int:
    """The background process of a service, as soon as it runs."""
    async with asyncio.timeout(HANG_LIMIT_S):
        while (found := background_process_of(service)) is None:  # noqa: ASYNC110  another process
            await asyncio.sleep(0.02)
    return found


def niceness(pid: int) -> int | None:
    """Nice value; None if the process has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[16])
    except OSError:
        return None


def children(pid: int) -> list[int]:
    """Process ids of the children; none if the process has ended."""
    try:
        return [
            int(child)
            for path in Path(f"/proc/{pid}/task").glob("*/children")
            for child in path.read_text().split()
        ]
    except OSError:
        return []


def command_line(pid: int) -> bytes:
    """The arguments of a process, separated by NUL; none if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def descendants(pid: int) -> list[int]:
    """Children, their children, and so on."""
    found: list[int] = []
    for child in children(pid):
        found += [child, *descendants(child)]
    return found
