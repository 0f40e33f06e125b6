"""Routes of desks and their targets."""

from __future__ import annotations

import msgspec
from aiohttp import web

from aggregator.app import Service
from aggregator.contract import requests, responses
from aggregator.contract.decoding import ErrorCollector, to_single_line
from aggregator.contract.encoding import fields_of
from aggregator.events.desks import Desk, time_zone
from aggregator.events.webhooks.mail import validate_mail_address
from aggregator.events.webhooks.sender import validate_url
from aggregator.events.webhooks.subscriptions import Subscription
from aggregator.http.app_keys import BASE_PATH, SERVICE, caller_id, caller_name
from aggregator.http.endpoint import created
from aggregator.http.handlers.webhooks import target_response
from aggregator.time_units import to_datetime

LIST_FIELDS = ("terms", "without", "sources", "languages")


async def post(request: web.Request, service: Service, body: requests.DeskIn) -> web.Response:
    """Create a desk: a saved view of the events with its own thresholds and notifications."""
    desk = to_desk(body, service.clock(), caller_id(request), caller_name(request))
    stored, is_new = await service.events.desks.create(desk)
    return created("/v1/desks", desk_out(stored, request.app[BASE_PATH]), is_new=is_new)


async def list_(request: web.Request) -> responses.DesksOut:
    """List desks. Without their targets."""
    desks, base = await request.app[SERVICE].events.desks.values(), request.app[BASE_PATH]
    return responses.DesksOut([desk_out(desk, base) for desk in desks])


async def get(request: web.Request, id_: str) -> responses.DeskOut:
    """Get a desk. Without its targets."""
    return desk_out(await request.app[SERVICE].events.desks.get(id_), request.app[BASE_PATH])


async def put(request: web.Request, service: Service, id_: str, body: requests.DeskIn) -> responses.DeskOut:
    """Replace the settings of a desk; its targets stay."""
    desk = to_desk(body, service.clock(), editor=caller_name(request))
    return desk_out(await service.events.desks.change(id_, lambda _: desk), request.app[BASE_PATH])


async def delete(service: Service, id_: str) -> None:
    """Delete a desk and its targets."""
    await service.events.desks.remove(id_)
    targets = await service.events.subscriptions.values()
    await service.background.webhook_dispatcher.remove([t.id for t in targets if t.desk == id_])


async def post_target(request: web.Request, id_: str, body: requests.TargetIn) -> web.Response:
    """Add a notification target to a desk: e-mail or webhook. The key that adds it gets its secret, once."""
    desk = await request.app[SERVICE].events.desks.get(id_)
    return await target_response(request, *await add_target(request, desk, body))


def to_desk(body: requests.DeskIn, now_ms: int, owner: str = "", editor: str = "") -> Desk:
    """The desk of a request, without an id. Raises InvalidInput."""
    fields = msgspec.structs.asdict(body)
    # Single-line values without blank and repeated ones, in order.
    fields |= {n: tuple(dict.fromkeys(filter(None, map(to_single_line, fields[n])))) for n in LIST_FIELDS}
    fields["name"] = to_single_line(body.name)
    fields["time_zone"] = zone = body.time_zone.strip() or "UTC"
    found = ErrorCollector()
    if not fields["name"]:
        found.add("name: blank; give the desk a name.", "name", "missing")
    if bool(body.quiet_from) != bool(body.quiet_until):
        found.add("quiet_until: give both ends of the quiet hours, or neither.", "quiet_until", "missing")
    found.run(time_zone, zone)
    found.raise_all()
    return Desk(id="", created_ms=now_ms, owner=owner, edited_ms=now_ms, edited_by=editor, **fields)


async def add_target(request: web.Request, desk: Desk, body: requests.TargetIn) -> tuple[Subscription, bool]:
    """The target of a desk, and whether it is new. Raises InvalidInput, without repeating the address."""
    service = request.app[SERVICE]
    if body.kind == "mail":
        address = validate_mail_address(body.address)
    else:
        allow_private = service.settings.webhook_allow_private_addresses
        address = validate_url(body.address.strip(), allow_private=allow_private)
    return await service.events.subscriptions.subscribe(
        address, (), body.format, service.clock(), caller_id(request), kind=body.kind, desk=desk.id,
        kinds=(*body.kinds,),
    )  # fmt: skip


def desk_out(desk: Desk, base: str) -> responses.DeskOut:
    """A desk with the addresses of its view, below the path ``base``."""
    events = f"{base}/v1/events"
    return fields_of(
        desk,
        responses.DeskOut,
        created_at=to_datetime(desk.created_ms),
        events=f"{events}?watch={desk.id}",
        stream=f"{events}/stream?watch={desk.id}",
        atom=f"{events}.atom?watch={desk.id}",
    )
