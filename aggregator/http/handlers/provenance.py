"""Routes of provenance: who published a text or an event first."""

from __future__ import annotations

from aiohttp import web

from aggregator.contract.decoding import check_path_id
from aggregator.contract.requests import NoQuery
from aggregator.http import json_response
from aggregator.http.app_keys import SERVICE
from aggregator.http.handlers import provenance_views


async def of_article(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """First publisher and followers of an article's text."""
    id_ = check_path_id(request.match_info["id"])
    found = await request.app[SERVICE].provenance.of_article(id_)
    return json_response.struct_response(provenance_views.provenance_out(id_, found))


async def of_event(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """First publisher and followers of an event."""
    service = request.app[SERVICE]
    event = await service.events.get(check_path_id(request.match_info["id"]))
    found = await service.provenance.of_event(event.items)
    return json_response.struct_response(provenance_views.event_provenance_out(event.id, found))
