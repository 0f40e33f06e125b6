"""Pages of webhooks and targets: history with results, tests, retries, abandoned deliveries."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import quote

from aiohttp import web
from msgspec import Struct

from aggregator.app import Service
from aggregator.events.event import Event
from aggregator.events.webhooks.outbox import Attempt, Delivery, DeliveryResult
from aggregator.events.webhooks.subscriptions import Subscription
from aggregator.http.app_keys import caller_name
from aggregator.http.handlers.webhooks import apply_action, delete
from aggregator.http.pages import html_response
from aggregator.http.pages.sign_in import safe_redirect_path
from aggregator.time_units import MINUTE_MS
from aggregator_client.wire import doc

TEST_WAIT_S = 3.0  # a test that takes longer continues; the page shows its result when it is there

_running_tests: set[asyncio.Task[DeliveryResult]] = set()
TargetState = Literal["unused", "working", "failing", "paused"]
MAX_HISTORY = 30
TargetAction = Literal["ping", "enable", "disable", "retry", "resend", "remove"]
Done = Literal["", "created", "saved", "deleted", "added"] | TargetAction


class DeskPageQuery(Struct, forbid_unknown_fields=True):
    """Query of the desk and webhook pages: what was just done, and to which target."""

    done: Annotated[Done, doc("What was just done, for the message of the page.", "saved")] = ""
    target: Annotated[str, doc("Id of the target that it was done to.", "9b7f3c21d0e4", max_length=40)] = ""


class WebhookForm(Struct, forbid_unknown_fields=True):
    """Form of the webhook pages."""

    action: Annotated[TargetAction, doc("What to do.")]
    delivery: Annotated[str, doc("Id of the delivery.", "d-81f2", max_length=40)] = ""
    next: Annotated[str, doc("Page to return to.", "/webhooks", max_length=200)] = ""


async def webhook(request: web.Request, service: Service, id_: str, query: DeskPageQuery) -> web.Response:
    """Page: one webhook or target, its history and abandoned deliveries."""
    target = await service.events.subscriptions.get(id_)
    view = await load_deliveries(service, [target], detail=True)
    desks = await service.events.desks.all()
    return html_response(
        request,
        "webhook.html",
        page="desks",
        row=view.targets[0],
        desk=desks.get(target.desk),
        view=view,
        notice=notice_of(query, view, service.clock()),
        back=f"/webhooks/{target.id}",
    )


async def change(
    request: web.Request, service: Service, id_: str, query: DeskPageQuery, form: WebhookForm
) -> web.Response:
    """Page: test, pause, resume, retry or remove a webhook or target. Returns to the page of the form."""
    target = await service.events.subscriptions.get(id_)
    back = safe_redirect_path(form.next or f"/webhooks/{target.id}").partition("?")[0]
    if form.action == "ping":
        task = asyncio.create_task(service.background.webhook_dispatcher.ping(target))
        _running_tests.add(task)
        task.add_done_callback(_running_tests.discard)
        await asyncio.wait([task], timeout=TEST_WAIT_S)
    elif form.action == "remove":
        await delete(service, target.id)
        back = "/webhooks" if back == f"/webhooks/{target.id}" else back
    else:
        await apply_action(service, target, form.action, form.delivery, caller_name(request))
    return redirect(back, form.action, target.id)


async def webhook_list(request: web.Request, service: Service, query: DeskPageQuery) -> web.Response:
    """Page: webhooks and targets with their deliveries."""
    view = await load_deliveries(service, await service.events.subscriptions.values(), of_removed=True)
    return html_response(
        request,
        "webhooks.html",
        page="desks",
        view=view,
        desks={desk.id: desk.name for desk in await service.events.desks.values()},
        names={row.target.id: row.target.service for row in view.targets},
        notice=notice_of(query, view, service.clock()),
        back="/webhooks",
    )


@dataclass(frozen=True, slots=True)
class TargetRow:
    """One target: whether it works, and what waits. ``reason``: the last error, or why it is paused.

    ``last_ms``: time of the last attempt, tests included; 0: never.
    """

    target: Subscription
    state: TargetState
    reason: str
    last_ms: int
    pending: int
    next_ms: int

    @property
    def name(self) -> str:
        """Kind and address."""
        return f"{self.target.service} {self.target.shown_url}"


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One attempt, past or pending; ``event``: the first of its events if it is still stored.

    ``was_repeated``: whether a later attempt is known, so that ``next_ms`` is over.
    """

    attempt: Attempt
    event: Event | None
    was_repeated: bool = False


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """Targets, pending and abandoned deliveries, and the history of some targets, newest first."""

    targets: tuple[TargetRow, ...]
    attempts: tuple[AttemptRow, ...]
    pending: tuple[AttemptRow, ...] = ()
    dead: tuple[AttemptRow, ...] = ()


async def load_deliveries(
    service: Service, targets: Collection[Subscription], *, detail: bool = False, of_removed: bool = False
) -> DeliveryView:
    """Some targets; ``detail``: with what waits or was given up, ``of_removed``: with history of others."""
    queue = service.background.webhook_dispatcher.queue
    ids = frozenset(target.id for target in targets)
    attempts = queue.attempts(None if of_removed else ids, MAX_HISTORY)
    outbox, history = await asyncio.gather(queue.outbox.read(), attempts)
    pending = [delivery for delivery in outbox.calls if delivery.hook in ids]
    waiting = {delivery.id for delivery in pending}
    dead = await queue.dead_letters(ids, MAX_HISTORY) if detail else []
    dead = [delivery for delivery in dead if delivery.id not in waiting]
    shown = pending[:MAX_HISTORY] if detail else []
    wanted = {attempt.event for attempt in history} | {delivery.event for delivery in (*shown, *dead)}
    events = await service.events.repository.get_many(sorted(filter(None, wanted)))
    last = {attempt.delivery: attempt for attempt in reversed(history)}
    return DeliveryView(
        targets=tuple(target_row(target, pending, history) for target in targets),
        attempts=tuple(AttemptRow(a, events.get(a.event), a is not last[a.delivery]) for a in history),
        pending=tuple(AttemptRow(_as_attempt(d), events.get(d.event)) for d in shown),
        dead=tuple(AttemptRow(_as_attempt(d), events.get(d.event)) for d in dead),
    )


def target_row(target: Subscription, pending: Sequence[Delivery], history: Sequence[Attempt]) -> TargetRow:
    """A target with its state: that of its last attempt, tests included."""
    own = [delivery for delivery in pending if delivery.hook == target.id]
    last = next((attempt for attempt in history if attempt.target == target.id), None)
    at_ms, error = target.last_ms, "" if target.last_result == "delivered" else target.last_result
    if last is not None and last.at_ms >= at_ms:
        at_ms, error = last.at_ms, last.error
    state: TargetState = "unused" if not at_ms else "failing" if error else "working"
    if target.disabled:
        state, error = "paused", target.disabled
    next_ms = own[0].due_ms if own and not target.disabled else 0
    return TargetRow(target, state, error, at_ms, len(own), next_ms)


def notice_of(query: DeskPageQuery, view: DeliveryView, now_ms: int) -> tuple[str, bool]:
    """What the last action did, its name or one sentence, and whether it is a problem; ("", False): none."""
    if query.done != "ping":
        return query.done, False
    row = next((row for row in view.targets if row.target.id == query.target), None)
    if row is None:
        return "", False
    attempts = (r.attempt for r in view.attempts)
    last = next((a for a in attempts if a.target == query.target and a.kind == "ping"), None)
    if last is None or last.at_ms < now_ms - MINUTE_MS:
        return f"The test to {row.name} is being sent; its result appears in the history.", False
    if last.error:
        return f"The test to {row.name} failed: {last.error}.", True
    return f"The test to {row.name} was delivered.", False


def redirect(path: str, done: str, target: str = "") -> web.Response:
    """The answer to a form: the page at ``path``, which says what was done (to which target)."""
    query = f"?done={done}" + (f"&target={quote(target, safe='')}" if target else "")
    return web.Response(status=303, headers={"Location": path + query})


def _as_attempt(delivery: Delivery) -> Attempt:
    """The last attempt at a delivery; ``at_ms``: when it was made, ``next_ms``: when it is due."""
    return Attempt.at(delivery, delivery.made_ms, delivery.attempts, delivery.result, delivery.due_ms)
