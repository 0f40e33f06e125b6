"""The work that nobody waits for, wired: the event detector, the upkeep of the index, the webhooks' courier.

Where several processes see the store it is done in one of its own (``cli/scheduler.py``), which needs no models:
``domain.Layout`` is all that it must know of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from aggregator.background.maintenance import TURN_S, Housekeeping
from aggregator.background.scheduler import Jobs, Work
from aggregator.concurrency.yielding import GiveWay, give_way
from aggregator.domain import Layout
from aggregator.events.consumer import Events
from aggregator.events.detection import BurstRule
from aggregator.events.webhooks import Courier, Hooks
from aggregator.index import Index
from aggregator.index.blocks import PLANS
from aggregator.settings import Settings
from aggregator.store.base import Store

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
COURIER_S = 1.0


@dataclass(frozen=True, slots=True)
class Scheduled:
    """Its parts. ``jobs.start()`` begins with it, ``jobs.stop()`` and then ``close`` end it in order."""

    index: Index
    events: Events
    hooks: Hooks
    courier: Courier
    housekeeping: Housekeeping
    jobs: Jobs

    async def close(self) -> None:
        """Let other replicas go on at once. Idempotent."""
        await self.courier.close()
        await self.housekeeping.close()


def wall_clock_ms() -> int:
    """Milliseconds since 1970 UTC: the only clock that reaches the inside."""
    return time.time_ns() // 1_000_000


def burst_rule_of(settings: Settings) -> BurstRule:
    """The burst rule an operator chose."""
    return BurstRule(
        items=settings.burst_items,
        window_ms=int(settings.burst_window_hours * HOUR_MS),
        min_sources=settings.min_sources,
        sensitivity=settings.sensitivity,
    )


def index_of(settings: Settings, store: Store, layout: Layout) -> Index:
    """The index of these spaces, kept as long as an operator chose."""
    return Index(
        store,
        layout.spaces,
        retention_ms=int(settings.retention_days * DAY_MS) or None,
        plan=PLANS[layout.plan],
        beside={space: PLANS[plan] for space, plan in layout.beside.items()},
        segment_articles=settings.segment_articles,
    )


def scheduled_of(
    settings: Settings, index: Index, clock: Callable[[], int], *, give_way: GiveWay = give_way
) -> Scheduled:
    """All of it over the store of ``index``. ``give_way`` lets others of this process go on."""
    events = Events(index.store, burst_rule_of(settings), give_way=give_way)
    housekeeping = Housekeeping(index, clock)
    hooks = Hooks(index.store)
    courier = Courier(
        events, hooks, clock, base_url=settings.public_url.rstrip("/"), private=settings.webhook_private
    )
    beside = (
        Work("upkeep", housekeeping.turn, TURN_S),
        Work("courier", courier.turn, COURIER_S),
    )
    jobs = Jobs(events, index, clock, settings.tick_seconds, beside=beside)
    return Scheduled(index, events, hooks, courier, housekeeping, jobs)
