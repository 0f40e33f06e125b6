"""Front page: breaking events and the latest articles."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from aggregator.contract.requests import FrontQuery
from aggregator.domain import StreamItem
from aggregator.events.filter import EventFilter
from aggregator.http.app_keys import SERVICE
from aggregator.http.handlers import event_filters
from aggregator.http.hosts import base_url
from aggregator.http.pages import cards, html_response

MAX_EVENTS = 100
MAX_VERDICTS = 40


async def front(request: web.Request, query: FrontQuery) -> web.StreamResponse:
    """Events by rank and recent verdicts; 304 while nothing has changed."""
    service = request.app[SERVICE]
    # Read before the list, so that the stream repeats changes made in between.
    position = await service.change_broadcaster.latest_position()
    event_filter = await event_filters.build_filter(service.saved_filters, query)
    events = await service.events.list_events(limit=MAX_EVENTS, event_filter=event_filter)
    recent = await service.index.stream.recent(MAX_VERDICTS)
    settings = service.settings
    return html_response(
        request,
        "front.html",
        page="events",
        learning=await service.events.learning(service.clock()),
        lists=cards.event_lists(events, service.clock()),
        verdicts=[_verdict_row(item) for item in recent if item.kind == "article"],
        rule=f"more than {settings.burst_items} similar items within {settings.burst_window_hours:g} hours",
        window=f"{settings.burst_window_hours:g} h",
        event_filter=event_filter,
        is_filtered=event_filter != EventFilter(),
        stream_url=stream_url(query),
        stream_position=position.decode(),
        origin=base_url(request) or "http://ADDRESS",
    )


def stream_url(query: FrontQuery) -> str:
    """URL of the event stream with the filter of the page."""
    filters = {name: value for name in query.__struct_fields__ if (value := getattr(query, name))}
    return "/v1/events/stream" + ("?" + urlencode(filters) if filters else "")


def _verdict_row(item: StreamItem) -> dict[str, Any]:
    return {
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
