"""The composition root: settings in, a wired service out. Nothing else constructs these parts."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aggregator.access import Access
from aggregator.actions import Actions
from aggregator.allowance import Allowance
from aggregator.analyse import Analyser, Model
from aggregator.analysis_pool import AnalysisPool
from aggregator.beside import Beside
from aggregator.blocks import PLANS
from aggregator.bursts import BurstRule
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError
from aggregator.event_stream import EventStream
from aggregator.events import Events
from aggregator.explain import Explain
from aggregator.housekeeping import TURN_S, Housekeeping
from aggregator.index import Index
from aggregator.ingest import Ingest
from aggregator.jobs import Jobs, Work
from aggregator.models import load_models
from aggregator.pacing import Pace
from aggregator.presence import Presence
from aggregator.related import Related
from aggregator.rounds import give_way, in_a_task
from aggregator.settings import Settings, is_loopback
from aggregator.store import stamp
from aggregator.store.base import Store
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.memory import MemoryStore
from aggregator.store.redis import open_store
from aggregator.turns import Turns
from aggregator.verdict import Policy
from aggregator.watches import Watches
from aggregator.webhooks import Courier, Hooks

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
REVIVE_PAUSE_S = 1.0
COURIER_S = 1.0

log = logging.getLogger("aggregator.store")


@dataclass(frozen=True, slots=True)
class Service:
    """Everything an edge (HTTP, command line) may use."""

    settings: Settings
    store: Store
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
    jobs: Jobs
    housekeeping: Housekeeping
    presence: Presence
    pace: Pace
    hooks: Hooks
    courier: Courier
    clock: Callable[[], int]

    async def analyse_many(self, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        """Analyses in order, in this process or its pool."""
        return await self.pool.analyse_many(articles)


def wall_clock_ms() -> int:
    """Milliseconds since 1970 UTC: the only clock that reaches the inside."""
    return time.time_ns() // 1_000_000


@asynccontextmanager
async def open_service(
    settings: Settings, *, clock: Callable[[], int] = wall_clock_ms, processes: int = 0
) -> AsyncIterator[Service]:
    """Open the store, load the models, wire the parts; everything is closed again on exit.

    The detector's scheduler is not started: ``service.jobs.start()`` does that. ``processes`` > 0 lets
    batches and HTML be analysed by so many other processes.
    """
    async with opened_store(settings) as store:
        analyser, other = analysers_of(settings)
        pool = AnalysisPool(analyser, processes)
        second = AnalysisPool(other, processes) if other else None
        service = _wire(settings, store, analyser, pool, clock, second)
        try:
            yield service
        finally:
            await service.presence.close()
            await service.courier.close()
            await service.housekeeping.close()
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


def burst_rule_of(settings: Settings) -> BurstRule:
    """The burst rule an operator chose."""
    return BurstRule(
        items=settings.burst_items,
        window_ms=int(settings.burst_window_hours * HOUR_MS),
        min_sources=settings.min_sources,
        sensitivity=settings.sensitivity,
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


def _wire(
    settings: Settings,
    store: Store,
    analyser: Analyser,
    pool: AnalysisPool,
    clock: Callable[[], int],
    second: AnalysisPool | None,
) -> Service:
    retention_ms = int(settings.retention_days * DAY_MS) or None
    policy = policy_of(settings)
    other = second.analyser if second is not None else None
    index = Index(
        store,
        analyser.spaces,
        retention_ms=retention_ms,
        plan=PLANS[analyser.plan_name],
        beside={s: PLANS[other.plan_name] for s in other.spaces if s not in analyser.spaces}
        if other
        else None,
        segment_articles=settings.segment_articles,
    )
    beside = None
    if second is not None and other is not None and index.beside:
        beside = Beside(index, second.analyse_many, lambda record: other.carried(record, analyser))
    turns, presence = Turns(), Presence(store)
    pace = Pace(presence, turns.give_way)
    events = Events(store, burst_rule_of(settings), give_way=turns.give_way)
    housekeeping = Housekeeping(index, clock)
    hooks = Hooks(store)
    courier = Courier(
        events, hooks, clock, base_url=settings.public_url.rstrip("/"), private=settings.webhook_private
    )
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
        index=index,
        analyser=analyser,
        pool=pool,
        ingest=ingest,
        beside=beside,
        related=Related(
            index,
            pool.analyse_many,
            clock=clock,
            related_bits=policy.related_bits,
            min_similarity=settings.min_related,
            story_of=events.story_of,
        ),
        explain=Explain(index, pool.analyse_many, policy),
        events=events,
        event_stream=EventStream(events),
        watches=Watches(store),
        actions=actions,
        access=access_of(settings, store, clock),
        allowance=Allowance(store, clock, settings.rate_limit),
        jobs=Jobs(
            events,
            index,
            clock,
            settings.tick_seconds,
            beside=(
                Work("upkeep", housekeeping.turn, TURN_S),
                Work("courier", courier.turn, COURIER_S),
            ),
        ),
        housekeeping=housekeeping,
        presence=presence,
        pace=pace,
        hooks=hooks,
        courier=courier,
        clock=clock,
    )


@asynccontextmanager
async def opened_store(settings: Settings) -> AsyncIterator[Store]:
    """The store that the settings name, checked; the embedded one runs as long as it is open."""
    if settings.store_url.startswith("memory"):
        yield MemoryStore()
        return
    async with AsyncExitStack() as stack:
        url = settings.store_url
        if not url:
            server = EmbeddedServer(Path(settings.data_dir), appendfsync=settings.appendfsync)
            stack.enter_context(server)
            stack.callback(asyncio.create_task(_keep_alive(server)).cancel)
            url = server.url
        store = open_store(url)
        stack.push_async_callback(store.close)
        await store.check()
        await stamp.claim(store)
        yield store


async def _keep_alive(server: EmbeddedServer) -> None:
    """Start the embedded server again when it died; requests meanwhile are answered "try again"."""
    while True:
        await asyncio.sleep(REVIVE_PAUSE_S)
        try:
            if server.revive():
                log.error("the embedded store had ended; it was started again")
        except AggregatorError as error:
            log.error("the embedded store cannot be started: %s", error)
