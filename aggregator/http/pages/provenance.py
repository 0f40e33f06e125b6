"""Pages of provenance: who published a text or had an event first, and the outlets."""

from __future__ import annotations

from aiohttp import web

from aggregator.contract.requests import NoQuery, SourcesPageQuery
from aggregator.http.app_keys import SERVICE
from aggregator.http.pages import cards, html_response
from aggregator.http.query_params import path_id
from aggregator.provenance.directory import families_among, select

SOURCES_PER_PAGE = 100
SHOWN_OUTLETS = 30  # of an event; the others are folded


async def article_provenance(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """First publisher and followers of an article's text."""
    service, id_ = request.app[SERVICE], path_id(request)
    found = await service.provenance.of_article(id_)
    own = next(step.record for step in found.lineage.steps if step.record.id == id_)
    return html_response(request, "article_provenance.html", page="provenance", article=own, text=found)


async def event_provenance(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """First publisher and followers of an event, and the texts that its outlets share."""
    service = request.app[SERVICE]
    event = await service.events.get(path_id(request))
    found = await service.provenance.of_event(event.items)
    names = {entry.publication.source for entry in found.outlets}
    return html_response(
        request,
        "event_provenance.html",
        page="provenance",
        event=event,
        card=cards.make_card(event, service.clock()),
        found=found,
        families=families_among(await service.sources.report(), names),
        shown_outlets=SHOWN_OUTLETS,
    )


async def sources(request: web.Request, query: SourcesPageQuery) -> web.StreamResponse:
    """The outlets with their statistics, and the syndication families."""
    report = await request.app[SERVICE].sources.report()
    selection = select(report, query.q, query.sort, query.offset, SOURCES_PER_PAGE)
    return html_response(
        request, "sources.html", page="sources", report=report, selection=selection, query=query
    )


async def source(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """One outlet."""
    directory = request.app[SERVICE].sources
    found, family = await directory.get(request.match_info["name"])
    return html_response(
        request, "source.html", page="sources", source=found, family=family, report=await directory.report()
    )
