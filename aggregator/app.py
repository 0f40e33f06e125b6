"""Composition root: ``open_service`` builds a wired service from settings."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from aggregator.analysis.analyzer import Analyzer, group_of
from aggregator.analysis.extractor_model import Model
from aggregator.analysis.models import load_models
from aggregator.analysis.pool.pool import AnalysisPool
from aggregator.auth.api_keys import ApiKeys
from aggregator.auth.rate_limiter import RateLimiter
from aggregator.background.wiring import BackgroundServices, build_background, build_index
from aggregator.dedup.policy import Policy, PolicyProfiles
from aggregator.domain import Analysis, Article, ArticleRecord, IndexLayout
from aggregator.errors import AggregatorError, StoreUnavailable
from aggregator.events.broadcast import ChangeBroadcaster
from aggregator.events.desks import Desks
from aggregator.events.editor_actions import EditorActions
from aggregator.events.filter import OwnSources
from aggregator.events.idempotency import IdempotentAnswers
from aggregator.events.read_marks import ReadMarks
from aggregator.events.repository import EventRepository
from aggregator.events.search import EventSearch
from aggregator.events.webhooks.dispatcher import WebhookDispatcher
from aggregator.events.webhooks.subscriptions import Subscriptions
from aggregator.index import Index
from aggregator.index.upkeep import format_version
from aggregator.index.upkeep.spaces import (
    UNREAD_INDEX_CHECK,
    Registry,
    StoredSpace,
    UnreadIndex,
    describe,
    registry_of,
)
from aggregator.ingest.dual_write import DualWriter
from aggregator.ingest.load_control import LoadControl
from aggregator.ingest.pipeline import ASYNCIO
from aggregator.ingest.service import IngestService
from aggregator.policy_file import load_policy_profiles
from aggregator.provenance.directory import SourceDirectory
from aggregator.provenance.queries import ProvenanceQueries
from aggregator.queries.explain import Explainer
from aggregator.queries.headline_index import HeadlineIndex
from aggregator.queries.related import RelatedArticles
from aggregator.queries.search import ArticleSearch
from aggregator.readiness import Readiness
from aggregator.settings import Settings, is_loopback
from aggregator.store.base import Store
from aggregator.store.factory import open_store
from aggregator.time_units import wall_clock_ms


@dataclass(frozen=True, slots=True)
class Service:
    """Everything that the HTTP server and the command line use."""

    settings: Settings
    store: Store
    layout: IndexLayout
    index: Index
    analyzer: Analyzer
    analysis_pool: AnalysisPool
    policies: PolicyProfiles
    ingest: IngestService
    dual_writer: DualWriter | None
    related: RelatedArticles
    explain: Explainer
    provenance: ProvenanceQueries
    search: ArticleSearch
    sources: SourceDirectory
    events: EventRepository
    event_search: EventSearch
    change_broadcaster: ChangeBroadcaster
    desks: Desks
    read_marks: ReadMarks
    idempotent_answers: IdempotentAnswers
    editor_actions: EditorActions
    own_sources: OwnSources
    api_keys: ApiKeys
    rate_limiter: RateLimiter
    background: BackgroundServices
    load_control: LoadControl
    webhook_subscriptions: Subscriptions
    webhook_dispatcher: WebhookDispatcher
    readiness: Readiness
    unread_index: UnreadIndex
    clock: Callable[[], int]

    async def analyze_many(self, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        """Analyze articles, in order, in this process or its workers; an unusable one yields its error."""
        return await self.analysis_pool.analyze_many(articles)


@dataclass(frozen=True, slots=True)
class AnalysisPools:
    """The analysis pool, and that of the shadow spaces during a migration."""

    serving: AnalysisPool
    shadow: AnalysisPool | None

    def close(self) -> None:
        """Stop the worker processes. Idempotent."""
        self.serving.close()
        if self.shadow is not None:
            self.shadow.close()


def build_pools(settings: Settings, processes: int) -> AnalysisPools:
    """Analysis pools that have started no process. Raises ModelError."""
    serving, shadow = build_analyzers(settings)
    return AnalysisPools(
        AnalysisPool(serving, processes), AnalysisPool(shadow, processes) if shadow is not None else None
    )


@asynccontextmanager
async def open_service(
    settings: Settings,
    *,
    clock: Callable[[], int] = wall_clock_ms,
    processes: int = 0,
    pools: AnalysisPools | None = None,
) -> AsyncIterator[Service]:
    """Open the store, load the models and wire the service; on exit everything is closed.

    ``processes``: worker processes that analyze batches and HTML, unless ``pools`` are given, which are
    closed too. Background work starts with ``service.background.scheduler.start()``. Raises
    ConfigurationError, ModelError, StoreUnavailable.
    """
    async with open_store(settings, format_version.write) as store:
        pools = pools or build_pools(settings, processes)
        service = _build_service(settings, store, clock, pools.serving, pools.shadow)
        try:
            with contextlib.suppress(StoreUnavailable):  # the readiness check repeats it
                await service.unread_index.register()
            yield service
        finally:
            await service.search.headlines.close()
            await service.load_control.activity.close()
            await service.api_keys.last_use.finish()
            await service.background.close()
            pools.close()


def build_analyzers(settings: Settings) -> tuple[Analyzer, Analyzer | None]:
    """The serving analyzer, and that of the shadow spaces during a migration."""
    current = Analyzer(_load_models(settings.models_dir), settings.block_plan)
    if not (settings.migration_models_dir or settings.migration_block_plan):
        return current, None
    migrated = Analyzer(
        _load_models(settings.migration_models_dir or settings.models_dir),
        settings.migration_block_plan or settings.block_plan,
    )
    return (migrated, current) if settings.migration_serve else (current, migrated)


def _load_models(directory: str) -> Mapping[str, Model]:
    return load_models(Path(directory) if directory else None)


def build_layout(serving: Analyzer, shadow: Analyzer | None) -> IndexLayout:
    """The serving spaces, and the shadow spaces: those that only the shadow analyzer has."""
    shadow_spaces = shadow.spaces if shadow is not None else ()
    plan_name = shadow.plan_name if shadow is not None else ""
    return IndexLayout(
        serving.spaces,
        serving.plan_name,
        {space: plan_name for space in shadow_spaces if space not in serving.spaces},
    )


def build_dual_writer(index: Index, serving: Analyzer, shadow_pool: AnalysisPool | None) -> DualWriter | None:
    """The writer of the shadow spaces; None without shadow spaces."""
    if shadow_pool is None or not index.shadow_spaces:
        return None
    shadow = shadow_pool.analyzer
    return DualWriter(index, shadow_pool.analyze_many, lambda record: shadow.convert_record(record, serving))


async def build_unread_migration(service: Service, spaces: Sequence[str]) -> tuple[Index, DualWriter]:
    """The index of unread ``spaces`` and the writer that copies it to the others; newer articles stay."""
    registry, own = await registry_of(service.store).read(), service.analyzer.space_parts
    stored = {space: registry.get(space, StoredSpace()) for space in spaces}
    plan_name = service.layout.plan_name
    layout = IndexLayout(tuple(spaces), plan_name, dict.fromkeys(service.layout.spaces, plan_name))

    def convert(record: ArticleRecord) -> ArticleRecord | None:
        target = service.analyzer.space_of(record.lang)
        entry = stored[record.space]
        if (entry.model, entry.recipe) != (own[target].model, own[target].recipe):
            return None
        return replace(record, space=target)

    recipes = {(group_of(space), parts.recipe) for space, parts in own.items()}
    index = build_index(service.settings, service.store, layout)
    writer = DualWriter(
        index,
        service.analyze_many,
        convert,
        newer_stays=True,
        other_recipe=any((group_of(space), entry.recipe) not in recipes for space, entry in stored.items()),
    )
    return index, writer


def build_policy(settings: Settings) -> Policy:
    """The verdict thresholds of the settings."""
    return Policy(
        name=settings.policy,
        duplicate_bits=settings.duplicate_bits,
        related_bits=settings.related_bits,
        min_containment=settings.min_containment,
        min_shared_shingles=settings.min_shared_shingles,
        min_similarity=settings.min_similarity,
        strong_containment=settings.strong_containment,
        updates_are_new=settings.updates_are_new,
    )


def build_policies(settings: Settings) -> PolicyProfiles:
    """The policy of the settings and the profiles of ``policy_profiles_file``. Raises ConfigurationError."""
    return load_policy_profiles(settings.policy_profiles_file, build_policy(settings))


def build_api_keys(settings: Settings, store: Store, clock: Callable[[], int]) -> ApiKeys:
    """The API keys of a store; enforced unless the service listens on loopback only and signs nobody in."""
    return ApiKeys(
        store,
        clock,
        bootstrap=settings.bootstrap_key,
        enforce=not is_loopback(settings.host) or bool(settings.user_header),
        disabled=settings.auth_disabled,
    )


def build_unread_index(
    settings: Settings, store: Store, serving: Analyzer, shadow: Analyzer | None, clock: Callable[[], int]
) -> UnreadIndex:
    """The check for unread spaces; under ``migration_serve`` the former spaces must have been copied."""
    migrated_dir = settings.migration_models_dir or settings.models_dir
    current_is_serving = shadow is None or not settings.migration_serve
    own: Registry = {}
    for analyzer, is_current in ((shadow, not current_is_serving), (serving, current_is_serving)):
        if analyzer is not None:
            directory = settings.models_dir if is_current else migrated_dir
            models_dir = str(Path(directory).absolute()) if directory else ""
            own |= {space: describe(parts, models_dir) for space, parts in analyzer.space_parts.items()}
    read = serving.spaces if not current_is_serving else tuple(own)
    return UnreadIndex(store, own, serving.spaces, read, clock)


def _build_service(
    settings: Settings,
    store: Store,
    clock: Callable[[], int],
    pool: AnalysisPool,
    shadow_pool: AnalysisPool | None,
) -> Service:
    layout = build_layout(pool.analyzer, shadow_pool.analyzer if shadow_pool is not None else None)
    index = build_index(settings, store, layout)
    dual_writer = build_dual_writer(index, pool.analyzer, shadow_pool)
    load_control = LoadControl.create(store)
    background = build_background(settings, index, clock, yield_control=load_control.gate.yield_control)
    unread = build_unread_index(
        settings, store, pool.analyzer, shadow_pool.analyzer if shadow_pool is not None else None, clock
    )
    events = background.detector.repository
    editor_actions = EditorActions(events, index.articles.get)
    policies = build_policies(settings)
    ingest = IngestService(
        index,
        pool.analyze_many,
        policies,
        clock=clock,
        store_texts=settings.store_texts or settings.demo,
        event_ids_of=events.event_ids_of,
        on_delete=editor_actions.remove_article,
        dual_writer=dual_writer,
        load_control=load_control,
        before_write=background.clock_guard.ensure_plausible,
        execution=ASYNCIO,
    )
    related = RelatedArticles(
        index,
        pool.analyze_many,
        clock=clock,
        related_bits=policies.default.policy.related_bits,
        min_similarity=settings.related_min_cosine,
        members_of_event=events.event_article_ids,
    )
    return Service(
        settings=settings,
        store=store,
        layout=layout,
        index=index,
        analyzer=pool.analyzer,
        analysis_pool=pool,
        policies=policies,
        ingest=ingest,
        dual_writer=dual_writer,
        related=related,
        explain=Explainer(index, pool.analyze_many, policies),
        provenance=ProvenanceQueries(index),
        search=ArticleSearch(index, HeadlineIndex(index, settings.search_headlines)),
        sources=SourceDirectory(store),
        events=events,
        event_search=EventSearch(events),
        change_broadcaster=ChangeBroadcaster(events),
        desks=background.webhook_dispatcher.desks,
        read_marks=ReadMarks(store),
        idempotent_answers=IdempotentAnswers(store, clock),
        editor_actions=editor_actions,
        own_sources=OwnSources(settings.own_sources),
        api_keys=build_api_keys(settings, store, clock),
        rate_limiter=RateLimiter(store, clock, settings.rate_limit_per_second),
        background=background,
        load_control=load_control,
        webhook_subscriptions=background.webhook_subscriptions,
        webhook_dispatcher=background.webhook_dispatcher,
        readiness=Readiness({UNREAD_INDEX_CHECK: unread.check, "clock": background.clock_guard.observe}),
        unread_index=unread,
        clock=clock,
    )
