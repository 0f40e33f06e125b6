"""Targets and deliveries as shown on the pages of desks and webhooks. Pure but for ``load``."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from aiohttp import web

from aggregator.contract.requests import DeskPageQuery
from aggregator.events.detection.model import Event
from aggregator.events.formatting import title_of
from aggregator.events.webhooks import Delivery, Subscription
from aggregator.events.webhooks.outbox import Attempt
from aggregator.time_units import MINUTE_MS

if TYPE_CHECKING:
    from aggregator.app import Service

TargetState = Literal["unused", "working", "failing", "suspended"]
MAX_HISTORY = 30
TEST_MS = MINUTE_MS
STATE_LABELS: Mapping[TargetState, str] = {
    "unused": "Not used yet",
    "working": "Working",
    "failing": "Failing",
    "suspended": "Suspended",
}
_KIND_LABELS = {
    "ping": "Test",
    "alert": "Notification",
    "fired": "Event fired",
    "doubled": "Event doubled",
    "merged": "Event merged",
    "closed": "Event ended",
}
_DONE = {
    "created": "The desk was created. Add a target, then send a test.",
    "saved": "Saved.",
    "deleted": "Deleted.",
    "added": "Added. Send a test to see whether it arrives.",
    "removed": "Removed.",
    "enable": "Resumed.",
    "disable": "Suspended. Pending deliveries wait until it is resumed.",
    "retry": "Pending deliveries are sent now, one at a time.",
    "resend": "The delivery was enqueued again.",
}


@dataclass(frozen=True, slots=True)
class TargetRow:
    """One target: what it is called, whether it works, what waits."""

    id: str
    desk: str
    service: str
    address: str
    state: TargetState
    state_label: str
    reason: str
    pending: int
    next_ms: int
    delivered: int
    failed: int
    last_ms: int
    queries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One attempt in the history; ``title``: headline of its event, "" if it is no longer stored.

    was_repeated  whether a later attempt at the same delivery is known: ``next_ms`` is over then
    """

    at_ms: int
    what: str
    target: str
    number: int
    error: str
    next_ms: int
    event: str
    title: str
    was_repeated: bool


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """Targets, pending and abandoned deliveries, and the history of some targets, newest first."""

    targets: tuple[TargetRow, ...]
    attempts: tuple[AttemptRow, ...]
    pending: tuple[AttemptRow, ...] = ()
    dead: tuple[tuple[str, AttemptRow], ...] = ()


async def load(service: Service, targets: Collection[Subscription], *, detail: bool = False) -> DeliveryView:
    """What is known of some targets. ``detail``: pending and abandoned deliveries of the only one, too."""
    queue = service.webhook_dispatcher.queue
    ids = frozenset(target.id for target in targets)
    (_, outbox), history = await asyncio.gather(queue.read(), queue.attempts(ids, MAX_HISTORY))
    pending = [delivery for delivery in outbox.calls if delivery.hook in ids]
    dead = await queue.dead_letters(next(iter(ids)), MAX_HISTORY) if detail and ids else []
    wanted = {attempt.event for attempt in history}
    wanted |= {delivery.event for delivery in (*pending[:MAX_HISTORY], *dead)}
    events = await service.events.get_many(sorted(filter(None, wanted)))
    waiting = {delivery.id for delivery in pending}
    last = {attempt.delivery: attempt for attempt in reversed(history)}
    return DeliveryView(
        targets=tuple(target_row(target, pending, history) for target in targets),
        attempts=tuple(_attempt_row(a, events, was_repeated=a is not last[a.delivery]) for a in history),
        pending=tuple(_delivery_row(d, events) for d in pending[:MAX_HISTORY]) if detail else (),
        dead=tuple((d.id, _delivery_row(d, events)) for d in dead if d.id not in waiting),
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
        state, error = "suspended", target.disabled
    return TargetRow(
        id=target.id,
        desk=target.desk,
        service=target.service,
        address=target.masked_url,
        state=state,
        state_label=STATE_LABELS[state],
        reason=error,
        pending=len(own),
        next_ms=own[0].due_ms if own and not target.disabled else 0,
        delivered=target.delivered,
        failed=target.failed,
        last_ms=at_ms,
        queries=target.queries,
    )


def notice(query: DeskPageQuery, view: DeliveryView, now_ms: int) -> tuple[str, bool]:
    """What the last action did, one sentence, and whether it is a problem; ("", False) for none."""
    if query.done != "ping":
        return _DONE.get(query.done, ""), False
    row = next((target for target in view.targets if target.id == query.target), None)
    if row is None:
        return "", False
    name = f"{row.service} {row.address}"
    last = next((a for a in view.attempts if a.target == row.id and a.what == _KIND_LABELS["ping"]), None)
    if last is None or last.at_ms < now_ms - TEST_MS:
        return f"The test to {name} is being sent; its result appears in the history.", False
    return (f"The test to {name} failed: {last.error}.", True) if last.error else (
        f"The test to {name} was delivered.", False
    )  # fmt: skip


def redirect(path: str, done: str, target: str = "") -> web.Response:
    """The answer to a form: the page at ``path``, which says what was done (to which target)."""
    query = f"?done={done}" + (f"&target={quote(target, safe='')}" if target else "")
    return web.Response(status=303, headers={"Location": path + query})


def _attempt_row(attempt: Attempt, events: Mapping[str, Event], *, was_repeated: bool = False) -> AttemptRow:
    event = events.get(attempt.event)
    return AttemptRow(
        at_ms=attempt.at_ms,
        what=_what(attempt.kind, attempt.events),
        target=attempt.target,
        number=attempt.number,
        error=attempt.error,
        next_ms=attempt.next_ms,
        event=attempt.event if event is not None else "",
        title=title_of(event) if event is not None else "",
        was_repeated=was_repeated,
    )


def _delivery_row(delivery: Delivery, events: Mapping[str, Event]) -> AttemptRow:
    attempt = Attempt(
        delivery.id, delivery.hook, delivery.kind, delivery.made_ms, delivery.attempts, delivery.result,
        delivery.due_ms, delivery.event, delivery.events,
    )  # fmt: skip
    return _attempt_row(attempt, events)


def _what(kind: str, events: int) -> str:
    label = _KIND_LABELS.get(kind, kind)
    return f"{label} of {events} events" if events > 1 else label
