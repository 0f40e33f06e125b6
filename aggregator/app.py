"""The composition root: settings in, a wired service out. Nothing else constructs these parts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aggregator.analysis.analyzer import Analyzer, Model
from aggregator.analysis.models import load_models
from aggregator.analysis.pool.pool import AnalysisPool
from aggregator.auth.api_keys import ApiKeys
from aggregator.auth.rate_limiter import RateLimiter
from aggregator.background.wiring import BackgroundServices, build_background, build_index
from aggregator.concurrency.priority_gate import PriorityGate
from aggregator.concurrency.yielding import spawn_task, yield_control
from aggregator.dedup.verdict import Policy
from aggregator.domain import Analysis, Article, IndexLayout
from aggregator.errors import AggregatorError
from aggregator.events.broadcast import ChangeBroadcaster
from aggregator.events.editor_actions import EditorActions
from aggregator.events.repository import EventRepository
from aggregator.events.saved_filters import SavedFilters
from aggregator.events.webhooks import Subscriptions, WebhookDispatcher
from aggregator.index import Index, format_version
from aggregator.ingest.activity import ActivityBeacon
from aggregator.ingest.dual_write import DualWriter
from aggregator.ingest.service import IngestService
from aggregator.ingest.throttle import BulkThrottle
from aggregator.queries.explain import Explainer
from aggregator.queries.related import RelatedArticles
from aggregator.settings import Settings, is_loopback
from aggregator.store.base import Store
from aggregator.store.factory import open_store
from aggregator.time_units import wall_clock_ms


@dataclass(frozen=True, slots=True)
class Service:
    """Everything an edge (HTTP, command line) may use."""

    settings: Settings
    store: Store
    layout: IndexLayout
    index: Index
    analyzer: Analyzer
    analysis_pool: AnalysisPool
    ingest: IngestService
    dual_writer: DualWriter | None
    related: RelatedArticles
    explain: Explainer
    events: EventRepository
    change_broadcaster: ChangeBroadcaster
    saved_filters: SavedFilters
    editor_actions: EditorActions
    api_keys: ApiKeys
    rate_limiter: RateLimiter
    background: BackgroundServices
    activity: ActivityBeacon
    throttle: BulkThrottle
    webhook_subscriptions: Subscriptions
    webhook_dispatcher: WebhookDispatcher
    clock: Callable[[], int]

    async def analyze_many(self, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        """Analyses in order, in this process or its pool."""
        return await self.analysis_pool.analyze_many(articles)


@asynccontextmanager
async def open_service(
    settings: Settings, *, clock: Callable[[], int] = wall_clock_ms, processes: int = 0
) -> AsyncIterator[Service]:
    """Open the store, load the models, wire the parts; everything is closed again on exit.

    The detector's scheduler is not started: ``service.jobs.start()`` does that. ``processes`` > 0 lets
    batches and HTML be analysed by so many other processes.
    """
    async with open_store(settings, format_version.write) as store:
        analyser, other = build_analyzers(settings)
        pool = AnalysisPool(analyser, processes)
        second = AnalysisPool(other, processes) if other else None
        service = _build_service(settings, store, analyser, pool, clock, second)
        try:
            yield service
        finally:
            await service.activity.close()
            await service.background.close()
            pool.close()
            if second is not None:
                second.close()


def build_analyzers(settings: Settings) -> tuple[Analyzer, Analyzer | None]:
    """Who decides, and who is written along (None: nobody)."""
    now = Analyzer(_load_models(settings.models_dir), settings.block_plan)
    if not (settings.migration_models_dir or settings.migration_block_plan):
        return now, None
    after = Analyzer(
        _load_models(settings.migration_models_dir or settings.models_dir),
        settings.migration_block_plan or settings.block_plan,
    )
    return (after, now) if settings.migration_serve else (now, after)


def _load_models(directory: str) -> Mapping[str, Model]:
    return load_models(Path(directory) if directory else None)


def build_layout(serving_analyzer: Analyzer, shadow_analyzer: Analyzer | None) -> IndexLayout:
    """The spaces of who decides, and those that only the other one has."""
    beside = (
        {
            space: shadow_analyzer.plan_name
            for space in shadow_analyzer.spaces
            if space not in serving_analyzer.spaces
        }
        if shadow_analyzer
        else {}
    )
    return IndexLayout(serving_analyzer.spaces, serving_analyzer.plan_name, beside)


def build_policy(settings: Settings) -> Policy:
    """The verdict thresholds an operator chose."""
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


def build_api_keys(settings: Settings, store: Store, clock: Callable[[], int]) -> ApiKeys:
    """The keys of a store, under the rules an operator chose."""
    return ApiKeys(
        store,
        clock,
        bootstrap=settings.bootstrap_key,
        enforce=not is_loopback(settings.host),
        disabled=settings.auth_disabled,
    )


def _build_related(
    settings: Settings, index: Index, pool: AnalysisPool, clock: Callable[[], int], events: EventRepository
) -> RelatedArticles:
    return RelatedArticles(
        index,
        pool.analyze_many,
        clock=clock,
        related_bits=settings.related_bits,
        min_similarity=settings.related_min_cosine,
        members_of_event=events.event_article_ids,
    )


def _build_dual_writer(
    index: Index, analyzer: Analyzer, shadow_pool: AnalysisPool | None
) -> DualWriter | None:
    """What writes the space of other models along, while there is one to change to."""
    if shadow_pool is None or not index.shadow_spaces:
        return None
    other = shadow_pool.analyzer
    return DualWriter(index, shadow_pool.analyze_many, lambda record: other.convert_record(record, analyzer))


def _build_service(
    settings: Settings,
    store: Store,
    analyzer: Analyzer,
    pool: AnalysisPool,
    clock: Callable[[], int],
    shadow_pool: AnalysisPool | None,
) -> Service:
    policy = build_policy(settings)
    layout = build_layout(analyzer, shadow_pool.analyzer if shadow_pool is not None else None)
    index = build_index(settings, store, layout)
    beside = _build_dual_writer(index, analyzer, shadow_pool)
    turns, presence = PriorityGate(), ActivityBeacon(store)
    pace = BulkThrottle(presence, turns.yield_control)
    scheduled = build_background(settings, index, clock, yield_control=turns.yield_control)
    events = scheduled.detector.repository
    actions = EditorActions(events, index)
    ingest = IngestService(
        index,
        pool.analyze_many,
        policy,
        clock=clock,
        store_texts=settings.store_texts or settings.demo,
        fingerprints_only=settings.fingerprints_only,
        event_ids_of=events.event_ids_of,
        on_delete=actions.remove_article,
        yield_control=yield_control,
        spawn=spawn_task,
        priority_gate=turns,
        activity=presence,
        throttle=pace,
        dual_writer=beside,
    )
    return Service(
        settings=settings,
        store=store,
        layout=layout,
        index=index,
        analyzer=analyzer,
        analysis_pool=pool,
        ingest=ingest,
        dual_writer=beside,
        related=_build_related(settings, index, pool, clock, events),
        explain=Explainer(index, pool.analyze_many, policy),
        events=events,
        change_broadcaster=ChangeBroadcaster(events),
        saved_filters=SavedFilters(store),
        editor_actions=actions,
        api_keys=build_api_keys(settings, store, clock),
        rate_limiter=RateLimiter(store, clock, settings.rate_limit_per_second),
        background=scheduled,
        activity=presence,
        throttle=pace,
        webhook_subscriptions=scheduled.webhook_subscriptions,
        webhook_dispatcher=scheduled.webhook_dispatcher,
        clock=clock,
    )
