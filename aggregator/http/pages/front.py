"""Front page: breaking events and the latest articles."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from aggregator.contract.requests import FrontQuery
from aggregator.domain import StreamItem
from aggregator.http.app_keys import SERVICE
from aggregator.http.handlers import event_filters
from aggregator.http.hosts import base_url
from aggregator.http.pages import cards, front_filters, html_response

MAX_EVENTS = 100
MAX_VERDICTS = 40


async def front(request: web.Request, query: FrontQuery) -> web.StreamResponse:
    """Events by rank and recent verdicts; 304 while nothing has changed."""
    service = request.app[SERVICE]
    # Read before the list, so that the stream repeats changes made in between.
    position = await service.change_broadcaster.latest_position()
    event_filter = await event_filters.build_filter(service.saved_filters, query)
    events = await service.events.list_events(limit=MAX_EVENTS, event_filter=event_filter)
    recent = [] if query.kiosk else await service.index.stream.recent(MAX_VERDICTS)
    articles = [item for item in recent if item.kind == "article"]
    event_ids = await service.events.event_ids_of([item.first_version for item in articles])
    settings, now_ms = service.settings, service.clock()
    lists = cards.event_lists(events, now_ms, query.sort, query.severity)
    view = front_filters.view(query, (*lists.open, *lists.closed))
    return html_response(
        request,
        "front.html",
        page="events",
        learning=await service.events.learning(now_ms),
        lists=lists,
        verdicts=[_verdict_row(item, event_ids.get(item.first_version)) for item in articles],
        view=view,
        severity_labels=front_filters.SEVERITY_LABELS,
        kiosk=query.kiosk,
        rule=f"more than {settings.burst_items} similar items within {settings.burst_window_hours:g} hours",
        window=f"{settings.burst_window_hours:g} h",
        event_filter=event_filter,
        stream_url="/v1/events/stream" + front_filters.filter_query(query),
        stream_position=position.decode(),
        origin=base_url(request) or "http://ADDRESS",
    )


def _verdict_row(item: StreamItem, event_id: str | None) -> dict[str, Any]:
    return {
        "event_id": event_id,
        "key": f"v{item.number}",
        "id": item.id,
        "title": item.title or item.id,
        "url": item.url,
        "source": item.source,
        "lang": item.lang,
        "verdict": item.verdict,
        "exact": item.exact,
        "arrived_ms": item.arrived_ms,
    }
