"""Health page: rates, totals, refusals, errors, queues, what the detector knows, components."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from aiohttp import web

from aggregator import __version__
from aggregator.analysis.analyzer import group_of
from aggregator.analysis.text.language import FALLBACK_GROUP
from aggregator.app import Service
from aggregator.auth.api_keys import Role
from aggregator.contract.problems import PROBLEM_TITLES
from aggregator.errors import StoreUnavailable
from aggregator.events.detection.model import LearnedHistory
from aggregator.events.webhooks.outbox import MAX_DEAD_LETTERS
from aggregator.http.app_keys import CALLER_KEY, SERVICE
from aggregator.http.handlers.operations import all_metrics
from aggregator.http.pages import cards, html_response
from aggregator.http.pages.webhooks import target_row
from aggregator.http.peer_metrics import Totals
from aggregator.index.article_stream import Arrivals
from aggregator.index.upkeep.spaces import PROBED_RECORDS
from aggregator.time_units import DAY_MS, HOUR_MS, MINUTE_MS

CHART_MINUTES = 60
KNOWN_DAYS = 7
# Articles behind the detector's last checkpoint are counted up to this number.
MAX_BACKLOG = 1000
ROLES: tuple[Role, ...] = ("admin", "editor", "reader", "crawler")


@dataclass(frozen=True, slots=True)
class Queues:
    """What waits. ``backlog``: behind the detector's last checkpoint, None if unknown; targets by state."""

    stream_entries: int = 0
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
    keys: Mapping[str, int] | None = None
    problem = info.problem or ""
    try:
        arrivals = await service.articles.index.arrival_counts.update(service.clock())
        queues = await _queues(service)
        history = await service.events.repository.learned_history()
        keys = await _keys_by_role(request)
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
        articles=counted or queues.stream_entries,  # the latter until they are first counted
        is_estimate=counted > PROBED_RECORDS,
        arrivals=arrivals,
        rate=arrival_rate(arrivals, now_ms),
        since_ms=int(started_s) * 1000 if started_s else None,
        answered_by_verdict=totals.by_label("aggregator_articles_total", "verdict"),
        refused=named_refusals(totals.by_label("aggregator_articles_rejected_total", "code")),
        errors=error_statuses(totals.by_label("aggregator_requests_total", "status")),
        totals=totals,
        queues=queues,
        max_backlog=MAX_BACKLOG,
        spaces=[(group_of(space), space) for space in service.articles.index.spaces],
        fallback_group=FALLBACK_GROUP,
        learning=history.status(now_ms) if history else None,
        late=history.late if history else "",
        known=known_documents(history, now_ms),
        keys=keys,
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


def named_refusals(by_code: Mapping[str, int]) -> dict[str, int]:
    """Refused articles by reason in words, the most frequent first."""
    named: Counter[str] = Counter()
    for code, count in by_code.items():
        named[PROBLEM_TITLES.get(code, code)] += count
    return dict(named.most_common())


def error_statuses(by_status: Mapping[str, int]) -> dict[str, int]:
    """Requests that were answered with an error, by status and its phrase: "404 Not Found"."""
    phrases = {str(status.value): f"{status.value} {status.phrase}" for status in HTTPStatus}
    return {phrases.get(s, s): count for s, count in by_status.items() if s.isdigit() and int(s) >= 400}


def known_documents(history: LearnedHistory | None, now_ms: int) -> cards.Chart | None:
    """Chart of the documents per hour of the last 7 days that the detector knows; None without any."""
    if history is None or not history.documents_by_hour:
        return None
    timeline = [(hour * HOUR_MS, count) for hour, count in sorted(history.documents_by_hour.items())]
    from_ms = now_ms - KNOWN_DAYS * DAY_MS
    return cards.timeline_chart(timeline, from_ms, now_ms, bin_ms=HOUR_MS)


async def _queues(service: Service) -> Queues:
    targets = await service.events.subscriptions.values()
    stream, queue = service.articles.index.stream, service.background.webhook_dispatcher.queue
    ids = {target.id for target in targets}
    outbox, attempts = await queue.outbox.read(), await queue.attempts(ids)
    return Queues(
        stream_entries=await stream.length(),
        backlog=await service.background.detector.lag(stream, MAX_BACKLOG),
        deliveries=len(outbox.calls),
        dead_letters=len(await queue.dead_letters(ids, MAX_DEAD_LETTERS)),
        targets=Counter(target_row(target, outbox.calls, attempts).state for target in targets),
    )


async def _keys_by_role(request: web.Request) -> dict[str, int] | None:
    """Number of valid API keys by role; None for a caller who may not see it."""
    key, service = request.get(CALLER_KEY), request.app[SERVICE]
    if key is not None and not key.allows("admin"):
        return None
    now_ms = service.clock()
    counts = Counter(key.role for key in await service.edge.api_keys.list_keys() if key.is_active(now_ms))
    return {role: counts[role] for role in ROLES if counts[role]}
