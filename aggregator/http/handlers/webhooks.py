"""Routes of webhooks."""

from __future__ import annotations

import msgspec
from aiohttp import web

from aggregator.contract import requests, responses
from aggregator.contract.decoding import path_id
from aggregator.contract.encoding import when, when_or_none
from aggregator.errors import Conflict
from aggregator.events.webhooks import Hook
from aggregator.events.webhooks.sender import checked_address
from aggregator.http import body as bodies
from aggregator.http import json_response
from aggregator.http.app_keys import SERVICE
from aggregator.http.handlers.event_filters import filter_of, saved_form

_hook_in = msgspec.json.Decoder(requests.WebhookIn).decode
_action_in = msgspec.json.Decoder(requests.WebhookActionIn).decode


async def post(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """Subscribe an address. The secret is shown this once."""
    service = request.app[SERVICE]
    body = await bodies.decoded(request, _hook_in)
    url = checked_address(body.url, private=service.settings.webhook_private)
    asked = [body.query, (await service.watches.get(body.watch)).query if body.watch else ""]
    queries = tuple(form for text in asked if (form := saved_form(filter_of(text))))
    hook = await service.hooks.subscribe(url, queries, body.format, service.clock())
    return json_response.json(_hook_out(hook, 0, hook.secret), status=201)


async def list_(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """All webhooks and how they fare."""
    service = request.app[SERVICE]
    owed = await service.courier.owed()
    hooks = await service.hooks.values()
    return json_response.json(
        responses.WebhooksOut([_hook_out(hook, owed.get(hook.id, 0)) for hook in hooks])
    )


async def get(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """One webhook, and the calls to it that were given up."""
    service = request.app[SERVICE]
    hook = await service.hooks.get(path_id(request.match_info["id"]))
    owed = (await service.courier.owed()).get(hook.id, 0)
    dead = [
        responses.DeadCall(call.id, call.kind, call.event, when(call.made_ms), call.attempts, call.result)
        for call in await service.courier.dead(hook.id)
    ]
    short = _hook_out(hook, owed)
    return json_response.json(responses.WebhookDetailOut(**msgspec.structs.asdict(short), dead=dead))


async def delete(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """Unsubscribe."""
    await request.app[SERVICE].hooks.remove(path_id(request.match_info["id"]))
    return web.Response(status=204)


async def act(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """Call it now with a test body, or take calls up again."""
    service = request.app[SERVICE]
    id_ = path_id(request.match_info["id"])
    body = await bodies.decoded(request, _action_in)
    if body.action == "enable":
        return json_response.json(_hook_out(await service.hooks.enable(id_), 0))
    hook = await service.hooks.get(id_)
    result = await service.courier.ping(hook)
    if result.problem is not None:
        raise Conflict(f"The test call to {hook.url} did not arrive: {result.problem}.")
    return json_response.json(_hook_out(hook, 0))


def _hook_out(hook: Hook, owed: int, secret: str | None = None) -> responses.WebhookOut:
    return responses.WebhookOut(
        id=hook.id,
        url=hook.url,
        queries=list(hook.queries),
        format=hook.format,
        created_at=when(hook.created_ms),
        secret=secret,
        disabled=hook.disabled or None,
        owed=owed,
        delivered=hook.delivered,
        failed=hook.failed,
        last_at=when_or_none(hook.last_ms or None),
        last_result=hook.last_result or None,
    )
