"""Health page: arrival rate, verdicts, latency, memory, models, components."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aiohttp import web

from aggregator import __version__
from aggregator.analysis.analyzer import group_of
from aggregator.analysis.text.language import FALLBACK_GROUP
from aggregator.domain import StreamItem, VerdictName
from aggregator.errors import StoreUnavailable
from aggregator.events.detection import LearningStatus
from aggregator.http.app_keys import METRICS, SERVICE
from aggregator.http.metrics.detector import detector_status
from aggregator.http.pages import charts, html_response
from aggregator.time_units import MINUTE_MS

CHART_MINUTES = 60
# An hour at 80 articles per minute; with more, the chart covers less, and says so.
MAX_ARRIVALS = 5000
CHART_WIDTH, CHART_HEIGHT = 960, 150
TOTAL = "total"
VERDICTS: tuple[VerdictName, ...] = ("new", "related", "duplicate")


@dataclass(frozen=True, slots=True)
class ArrivalRate:
    """Articles of the last hour by minute; ``truncated``: there were more than MAX_ARRIVALS."""

    chart: charts.Chart
    per_minute: float
    last_hour: int
    verdicts: Mapping[str, int]
    truncated: bool


@dataclass(frozen=True, slots=True)
class StageLatency:
    """Latency of one stage over the articles that this process answered last."""

    stage: str
    median_ms: float
    p95_ms: float


async def health(request: web.Request, query: None) -> web.StreamResponse:
    """The health page, also while the store is unavailable."""
    service = request.app[SERVICE]
    info = await service.store.info()
    arrivals: Sequence[StreamItem] = ()
    articles = 0
    learning: LearningStatus | None = None
    problem = info.problem or ""
    try:
        arrivals = await service.index.stream.recent_entries(MAX_ARRIVALS)
        articles = await service.index.stream.length()
        learning = await service.events.learning(service.clock())
    except StoreUnavailable as error:
        problem = problem or str(error)
    now_ms = service.clock()
    return html_response(
        request,
        "health.html",
        page="health",
        info=info,
        problem=problem,
        articles=articles,
        bytes_per_article=info.memory_bytes / articles if articles else None,
        rate=arrival_rate(arrivals, now_ms),
        latency=stage_latencies(list(request.app[METRICS].recent_timings_ms)),
        answered=len(request.app[METRICS].recent_timings_ms),
        spaces=[_space_row(space) for space in sorted(service.index.spaces, key=_is_fallback)],
        detector=await detector_status(request.app),
        learning=learning,
        stream_clients=service.change_broadcaster.subscriber_count,
        settings=service.settings,
        policies=service.policies,
        version=__version__,
    )


def arrival_rate(arrivals: Sequence[StreamItem], now_ms: int) -> ArrivalRate:
    """Arrival rate of the last hour. ``arrivals``: newest first."""
    from_ms = (now_ms // MINUTE_MS - CHART_MINUTES + 1) * MINUTE_MS
    counted = [item for item in arrivals if item.kind == "article" and item.arrived_ms >= from_ms]
    minutes = Counter(item.arrived_ms // MINUTE_MS * MINUTE_MS for item in counted)
    recent = sum(1 for item in counted if item.arrived_ms > now_ms - 5 * MINUTE_MS)
    verdicts = Counter(item.verdict for item in counted)
    return ArrivalRate(
        chart=charts.timeline_chart(
            sorted(minutes.items()), from_ms, now_ms, CHART_WIDTH, CHART_HEIGHT, bin_ms=MINUTE_MS
        ),
        per_minute=recent / 5,
        last_hour=len(counted),
        verdicts={name: verdicts[name] for name in VERDICTS},
        truncated=len(arrivals) == MAX_ARRIVALS and len(counted) == len(arrivals),
    )


def stage_latencies(timings_ms: Sequence[Mapping[str, float]]) -> list[StageLatency]:
    """Median and 95th percentile of each stage, and of the total, which comes last."""
    if not timings_ms:
        return []
    stages: dict[str, list[float]] = {}
    for timings in timings_ms:
        for stage, ms in (*timings.items(), (TOTAL, sum(timings.values()))):
            stages.setdefault(stage, []).append(ms)
    return [
        StageLatency(stage, _quantile(values, 0.5), _quantile(values, 0.95))
        for stage, values in sorted(stages.items(), key=lambda s: s[0] == TOTAL)
    ]


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _is_fallback(space: str) -> bool:
    return group_of(space) == FALLBACK_GROUP


def _space_row(space: str) -> dict[str, str]:
    """A fingerprint space and the languages it serves."""
    languages = "all other languages" if _is_fallback(space) else group_of(space)
    return {"space": space, "languages": languages}
