"""Composition root: parts built from settings."""

from __future__ import annotations

from dataclasses import fields

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.analysis.pool.pool import AnalysisPool
from aggregator.app import (
    build_analyzers,
    build_api_keys,
    build_dual_writer,
    build_layout,
    build_policy,
    open_service,
)
from aggregator.background.wiring import build_index
from aggregator.dedup.policy import Policy
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError, ConfigurationError, ModelError
from aggregator.settings import Settings
from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore
from tests.support.factories import START_MS, story


def hashed(plan_name: str) -> Analyzer:
    """An analyzer without a model file."""
    return Analyzer({"xx": HashedModel()}, plan_name)


def test_the_default_settings_are_the_default_policy() -> None:
    """Both state the thresholds; a difference would make the documentation wrong."""
    assert build_policy(Settings()) == Policy()


def test_every_threshold_of_the_settings_reaches_the_policy() -> None:
    """Also one that is 0 or False. Those without a setting, for profiles only, keep their defaults."""
    changed = {
        "duplicate_bits": 2,
        "related_bits": 5,
        "min_containment": 0.3,
        "min_shared_shingles": 7.0,
        "min_similarity": 0.0,
        "strong_containment": 0.9,
        "updates_are_new": True,
    }
    policy = build_policy(Settings(policy="hamming", **changed))  # type: ignore[arg-type]  # fields of Settings

    assert policy == Policy(name="hamming", **changed)  # type: ignore[arg-type]
    named = {f.name for f in fields(Policy)} & {f.name for f in fields(Settings)}
    assert named == set(changed)


def test_without_a_migration_there_is_no_shadow_space() -> None:
    """Nothing is written twice."""
    serving = hashed("4x16")
    layout = build_layout(serving, None)

    assert (layout.spaces, layout.plan_name, layout.shadow_plans) == (serving.spaces, "4x16", {})
    assert build_dual_writer(build_index(Settings(), MemoryStore(), layout), serving, None) is None


def test_the_spaces_of_a_migration_target_are_shadow_spaces() -> None:
    """They have the block plan of the target, and the serving spaces keep theirs."""
    serving, shadow = hashed("4x16"), hashed("8x8")

    layout = build_layout(serving, shadow)

    assert layout.spaces == serving.spaces
    assert layout.shadow_plans == dict.fromkeys(shadow.spaces, "8x8")
    index = build_index(Settings(), MemoryStore(), layout)
    assert build_dual_writer(index, serving, AnalysisPool(shadow, 0)) is not None


def test_a_target_with_the_same_spaces_is_not_written_twice() -> None:
    """A migration to the present models and plan has nothing to do."""
    serving, shadow = hashed("4x16"), hashed("4x16")
    layout = build_layout(serving, shadow)

    assert layout.shadow_plans == {}
    index = build_index(Settings(), MemoryStore(), layout)
    assert build_dual_writer(index, serving, AnalysisPool(shadow, 0)) is None


@pytest.mark.parametrize(("serve", "plans"), [(False, ("4x16", "8x8")), (True, ("8x8", "4x16"))])
def test_a_migration_is_served_from_its_target_when_it_is_complete(
    serve: bool, plans: tuple[str, str]
) -> None:
    """Then the former analyzer writes the shadow spaces, so that the migration can be undone."""
    settings = Settings(block_plan="4x16", migration_block_plan="8x8", migration_serve=serve)

    serving, shadow = build_analyzers(settings)

    assert shadow is not None
    assert (serving.plan_name, shadow.plan_name) == plans


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
    keys = build_api_keys(Settings(host=host, auth_disabled=disabled), store, lambda: START_MS)

    assert await keys.is_required() is required


async def test_an_unusable_article_does_not_affect_the_others() -> None:
    """Results are in the order of the articles, with the error in its place."""
    articles = [
        Article("a", text=story(1), lang="en"),
        Article("b", html="<p></p>", lang="en"),
        Article("c", text=story(2), lang="en"),
    ]
    async with open_service(Settings(store_url="memory")) as service:
        first, error, last = await service.analyze_many(articles)

    assert isinstance(error, AggregatorError)
    assert isinstance(first, Analysis) and isinstance(last, Analysis)
    assert (first.text, last.text) == (story(1), story(2))


async def test_a_missing_model_directory_prevents_the_start(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No service is yielded that would refuse every article."""
    empty = tmp_path_factory.mktemp("models") / "absent"

    with pytest.raises((ModelError, ConfigurationError)):
        async with open_service(Settings(store_url="memory", models_dir=str(empty))):
            pytest.fail("The service started.")
