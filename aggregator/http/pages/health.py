"""Health page: rates, refused articles, queues, errors, what the detector knows, components."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from aiohttp import web

from aggregator import __version__
from aggregator.app import Service
from aggregator.errors import StoreUnavailable
from aggregator.events.detection.model import LearnedHistory
from aggregator.events.webhooks.outbox import MAX_DEAD_LETTERS
from aggregator.http.app_keys import SERVICE
from aggregator.http.handlers.operations import all_metrics
from aggregator.http.pages import cards, html_response
from aggregator.http.pages.webhooks import target_row
from aggregator.http.peer_metrics import Totals
from aggregator.index.article_stream import Arrivals
from aggregator.index.upkeep.spaces import PROBED_RECORDS
from aggregator.ingest.refused import Rows
from aggregator.time_units import DAY_MS, HOUR_MS, MINUTE_MS

CHART_MINUTES = 60
KNOWN_DAYS = 7
MAX_BACKLOG = 1000  # articles behind the detector's last checkpoint are counted up to this number


@dataclass(frozen=True, slots=True)
class Queues:
    """What waits. ``backlog``: behind the detector's last checkpoint, None if unknown; targets by state."""

    backlog: int | None = None
    deliveries: int = 0
    dead_letters: int = 0
    targets: Mapping[str, int] = field(default_factory=Counter)


async def health(request: web.Request) -> web.StreamResponse:
    """Page: state of the service. Also while the store is unavailable."""
    app, service = request.app, request.app[SERVICE]
    info = await service.store.info()
    arrivals, queues = Arrivals((), {}, is_complete=True), Queues()
    history: LearnedHistory | None = None
    are_keys_required = True
    refused: Rows = ()
    problem = info.problem or ""
    try:
        arrivals = await service.articles.index.arrival_counts.update(service.clock())
        refused = await service.articles.refused.read()
        queues = await _queues(service)
        history = await service.events.repository.learned_history()
        are_keys_required = await service.edge.api_keys.is_required()
    except StoreUnavailable as error:
        problem = problem or str(error)
    totals = Totals(await all_metrics(app))
    now_ms = service.clock()
    counted = totals.sum("aggregator_index_articles")
    started_s = totals.least("process_start_time_seconds")
    return html_response(
        request,
        "health.html",
        page="health",
        info=info,
        problem=problem,
        articles=counted,
        is_estimate=counted > PROBED_RECORDS,
        arrivals=arrivals,
        rate=arrival_rate(arrivals, now_ms),
        since_ms=int(started_s) * 1000 if started_s else None,
        refused=refused,
        totals=totals,
        queues=queues,
        max_backlog=MAX_BACKLOG,
        learning=history.status(now_ms) if history else None,
        late=history.late if history else "",
        known=known_documents(history, now_ms),
        are_keys_required=are_keys_required,
        settings=service.settings,
        policies=service.articles.policies,
        version=__version__,
    )


def arrival_rate(arrivals: Arrivals, now_ms: int) -> tuple[cards.Chart, float]:
    """Articles of the last hour by minute; and per minute, over the last five full minutes and this one."""
    this_minute_ms = now_ms // MINUTE_MS * MINUTE_MS
    from_ms = this_minute_ms - (CHART_MINUTES - 1) * MINUTE_MS
    recent = sum(count for at_ms, count in arrivals.by_minute if at_ms >= this_minute_ms - 5 * MINUTE_MS)
    chart = cards.timeline_chart(arrivals.by_minute, from_ms, now_ms, bin_ms=MINUTE_MS)
    return chart, recent / (5 + (now_ms - this_minute_ms) / MINUTE_MS)


def known_documents(history: LearnedHistory | None, now_ms: int) -> cards.Chart | None:
    """Chart of the documents per hour of the last 7 days that the detector knows; None without any."""
    if history is None or not history.documents_by_hour:
        return None
    timeline = [(hour * HOUR_MS, count) for hour, count in sorted(history.documents_by_hour.items())]
    return cards.timeline_chart(timeline, now_ms - KNOWN_DAYS * DAY_MS, now_ms, bin_ms=HOUR_MS)


async def _queues(service: Service) -> Queues:
    targets = await service.events.subscriptions.values()
    stream, queue = service.articles.index.stream, service.background.webhook_dispatcher.queue
    ids = {target.id for target in targets}
    outbox, attempts = await queue.outbox.read(), await queue.attempts(ids)
    return Queues(
        backlog=await service.background.detector.lag(stream, MAX_BACKLOG),
        deliveries=len(outbox.calls),
        dead_letters=len(await queue.dead_letters(ids, MAX_DEAD_LETTERS)),
        targets=Counter(target_row(target, outbox.calls, attempts).state for target in targets),
    )
