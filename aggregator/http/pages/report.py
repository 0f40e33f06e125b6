"""Report page of one event, page of a storyline, and pages of provenance: who had it first, the outlets.

The articles of an event are shown in order of time with copies folded, or by outlet, a page at a time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from functools import partial
from typing import Annotated, Literal
from urllib.parse import urlencode

from aiohttp import web
from msgspec import Struct

from aggregator.analysis.source import is_own, outlet_key
from aggregator.app import Service
from aggregator.contract.requests import SourcesPageQuery
from aggregator.domain import ArticleRecord, RelatedItem
from aggregator.errors import NotFound
from aggregator.events.detection.numbers import independent, items_of
from aggregator.events.event import Event
from aggregator.events.newsroom import are_apart, undoable_actions
from aggregator.events.selection import EventFilter, severity
from aggregator.events.storylines import Development
from aggregator.http.app_keys import SERVICE
from aggregator.http.handlers.event_views import EVENT_ITEMS, EventItem, load_names, load_storyline
from aggregator.http.handlers.provenance import load_event
from aggregator.http.pages import cards, html_response, rendered, shared_response
from aggregator.http.pages.days import reader_zone
from aggregator.http.pages.filters import query_value
from aggregator.provenance.directory import families_among, select
from aggregator.queries.ranking import RelatedOptions
from aggregator.time_units import DAY_MS
from aggregator_client.wire import doc

MAX_DEVELOPMENTS = 8
MAX_ASKED, MIN_RELATED, MAX_SUGGESTED = 6, 2, 20
PAGE_SIZE, MAX_PRINTED = 50, 1000  # the print view has one page
ReportView = Literal["newest", "oldest", "outlets"]


class ReportQuery(Struct, forbid_unknown_fields=True):
    """Query of the report page: order and page of its articles; ``print``: all on one page."""

    view: Annotated[ReportView, doc("Order of the articles of the report.", "newest")] = "newest"
    page: Annotated[int, doc("Page of the articles, from 1.", 1, ge=1, le=1000)] = 1
    print: Annotated[bool, doc("All articles on one page.", False)] = False


async def report(request: web.Request, service: Service, id_: str, query: ReportQuery) -> web.Response:
    """Page: report on one event."""
    zone = reader_zone(request)
    render = partial(_render_report, request, service, id_, query, zone)
    return await shared_response(request, render, str(zone))


async def _render_report(
    request: web.Request, service: Service, id_: str, query: ReportQuery, zone: tzinfo, position: bytes
) -> bytes:
    event = await service.events.repository.get(id_)
    names, others = await load_names(service, event.actions, *filter(None, [event.merged_into]))
    owner = others.get(event.merged_into or "", event)  # it has the actions to undo
    previous, following = await service.events.repository.story_neighbors(event)
    loaded = await request.app[EVENT_ITEMS].load(service, event)
    claims, sure = event.claims, [item for item in loaded.items if not item.doubtful]
    sure.sort(key=lambda i: (claims.get(i.id) or i.at_ms, i.arrived_ms))  # old ones are not the newest
    by_id = {item.id: item for item in loaded.items}
    families = families_among(await service.articles.sources.report(), event.sources)
    entries, found = by_outlet(sure) if query.view == "outlets" else fold_copies(sure), list[Development]()
    is_long = event.last_seen_ms - event.first_seen_ms > DAY_MS
    if previous or following or (is_long and not event.merged_into):  # a merged one is in no storyline
        _, found = await load_storyline(service, event.story_id or event.id, zone)
    return rendered(
        request,
        "report.html",
        page="report",
        event=event,
        card=cards.make_card(event, service.clock()),
        previous=previous,
        following=following,
        developments=found[-MAX_DEVELOPMENTS:][::-1],
        spread=cards.spread_chart(event, loaded.items, service.clock()),
        loaded=loaded,
        suggested=await _suggestions(service, event),
        sure=sure,
        learning=await service.events.repository.learning(service.clock()),
        by_id=by_id,
        own=next((item for item in loaded.items if is_own(item.source)), None),
        is_own_source=is_own,
        zone=zone,
        names=names,
        owner=owner,
        undoable=undoable_actions(owner),
        query=query,
        entries=entries[::-1] if query.view == "newest" else entries,
        page_size=MAX_PRINTED if query.print else PAGE_SIZE,
        copy_count=len(sure) - len({item.copy_of or item.id for item in sure}),
        doubtful=[Entry(item) for item in loaded.items if item.doubtful],
        independent=independent(event.sources, families),
        late_count=sum(i.arrived_ms - (claims.get(i.id) or i.at_ms) > event.window_ms for i in loaded.items),
        view_url=partial(_url, event),
        stream_url="/v1/events/stream",
        stream_position=position.decode(),
    )


async def _suggestions(service: Service, event: Event) -> list[tuple[Event | None, list[ArticleRecord]]]:
    """Articles that tell one story with two of ``MAX_ASKED`` of an open event, by the event that has them.

    None that editors took out or put elsewhere, none of an event that they kept apart from this one.
    """
    if event.status == "closed":
        return []
    options = RelatedOptions(MAX_SUGGESTED, exclude_ids=(*event.items, *event.removed))
    sure = {id_: item for id_, item in items_of(event).items() if not item.doubtful}
    in_order = sorted(sure, key=lambda id_: (sure[id_].claim_ms or sure[id_].at_ms, sure[id_].number))
    asked = in_order[:: max(1, len(sure) // MAX_ASKED)][:MAX_ASKED]

    async def related(id_: str) -> list[RelatedItem]:
        try:
            return await service.articles.related.of_id(id_, options)
        except NotFound:  # deleted since the articles were loaded
            return []

    finds = await asyncio.gather(*map(related, asked))
    counts = Counter(found.id for find in finds for found in find if found.kind == "same_story")
    ids = [id_ for id_, count in counts.most_common(MAX_SUGGESTED) if count >= MIN_RELATED]
    stored = await service.articles.index.articles.get_many(ids)
    holders = await service.events.repository.event_ids_of([article.group for article in stored.values()])
    others = await service.events.repository.get_many(sorted({*holders.values()}))
    by_event: dict[str, list[ArticleRecord]] = {}
    for id_, article in stored.items():
        other = others.get(holders.get(article.group, ""))
        if other is None or (id_ in other.items and id_ not in other.added and not are_apart(event, other)):
            by_event.setdefault(other.id if other else "", []).append(article.record)
    return [(others.get(id_), records) for id_, records in by_event.items()]


def _url(event: Event, view: ReportView, page: int = 1) -> str:
    options = ({"view": view} if view != "newest" else {}) | ({"page": page} if page > 1 else {})
    return f"/events/{query_value(event.id)}{'?' + urlencode(options) if options else ''}#items"


async def story(request: web.Request, service: Service, id_: str) -> web.Response:
    """Page: a storyline by day. The newest day first."""
    zone = reader_zone(request)

    async def render(position: bytes) -> bytes:
        now_ms = service.clock()
        events, found = await load_storyline(service, id_, zone)
        items = sum((Counter(dict(event.timeline)) for event in events), Counter[int]())
        span = min(items, default=0), max(items, default=0)
        return rendered(
            request,
            "story.html",
            page="story",
            zone=zone,
            events=events,
            developments=found,
            card=cards.make_card(events[-1], now_ms),
            severities={event.id: severity(event, now_ms) for event in events},
            chart=cards.timeline_chart([*items.items()], *span),
            stream_url="/v1/events/stream",
            stream_position=position.decode(),
        )

    return await shared_response(request, render, str(zone))


@dataclass(frozen=True, slots=True)
class Entry:
    """One article with the copies of it. ``original``: the article of the event that it copies itself."""

    item: EventItem
    copies: tuple[EventItem, ...] = ()
    original: EventItem | None = None


def fold_copies(items: Sequence[EventItem]) -> list[Entry]:
    """One entry per group of copies in the order given, of its first article; what adds to it stays apart."""
    groups, by_id = dict[str, list[EventItem]](), {item.id: item for item in items}
    for item in items:
        groups.setdefault(item.id if item.adds else item.copy_of or item.id, []).append(item)
    return [Entry(head, tuple(copies), by_id.get(head.copy_of)) for head, *copies in groups.values()]


def by_outlet(items: Sequence[EventItem]) -> list[Entry]:
    """An entry per article: the outlets in order of their first article, nothing folded."""
    by_id = {item.id: item for item in items}
    position = {source: n for n, source in enumerate(dict.fromkeys(item.source for item in items))}
    ordered = sorted(items, key=lambda item: position[item.source])
    return [Entry(item, original=by_id.get(item.copy_of)) for item in ordered]


SOURCES_PER_PAGE = MAX_COUNTED_EVENTS = 100


async def article_provenance(request: web.Request, id_: str) -> web.Response:
    """Page: who published an article's text first, and who repeated it."""
    found = await request.app[SERVICE].articles.provenance.of_article(id_)
    own = next(step.record for step in found.steps if step.record.id == id_)
    return html_response(request, "article_provenance.html", page="provenance", article=own, text=found)


async def event_provenance(request: web.Request, service: Service, id_: str) -> web.Response:
    """Page: which outlet had an event first, and who followed."""

    async def render(_: bytes) -> bytes:
        event, found, families = await load_event(service, id_)
        near = await _suggestions(service, event)
        return rendered(
            request,
            "event_provenance.html",
            page="provenance",
            event=event,
            card=cards.make_card(event, service.clock()),
            found=found,
            earlier=[r for _, rs in near for r in rs if r.publication_ms < event.first_seen_ms],
            families=families,
            independent=independent(event.sources, families),
        )

    return await shared_response(request, render)


async def sources(request: web.Request, query: SourcesPageQuery) -> web.StreamResponse:
    """Page: outlets and syndication families."""
    report = await request.app[SERVICE].articles.sources.report()
    selection = select(report, query.q, query.sort, query.offset, SOURCES_PER_PAGE)
    return html_response(
        request, "sources.html", page="sources", report=report, selection=selection, query=query
    )


async def source(request: web.Request, name: str) -> web.Response:
    """Page: one outlet."""
    service = request.app[SERVICE]
    found, family = await service.articles.sources.get(name)
    of_outlet = EventFilter(source=name)
    events = await service.events.repository.list_events(limit=MAX_COUNTED_EVENTS, event_filter=of_outlet)
    firsts = [event for event in events if event.first and outlet_key(event.first[2]) == outlet_key(name)]
    return html_response(
        request,
        "source.html",
        page="sources",
        source=found,
        family=family,
        events=events,
        firsts=firsts,
        report=await service.articles.sources.report(),
    )
