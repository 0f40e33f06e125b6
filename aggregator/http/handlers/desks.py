"""Routes of desks and their notification targets."""

from __future__ import annotations

import msgspec
from aiohttp import web

from aggregator.contract import requests, responses
from aggregator.contract.decoding import check_path_id
from aggregator.contract.encoding import to_datetime
from aggregator.events.desks import Desk
from aggregator.http import body as bodies
from aggregator.http import json_response
from aggregator.http.app_keys import BASE_PATH, SERVICE, caller_id, caller_name
from aggregator.http.desk_input import to_desk, validate_target
from aggregator.http.handlers.webhooks import webhook_out

_decode_desk_in = msgspec.json.Decoder(requests.DeskIn).decode
_decode_target_in = msgspec.json.Decoder(requests.TargetIn).decode


async def post(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """Create a desk; one with this name is answered with 200 and stays as it is."""
    service = request.app[SERVICE]
    body = await bodies.read_struct(request, _decode_desk_in)
    desk = to_desk(body, service.clock(), caller_id(request), caller_name(request))
    stored, is_new = await service.desks.create(desk)
    headers = json_response.location("/v1/desks", stored.id) if is_new else None
    return json_response.struct_response(
        desk_out(stored, request.app[BASE_PATH]), 201 if is_new else 200, headers
    )


async def list_(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """All desks, without their targets."""
    desks = await request.app[SERVICE].desks.values()
    return json_response.struct_response(
        responses.DesksOut([desk_out(desk, request.app[BASE_PATH]) for desk in desks])
    )


async def get(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """One desk, without its targets."""
    desk = await request.app[SERVICE].desks.get(check_path_id(request.match_info["id"]))
    return json_response.struct_response(desk_out(desk, request.app[BASE_PATH]))


async def put(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """Replace the settings of a desk."""
    service = request.app[SERVICE]
    id_ = check_path_id(request.match_info["id"])
    body = await bodies.read_struct(request, _decode_desk_in)
    desk = to_desk(body, service.clock(), editor=caller_name(request))
    changed = await service.desks.change(id_, lambda _: desk)
    return json_response.struct_response(desk_out(changed, request.app[BASE_PATH]))


async def delete(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """Delete a desk and its targets."""
    service = request.app[SERVICE]
    id_ = check_path_id(request.match_info["id"])
    await service.desks.remove(id_)
    await service.webhook_subscriptions.remove_of_desk(id_)
    return web.Response(status=204)


async def post_target(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """Add a notification target to a desk; one with this address is answered with 200.

    The signing secret of a webhook is returned only here, and to the key that added it.
    """
    service = request.app[SERVICE]
    desk = await service.desks.get(check_path_id(request.match_info["id"]))
    body = await bodies.read_struct(request, _decode_target_in)
    address = validate_target(body, allow_private=service.settings.webhook_allow_private_addresses)
    target, is_new = await service.webhook_subscriptions.subscribe(
        address, (), body.format, service.clock(), caller_id(request), kind=body.kind, desk=desk.id
    )
    is_own = target.kind == "webhook" and target.owner == caller_id(request)
    pending = 0 if is_new else (await service.webhook_dispatcher.pending()).get(target.id, 0)
    out = webhook_out(target, pending, target.secret if is_own else None)
    headers = json_response.location("/v1/webhooks", target.id) if is_new else None
    return json_response.struct_response(out, 201 if is_new else 200, headers)


def desk_out(desk: Desk, base: str) -> responses.DeskOut:
    """A desk with the addresses of its view, below the path ``base``."""
    fields = {name: getattr(desk, name) for name in requests.DeskIn.__struct_fields__}
    lists = {name: list(value) for name, value in fields.items() if isinstance(value, tuple)}
    return responses.DeskOut(
        id=desk.id,
        created_at=to_datetime(desk.created_ms),
        events=f"{base}/v1/events?watch={desk.id}",
        stream=f"{base}/v1/events/stream?watch={desk.id}",
        atom=f"{base}/v1/events.atom?watch={desk.id}",
        json_feed=f"{base}/v1/events.json?watch={desk.id}",
        **(fields | lists),
    )
