"""Routes of breaking events."""

from __future__ import annotations

import asyncio

from aiohttp import web

from aggregator.domain import Record
from aggregator.errors import NotFound
from aggregator.http import answers, event_views, views
from aggregator.http.decoding import path_id, to_ms
from aggregator.http.keys import SERVICE
from aggregator.http.schemas import EventsOut, EventsQuery, NoQuery

# A special report shows the newest items in full; it names all of them.
MAX_ARTICLES = 50


async def list_(request: web.Request, query: EventsQuery) -> web.StreamResponse:
    """Events, the most recently seen first."""
    found = await request.app[SERVICE].events.list(
        status=query.status,
        since_ms=to_ms(query.since, "since"),
        limit=query.limit,
        wanted=event_views.wanted(query),
    )
    return answers.json(EventsOut([event_views.event(event) for event in found]))


async def detail(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """The special report of one event."""
    service = request.app[SERVICE]
    event = await service.events.get(path_id(request.match_info["id"]))

    async def record(id_: str) -> Record | None:
        try:
            return (await service.index.get(id_)).record
        except NotFound:  # taken down since
            return None

    records = await asyncio.gather(*(record(id_) for id_ in event.items[-MAX_ARTICLES:]))
    return answers.json(event_views.detail(event, [views.reference(r) for r in records if r]))
