"""Wiring of background work from settings."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

import pytest

from aggregator.background.wiring import (
    BackgroundServices,
    build_background,
    build_burst_rule,
    build_index,
)
from aggregator.domain import IndexLayout
from aggregator.events.detection.model import BurstRule
from aggregator.events.webhooks.outbox import DeliveryQueue
from aggregator.index.blocks import PLANS
from aggregator.settings import Settings
from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore
from aggregator.time_units import DAY_MS, HOUR_MS, wall_clock_ms
from tests.support.factories import EVENT_MS, Clock, commit_event, event

LAYOUT = IndexLayout(("en.0000",), "4x16", {"en.1111": "8x8"})
Build: TypeAlias = Callable[[Settings], BackgroundServices]


@pytest.fixture
async def build(store: Store) -> AsyncIterator[Build]:
    """Builds the background work of one more process on the same store; all are closed at the end."""
    built: list[BackgroundServices] = []

    def build_one(settings: Settings) -> BackgroundServices:
        built.append(build_background(settings, build_index(settings, store, LAYOUT), Clock(wall_clock_ms())))
        return built[-1]

    yield build_one
    for services in built:
        await services.close()


def test_the_default_settings_are_the_documented_rule() -> None:
    """More than 15 items within 4 hours."""
    assert build_burst_rule(Settings()) == BurstRule()


def test_every_setting_of_the_rule_is_used() -> None:
    """A window may be a fraction of an hour."""
    settings = Settings(burst_items=5, burst_window_hours=0.5, min_sources=3, sensitivity=2.0)

    assert build_burst_rule(settings) == BurstRule(
        items=5, window_ms=HOUR_MS // 2, min_sources=3, sensitivity=2.0
    )


@pytest.mark.parametrize(("days", "period_ms"), [(0, None), (0.5, DAY_MS // 2), (30, 30 * DAY_MS)])
def test_no_retention_period_means_indefinitely(days: float, period_ms: int | None) -> None:
    """0 days do not mean that every article expires at once."""
    index = build_index(Settings(retention_days=days), MemoryStore(), LAYOUT)

    assert index.retention.period_ms == period_ms


def test_every_space_has_the_plan_of_the_layout() -> None:
    """Shadow spaces have their own."""
    index = build_index(Settings(segment_max_articles=5_000), MemoryStore(), LAYOUT)

    assert (index.spaces, index.shadow_spaces) == (("en.0000",), ("en.1111",))
    assert index.plan("en.0000") is PLANS["4x16"]
    assert index.plan("en.1111") is PLANS["8x8"]


async def test_links_in_calls_have_one_slash_after_the_public_url(build: Build, store: Store) -> None:
    """The setting may end with one. The call to a private address is refused and remains pending."""
    services = build(Settings(public_url="https://news.example/"))
    await services.webhook_subscriptions.subscribe("https://127.0.0.1/in", (), "standard", EVENT_MS)
    await services.webhook_dispatcher.run_once()
    await commit_event(services.detector.repository, "fired", event("e1", "Storm"), EVENT_MS)
    await services.webhook_dispatcher.run_once()

    (call,) = (await DeliveryQueue(store).read())[1].calls

    assert json.loads(call.body)["data"]["url"] == "https://news.example/events/e1"
    assert services.webhook_dispatcher.failed_attempts == 1


async def test_another_process_continues_after_the_first_was_closed(build: Build) -> None:
    """All leases are released, also if it is closed twice."""
    first, second = build(Settings()), build(Settings())
    await first.webhook_subscriptions.subscribe("https://127.0.0.1/in", (), "standard", EVENT_MS)
    for services in (first, second):
        await services.maintenance.run_once()
        await services.webhook_dispatcher.run_once()
    await commit_event(first.detector.repository, "fired", event("e1", "Storm"), EVENT_MS)
    await second.webhook_dispatcher.run_once()
    assert (first.maintenance.runs, second.maintenance.runs, second.maintenance.skipped) == (1, 0, 1)
    assert await second.webhook_dispatcher.queue.pending() == {}

    await first.close()
    await first.close()
    await second.maintenance.run_once()
    await second.webhook_dispatcher.run_once()

    assert second.maintenance.runs == 1
    assert list((await second.webhook_dispatcher.queue.pending()).values()) == [1]
