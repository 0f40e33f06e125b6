"""Report page of one event: spread, key developments, articles, work of the newsroom."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from urllib.parse import urlencode

from aiohttp import web

from aggregator.app import Service
from aggregator.contract.requests import ReportQuery, ReportView
from aggregator.errors import NotFound
from aggregator.events.detection.model import Event
from aggregator.events.developments import Development
from aggregator.http.app_keys import EVENT_ITEMS, SERVICE
from aggregator.http.event_items import EventItem, first_own, item_of
from aggregator.http.pages import cards, html_response, item_list
from aggregator.http.pages.filters import query_value
from aggregator.http.pages.item_list import Entry
from aggregator.http.pages.spread_chart import spread_chart
from aggregator.http.query_params import path_id
from aggregator.http.storyline import load_storyline
from aggregator.time_units import DAY_MS

MAX_COPIES = 20  # of each article, beyond those that the event counts
MAX_DEVELOPMENTS = 8
VIEW_NAMES: dict[ReportView, str] = {
    "newest": "Newest first",
    "oldest": "Oldest first",
    "outlets": "By outlet",
}


async def report(request: web.Request, query: ReportQuery) -> web.StreamResponse:
    """The report of an event."""
    service = request.app[SERVICE]
    position = await service.change_broadcaster.latest_position()
    event = await service.events.get(path_id(request))
    previous, following = await service.events.story_neighbors(event)
    loaded = await request.app[EVENT_ITEMS].load(service, event)
    page = await _item_page(service, loaded.items, query)
    return html_response(
        request,
        "report.html",
        page="report",
        event=event,
        card=cards.make_card(event, service.clock()),
        previous=previous,
        following=following,
        developments=await _developments(service, event) if previous or following or _days(event) > 1 else [],
        spread=spread_chart(event, loaded.items, service.clock()),
        window=f"{service.settings.burst_window_hours:g} h",
        alternatives=loaded.alternatives,
        first=loaded.first,
        has_own_sources=bool(service.own_sources),
        own=first_own(loaded.items, service),
        is_own_source=service.own_sources.is_own,
        editors=sorted({event.assignee, *(action.actor for action in event.actions)} - {""}),
        item_page=page,
        stored_count=len(loaded.items),
        copy_count=len(loaded.items) - len(item_list.fold_copies(loaded.items)),
        view=query.view,
        views={view: (name, _url(event, view)) for view, name in VIEW_NAMES.items()},
        page_url=lambda number: _url(event, query.view, number),
        is_print=query.print,
        unnamed_outlet=item_list.UNNAMED_OUTLET,
        stream_url="/v1/events/stream",
        stream_position=position.decode(),
    )


async def _item_page(service: Service, items: Sequence[EventItem], query: ReportQuery) -> item_list.Page:
    """The articles to show; in the print view all, without further copies."""
    size = item_list.MAX_PRINTED if query.print else item_list.PAGE_SIZE
    if query.view == "outlets":
        return item_list.outlet_page(items, query.page, size)
    entries = item_list.fold_copies(items)
    page = item_list.page_of(entries[::-1] if query.view == "newest" else entries, query.page, size)
    if query.print:
        return page
    return item_list.Page(page.number, page.count, await _with_further_copies(service, page.entries))


async def _with_further_copies(service: Service, entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The entries with copies that the event does not count, of the groups of copies among them."""

    async def complete(entry: Entry) -> Entry:
        canonical_id = entry.item.copy_of or entry.item.id
        if not entry.item.copy_of and not entry.copies:
            return entry
        try:
            members = await service.index.articles.group_members(canonical_id, MAX_COPIES)
        except NotFound:  # deleted in the meantime
            return entry
        return item_list.add_copies(entry, [item_of(record) for record in members])

    return tuple(await asyncio.gather(*map(complete, entries)))


async def _developments(service: Service, event: Event) -> list[Development]:
    """The latest developments of the storyline, the newest first."""
    try:
        story = await load_storyline(service, event.story_id or event.id)
    except NotFound:  # the event was merged into another one
        return []
    return list(story.developments)[-MAX_DEVELOPMENTS:][::-1]


def _days(event: Event) -> int:
    """On how many days (UTC) the event had new items."""
    return len({at_ms // DAY_MS for at_ms, _ in event.timeline})


def _url(event: Event, view: ReportView, page: int = 1) -> str:
    """Address of a page of the articles."""
    options = ({"view": view} if view != "newest" else {}) | ({"page": page} if page > 1 else {})
    return f"/events/{query_value(event.id)}{'?' + urlencode(options) if options else ''}#items"
