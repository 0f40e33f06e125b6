"""Routes of webhooks."""

from __future__ import annotations

import msgspec
from aiohttp import web

from aggregator.contract import requests, responses
from aggregator.contract.decoding import check_path_id
from aggregator.contract.encoding import to_datetime, to_datetime_or_none
from aggregator.errors import Conflict
from aggregator.events.webhooks import Subscription
from aggregator.events.webhooks.sender import validate_url
from aggregator.http import body as bodies
from aggregator.http import json_response
from aggregator.http.app_keys import SERVICE
from aggregator.http.handlers.event_filters import canonical_query_string, parse_filter

_decode_webhook_in = msgspec.json.Decoder(requests.WebhookIn).decode
_decode_action_in = msgspec.json.Decoder(requests.WebhookActionIn).decode


async def post(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """Subscribe an address. The secret is shown this once."""
    service = request.app[SERVICE]
    body = await bodies.read_struct(request, _decode_webhook_in)
    url = validate_url(body.url, allow_private=service.settings.webhook_allow_private_addresses)
    asked = [body.query, (await service.saved_filters.get(body.watch)).query if body.watch else ""]
    queries = tuple(form for text in asked if (form := canonical_query_string(parse_filter(text))))
    hook = await service.webhook_subscriptions.subscribe(url, queries, body.format, service.clock())
    return json_response.struct_response(_webhook_out(hook, 0, hook.secret), status=201)


async def list_(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """All webhooks and how they fare."""
    service = request.app[SERVICE]
    owed = await service.webhook_dispatcher.pending()
    hooks = await service.webhook_subscriptions.values()
    return json_response.struct_response(
        responses.WebhooksOut([_webhook_out(hook, owed.get(hook.id, 0)) for hook in hooks])
    )


async def get(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """One webhook, and the calls to it that were given up."""
    service = request.app[SERVICE]
    hook = await service.webhook_subscriptions.get(check_path_id(request.match_info["id"]))
    owed = (await service.webhook_dispatcher.pending()).get(hook.id, 0)
    dead = [
        responses.DeadLetterOut(
            call.id, call.kind, call.event, to_datetime(call.made_ms), call.attempts, call.result
        )
        for call in await service.webhook_dispatcher.dead_letters(hook.id)
    ]
    short = _webhook_out(hook, owed)
    return json_response.struct_response(
        responses.WebhookDetailOut(**msgspec.structs.asdict(short), dead=dead)
    )


async def delete(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """Unsubscribe."""
    await request.app[SERVICE].webhook_subscriptions.remove(check_path_id(request.match_info["id"]))
    return web.Response(status=204)


async def post_action(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """Call it now with a test body, or take calls up again."""
    service = request.app[SERVICE]
    id_ = check_path_id(request.match_info["id"])
    body = await bodies.read_struct(request, _decode_action_in)
    if body.action == "enable":
        return json_response.struct_response(_webhook_out(await service.webhook_subscriptions.enable(id_), 0))
    hook = await service.webhook_subscriptions.get(id_)
    result = await service.webhook_dispatcher.ping(hook)
    if result.error is not None:
        raise Conflict(f"The test call to {hook.url} did not arrive: {result.error}.")
    return json_response.struct_response(_webhook_out(hook, 0))


def _webhook_out(subscription: Subscription, pending: int, secret: str | None = None) -> responses.WebhookOut:
    return responses.WebhookOut(
        id=subscription.id,
        url=subscription.url,
        queries=list(subscription.queries),
        format=subscription.format,
        created_at=to_datetime(subscription.created_ms),
        secret=secret,
        disabled=subscription.disabled or None,
        owed=pending,
        delivered=subscription.delivered,
        failed=subscription.failed,
        last_at=to_datetime_or_none(subscription.last_ms or None),
        last_result=subscription.last_result or None,
    )
