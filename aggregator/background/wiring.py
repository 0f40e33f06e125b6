"""The work that nobody waits for, wired: the event detector, the upkeep of the index, the webhooks' courier.

Where several processes see the store it is done in one of its own (``cli/scheduler.py``), which needs no models:
``domain.Layout`` is all that it must know of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aggregator.background.maintenance import MAINTENANCE_INTERVAL_S, IndexMaintenance
from aggregator.background.scheduler import PeriodicTask, Scheduler
from aggregator.concurrency.yielding import YieldControl, yield_control
from aggregator.domain import IndexLayout
from aggregator.events.consumer import DetectorRunner
from aggregator.events.detection import BurstRule
from aggregator.events.repository import EventRepository
from aggregator.events.webhooks import Subscriptions, WebhookDispatcher
from aggregator.index import Index
from aggregator.index.blocks import PLANS
from aggregator.settings import Settings
from aggregator.store.base import Store
from aggregator.time_units import DAY_MS, HOUR_MS

WEBHOOK_INTERVAL_S = 1.0


@dataclass(frozen=True, slots=True)
class BackgroundServices:
    """Its parts. ``jobs.start()`` begins with it, ``jobs.stop()`` and then ``close`` end it in order."""

    index: Index
    detector: DetectorRunner
    webhook_subscriptions: Subscriptions
    webhook_dispatcher: WebhookDispatcher
    maintenance: IndexMaintenance
    scheduler: Scheduler

    async def close(self) -> None:
        """Let other replicas go on at once. Idempotent."""
        await self.webhook_dispatcher.close()
        await self.maintenance.close()


def build_burst_rule(settings: Settings) -> BurstRule:
    """The burst rule an operator chose."""
    return BurstRule(
        items=settings.burst_items,
        window_ms=int(settings.burst_window_hours * HOUR_MS),
        min_sources=settings.min_sources,
        sensitivity=settings.sensitivity,
    )


def build_index(settings: Settings, store: Store, layout: IndexLayout) -> Index:
    """The index of these spaces, kept as long as an operator chose."""
    return Index(
        store,
        layout.spaces,
        retention_ms=int(settings.retention_days * DAY_MS) or None,
        plan=PLANS[layout.plan_name],
        shadow_plans={space: PLANS[plan] for space, plan in layout.shadow_plans.items()},
        segment_max_articles=settings.segment_max_articles,
    )


def build_background(
    settings: Settings, index: Index, clock: Callable[[], int], *, yield_control: YieldControl = yield_control
) -> BackgroundServices:
    """All of it over the store of ``index``. ``give_way`` lets others of this process go on."""
    events = EventRepository(index.store)
    detector = DetectorRunner(events, build_burst_rule(settings), yield_control=yield_control)
    housekeeping = IndexMaintenance(index, clock)
    hooks = Subscriptions(index.store)
    courier = WebhookDispatcher(
        events,
        hooks,
        clock,
        base_url=settings.public_url.rstrip("/"),
        allow_private=settings.webhook_allow_private_addresses,
    )
    beside = (
        PeriodicTask("upkeep", housekeeping.run_once, MAINTENANCE_INTERVAL_S),
        PeriodicTask("courier", courier.run_once, WEBHOOK_INTERVAL_S),
    )
    jobs = Scheduler(detector, index, clock, settings.detector_interval_seconds, extra_tasks=beside)
    return BackgroundServices(index, detector, hooks, courier, housekeeping, jobs)
