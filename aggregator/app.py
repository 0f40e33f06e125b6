"""The composition root: settings in, a wired service out. Nothing else constructs these parts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aggregator.analysis.analyzer import Analyser, Model
from aggregator.analysis.models import load_models
from aggregator.analysis.pool.pool import AnalysisPool
from aggregator.auth.api_keys import Access
from aggregator.auth.rate_limiter import Allowance
from aggregator.background.wiring import Scheduled, index_of, scheduled_of, wall_clock_ms
from aggregator.concurrency.priority_gate import Turns
from aggregator.concurrency.yielding import give_way, in_a_task
from aggregator.dedup.verdict import Policy
from aggregator.domain import Analysis, Article, Layout
from aggregator.errors import AggregatorError
from aggregator.events.broadcast import EventStream
from aggregator.events.consumer import Events
from aggregator.events.editor_actions import Actions
from aggregator.events.saved_filters import Watches
from aggregator.events.webhooks import Courier, Hooks
from aggregator.index import Index, format_version
from aggregator.ingest.activity import Presence
from aggregator.ingest.dual_write import Beside
from aggregator.ingest.service import Ingest
from aggregator.ingest.throttle import Pace
from aggregator.queries.explain import Explain
from aggregator.queries.related import Related
from aggregator.settings import Settings, is_loopback
from aggregator.store.base import Store
from aggregator.store.factory import opened_store


@dataclass(frozen=True, slots=True)
class Service:
    """Everything an edge (HTTP, command line) may use."""

    settings: Settings
    store: Store
    layout: Layout
    index: Index
    analyser: Analyser
    pool: AnalysisPool
    ingest: Ingest
    beside: Beside | None
    related: Related
    explain: Explain
    events: Events
    event_stream: EventStream
    watches: Watches
    actions: Actions
    access: Access
    allowance: Allowance
    scheduled: Scheduled
    presence: Presence
    pace: Pace
    hooks: Hooks
    courier: Courier
    clock: Callable[[], int]

    async def analyse_many(self, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        """Analyses in order, in this process or its pool."""
        return await self.pool.analyse_many(articles)


@asynccontextmanager
async def open_service(
    settings: Settings, *, clock: Callable[[], int] = wall_clock_ms, processes: int = 0
) -> AsyncIterator[Service]:
    """Open the store, load the models, wire the parts; everything is closed again on exit.

    The detector's scheduler is not started: ``service.jobs.start()`` does that. ``processes`` > 0 lets
    batches and HTML be analysed by so many other processes.
    """
    async with opened_store(settings, format_version.claim) as store:
        analyser, other = analysers_of(settings)
        pool = AnalysisPool(analyser, processes)
        second = AnalysisPool(other, processes) if other else None
        service = _wire(settings, store, analyser, pool, clock, second)
        try:
            yield service
        finally:
            await service.presence.close()
            await service.scheduled.close()
            pool.close()
            if second is not None:
                second.close()


def analysers_of(settings: Settings) -> tuple[Analyser, Analyser | None]:
    """Who decides, and who is written along (None: nobody)."""
    now = Analyser(_models(settings.models_dir), settings.block_plan)
    if not (settings.next_models_dir or settings.next_block_plan):
        return now, None
    after = Analyser(
        _models(settings.next_models_dir or settings.models_dir),
        settings.next_block_plan or settings.block_plan,
    )
    return (after, now) if settings.serve_next else (now, after)


def _models(directory: str) -> Mapping[str, Model]:
    return load_models(Path(directory) if directory else None)


def layout_of(analyser: Analyser, other: Analyser | None) -> Layout:
    """The spaces of who decides, and those that only the other one has."""
    beside = (
        {space: other.plan_name for space in other.spaces if space not in analyser.spaces} if other else {}
    )
    return Layout(analyser.spaces, analyser.plan_name, beside)


def policy_of(settings: Settings) -> Policy:
    """The verdict thresholds an operator chose."""
    return Policy(
        name=settings.policy,
        duplicate_bits=settings.duplicate_bits,
        related_bits=settings.related_bits,
        min_containment=settings.min_containment,
        min_shared=settings.min_shared,
        min_similarity=settings.min_similarity,
        sure_containment=settings.sure_containment,
        keep_updates=settings.keep_updates,
    )


def access_of(settings: Settings, store: Store, clock: Callable[[], int]) -> Access:
    """The keys of a store, under the rules an operator chose."""
    return Access(
        store,
        clock,
        bootstrap=settings.bootstrap_key,
        always=not is_loopback(settings.host),
        never=settings.open_access,
    )


def _related(
    settings: Settings, index: Index, pool: AnalysisPool, clock: Callable[[], int], events: Events
) -> Related:
    return Related(
        index,
        pool.analyse_many,
        clock=clock,
        related_bits=settings.related_bits,
        min_similarity=settings.min_related,
        story_of=events.story_of,
    )


def _beside(index: Index, analyser: Analyser, second: AnalysisPool | None) -> Beside | None:
    """What writes the space of other models along, while there is one to change to."""
    if second is None or not index.beside:
        return None
    other = second.analyser
    return Beside(index, second.analyse_many, lambda record: other.carried(record, analyser))


def _wire(
    settings: Settings,
    store: Store,
    analyser: Analyser,
    pool: AnalysisPool,
    clock: Callable[[], int],
    second: AnalysisPool | None,
) -> Service:
    policy = policy_of(settings)
    layout = layout_of(analyser, second.analyser if second is not None else None)
    index = index_of(settings, store, layout)
    beside = _beside(index, analyser, second)
    turns, presence = Turns(), Presence(store)
    pace = Pace(presence, turns.give_way)
    scheduled = scheduled_of(settings, index, clock, give_way=turns.give_way)
    events = scheduled.events
    actions = Actions(events, index)
    ingest = Ingest(
        index,
        pool.analyse_many,
        policy,
        clock=clock,
        keep_texts=settings.keep_texts or settings.demo,
        fingerprints_only=settings.fingerprints_only,
        event_of=events.event_of,
        taken_down=actions.take_down,
        give_way=give_way,
        begin=in_a_task,
        turns=turns,
        presence=presence,
        pace=pace,
        beside=beside,
    )
    return Service(
        settings=settings,
        store=store,
        layout=layout,
        index=index,
        analyser=analyser,
        pool=pool,
        ingest=ingest,
        beside=beside,
        related=_related(settings, index, pool, clock, events),
        explain=Explain(index, pool.analyse_many, policy),
        events=events,
        event_stream=EventStream(events),
        watches=Watches(store),
        actions=actions,
        access=access_of(settings, store, clock),
        allowance=Allowance(store, clock, settings.rate_limit),
        scheduled=scheduled,
        presence=presence,
        pace=pace,
        hooks=scheduled.hooks,
        courier=scheduled.courier,
        clock=clock,
    )
