"""Routes of saved watches (event filters under a name)."""

from __future__ import annotations

import msgspec
from aiohttp import web

from aggregator.contract import requests, responses
from aggregator.contract.decoding import check_path_id, to_single_line
from aggregator.contract.encoding import to_datetime
from aggregator.errors import InvalidInput
from aggregator.events.saved_filters import SavedFilter
from aggregator.http import body as bodies
from aggregator.http import json_response
from aggregator.http.app_keys import BASE_PATH, SERVICE, caller_id
from aggregator.http.handlers.event_filters import canonical_query_string, parse_filter

_decode_watch_in = msgspec.json.Decoder(requests.WatchIn).decode


async def post(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """Save a query under a name; a watch with this name and query is answered with 200."""
    service = request.app[SERVICE]
    body = await bodies.read_struct(request, _decode_watch_in)
    name = to_single_line(body.name)
    if not name:
        raise InvalidInput("name: blank; give the watch a name.", field="name")
    watch, is_new = await service.saved_filters.save(
        name, canonical_query_string(parse_filter(body.query)), service.clock(), caller_id(request)
    )
    headers = json_response.location("/v1/watches", watch.id) if is_new else None
    return json_response.struct_response(
        watch_out(watch, request.app[BASE_PATH]), 201 if is_new else 200, headers
    )


async def list_(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """All watches."""
    watches = await request.app[SERVICE].saved_filters.values()
    return json_response.struct_response(
        responses.WatchesOut([watch_out(watch, request.app[BASE_PATH]) for watch in watches])
    )


async def get(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """One watch."""
    watch = await request.app[SERVICE].saved_filters.get(check_path_id(request.match_info["id"]))
    return json_response.struct_response(watch_out(watch, request.app[BASE_PATH]))


async def delete(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """Delete a watch; feeds and streams that name it answer 404 from then on."""
    await request.app[SERVICE].saved_filters.remove(check_path_id(request.match_info["id"]))
    return web.Response(status=204)


def watch_out(watch: SavedFilter, base: str) -> responses.WatchOut:
    """A watch with the addresses of its events, below the path ``base``."""
    return responses.WatchOut(
        id=watch.id,
        name=watch.name,
        query=watch.query,
        created_at=to_datetime(watch.created_ms),
        list=f"{base}/v1/events?watch={watch.id}",
        stream=f"{base}/v1/events/stream?watch={watch.id}",
        atom=f"{base}/v1/events.atom?watch={watch.id}",
        json=f"{base}/v1/events.json?watch={watch.id}",
    )
