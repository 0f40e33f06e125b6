"""Routes of saved watches."""

from __future__ import annotations

import msgspec
from aiohttp import web

from aggregator.contract import requests, responses
from aggregator.contract.decoding import one_line, path_id
from aggregator.contract.encoding import when
from aggregator.errors import BadInput
from aggregator.events.saved_filters import Watch
from aggregator.http import body as bodies
from aggregator.http import json_response
from aggregator.http.app_keys import SERVICE
from aggregator.http.handlers.event_filters import filter_of, saved_form

_watch_in = msgspec.json.Decoder(requests.WatchIn).decode


async def post(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """Save a query under a name."""
    service = request.app[SERVICE]
    body = await bodies.decoded(request, _watch_in)
    name = one_line(body.name)
    if not name:
        raise BadInput("name: say what is watched; the name is blank.", field="name")
    watch = await service.watches.save(name, saved_form(filter_of(body.query)), service.clock())
    return json_response.json(watch_out(watch), status=201)


async def list_(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """All watches."""
    watches = await request.app[SERVICE].watches.values()
    return json_response.json(responses.WatchesOut([watch_out(watch) for watch in watches]))


async def get(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """One watch."""
    watch = await request.app[SERVICE].watches.get(path_id(request.match_info["id"]))
    return json_response.json(watch_out(watch))


async def delete(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """Forget a watch; feeds and streams that name it answer 404 from then on."""
    await request.app[SERVICE].watches.remove(path_id(request.match_info["id"]))
    return web.Response(status=204)


def watch_out(watch: Watch) -> responses.WatchOut:
    """A watch, with the addresses under which its events are read."""
    return responses.WatchOut(
        id=watch.id,
        name=watch.name,
        query=watch.query,
        created_at=when(watch.created_ms),
        list=f"/v1/events?watch={watch.id}",
        stream=f"/v1/events/stream?watch={watch.id}",
        atom=f"/v1/events.atom?watch={watch.id}",
        json=f"/v1/events.json?watch={watch.id}",
    )
