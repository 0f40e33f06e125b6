"""Webhook dispatcher: turns event changes into deliveries, sends those that are due, saves the results."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import aiohttp
import msgspec

from aggregator.errors import StoreUnavailable
from aggregator.events.detection import Event
from aggregator.events.filter import EventFilter
from aggregator.events.repository import ChangeRecord, EventRepository
from aggregator.events.webhooks.outbox import Delivery, Outbox, apply_results, enqueue
from aggregator.events.webhooks.payload import event_payload, ping_payload
from aggregator.events.webhooks.sender import DeliveryResult, make_session, send
from aggregator.events.webhooks.subscriptions import Subscription, Subscriptions
from aggregator.log_limits import ChangeFilter
from aggregator.store.base import Put, StreamAdd, Transaction, ValueEquals, Write
from aggregator.store.decoding import decode_value
from aggregator.store.lease import Lease
from aggregator.time_units import MINUTE_MS

OUTBOX_KEY = b"{events}outbox"
DEAD_LETTERS_KEY = b"{events}dead-calls"
LEASE_KEY = b"{events}courier"
LEASE_MS = MINUTE_MS
CHANGES_PER_RUN = 200
DELIVERED_KINDS = frozenset({"fired", "doubled", "merged", "closed"})
MAX_DEAD_LETTERS = 1000

logger = logging.getLogger(__name__)

_outbox_decoder = msgspec.msgpack.Decoder(Outbox)
_delivery_decoder = msgspec.msgpack.Decoder(Delivery)


class WebhookDispatcher:
    """Sends pending deliveries. One replica at a time holds the lease; two at worst send a delivery twice.

    ``base_url``: public URL of the service, for links in the calls. ``allow_private``: private addresses may
    be called. ``delivered`` and ``failed_attempts`` count since start.
    """

    def __init__(
        self,
        events: EventRepository,
        subscriptions: Subscriptions,
        clock: Callable[[], int],
        *,
        base_url: str = "",
        allow_private: bool = False,
        pause_reason: Callable[[], Awaitable[str | None]] | None = None,
    ) -> None:
        self._events, self._subscriptions, self._clock = events, subscriptions, clock
        self._base_url, self._allow_private = base_url, allow_private
        self._pause_reason = pause_reason
        self._lease = Lease(events.store, LEASE_KEY, LEASE_MS)
        self._session: aiohttp.ClientSession | None = None
        self.delivered = self.failed_attempts = 0
        self._problem = ChangeFilter()

    async def run_once(self) -> None:
        """One run as leader, nothing otherwise. Never raises, except when cancelled."""
        try:
            if self._pause_reason is not None and await self._pause_reason() is not None:
                await self._lease.release()  # receivers reject the time stamps of a wrong clock
            elif await self._lease.acquire():
                await self.deliver_due()
        except StoreUnavailable as error:
            if self._problem.is_new(str(error)):
                logger.warning("The store is unavailable; webhook deliveries wait: %s", error)
        except Exception as error:
            if self._problem.is_new(repr(error)):
                logger.exception("Unhandled error in the webhook dispatcher; retrying.")
        else:
            self._problem.clear()

    async def deliver_due(self) -> None:
        """Enqueue and send regardless of the lease. Raises StoreUnavailable."""
        subscriptions = await self._subscriptions.all()
        outbox = await self._enqueue_changes(subscriptions)
        if outbox is not None and (due := outbox.due(self._clock())):
            results = await self._send_all(subscriptions, due)
            by_id = {delivery.id: result for delivery, result in zip(due, results, strict=True)}
            await self._apply_results(due, by_id)

    async def close(self) -> None:
        """Release the lease and close the connections. Idempotent."""
        if self._session is not None:
            await self._session.close()
            self._session = None
        await self._lease.close()

    async def dead_letters(self, subscription_id: str, count: int = 50) -> Sequence[Delivery]:
        """The newest dead letters of a webhook, newest first."""
        entries = await self._events.store.stream_tail(DEAD_LETTERS_KEY, MAX_DEAD_LETTERS)
        deliveries = [decode_value(_delivery_decoder, payload, "A dead letter") for _, payload in entries]
        return [delivery for delivery in deliveries if delivery.hook == subscription_id][:count]

    async def pending(self) -> dict[str, int]:
        """Number of pending deliveries by subscription id."""
        _, outbox = await self._read_outbox()
        return dict(Counter(delivery.hook for delivery in outbox.calls))

    async def ping(self, subscription: Subscription) -> DeliveryResult:
        """Send a test call now, ahead of pending deliveries, without a retry."""
        now_ms = self._clock()
        body = ping_payload(subscription.id, now_ms, subscription.format)
        delivery = Delivery("msg_" + secrets.token_hex(12), subscription.id, "", "ping", body, now_ms, now_ms)
        return (await self._send_all({subscription.id: subscription}, [delivery]))[0]

    async def _read_outbox(self) -> tuple[bytes | None, Outbox]:
        """The stored value, for the condition of the next commit, and the outbox."""
        raw = (await self._events.store.read([OUTBOX_KEY]))[0]
        return raw, decode_outbox(raw)

    async def _enqueue_changes(self, subscriptions: dict[str, Subscription]) -> Outbox | None:
        """The outbox with deliveries for all new changes; None when another dispatcher committed first."""
        raw, outbox = await self._read_outbox()
        if raw is None:  # the very first run: earlier changes are not delivered
            return await self._save(raw, Outbox(await self._events.latest_position()), [])
        changes = await self._events.changes(outbox.position, CHANGES_PER_RUN)
        if not changes:
            return outbox
        relevant = [change for _, change in changes if change.kind in DELIVERED_KINDS]
        events = await self._events.get_many(list(dict.fromkeys(change.event_id for change in relevant)))
        new = tuple(
            self._build_delivery(subscription, change, events[change.event_id])
            for change in relevant
            for subscription in subscriptions.values()
            if change.event_id in events and _is_subscribed(subscription, events[change.event_id])
        )
        return await self._save(raw, *enqueue(outbox, changes[-1][0], new))

    def _build_delivery(self, subscription: Subscription, change: ChangeRecord, event: Event) -> Delivery:
        """A delivery whose id derives from its content: the same change always has the same id."""
        name = f"{subscription.id}:{change.event_id}:{change.kind}:{change.revision}:{change.at_ms}".encode()
        now_ms = self._clock()
        return Delivery(
            id="msg_" + hashlib.sha256(name).hexdigest()[:24],
            hook=subscription.id,
            event=change.event_id,
            kind=change.kind,
            body=event_payload(event, change.kind, change.at_ms, subscription.format, self._base_url),
            made_ms=now_ms,
            due_ms=now_ms,
        )

    async def _send_all(
        self, subscriptions: dict[str, Subscription], deliveries: Sequence[Delivery]
    ) -> list[DeliveryResult]:
        if self._session is None:
            self._session = make_session(allow_private=self._allow_private)
        session, now_ms = self._session, self._clock()

        async def send_one(delivery: Delivery) -> DeliveryResult:
            subscription = subscriptions.get(delivery.hook)
            if subscription is None:
                return DeliveryResult("the webhook was removed", unsubscribed=True)
            return await send(session, subscription, delivery, now_ms, allow_private=self._allow_private)

        return await asyncio.gather(*map(send_one, deliveries))

    async def _apply_results(
        self, deliveries: Sequence[Delivery], results: dict[str, DeliveryResult]
    ) -> None:
        now_ms = self._clock()
        unsubscribed = {delivery.hook for delivery in deliveries if results[delivery.id].unsubscribed}
        errors = {id_: result.error for id_, result in results.items()}
        retry_after_s = {id_: result.retry_after_s for id_, result in results.items()}
        raw, outbox = await self._read_outbox()
        outbox, dead = apply_results(outbox, errors, unsubscribed, now_ms, random.random(), retry_after_s)
        if await self._save(raw, outbox, dead) is None:
            return
        self.delivered += sum(error is None for error in errors.values())
        self.failed_attempts += sum(error is not None for error in errors.values())
        for letter in dead:
            logger.error("Webhook %s: dead-lettered delivery %s: %s", letter.hook, letter.id, letter.result)
        await self._subscriptions.mutate(lambda all_: _record_results(all_, deliveries, results, now_ms))

    async def _save(
        self, raw: bytes | None, outbox: Outbox, dead_letters: Sequence[Delivery]
    ) -> Outbox | None:
        """Commit outbox and dead letters if the stored outbox is still ``raw``; None otherwise."""
        writes: list[Write] = [Put(OUTBOX_KEY, msgspec.msgpack.encode(outbox))]
        writes += [StreamAdd(DEAD_LETTERS_KEY, msgspec.msgpack.encode(letter)) for letter in dead_letters]
        failed = await self._events.store.commit(Transaction((ValueEquals(OUTBOX_KEY, raw),), tuple(writes)))
        if failed:
            return None
        if dead_letters:
            await self._trim_dead_letters()
        return outbox

    async def _trim_dead_letters(self) -> None:
        kept = await self._events.store.stream_tail(DEAD_LETTERS_KEY, MAX_DEAD_LETTERS)
        if len(kept) == MAX_DEAD_LETTERS:
            await self._events.store.stream_trim(DEAD_LETTERS_KEY, kept[-1][0])


def decode_outbox(raw: bytes | None) -> Outbox:
    """The stored outbox; an empty one for an absent value. Raises StoreUnavailable when it is damaged."""
    return decode_value(_outbox_decoder, raw, "The webhook outbox") if raw is not None else Outbox()


def _is_subscribed(subscription: Subscription, event: Event) -> bool:
    return not subscription.disabled and all(
        EventFilter.parse(query).matches(event) for query in subscription.queries
    )


def _record_results(
    subscriptions: dict[str, Subscription],
    deliveries: Sequence[Delivery],
    results: dict[str, DeliveryResult],
    now_ms: int,
) -> None:
    """Update the delivery status of the subscriptions; one that answered 410 is disabled."""
    for delivery in deliveries:
        subscription, result = subscriptions.get(delivery.hook), results[delivery.id]
        if subscription is None:
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
