"""Composition root: every process and command gets its parts from here, built from settings.

``open_service`` opens a web process or a command, ``open_background`` the background process, which loads no
models but their term frequencies: it needs only the ``IndexLayout``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from aggregator import __version__
from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models, load_term_rates
from aggregator.analysis.pool.pool import AnalysisPool
from aggregator.analysis.source import Outlet, name_outlets
from aggregator.auth.api_keys import API_KEYS_KEY, ApiKeys
from aggregator.auth.rate_limiter import RateLimiter
from aggregator.background.tasks import DetectorTask, IndexMaintenance, Scheduler
from aggregator.concurrency import TimeSlicer, YieldControl
from aggregator.config_file import changed_since_start, read_toml
from aggregator.dedup.policy import PolicyProfiles
from aggregator.domain import IndexLayout
from aggregator.errors import ConfigurationError, StoreUnavailable
from aggregator.events.broadcast import ChangeBroadcaster
from aggregator.events.changes import EditorActions
from aggregator.events.consumer import DetectorRunner
from aggregator.events.desks import Desks
from aggregator.events.detection.model import BurstRule
from aggregator.events.read_marks import ReadMarks
from aggregator.events.repository import NUMBER_KEY_PREFIX, EventRepository
from aggregator.events.search import EventSearch
from aggregator.events.webhooks.dispatcher import WebhookDispatcher
from aggregator.events.webhooks.mail import parse_smtp_url
from aggregator.events.webhooks.subscriptions import Subscriptions
from aggregator.index import Index
from aggregator.index.upkeep import format_version
from aggregator.index.upkeep.clock_guard import ClockGuard
from aggregator.index.upkeep.spaces import FOREIGN_INDEX_CHECK, ForeignIndex, Registry, StoredSpace, leftovers
from aggregator.ingest.dual_write import DualWriter
from aggregator.ingest.load_control import LoadControl
from aggregator.ingest.pipeline import ASYNCIO
from aggregator.ingest.refused import RefusedArticles
from aggregator.ingest.service import IngestService
from aggregator.policy_file import load_policies
from aggregator.provenance.directory import SourceCollector, SourceDirectory
from aggregator.provenance.queries import ProvenanceQueries
from aggregator.queries.explain import Explainer
from aggregator.queries.headline_index import HeadlineIndex
from aggregator.queries.related import RelatedArticles
from aggregator.queries.search import ArticleSearch
from aggregator.readiness import Readiness
from aggregator.settings import Settings, is_loopback, load
from aggregator.store.base import Store
from aggregator.store.factory import open_store
from aggregator.store.identity import MEMORY_NAME
from aggregator.store.memory import MemoryStore
from aggregator.time_units import DAY_MS, HOUR_MS, wall_clock_ms

if TYPE_CHECKING:
    from aggregator.store.redis import RedisStore

Clock = Callable[[], int]
log = logging.getLogger("aggregator.serve")


@dataclass(frozen=True, slots=True)
class AnalysisPools:
    """The analysis pool, and that of the shadow spaces during a migration."""

    serving: AnalysisPool
    shadow: AnalysisPool | None

    @property
    def layout(self) -> IndexLayout:
        """The serving spaces, and the shadow spaces: those that only the shadow analyzer has."""
        serving = self.serving.analyzer.spaces
        shadow = self.shadow.analyzer.spaces if self.shadow is not None else ()
        return IndexLayout(serving, tuple(space for space in shadow if space not in serving))

    def close(self) -> None:
        """Stop the worker processes. Idempotent."""
        self.serving.close()
        if self.shadow is not None:
            self.shadow.close()


@dataclass(frozen=True, slots=True)
class Articles:
    """What decides on articles and finds them."""

    index: Index
    foreign_index: ForeignIndex
    policies: PolicyProfiles
    load_control: LoadControl
    ingest: IngestService
    dual_writer: DualWriter | None
    related: RelatedArticles
    explain: Explainer
    search: ArticleSearch
    provenance: ProvenanceQueries
    sources: SourceDirectory
    refused: RefusedArticles


@dataclass(frozen=True, slots=True)
class Events:
    """What the newsroom reads and edits."""

    repository: EventRepository
    search: EventSearch
    broadcaster: ChangeBroadcaster
    editor_actions: EditorActions
    desks: Desks
    subscriptions: Subscriptions
    read_marks: ReadMarks


@dataclass(frozen=True, slots=True)
class Edge:
    """Who may send requests, how many, and whether now."""

    api_keys: ApiKeys
    rate_limiter: RateLimiter
    related_limiter: RateLimiter  # per address of a client with a key of the role related
    readiness: Readiness


@dataclass(frozen=True, slots=True)
class Background:
    """The background work of one process; end it with ``scheduler.stop()``, then ``close``."""

    index: Index
    detector: DetectorRunner
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


@dataclass(frozen=True, slots=True)
class Service:
    """Everything that the HTTP server and the commands use, in five groups."""

    settings: Settings
    store: Store
    clock: Clock
    analysis: AnalysisPools
    articles: Articles
    events: Events
    edge: Edge
    background: Background


def read_outlets(settings: Settings) -> tuple[Outlet, ...]:
    """The entries of ``outlets_file``. Raises ConfigurationError."""
    file = settings.outlets_file
    document = read_toml(Path(file), "outlets_file")[1] if file else {}
    try:
        if unknown := ", ".join(sorted(document.keys() - {"outlets"})):
            raise msgspec.ValidationError(f"{unknown}: unknown key; did you mean [[outlets]]?")
        return msgspec.convert(document.get("outlets", ()), tuple[Outlet, ...])
    except msgspec.ValidationError as error:
        problem, allowed = str(error).replace("$", "outlets"), ", ".join(Outlet.__struct_fields__)
        raise ConfigurationError(f"outlets_file: {file}: {problem}; an [[outlets]] has {allowed}.") from None


def load_files(settings: Settings) -> PolicyProfiles:
    """The policies; outlets are named in this process. Raises ConfigurationError, for the faults of both."""
    problems, read = list[str](), list[Any]()
    for reader in (read_outlets, load_policies):
        try:
            read.append(reader(settings))
        except ConfigurationError as error:
            problems += error.problems
    if problems:
        raise ConfigurationError(problems)
    policies: PolicyProfiles = read[1]
    name_outlets(read[0])
    return policies


def reload_files(settings: Settings, policies: PolicyProfiles | None = None) -> None:
    """Read the outlets and ``policies`` from their files again; with a fault they stay, and it is logged."""
    try:
        changed = load_files(settings)
    except ConfigurationError as error:
        repair = "a process that starts from now on ends with code 2 until this is repaired"
        log.error("SIGHUP: nothing is changed, but %s: %s", repair, error)
        return
    if policies is not None:
        policies.replace(changed)
    files = {name: getattr(settings, name) for name in ("policy_profiles_file", "outlets_file")}
    done = [f"{name}: {file} is read again" if file else f"{name} is not set" for name, file in files.items()]
    log.info("SIGHUP: %s", "; ".join(done))
    if policies is None and (pending := changed_since_start(Path(settings.data_dir), load)):
        log.warning("SIGHUP: %s", pending)  # in the background process alone


@asynccontextmanager
async def open_service(
    settings: Settings,
    *,
    clock: Clock = wall_clock_ms,
    processes: int = 0,
    pools: AnalysisPools | None = None,
    serving: bool = False,
) -> AsyncIterator[Service]:
    """Open the store, load the models and wire the service; on exit everything is closed.

    ``processes``: worker processes that analyze batches and HTML, unless ``pools`` are given, which are
    closed too. ``serving``: see ``StoreMemory.begin``. Background work starts with
    ``service.background.scheduler.start()``. Raises ConfigurationError, ModelError, StoreUnavailable.
    """
    policies = load_files(settings)
    async with open_store(settings, format_version.write) as store:
        pools = pools or build_pools(settings, processes)
        index, load_control = build_index(settings, store, pools.layout), LoadControl.create(store)
        async with _remembering(settings, index, serving=serving):
            background = build_background(settings, index, clock, load_control.gate.yield_control)
            events = build_events(index, background)
            guard = background.clock_guard
            articles = build_articles(settings, index, clock, pools, load_control, events, guard, policies)
            edge = build_edge(settings, index, clock, articles.foreign_index, guard)
            try:
                with contextlib.suppress(StoreUnavailable):  # the readiness check repeats it
                    await articles.foreign_index.register()
                yield Service(settings, store, clock, pools, articles, events, edge, background)
            finally:
                await articles.search.headlines.close()
                await load_control.activity.close()
                await edge.api_keys.last_use.finish()
                await background.close()
                pools.close()


@asynccontextmanager
async def open_background(settings: Settings, layout: IndexLayout) -> AsyncIterator[Background]:
    """The background work of a process that does nothing else. Raises StoreUnavailable."""
    name_outlets(read_outlets(settings))
    async with open_store(settings, format_version.write) as store:
        index = build_index(settings, store, layout)
        async with _remembering(settings, index):
            background = build_background(settings, index, wall_clock_ms, TimeSlicer().yield_control)
            try:
                yield background
            finally:
                await background.close()


@asynccontextmanager
async def _remembering(settings: Settings, index: Index, *, serving: bool = False) -> AsyncIterator[None]:
    if isinstance(index.store, MemoryStore):  # ends with the process
        yield
        return
    path, store = Path(settings.data_dir) / MEMORY_NAME, cast("RedisStore", index.store)
    own = format_version.OWN_ENTRY
    await index.memory.begin(store, path, settings.store_url, API_KEYS_KEY, own, serving=serving)
    index.stream.add_former(await leftovers(store, index.all_spaces))
    remembering = asyncio.create_task(index.memory.run())
    try:
        yield
    finally:
        remembering.cancel()
        await asyncio.gather(remembering, return_exceptions=True)


def build_pools(settings: Settings, processes: int) -> AnalysisPools:
    """Analysis pools that have started no process. Raises ModelError."""
    serving, shadow = build_analyzers(settings)
    shadow_pool = AnalysisPool(shadow, processes) if shadow is not None else None
    return AnalysisPools(AnalysisPool(serving, processes), shadow_pool)


def build_analyzers(settings: Settings) -> tuple[Analyzer, Analyzer | None]:
    """The serving analyzer, and that of the shadow spaces during a migration."""
    current = Analyzer(load_models(Path(settings.models_dir) if settings.models_dir else None))
    if not settings.migration_models_dir:
        return current, None
    migrated = Analyzer(load_models(Path(settings.migration_models_dir), "migration_models_dir"))
    return (migrated, current) if settings.migration_serve else (current, migrated)


def build_index(settings: Settings, store: Store, layout: IndexLayout) -> Index:
    """The index of the spaces of ``layout``, with the retention of the settings."""
    return Index(
        store,
        layout.spaces,
        retention_ms=int(settings.retention_days * DAY_MS) or None,
        shadow_spaces=layout.shadow_spaces,
    )


def build_articles(
    settings: Settings,
    index: Index,
    clock: Clock,
    pools: AnalysisPools,
    load_control: LoadControl,
    events: Events,
    clock_guard: ClockGuard,
    policies: PolicyProfiles,
) -> Articles:
    """Ingest and queries on ``index``."""
    analyze_many = pools.serving.analyze_many
    dual_writer = build_dual_writer(index, pools)
    ingest = IngestService(
        index,
        analyze_many,
        policies,
        clock=clock,
        store_texts=settings.store_texts or settings.demo,
        event_ids_of=events.repository.event_ids_of,
        on_delete=events.editor_actions.remove_article,
        dual_writer=dual_writer,
        load_control=load_control,
        before_write=clock_guard.ensure_plausible,
        execution=ASYNCIO,
    )
    related = RelatedArticles(
        index,
        analyze_many,
        clock=clock,
        min_score=settings.related_min_score,
        members_of_event=events.repository.event_article_ids,
    )
    return Articles(
        index=index,
        foreign_index=build_foreign_index(settings, index.store, pools, clock),
        policies=policies,
        load_control=load_control,
        ingest=ingest,
        dual_writer=dual_writer,
        related=related,
        explain=Explainer(index, analyze_many, policies, related),
        search=ArticleSearch(index, HeadlineIndex(index)),
        provenance=ProvenanceQueries(index),
        sources=SourceDirectory(index.store),
        refused=RefusedArticles(index, clock),
    )


def build_dual_writer(index: Index, pools: AnalysisPools) -> DualWriter | None:
    """The writer of the shadow spaces; None without shadow spaces."""
    if pools.shadow is None or not index.shadow_spaces:
        return None
    return DualWriter(index, pools.shadow.analyze_many, pools.shadow.analyzer.space_of)


def build_foreign_index(settings: Settings, store: Store, pools: AnalysisPools, clock: Clock) -> ForeignIndex:
    """The check for unread spaces; under ``migration_serve`` the former spaces must have been copied."""
    serving = pools.serving.analyzer
    current_dir, migrated_dir = settings.models_dir, settings.migration_models_dir
    serves_target = pools.shadow is not None and settings.migration_serve
    own = _registry(serving, migrated_dir if serves_target else current_dir)
    if pools.shadow is not None:
        own = _registry(pools.shadow.analyzer, current_dir if serves_target else migrated_dir) | own
    return ForeignIndex(store, own, serving.spaces, serving.spaces if serves_target else tuple(own), clock)


def _registry(analyzer: Analyzer, models_dir: str) -> Registry:
    directory = str(Path(models_dir).absolute()) if models_dir else ""
    parts = analyzer.space_parts.items()
    return {space: StoredSpace(p.model, p.recipe, directory, __version__) for space, p in parts}


def build_events(index: Index, background: Background) -> Events:
    """What reads and edits the events of the detector of ``background``."""
    repository = background.detector.repository
    return Events(
        repository=repository,
        search=EventSearch(repository),
        broadcaster=ChangeBroadcaster(repository),
        editor_actions=EditorActions(repository, index.articles.get_many),
        desks=background.webhook_dispatcher.desks,
        subscriptions=Subscriptions(index.store),
        read_marks=ReadMarks(index.store),
    )


def build_edge(
    settings: Settings, index: Index, clock: Clock, foreign_index: ForeignIndex, clock_guard: ClockGuard
) -> Edge:
    """The guards in front of the handlers."""
    store, memory = index.store, index.memory
    checks = {FOREIGN_INDEX_CHECK: foreign_index.check, "clock": clock_guard.observe, "store": memory.check}
    return Edge(
        api_keys=build_api_keys(settings, index, clock),
        rate_limiter=RateLimiter(store, clock, settings.rate_limit_per_second),
        related_limiter=RateLimiter(store, clock, settings.related_rate_limit_per_second),
        readiness=Readiness(checks),
    )


def build_api_keys(settings: Settings, index: Index, clock: Clock) -> ApiKeys:
    """The API keys of a store; enforced unless the service listens on loopback only and signs nobody in."""
    return ApiKeys(
        index.store,
        clock,
        index.memory,
        bootstrap=settings.bootstrap_key,
        enforce=not is_loopback(settings.host) or bool(settings.user_header),
        disabled=settings.auth_disabled,
    )


def build_burst_rule(settings: Settings) -> BurstRule:
    """The burst rule of the settings."""
    return BurstRule(
        items=BurstRule().items if settings.burst_items == "auto" else int(settings.burst_items),
        adapts=settings.burst_items == "auto",
        window_ms=int(settings.burst_window_hours * HOUR_MS),
        min_sources=0 if settings.min_sources == "auto" else int(settings.min_sources),
        alerts_per_day=settings.alerts_per_day,
        sensitivity=settings.sensitivity,
    )


def build_background(
    settings: Settings, index: Index, clock: Clock, yield_control: YieldControl
) -> Background:
    """Event detector, index maintenance, webhooks and source statistics on the store of ``index``."""
    repository, clock_guard = EventRepository(index.store), ClockGuard(index, clock)
    collector = SourceCollector(index, clock, yield_control=yield_control)
    detector = DetectorRunner(
        repository,
        build_burst_rule(settings),
        yield_control=yield_control,
        trusted_clock=lambda: clock_guard.trusted_ms or 0,
        term_rates=lambda: load_term_rates(Path(settings.models_dir) if settings.models_dir else None),
    )
    maintenance = IndexMaintenance(
        index, clock, clock_guard, expiring_prefixes={NUMBER_KEY_PREFIX: repository.retention_ms}
    )
    dispatcher = WebhookDispatcher(
        repository,
        Subscriptions(index.store),
        clock,
        get_articles=index.articles.get_many,
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
    scheduler = Scheduler(detector_task, (maintenance, dispatcher, collector))
    return Background(index, detector, dispatcher, maintenance, collector, clock_guard, scheduler)
