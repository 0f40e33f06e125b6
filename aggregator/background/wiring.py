"""Wiring of background work: event detector, index maintenance, webhook dispatcher, source statistics.

If several processes share the store, it runs in the background process (``runtime/background_main.py``),
which loads no models but their term frequencies: it needs only ``domain.IndexLayout``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from aggregator.analysis.models import load_term_rates
from aggregator.background.tasks import DetectorTask, IndexMaintenance, Scheduler
from aggregator.concurrency import YieldControl, yield_control
from aggregator.domain import IndexLayout
from aggregator.events.consumer import DetectorRunner
from aggregator.events.detection.model import BurstRule, RuleMode, SourceFamilies
from aggregator.events.repository import NUMBER_KEY_PREFIX, EventRepository
from aggregator.events.webhooks.dispatcher import WebhookDispatcher
from aggregator.events.webhooks.mail import parse_smtp_url
from aggregator.events.webhooks.subscriptions import Subscriptions
from aggregator.index import Index
from aggregator.index.blocks import PLANS
from aggregator.index.upkeep.clock_guard import ClockGuard
from aggregator.provenance.directory import SourceCollector
from aggregator.settings import Settings
from aggregator.store.base import Store
from aggregator.time_units import DAY_MS, HOUR_MS


@dataclass(frozen=True, slots=True)
class BackgroundServices:
    """The parts of the background work; end it with ``scheduler.stop()``, then ``close``."""

    index: Index
    detector: DetectorRunner
    webhook_subscriptions: Subscriptions
    webhook_dispatcher: WebhookDispatcher
    maintenance: IndexMaintenance
    source_collector: SourceCollector
    clock_guard: ClockGuard
    scheduler: Scheduler

    async def close(self) -> None:
        """Release all leases so that other replicas can continue immediately. Idempotent."""
        await self.webhook_dispatcher.close()
        await self.maintenance.close()
        await self.source_collector.close()


def build_burst_rule(settings: Settings) -> BurstRule:
    """The burst rule of the settings."""
    return BurstRule(
        items=settings.burst_items,
        window_ms=int(settings.burst_window_hours * HOUR_MS),
        min_sources=settings.min_sources,
        sensitivity=settings.sensitivity,
        mode=cast("RuleMode", settings.event_rule),
    )


def build_index(settings: Settings, store: Store, layout: IndexLayout) -> Index:
    """The index of the spaces of ``layout``, with the retention of the settings."""
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
    """All background services on the store of ``index``."""
    events = EventRepository(index.store)
    clock_guard = ClockGuard(index, clock)
    source_collector = SourceCollector(index, clock, yield_control=yield_control)
    detector = DetectorRunner(
        events,
        build_burst_rule(settings),
        yield_control=yield_control,
        trusted_clock=lambda: clock_guard.trusted_ms or 0,
        families=lambda: SourceFamilies.of(source_collector.family_of if settings.source_families else {}),
        term_rates=lambda: load_term_rates(Path(settings.models_dir) if settings.models_dir else None),
    )
    expiring = {NUMBER_KEY_PREFIX: events.retention_ms}
    maintenance = IndexMaintenance(index, clock, clock_guard, expiring_prefixes=expiring)
    subscriptions = Subscriptions(index.store)
    dispatcher = WebhookDispatcher(
        events,
        subscriptions,
        clock,
        base_url=settings.public_url.rstrip("/"),
        allow_private=settings.webhook_allow_private_addresses,
        smtp=parse_smtp_url(settings.smtp_url, settings.smtp_sender) if settings.smtp_url else None,
        pause_reason=clock_guard.pause_reason,
    )
    detector_task = DetectorTask(
        detector,
        index.stream,
        clock,
        settings.detector_interval_seconds,
        pause_reason=clock_guard.pause_reason,
    )
    scheduler = Scheduler(detector_task, (maintenance, dispatcher, source_collector))
    return BackgroundServices(
        index, detector, subscriptions, dispatcher, maintenance, source_collector, clock_guard, scheduler
    )
