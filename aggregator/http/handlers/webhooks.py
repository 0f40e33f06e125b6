"""Routes of webhooks: subscriptions, delivery status, test deliveries."""

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
from aggregator.http.app_keys import SERVICE, caller_id
from aggregator.http.handlers.event_filters import canonical_query_string, parse_filter

_decode_webhook_in = msgspec.json.Decoder(requests.WebhookIn).decode
_decode_action_in = msgspec.json.Decoder(requests.WebhookActionIn).decode


async def post(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """Register a webhook; one with this URL, filter and format is answered with 200.

    The secret is returned only here, and to the key that registered the webhook.
    """
    service = request.app[SERVICE]
    body = await bodies.read_struct(request, _decode_webhook_in)
    url = validate_url(body.url, allow_private=service.settings.webhook_allow_private_addresses)
    given = [body.query, (await service.saved_filters.get(body.watch)).query if body.watch else ""]
    queries = tuple(
        query_string for text in given if (query_string := canonical_query_string(parse_filter(text)))
    )
    hook, is_new = await service.webhook_subscriptions.subscribe(
        url, queries, body.format, service.clock(), caller_id(request)
    )
    if is_new:
        return json_response.struct_response(_webhook_out(hook, 0, hook.secret), status=201)
    pending = (await service.webhook_dispatcher.pending()).get(hook.id, 0)
    # A client whose first answer was lost needs the secret.
    secret = hook.secret if hook.owner == caller_id(request) else None
    return json_response.struct_response(_webhook_out(hook, pending, secret))


async def list_(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """All webhooks with their delivery status."""
    service = request.app[SERVICE]
    pending = await service.webhook_dispatcher.pending()
    hooks = await service.webhook_subscriptions.values()
    return json_response.struct_response(
        responses.WebhooksOut([_webhook_out(hook, pending.get(hook.id, 0)) for hook in hooks])
    )


async def get(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """One webhook with its dead letters."""
    service = request.app[SERVICE]
    hook = await service.webhook_subscriptions.get(check_path_id(request.match_info["id"]))
    pending = (await service.webhook_dispatcher.pending()).get(hook.id, 0)
    dead = [
        responses.DeadLetterOut(
            letter.id, letter.kind, letter.event, to_datetime(letter.made_ms), letter.attempts, letter.result
        )
        for letter in await service.webhook_dispatcher.dead_letters(hook.id)
    ]
    summary = _webhook_out(hook, pending)
    return json_response.struct_response(
        responses.WebhookDetailOut(**msgspec.structs.asdict(summary), dead=dead)
    )


async def delete(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """Delete a webhook; no further deliveries."""
    await request.app[SERVICE].webhook_subscriptions.remove(check_path_id(request.match_info["id"]))
    return web.Response(status=204)


async def post_action(request: web.Request, query: requests.NoQuery) -> web.StreamResponse:
    """Send a test delivery, or resume suspended deliveries."""
    service = request.app[SERVICE]
    id_ = check_path_id(request.match_info["id"])
    body = await bodies.read_struct(request, _decode_action_in)
    if body.action == "enable":
        return json_response.struct_response(_webhook_out(await service.webhook_subscriptions.enable(id_), 0))
    hook = await service.webhook_subscriptions.get(id_)
    result = await service.webhook_dispatcher.ping(hook)
    if result.error is not None:
        raise Conflict(f"The test delivery to {hook.url} failed: {result.error}.")
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
