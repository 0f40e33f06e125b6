"""Routes of breaking events."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import msgspec
from aiohttp import web

from aggregator.analysis.article_id import checked_id
from aggregator.contract import encoding
from aggregator.contract.decoding import one_line, path_id, to_ms
from aggregator.contract.requests import ActionIn, EventsQuery, NoQuery
from aggregator.contract.responses import EventsOut
from aggregator.domain import Record
from aggregator.errors import BadInput, NotFound
from aggregator.events.detection import Action
from aggregator.events.repository import place_of
from aggregator.http import body as bodies
from aggregator.http import cursors, json_response
from aggregator.http.app_keys import SERVICE
from aggregator.http.handlers import event_views
from aggregator.http.handlers.event_filters import wanted
from aggregator.http.middleware import auth

# A special report shows the newest items in full; it names all of them.
MAX_ARTICLES = 50
# What an action needs besides an actor, and what it may have.
NEEDS = {"merge": "into", "remove_item": "item"}
MAY_HAVE = {**NEEDS, "mute": "scope"}

_action_in = msgspec.json.Decoder(ActionIn).decode


async def list_(request: web.Request, query: EventsQuery) -> web.StreamResponse:
    """Events, the most recently seen first."""
    service = request.app[SERVICE]
    after = cursors.decode(query.cursor) if query.cursor else None
    found = await service.events.list(
        status=query.status,
        since_ms=to_ms(query.since, "since"),
        limit=query.limit + 1,
        wanted=await wanted(service.watches, query),
        **({"after": after} if after else {}),
    )
    page = found[: query.limit]
    following = cursors.encode(place_of(page[-1])) if len(found) > len(page) else None
    return json_response.json(EventsOut([event_views.event(event) for event in page], following))


async def detail(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """The special report of one event; that of a merged one is where the event is that took it over."""
    service = request.app[SERVICE]
    event = await service.events.get(path_id(request.match_info["id"]))
    if event.merged_into is not None:
        return web.Response(
            status=308, headers={"Location": f"/v1/events/{quote(event.merged_into, safe='')}"}
        )

    async def record(id_: str) -> Record | None:
        try:
            return (await service.index.get(id_)).record
        except NotFound:  # taken down since
            return None

    records = await asyncio.gather(*(record(id_) for id_ in event.items[-MAX_ARTICLES:]))
    return json_response.json(event_views.detail(event, [encoding.reference(r) for r in records if r]))


async def act(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """One action of an editor."""
    service = request.app[SERVICE]
    id_ = path_id(request.match_info["id"])
    body = await bodies.decoded(request, _action_in)
    body.actor = auth.actor(request, body.actor)
    event = await service.actions.act(_action(body, id_, service.clock()))
    return json_response.json(event_views.event(event))


def _action(body: ActionIn, event_id: str, now_ms: int) -> Action:
    """The action as the inside knows it. Raises BadInput naming the field."""
    given = {name: getattr(body, name) for name in ("into", "item", "scope")}
    for name, value in given.items():
        if value is None and NEEDS.get(body.action) == name:
            raise BadInput(f"{name}: the action {body.action} needs it.", field=name)
        if value is not None and MAY_HAVE.get(body.action) != name:
            raise BadInput(f"{name}: the action {body.action} does not take it.", field=name)
        if value is not None and name != "scope":
            checked_id(value, name)
    actor = one_line(body.actor)
    if not actor:
        raise BadInput("actor: say who does it; the name is blank.", field="actor")
    return Action(action=body.action, actor=actor, at_ms=now_ms, event=event_id, **given)
