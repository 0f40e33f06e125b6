"""The health page: how much comes in, what becomes of it, how fast, at what cost, and with which models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aiohttp import web

from aggregator import __version__
from aggregator.domain import StreamItem, VerdictName
from aggregator.errors import StoreUnavailable
from aggregator.http.app_keys import METRICS, OPENAPI_DOCUMENT, SERVICE
from aggregator.http.metrics.detector import detector_status
from aggregator.http.pages import charts, html_response
from aggregator.time_units import MINUTE_MS

CHART_MINUTES = 60
# Enough for an hour at 80 articles a minute; beyond, the chart covers less and says so.
MAX_ARRIVALS = 5000
CHART_WIDTH, CHART_HEIGHT = 960, 150
VERDICTS: tuple[VerdictName, ...] = ("new", "related", "duplicate")


@dataclass(frozen=True, slots=True)
class ArrivalRate:
    """What came in during the last hour, by minute; ``cut``: there was more than was read."""

    chart: charts.Chart
    per_minute: float
    last_hour: int
    verdicts: Mapping[str, int]
    truncated: bool


@dataclass(frozen=True, slots=True)
class StageLatency:
    """Milliseconds of one stage over the articles this process answered last."""

    stage: str
    median_ms: float
    p95_ms: float


async def health(request: web.Request, query: None) -> web.StreamResponse:
    """The service for people; also while the store is away."""
    service = request.app[SERVICE]
    info = await service.store.info()
    arrivals: Sequence[StreamItem] = ()
    articles = 0
    problem = info.problem or ""
    try:
        arrivals = await service.index.recent_entries(MAX_ARRIVALS)
        articles = await service.index.stream_length()
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
        spaces=[_space_row(request, space) for space in service.index.spaces],
        detector=await detector_status(request.app),
        listeners=service.change_broadcaster.subscriber_count,
        settings=service.settings,
        version=__version__,
        calls=len(request.app[OPENAPI_DOCUMENT]["paths"]),
        stream="",
        position="",
    )


def arrival_rate(arrivals: Sequence[StreamItem], now_ms: int) -> ArrivalRate:
    """Arrivals (newest first) of the last hour by minute."""
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
    """Median and 95th percentile of each stage and of their sum."""
    if not timings_ms:
        return []
    stages: dict[str, list[float]] = {}
    for one in timings_ms:
        for stage, ms in (*one.items(), ("in all", sum(one.values()))):
            stages.setdefault(stage, []).append(ms)
    return [
        StageLatency(stage, _quantile(values, 0.5), _quantile(values, 0.95))
        for stage, values in sorted(stages.items(), key=lambda s: s[0] == "in all")
    ]


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _space_row(request: web.Request, space: str) -> dict[str, str]:
    """A fingerprint space and the model that fills it."""
    group, _, model = space.partition(".")
    return {
        "space": space,
        "group": group,
        "model": model,
        "serves": "every other language" if group == "xx" else group,
    }
