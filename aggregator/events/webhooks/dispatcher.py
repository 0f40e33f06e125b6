"""Dispatcher: turns event changes into deliveries for webhooks and desks, sends those due, saves results."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import secrets
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from itertools import chain

import msgspec

from aggregator.errors import StoreUnavailable
from aggregator.events.days import digest_period, handover
from aggregator.events.desks import Alert, Desk, Desks, DeskState, observe, plan_alerts, view_filter
from aggregator.events.event import Event
from aggregator.events.repository import ChangeRecord, EventRepository
from aggregator.events.selection import EventFilter
from aggregator.events.storylines import ArticleReader, Headlines, newest_headlines
from aggregator.events.webhooks.mail import SmtpServer
from aggregator.events.webhooks.outbox import Attempt, Delivery, DeliveryQueue, DeliveryResult, Outbox
from aggregator.events.webhooks.sender import TargetSender
from aggregator.events.webhooks.subscriptions import (
    LISTED_EVENTS,
    Subscription,
    Subscriptions,
    alert_body,
    alert_title,
    change_title,
    event_payload,
    ping_body,
)
from aggregator.store.base import Put
from aggregator.store.decoding import decode_value
from aggregator.store.optimistic import commit_attempts
from aggregator.store.periodic_task import PeriodicTask
from aggregator.time_units import DAY_MS, MINUTE_MS

DESK_STATES_KEY = b"{events}desk-states"
LEASE_KEY = b"{events}courier"
LEASE_MS = MINUTE_MS
WEBHOOK_INTERVAL_S = 1.0
PATIENCE_S = 0.5
CHANGES_PER_RUN = 200
MAX_DIGEST_EVENTS = 500
LATEST_ITEMS = 30
DELIVERED_KINDS = frozenset({"fired", "development", "doubled", "merged", "closed"})

logger = logging.getLogger(__name__)

_states_decoder = msgspec.msgpack.Decoder(dict[str, DeskState])


class WebhookDispatcher(PeriodicTask):
    """Sends pending deliveries under a lease; two at worst send a delivery twice. ``base_url``: for links.

    One call per target at a time. A run waits ``PATIENCE_S`` for the calls that it began; those that take
    longer are saved by the run after they end, so that a target that hangs delays no other.
    """

    def __init__(
        self,
        events: EventRepository,
        subscriptions: Subscriptions,
        clock: Callable[[], int],
        *,
        get_articles: ArticleReader | None = None,
        base_url: str = "",
        allow_private: bool = False,
        smtp: SmtpServer | None = None,
        pause_reason: Callable[[], Awaitable[str | None]] | None = None,
    ) -> None:
        super().__init__(
            "the webhook dispatcher",
            WEBHOOK_INTERVAL_S,
            events.store,
            LEASE_KEY,
            lease_ms=LEASE_MS,
            pause_reason=pause_reason,
        )
        self._events, self._subscriptions, self._clock = events, subscriptions, clock
        self._base_url, self._get_articles = base_url, get_articles
        self._calls: dict[str, tuple[Delivery, asyncio.Task[DeliveryResult]]] = {}  # by target
        self.desks = Desks(events.store)
        self.queue = DeliveryQueue(events.store)
        self.sender = TargetSender(allow_private=allow_private, smtp=smtp)
        self.delivered = self.failed_attempts = 0

    async def lead(self) -> None:
        """Enqueue and send, regardless of the lease. Raises StoreUnavailable."""
        subscriptions = await self._subscriptions.all()
        outbox = await self._enqueue_changes(subscriptions)
        now_ms, begun = self._clock(), []
        for delivery in outbox.due(now_ms) if outbox is not None else ():
            target = subscriptions.get(delivery.hook)
            if delivery.hook not in self._calls and not (target and target.disabled):
                begun.append(asyncio.create_task(self.sender.send(target, delivery, now_ms)))
                self._calls[delivery.hook] = delivery, begun[-1]
        if begun:
            await asyncio.wait(begun, timeout=PATIENCE_S)
        await self._save_results()

    async def follow(self) -> None:
        """Save what was sent as leader."""
        await self._save_results()

    async def close(self) -> None:
        """Release the lease, end the calls and close the connections. Idempotent."""
        with suppress(StoreUnavailable):
            await self._save_results()
        for _, call in self._calls.values():
            call.cancel()
        self._calls.clear()
        await self.sender.close()
        await super().close()

    async def ping(self, subscription: Subscription) -> DeliveryResult:
        """Send a test now, ahead of pending deliveries, without a retry; it is logged as an attempt."""
        now_ms = self._clock()
        desk = (await self.desks.all()).get(subscription.desk)
        body = ping_body(desk, subscription, now_ms, self._base_url)
        delivery = Delivery("msg_" + secrets.token_hex(12), subscription.id, "", "ping", body, now_ms, now_ms)
        result = await self.sender.send(subscription, delivery, now_ms)
        attempt = Attempt(delivery.id, subscription.id, "ping", self._clock(), error=result.error or "")
        await self.queue.add_attempt(attempt)
        return result

    async def remove(self, ids: Collection[str]) -> None:
        """Remove webhooks and targets with their pending deliveries; the history stays."""
        await self._subscriptions.mutate(lambda known: [known.pop(id_, None) for id_ in ids])
        await self.queue.drop(ids)

    async def _enqueue_changes(self, subscriptions: dict[str, Subscription]) -> Outbox | None:
        """The outbox with deliveries for all new changes; None when another dispatcher committed first."""
        raw, outbox = await self.queue.outbox.read_with_raw()
        if raw is None:  # the very first run: earlier changes are not delivered
            return await self.queue.save(raw, Outbox(await self._events.latest_position()))
        changes = await self._events.changes(outbox.position, CHANGES_PER_RUN)
        desks = await self.desks.all()
        stored = (await self._events.store.read([DESK_STATES_KEY]))[0] if desks else None
        states = decode_value(_states_decoder, stored, "The state of the desks") if stored else {}
        held = [id_ for state in states.values() for id_ in state.held]
        now_ms, targeted = self._clock(), {s.desk for s in subscriptions.values() if not s.disabled}
        active = frozenset(id_ for id_, desk in desks.items() if id_ in targeted and not desk.paused)
        digests = {id_: digest_period(desk, now_ms) for id_, desk in desks.items() if desk.digest_at}
        due = [id_ for id_, (_, end_ms) in digests.items() if states.get(id_, DeskState()).digest_ms < end_ms]
        begun = states | {i: await self._first_state(desks[i], now_ms) for i in active.difference(states)}
        if not changes and not held and begun == states and active.isdisjoint(due):
            return outbox
        kinds = DELIVERED_KINDS | ({"updated"} if active else set())  # what editors did is no news to them
        changed = [change.event_id for _, change in changes if change.kind in kinds]
        events = await self._events.get_many(list(dict.fromkeys([*changed, *held])))
        calls = [
            (subscription, change, events[change.event_id])
            for _, change in changes
            for subscription in subscriptions.values()
            if change.kind in (subscription.kinds or DELIVERED_KINDS)
            and change.event_id in events
            and not (subscription.disabled or subscription.desk)
            and all(EventFilter.parse(q).matches(events[change.event_id]) for q in subscription.queries)
        ]
        later = [(change.kind, change.event_id) for _, change in changes]
        new_states, alerts = plan_alerts(desks.values(), active, begun, changed, events, now_ms, later)
        for id_ in active.intersection(due):
            state, period = new_states[id_], digests[id_]
            new_states[id_] = msgspec.structs.replace(state, digest_ms=period[1])
            if state.digest_ms:  # none of the day on which the hour was set
                alerts.append(await self._digest(desks[id_], *period))
        listed = (alert.events[:LISTED_EVENTS] for alert in alerts if not alert.sections)
        shown = {event.id: event for event in chain((event for *_, event in calls), *listed)}
        headlines = await newest_headlines(self._get_articles, shown.values(), LATEST_ITEMS)
        new = [self._delivery(*call, headlines) for call in calls]
        new += [
            self._alert_delivery(alert, target, headlines, now_ms)
            for alert in alerts
            for target in subscriptions.values()
            if target.desk == alert.desk.id
            and not target.disabled
            and alert.kind in ("alert", "digest", *target.kinds)
        ]
        if not changes and not alerts and new_states == states:
            return outbox
        position = changes[-1][0] if changes else outbox.position
        outbox, dead = outbox.add(position, new)
        writes = [Put(DESK_STATES_KEY, msgspec.msgpack.encode(new_states))] if new_states != states else []
        return await self.queue.save(raw, outbox, dead, writes=writes)

    async def _first_state(self, desk: Desk, now_ms: int) -> DeskState:
        """Events detected before the desk was made that reach its thresholds when it begins are not new."""
        seen = await self._events.list_events(None, now_ms - DAY_MS, MAX_DIGEST_EVENTS)
        events = {e.id: e for e in reversed(seen) if e.detected_at_ms < desk.created_ms and not e.merged_into}
        return DeskState(notified=observe(desk, DeskState(), list(events), events, now_ms).held)

    async def _digest(self, desk: Desk, since_ms: int, until_ms: int) -> Alert:
        """What ``days.handover`` says of the events of a desk."""
        limits = None, since_ms - DAY_MS, MAX_DIGEST_EVENTS, view_filter(desk)
        events = await self._events.list_events(*limits, until_ms=until_ms)
        lists = handover(events, since_ms, until_ms)
        sizes = {name: len(listed) for name, listed in lists.items() if listed}
        told = tuple(chain(*(listed[:LISTED_EVENTS] for listed in lists.values())))
        return Alert(desk, told, sum(sizes.values()) - len(told), "digest", sizes)

    def _alert_delivery(self, alert: Alert, target: Subscription, latest: Headlines, now_ms: int) -> Delivery:
        id_ = _delivery_id(target.id, *(event.id for event in alert.events), alert.kind, now_ms)
        body = alert_body(alert, target, now_ms, self._base_url, latest)
        count, title = len(alert.events) + alert.dropped, alert_title(alert)
        first = alert.events[0].id if alert.events else ""
        return Delivery(id_, target.id, first, alert.kind, body, now_ms, now_ms, events=count, title=title)

    def _delivery(
        self, target: Subscription, change: ChangeRecord, event: Event, latest: Headlines
    ) -> Delivery:
        """A delivery whose id derives from its content: the same change always has the same id."""
        subject, now_ms = (target.id, change.event_id, change.kind), self._clock()
        id_ = _delivery_id(*subject, change.revision, change.at_ms)
        body = event_payload(event, change.kind, change.at_ms, target.format, self._base_url, latest)
        return Delivery(id_, *subject, body, now_ms, now_ms, title=change_title(event, change.kind))

    async def _save_results(self) -> None:
        """Those of the calls that have ended; after an error they are saved by the next run."""
        done = [(delivery, call.result()) for delivery, call in self._calls.values() if call.done()]
        if not done:
            return
        now_ms = self._clock()
        by_id = {delivery.id: result for delivery, result in done}
        # An editor may change the outbox meanwhile; the results of calls that were made must not be lost.
        for _ in commit_attempts("The outbox kept changing."):
            raw, outbox = await self.queue.outbox.read_with_raw()
            outbox, dead = outbox.apply(by_id, now_ms, random.random())
            next_ms = {pending.id: pending.due_ms for pending in outbox.calls}
            attempts = [
                Attempt.at(d, now_ms, d.attempts + 1, result.error or "", next_ms.get(d.id, 0))
                for d, result in done
            ]
            if await self.queue.save(raw, outbox, dead, attempts) is not None:
                break
        failed = sum(result.error is not None for _, result in done)
        self.delivered += len(done) - failed
        self.failed_attempts += failed
        for delivery, _ in done:
            del self._calls[delivery.hook]
        for letter in dead:
            logger.error("Webhook %s: dead-lettered delivery %s: %s", letter.hook, letter.id, letter.result)
        await self._subscriptions.mutate(lambda all_: _record_results(all_, done, now_ms))


def _delivery_id(*parts: object) -> str:
    return "msg_" + hashlib.sha256(":".join(map(str, parts)).encode()).hexdigest()[:24]


def _record_results(
    subscriptions: dict[str, Subscription], done: Sequence[tuple[Delivery, DeliveryResult]], now_ms: int
) -> None:
    """Update the delivery status of the subscriptions; one that answered 410 is disabled."""
    for delivery, result in done:
        if (subscription := subscriptions.get(delivery.hook)) is None:
            continue
        failed = result.error is not None
        subscriptions[delivery.hook] = msgspec.structs.replace(
            subscription,
            last_ms=now_ms,
            last_result=result.error or "delivered",
            delivered=subscription.delivered + (not failed),
            failed=subscription.failed + failed,
            disabled="the receiver answered 410 Gone" if result.unsubscribed else subscription.disabled,
        )
