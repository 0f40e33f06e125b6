"""Front page: breaking events and the latest articles."""

from __future__ import annotations

import json

from aiohttp import web

from aggregator.domain import StreamItem
from aggregator.events.broadcast import NO_CHANGES
from aggregator.http.app_keys import SERVICE, caller_id, caller_name
from aggregator.http.handlers import event_filters
from aggregator.http.hosts import base_url
from aggregator.http.json_response import conditional_response
from aggregator.http.pages import PAGES, cards, front_filters
from aggregator.http.pages.desks import may_edit
from aggregator.http.pages.forms import FrontQuery
from aggregator.index.article_stream import ArticleStream

MAX_EVENTS = 100
MAX_VERDICTS = 40
# With a filter, the latest articles are taken from so many.
MAX_FILTERED = 200
# Without any change, rates, deleted articles, edited filters and desks are shown at most this much later.
MAX_CACHED_MS = 5000


async def front(request: web.Request, query: FrontQuery) -> web.StreamResponse:
    """Events in the reader's order and recent verdicts; 304 while nothing has changed."""
    service = request.app[SERVICE]
    # Read before the list, so that the stream repeats changes made in between.
    position = await service.change_broadcaster.latest_position()
    read_mark = await _read_mark(request)

    async def render() -> bytes:
        return await _render(request, query, position, read_mark)

    if position == NO_CHANGES:  # there is no version to cache by
        return conditional_response(request, await render(), "text/html")
    newest = await service.index.stream.recent_entries(1)
    view = (tuple(front_filters.given_values(query).items()), caller_id(request), base_url(request))
    number = newest[0].number if newest else 0
    version = (position, read_mark, number, service.clock() // MAX_CACHED_MS)
    page = await request.app[PAGES].cache.get(view, version, render)
    return conditional_response(request, page, "text/html")


async def _render(request: web.Request, query: FrontQuery, position: bytes, read_mark: str | None) -> bytes:
    service = request.app[SERVICE]
    event_filter = await event_filters.build_filter(service.desks, query)
    events = await service.events.list_events(limit=MAX_EVENTS, event_filter=event_filter)
    recent = await _recent(service.index.stream, query)
    articles = [item for item in recent if item.kind == "article"]
    event_ids = await service.events.event_ids_of([item.first_version for item in articles])
    settings, now_ms = service.settings, service.clock()
    only_ours = None if query.ours is None else query.ours == "yes"
    lists = cards.event_lists(events, now_ms, query.sort, query.severity, service.own_sources, only_ours)
    desks = {desk.id: desk.name for desk in await service.desks.values()}
    return request.app[PAGES].render(
        "front.html",
        page="events",
        user=caller_name(request),
        learning=await service.events.learning(now_ms),
        lists=lists,
        verdicts=[(item, event_ids.get(item.first_version)) for item in articles],
        view=front_filters.view(query, (*lists.open, *lists.closed), desks),
        verdict=query.verdict,
        desk_fields=front_filters.desk_fields(query) if may_edit(request) else {},
        read_mark=read_mark,
        kiosk=query.kiosk,
        tour=settings.demo and not query.kiosk,
        rule=f"more than {settings.burst_items} similar items within {settings.burst_window_hours:g} hours",
        window=f"{settings.burst_window_hours:g} h",
        event_filter=event_filter,
        stream_url="/v1/events/stream" + front_filters.filter_query(query),
        stream_position=position.decode(),
        origin=base_url(request) or "http://ADDRESS",
    )


async def _recent(stream: ArticleStream, query: FrontQuery) -> list[StreamItem]:
    if query.kiosk:
        return []
    if query.verdict is None:
        return await stream.recent(MAX_VERDICTS)
    recent = await stream.recent(MAX_FILTERED)
    return [item for item in recent if item.verdict == query.verdict][:MAX_VERDICTS]


async def _read_mark(request: web.Request) -> str | None:
    """The read mark of a user as JSON, "null" before the first front page; None: the browser keeps it."""
    user = caller_id(request)
    if not user:
        return None
    mark = await request.app[SERVICE].read_marks.get(user)
    return json.dumps({"at": mark.looked_ms, "seen": mark.seen} if mark and mark.looked_ms else None)
