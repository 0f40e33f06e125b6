"""Composition root: parts built from settings."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.analysis.models import load_models, load_term_idf
from aggregator.analysis.pool.pool import AnalysisPool
from aggregator.app import (
    AnalysisPools,
    Background,
    build_analyzers,
    build_api_keys,
    build_background,
    build_burst_rule,
    build_dual_writer,
    build_index,
    open_service,
    reload_files,
)
from aggregator.concurrency import yield_control
from aggregator.domain import Analysis, Article, IndexLayout
from aggregator.errors import AggregatorError, ConfigurationError, ModelError
from aggregator.events.detection.model import BurstRule
from aggregator.events.webhooks.outbox import DeliveryQueue
from aggregator.events.webhooks.subscriptions import Subscriptions
from aggregator.index import Index
from aggregator.settings import Settings, load
from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore
from aggregator.time_units import DAY_MS, HOUR_MS, wall_clock_ms
from tests.support.factories import EVENT_MS, START_MS, Clock, commit_event, event, story, write_model

CURRENT = Analyzer({"xx": HashedModel()})
NEXT = Analyzer({"xx": HashedModel(term_idf=load_term_idf())})


def pools(serving: Analyzer, shadow: Analyzer | None = None) -> AnalysisPools:
    """Pools without processes."""
    return AnalysisPools(AnalysisPool(serving), AnalysisPool(shadow) if shadow is not None else None)


def test_without_a_migration_there_is_no_shadow_space() -> None:
    """Nothing is written twice."""
    alone = pools(CURRENT)
    layout = alone.layout

    assert (layout.spaces, layout.shadow_spaces) == (CURRENT.spaces, ())
    assert build_dual_writer(build_index(Settings(), MemoryStore(), layout), alone) is None


def test_the_spaces_of_a_migration_target_are_shadow_spaces() -> None:
    """The serving spaces stay."""
    both = pools(CURRENT, NEXT)

    assert (both.layout.spaces, both.layout.shadow_spaces) == (CURRENT.spaces, NEXT.spaces)
    index = build_index(Settings(), MemoryStore(), both.layout)
    assert (index.spaces, index.shadow_spaces) == (CURRENT.spaces, NEXT.spaces)
    assert build_dual_writer(index, both) is not None


def test_a_target_with_the_same_spaces_is_not_written_twice() -> None:
    """A migration to the present models has nothing to do."""
    both = pools(CURRENT, CURRENT)

    assert both.layout.shadow_spaces == ()
    assert build_dual_writer(build_index(Settings(), MemoryStore(), both.layout), both) is None


@pytest.mark.parametrize("serve", [False, True])
def test_a_migration_is_served_from_its_target_when_it_is_complete(serve: bool, tmp_path: Path) -> None:
    """Then the former analyzer writes the shadow spaces, so that the migration can be undone."""
    write_model(tmp_path)
    settings = Settings(migration_models_dir=str(tmp_path), migration_serve=serve)

    serving, shadow = build_analyzers(settings)

    assert shadow is not None
    former, target = (shadow, serving) if serve else (serving, shadow)
    assert former.spaces == Analyzer(load_models()).spaces
    assert target.spaces == Analyzer(load_models(tmp_path)).spaces != former.spaces


@pytest.mark.parametrize("setting", ["models_dir", "migration_models_dir"])
def test_an_unusable_model_directory_is_reported_with_its_setting(setting: str, tmp_path: Path) -> None:
    """One that is absent, and one that is empty."""
    with pytest.raises(ModelError, match=f"no such directory; set {setting} to one"):
        build_analyzers(load({}, {setting: str(tmp_path / "absent")}))
    with pytest.raises(ModelError, match=rf"or unset {setting}\."):
        build_analyzers(load({}, {setting: str(tmp_path)}))


def test_one_analyzer_is_loaded_without_a_migration() -> None:
    """The setting that only selects the side has no effect alone."""
    assert build_analyzers(Settings(migration_serve=True))[1] is None


@pytest.mark.parametrize(
    ("host", "disabled", "required"),
    [
        ("127.0.0.1", False, False),
        ("::1", False, False),
        ("0.0.0.0", False, True),
        ("0.0.0.0", True, False),
    ],
)
async def test_keys_are_required_beyond_loopback(
    host: str, disabled: bool, required: bool, store: Store
) -> None:
    """Unless they are explicitly disabled."""
    keys = build_api_keys(Settings(host=host, auth_disabled=disabled), Index(store, ()), lambda: START_MS)

    assert await keys.is_required() is required


@pytest.mark.integration
async def test_an_unusable_article_does_not_affect_the_others() -> None:
    """Results are in the order of the articles, with the error in its place."""
    articles = [
        Article("a", text=story(1), lang="en"),
        Article("b", html="<p></p>", lang="en"),
        Article("c", text=story(2), lang="en"),
    ]
    async with open_service(Settings(store_url="memory")) as service:
        first, error, last = await service.analysis.serving.analyze_many(articles)

    assert isinstance(error, AggregatorError)
    assert isinstance(first, Analysis) and isinstance(last, Analysis)
    assert (first.text, last.text) == (story(1), story(2))


async def test_a_missing_model_directory_prevents_the_start(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No service is yielded that would refuse every article."""
    empty = tmp_path_factory.mktemp("models") / "absent"

    with pytest.raises((ModelError, ConfigurationError)):
        async with open_service(Settings(store_url="memory", models_dir=str(empty))):
            pytest.fail("The service started.")


LAYOUT = IndexLayout(("en.0000",), ("en.1111",))
Build: TypeAlias = Callable[[Settings], Background]


@pytest.fixture
async def build(store: Store) -> AsyncIterator[Build]:
    """Builds the background work of one more process on the same store; all are closed at the end."""
    built: list[Background] = []

    def build_one(settings: Settings) -> Background:
        built.append(
            build_background(
                settings, build_index(settings, store, LAYOUT), Clock(wall_clock_ms()), yield_control
            )
        )
        return built[-1]

    yield build_one
    for services in built:
        await services.close()


def test_the_default_settings_are_the_documented_rule() -> None:
    """More than 15 items within 4 hours, or fewer."""
    assert build_burst_rule(Settings()) == BurstRule(adapts=True, min_sources=0)


def test_every_setting_of_the_rule_is_used() -> None:
    """A window may be a fraction of an hour."""
    settings = Settings(burst_items="5", burst_window_hours=0.5, min_sources="3", sensitivity=2.0)

    assert build_burst_rule(settings) == BurstRule(
        items=5, window_ms=HOUR_MS // 2, min_sources=3, sensitivity=2.0
    )


@pytest.mark.parametrize(("days", "period_ms"), [(0, None), (0.5, DAY_MS // 2), (30, 30 * DAY_MS)])
def test_no_retention_period_means_indefinitely(days: float, period_ms: int | None) -> None:
    """0 days do not mean that every article expires at once."""
    index = build_index(Settings(retention_days=days), MemoryStore(), LAYOUT)

    assert index.retention.period_ms == period_ms


async def test_links_in_calls_have_one_slash_after_the_public_url(build: Build, store: Store) -> None:
    """The setting may end with one. The call to a private address is refused and remains pending."""
    services = build(Settings(public_url="https://news.example/"))
    await Subscriptions(store).subscribe("https://127.0.0.1/in", (), "standard", EVENT_MS)
    await services.webhook_dispatcher.run_once()
    await commit_event(services.detector.repository, "fired", event("e1", "Storm"), EVENT_MS)
    await services.webhook_dispatcher.run_once()

    (call,) = (await DeliveryQueue(store).outbox.read_with_raw())[1].calls

    assert json.loads(call.body)["data"]["url"] == "https://news.example/events/e1"
    assert services.webhook_dispatcher.failed_attempts == 1


async def test_another_process_continues_after_the_first_was_closed(build: Build, store: Store) -> None:
    """All leases are released, also if it is closed twice."""
    first, second = build(Settings()), build(Settings())
    await Subscriptions(store).subscribe("https://127.0.0.1/in", (), "standard", EVENT_MS)
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


def test_a_reload_names_the_faults_of_both_files_and_what_follows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A process that starts reads the files, too."""
    outlets, profiles = tmp_path / "outlets.toml", tmp_path / "profiles.toml"
    outlets.write_text("[outlets")
    profiles.write_text("[profiles.third]\nupdates_are_new = 7\n")
    reload_files(Settings(outlets_file=str(outlets), policy_profiles_file=str(profiles)))

    assert "nothing is changed, but a process that starts from now on ends with code 2" in caplog.text
    assert f"outlets_file: {outlets}" in caplog.text and f"policy_profiles_file: {profiles}" in caplog.text
