"""Memory, open files and store buffers of a deployment, which must return to their level after each fault."""

from __future__ import annotations

from dataclasses import dataclass

from tests.chaos.deployment import Deployment
from tests.support.processes import open_files, resident_bytes

SLACK_BYTES = 128 * 2**20
SLACK_REPLY_BYTES = 16 * 2**20  # buffers of the store for its clients
SLACK_DESCRIPTORS = 100

LARGEST = "largest process after a fault, MB"
MEMORY = "faults after which a process's memory stayed high"
DESCRIPTORS = "faults after which a process's open files stayed high"
REPLY_BUFFERS = "faults after which the store's reply buffers stayed high"


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """Memory and open files of the largest process of the services, and the reply buffers of the store."""

    resident_bytes: int
    descriptors: int
    reply_buffer_bytes: int


class Resources:
    """Compares the usage after each fault with that at the start; counts in ``figures``."""

    def __init__(self, deployment: Deployment, figures: dict[str, int]) -> None:
        self._deployment = deployment
        self._figures = figures
        self._usual: ResourceUsage | None = None

    async def start(self) -> None:
        """Remember the usage now."""
        self._usual = await self._usage()

    async def check(self) -> None:
        """Compare memory and open files with those at the start; the detector's baseline grows meanwhile."""
        now, usual = await self._usage(), self._usual
        assert usual is not None
        grown = {
            MEMORY: now.resident_bytes > 2 * usual.resident_bytes + SLACK_BYTES,
            DESCRIPTORS: now.descriptors > usual.descriptors + SLACK_DESCRIPTORS,
            REPLY_BUFFERS: now.reply_buffer_bytes > usual.reply_buffer_bytes + SLACK_REPLY_BYTES,
        }
        for name, is_grown in grown.items():
            self._figures[name] = self._figures.get(name, 0) + is_grown
        self._figures[LARGEST] = max(self._figures.get(LARGEST, 0), now.resident_bytes >> 20)

    async def _usage(self) -> ResourceUsage:
        pids = await self._deployment.processes()
        memory = await self._deployment.direct.info("memory")
        return ResourceUsage(
            max(map(resident_bytes, pids)),
            max(map(open_files, pids)),
            memory["mem_clients_normal"],
        )
