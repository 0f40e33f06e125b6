"""The editors' page: what is breaking now, and what has just come in."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from aggregator.contract.requests import FrontQuery
from aggregator.domain import StreamItem
from aggregator.http.app_keys import SERVICE
from aggregator.http.handlers import event_filters
from aggregator.http.pages import cards, html_response

MAX_EVENTS = 100
MAX_VERDICTS = 40


async def front(request: web.Request, query: FrontQuery) -> web.StreamResponse:
    """Events, first things first, and recent verdicts; 304 while nothing has changed."""
    service = request.app[SERVICE]
    position = (
        await service.change_broadcaster.latest_position()
    )  # before the list is read: what changes between is told
    wanted = await event_filters.build_filter(service.saved_filters, query)
    events = await service.events.list_events(limit=MAX_EVENTS, event_filter=wanted)
    recent = await service.index.recent(MAX_VERDICTS)
    settings = service.settings
    return html_response(
        request,
        "front.html",
        page="events",
        board=cards.event_lists(events, service.clock()),
        verdicts=[_verdict_row(item) for item in recent if item.kind == "article"],
        rule=f"more than {settings.burst_items} similar items within {settings.burst_window_hours:g} hours",
        window=f"{settings.burst_window_hours:g} h",
        wanted=wanted,
        stream=stream_url(query),
        position=position.decode(),
        origin=f"{request.scheme}://{request.host}",
    )


def stream_url(query: FrontQuery) -> str:
    """Where the page listens for changes to what it shows."""
    asked = {name: value for name in query.__struct_fields__ if (value := getattr(query, name))}
    return "/v1/events/stream" + ("?" + urlencode(asked) if asked else "")


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
