"""Pages of webhooks and targets: history with results, tests, retries, abandoned deliveries."""

from __future__ import annotations

import asyncio
import logging

from aiohttp import web

from aggregator.contract.requests import DeskPageQuery, WebhookForm
from aggregator.errors import AggregatorError, Conflict, InvalidInput
from aggregator.events.webhooks import Subscription
from aggregator.events.webhooks.sender import validate_url
from aggregator.http.app_keys import SERVICE, caller_id, caller_name
from aggregator.http.body import read_form
from aggregator.http.handlers.event_filters import canonical_query_string, parse_filter
from aggregator.http.handlers.webhooks import apply_action
from aggregator.http.pages import deliveries, html_response
from aggregator.http.pages.sign_in import safe_redirect_path
from aggregator.http.query_params import path_id

# A test that takes longer continues; the page shows its result when it is there.
TEST_WAIT_S = 3.0

log = logging.getLogger(__name__)
_running_tests: set[asyncio.Task[None]] = set()


async def webhook_list(request: web.Request, query: DeskPageQuery) -> web.StreamResponse:
    """All webhooks and targets with the latest deliveries."""
    return await _list_page(request, query)


async def create(request: web.Request, query: DeskPageQuery) -> web.StreamResponse:
    """Register a webhook; the answer shows its secret, once."""
    service = request.app[SERVICE]
    form = await read_form(request, WebhookForm)
    try:
        if form.action != "add":
            raise InvalidInput("action: expected add.", field="action")
        url = validate_url(form.url.strip(), allow_private=service.settings.webhook_allow_private_addresses)
        text = canonical_query_string(parse_filter(form.query.strip()))
        hook, is_new = await service.webhook_subscriptions.subscribe(
            url, (text,) if text else (), form.format, service.clock(), caller_id(request)
        )
    except (InvalidInput, Conflict) as error:
        return await _list_page(request, query, problem=str(error), form=form)
    return await _list_page(request, DeskPageQuery(done="added"), secret=hook.secret if is_new else "")


async def webhook(request: web.Request, query: DeskPageQuery) -> web.StreamResponse:
    """One webhook or target."""
    service = request.app[SERVICE]
    target = await service.webhook_subscriptions.get(path_id(request))
    view = await deliveries.load(service, [target], detail=True)
    notice, is_problem = deliveries.notice(query, view, service.clock())
    desks = await service.desks.all()
    return html_response(
        request,
        "webhook.html",
        page="desks",
        target=view.targets[0],
        desk=desks.get(target.desk),
        created_ms=target.created_ms,
        view=view,
        notice=notice,
        notice_is_problem=is_problem,
        back=f"/webhooks/{target.id}",
    )


async def change(request: web.Request, query: DeskPageQuery) -> web.StreamResponse:
    """Apply one action to a webhook or target and return to the page that it was sent from."""
    service = request.app[SERVICE]
    target = await service.webhook_subscriptions.get(path_id(request))
    form = await read_form(request, WebhookForm)
    back = safe_redirect_path(form.next or f"/webhooks/{target.id}").partition("?")[0]
    done = form.action
    if form.action == "ping":
        await _test(request, target)
    elif form.action == "remove":
        await service.webhook_subscriptions.remove(target.id)
        back, done = "/webhooks" if back == f"/webhooks/{target.id}" else back, "removed"  # type: ignore[assignment]
    elif form.action != "add":
        await apply_action(service, target, form.action, form.delivery, caller_name(request))
    return deliveries.redirect(back, done, target.id)


async def _test(request: web.Request, target: Subscription) -> None:
    """Send a test, and wait for its result for a while."""

    async def send() -> None:
        try:
            await request.app[SERVICE].webhook_dispatcher.ping(target)
        except AggregatorError as error:
            log.warning("The result of a test of the webhook %s was not stored: %s", target.id, error)

    task = asyncio.create_task(send())
    _running_tests.add(task)
    task.add_done_callback(_running_tests.discard)
    await asyncio.wait([task], timeout=TEST_WAIT_S)


async def _list_page(
    request: web.Request,
    query: DeskPageQuery,
    *,
    problem: str = "",
    form: WebhookForm | None = None,
    secret: str = "",
) -> web.Response:
    service = request.app[SERVICE]
    view = await deliveries.load(service, await service.webhook_subscriptions.values())
    notice, is_problem = deliveries.notice(query, view, service.clock())
    return html_response(
        request,
        "webhooks.html",
        page="desks",
        view=view,
        desks={desk.id: desk.name for desk in await service.desks.values()},
        names={target.id: target.service for target in view.targets},
        form=form or WebhookForm(action="add"),
        problem=problem,
        secret=secret,
        notice=notice,
        notice_is_problem=is_problem,
        back="/webhooks",
    )
