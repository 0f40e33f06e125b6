"""Routes of webhooks: subscriptions, delivery status, test deliveries."""

from __future__ import annotations

import re

import msgspec
from aiohttp import web

from aggregator.app import Service
from aggregator.contract import requests, responses
from aggregator.contract.encoding import fields_of, to_datetime_or_none
from aggregator.errors import Conflict
from aggregator.events.webhooks.sender import validate_url
from aggregator.events.webhooks.subscriptions import Subscription
from aggregator.http.app_keys import SERVICE, caller_id, caller_name
from aggregator.http.endpoint import created
from aggregator.http.handlers.events import canonical_query_string, parse_filter
from aggregator.time_units import to_datetime


async def post(request: web.Request, service: Service, body: requests.WebhookIn) -> web.Response:
    """Register a webhook for events that fire, develop, double, merge or close (Standard Webhooks)."""
    url = validate_url(body.url, allow_private=service.settings.webhook_allow_private_addresses)
    query = canonical_query_string(parse_filter(body.query))
    target = await service.events.subscriptions.subscribe(
        url, (query,) if query else (), body.format, service.clock(), caller_id(request), kinds=(*body.kinds,)
    )
    return await target_response(request, *target)


async def target_response(request: web.Request, target: Subscription, is_new: bool) -> web.Response:
    """A target that was registered, with its secret for its owner, also if the first answer was lost."""
    is_own = target.kind == "webhook" and target.owner == caller_id(request)
    pending = 0 if is_new else await _pending(request.app[SERVICE], target)
    out = webhook_out(target, pending, target.secret if is_own else None)
    return created("/v1/webhooks", out, is_new=is_new)


async def _pending(service: Service, target: Subscription) -> int:
    return (await service.background.webhook_dispatcher.queue.pending()).get(target.id, 0)


async def list_(service: Service) -> responses.WebhooksOut:
    """List webhooks and targets of desks with delivery status."""
    pending = await service.background.webhook_dispatcher.queue.pending()
    hooks = await service.events.subscriptions.values()
    return responses.WebhooksOut([webhook_out(hook, pending.get(hook.id, 0)) for hook in hooks])


async def get(service: Service, id_: str) -> responses.WebhookDetailOut:
    """Get a webhook or target, its dead letters and the history of its deliveries."""
    hook = await service.events.subscriptions.get(id_)
    dead = [
        fields_of(letter, responses.DeadLetterOut, event_id=letter.event, made_at=to_datetime(letter.made_ms))
        for letter in await service.background.webhook_dispatcher.queue.dead_letters({hook.id})
    ]
    attempts = [
        fields_of(
            attempt,
            responses.AttemptOut,
            error=attempt.error or None,
            next_at=to_datetime_or_none(attempt.next_ms or None),
            event_id=attempt.event or None,
        )
        for attempt in await service.background.webhook_dispatcher.queue.attempts({hook.id})
    ]
    return responses.WebhookDetailOut(
        **msgspec.structs.asdict(webhook_out(hook, await _pending(service, hook))),
        dead=dead,
        attempts=attempts,
    )


async def delete(service: Service, id_: str) -> None:
    """Delete a webhook. No further deliveries."""
    hook = await service.events.subscriptions.get(id_)
    await service.background.webhook_dispatcher.remove([hook.id])


async def post_action(
    request: web.Request, service: Service, id_: str, body: requests.WebhookActionIn
) -> responses.WebhookOut:
    """Send a test delivery, pause or resume deliveries, retry pending or abandoned ones."""
    hook = await service.events.subscriptions.get(id_)
    if body.action == "ping":
        result = await service.background.webhook_dispatcher.ping(hook)
        if result.error is not None:
            shown = webhook_out(hook, 0).url
            raise Conflict(f"The test delivery to {shown} failed: {result.error}.")
        return webhook_out(hook, 0)
    hook = await apply_action(service, hook, body.action, body.delivery, caller_name(request))
    return webhook_out(hook, await _pending(service, hook))


async def apply_action(
    service: Service, hook: Subscription, action: str, delivery_id: str, editor: str
) -> Subscription:
    """Apply an action other than ``ping``; returns the webhook as it is then. Raises NotFound."""
    if action in ("enable", "disable"):
        reason = f"paused by {editor or 'an editor'}" if action == "disable" else ""
        return await service.events.subscriptions.suspend(hook.id, reason)
    if action == "resend":
        await service.background.webhook_dispatcher.queue.resend(hook.id, delivery_id, service.clock())
    else:
        await service.background.webhook_dispatcher.queue.retry_now(hook.id, service.clock())
    return hook


def webhook_out(subscription: Subscription, pending: int, secret: str | None = None) -> responses.WebhookOut:
    """A webhook or target; an e-mail address is masked."""
    url = subscription.url
    return fields_of(
        subscription,
        responses.WebhookOut,
        url=re.sub("(?<=^.).*(?=@)", "…", url) if subscription.kind == "mail" else url,
        created_at=to_datetime(subscription.created_ms),
        secret=secret,
        disabled=subscription.disabled or None,
        owed=pending,
        last_at=to_datetime_or_none(subscription.last_ms or None),
        last_result=subscription.last_result or None,
        desk=subscription.desk or None,
    )
