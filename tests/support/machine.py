"""A machine whose wall clock a test sets wrong, and a service core on it with clock guard and maintenance."""

from __future__ import annotations

from dataclasses import dataclass, field

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.background.tasks import IndexMaintenance
from aggregator.dedup.policy import Policy
from aggregator.domain import Answer, Article
from aggregator.index import Index
from aggregator.index.upkeep.clock_guard import ClockGuard
from aggregator.store.base import Store
from aggregator.time_units import MINUTE_MS
from tests.support.factories import START_MS, in_process
from tests.support.wiring import Core, build_core

BOOTED_MS = START_MS - 77_777


@dataclass
class Machine:
    """``real_ms``: true time; ``offset_ms``: by how much its wall clock is ahead."""

    real_ms: int = START_MS
    offset_ms: int = 0

    def wall_clock(self) -> int:
        return self.real_ms + self.offset_ms

    def boot_clock(self) -> int:
        return self.real_ms - BOOTED_MS


@dataclass
class Service:
    """One process of a service; a new instance is a restart."""

    store: Store
    machine: Machine
    retention_ms: int | None
    core: Core = field(init=False)
    guard: ClockGuard = field(init=False)
    maintenance: IndexMaintenance = field(init=False)

    def __post_init__(self) -> None:
        analyzer = Analyzer({"xx": HashedModel()})
        index = Index(self.store, analyzer.spaces, retention_ms=self.retention_ms)
        self.guard = ClockGuard(index, self.machine.wall_clock, self.machine.boot_clock)
        self.core = build_core(
            index,
            in_process(analyzer),
            Policy(),
            clock=self.machine.wall_clock,
            before_write=self.guard.ensure_plausible,
        )
        self.maintenance = IndexMaintenance(index, self.machine.wall_clock, self.guard)

    async def post(self, id_: str, text: str) -> Answer:
        """Submit one English article."""
        return await self.core.ingest.submit(Article(id=id_, text=text, lang="en"))

    async def run(self, duration_ms: int, step_ms: int = MINUTE_MS) -> None:
        """Let real time pass while maintenance runs to its end every ``step_ms``."""
        end_ms = self.machine.real_ms + duration_ms
        while self.machine.real_ms < end_ms:
            self.machine.real_ms = min(end_ms, self.machine.real_ms + step_ms)
            await self.maintain()

    async def maintain(self) -> None:
        """Maintenance at this moment, to its end."""
        await self.maintenance.run_once()
        while self.maintenance._pending_steps is not None:
            await self.maintenance.run_once()

    async def stop(self) -> None:
        """Release the lease, as an orderly stop does."""
        await self.maintenance.close()
