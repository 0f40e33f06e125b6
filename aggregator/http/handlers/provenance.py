"""Routes of provenance: who published a text or an event first."""

from __future__ import annotations

from aiohttp import web

from aggregator.contract.requests import NoQuery, SourcesQuery
from aggregator.http import json_response
from aggregator.http.app_keys import SERVICE
from aggregator.http.handlers import provenance_views
from aggregator.http.query_params import path_id
from aggregator.provenance.selection import families_among, select


async def of_article(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """First publisher and followers of an article's text."""
    id_ = path_id(request)
    found = await request.app[SERVICE].provenance.of_article(id_)
    return json_response.struct_response(provenance_views.provenance_out(id_, found))


async def of_event(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """First publisher and followers of an event."""
    service = request.app[SERVICE]
    event = await service.events.get(path_id(request))
    found = await service.provenance.of_event(event.items)
    names = {entry.publication.source for entry in found.outlets}
    families = families_among(await service.sources.report(), names)
    return json_response.struct_response(provenance_views.event_provenance_out(event.id, found, families))


async def list_sources(request: web.Request, query: SourcesQuery) -> web.StreamResponse:
    """The outlets with their statistics, and the syndication families."""
    report = await request.app[SERVICE].sources.report()
    selection = select(report, query.q, query.sort, query.offset, query.limit)
    return json_response.struct_response(provenance_views.sources_out(report, selection))


async def get_source(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """One outlet."""
    sources = request.app[SERVICE].sources
    source, family = await sources.get(request.match_info["name"])
    return json_response.struct_response(provenance_views.source_out(source, family, await sources.report()))
