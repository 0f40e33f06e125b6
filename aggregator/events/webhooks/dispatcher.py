"""A turn of the leader: changes of events become calls, calls go out, their results are saved."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import secrets
from collections.abc import Callable, Sequence
from typing import Any

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
from aggregator.store.base import Put, StreamAdd, Transaction, ValueEquals, Write
from aggregator.store.decoding import decode_value
from aggregator.store.lease import Lease

OUTBOX_KEY = b"{events}outbox"
DEAD_LETTERS_KEY = b"{events}dead-calls"
LEASE_KEY = b"{events}courier"
LEASE_MS = 60_000
CHANGES_PER_RUN = 200
DELIVERED_KINDS = frozenset({"fired", "doubled", "merged", "closed"})
MAX_DEAD_LETTERS = 1000

log = logging.getLogger(__name__)

_outbox_decoder = msgspec.msgpack.Decoder(Outbox)
_delivery_decoder = msgspec.msgpack.Decoder(Delivery)


class WebhookDispatcher:
    """Sends what is owed. One replica at a time holds the lease; two at worst send a call twice.

    ``base_url``: for links in the calls. ``private``: addresses of a private network may be called.
    """

    def __init__(
        self,
        events: EventRepository,
        subscriptions: Subscriptions,
        clock: Callable[[], int],
        *,
        base_url: str = "",
        allow_private: bool = False,
    ) -> None:
        self._events, self._subscriptions, self._clock = events, subscriptions, clock
        self._base_url, self._allow_private = base_url, allow_private
        self._lease = Lease(events.store, LEASE_KEY, LEASE_MS)
        self._session: aiohttp.ClientSession | None = None
        self.delivered = self.failed_attempts = 0
        self._last_problem = ""

    async def run_once(self) -> None:
        """Make out and send what is due. Never raises, except when cancelled."""
        try:
            if await self._lease.acquire():
                await self.deliver_due()
        except StoreUnavailable as error:
            self._log_problem(f"webhooks wait for the store: {error}")
        except Exception as error:
            self._log_problem(f"the webhook courier failed and will try again: {error!r}", unexpected=True)
        else:
            self._last_problem = ""

    def _log_problem(self, problem: str, *, unexpected: bool = False) -> None:
        """Said once, not at each turn until it is over."""
        if problem != self._last_problem:
            log.log(logging.ERROR if unexpected else logging.WARNING, "%s", problem, exc_info=unexpected)
        self._last_problem = problem

    async def deliver_due(self) -> None:
        """One round, by whoever calls it. Raises StoreUnavailable."""
        hooks = await self._subscriptions.all()
        outbox = await self._enqueue_changes(hooks)
        due = outbox.due(self._clock()) if outbox is not None else []
        if due and outbox is not None:
            results = dict(zip((call.id for call in due), await self._send_all(hooks, due), strict=True))
            await self._apply_results(due, results)

    async def close(self) -> None:
        """Give the lease and the connections back. Idempotent."""
        if self._session is not None:
            await self._session.close()
            self._session = None
        await self._lease.close()

    async def dead_letters(self, subscription_id: str, count: int = 50) -> Sequence[Delivery]:
        """The newest calls to a webhook that were given up, newest first."""
        entries = await self._events.store.stream_tail(DEAD_LETTERS_KEY, MAX_DEAD_LETTERS)
        calls = [
            decode_value(_delivery_decoder, payload, "A call that was given up") for _, payload in entries
        ]
        return [call for call in calls if call.hook == subscription_id][:count]

    async def pending(self) -> dict[str, int]:
        """Calls that are owed, by webhook."""
        counts: dict[str, int] = {}
        for call in decode_outbox((await self._events.store.read([OUTBOX_KEY]))[0]).calls:
            counts[call.hook] = counts.get(call.hook, 0) + 1
        return counts

    async def ping(self, subscription: Subscription) -> DeliveryResult:
        """Call it now, with a test body, whatever is owed."""
        now_ms = self._clock()
        body = ping_payload(subscription.id, now_ms, subscription.format)
        call = Delivery("msg_" + secrets.token_hex(12), subscription.id, "", "ping", body, now_ms, now_ms)
        return (await self._send_all({subscription.id: subscription}, [call]))[0]

    # -- inside --------------------------------------------------------------------------------

    async def _enqueue_changes(self, subscriptions: dict[str, Subscription]) -> Outbox | None:
        """The outbox with calls for all changes since; None when another courier was faster."""
        raw = (await self._events.store.read([OUTBOX_KEY]))[0]
        outbox = decode_outbox(raw)
        if raw is None:  # the first turn ever: what happened before is not told
            return await self._save(raw, Outbox(await self._events.latest_position()), [])
        changes = await self._events.changes(outbox.position, CHANGES_PER_RUN)
        if not changes:
            return outbox
        told = [change for _, change in changes if change.kind in DELIVERED_KINDS]
        events = await self._events.get_many(list(dict.fromkeys(change.event_id for change in told)))
        made = tuple(
            self._build_delivery(hook, change, events[change.event_id])
            for change in told
            for hook in subscriptions.values()
            if change.event_id in events
            and not hook.disabled
            and all(EventFilter.parse(query).matches(events[change.event_id]) for query in hook.queries)
        )
        return await self._save(raw, *enqueue(outbox, changes[-1][0], made))

    def _build_delivery(self, subscription: Subscription, change: ChangeRecord, event: Event) -> Delivery:
        """Its id follows from what it tells, so that nobody is told twice under different ids."""
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

        async def one(call: Delivery) -> DeliveryResult:
            hook = subscriptions.get(call.hook)
            if hook is None:
                return DeliveryResult("the webhook was removed", unsubscribed=True)
            return await send(session, hook, call, now_ms, allow_private=self._allow_private)

        return await asyncio.gather(*map(one, deliveries))

    async def _apply_results(
        self, deliveries: Sequence[Delivery], results: dict[str, DeliveryResult]
    ) -> None:
        now_ms = self._clock()
        gone = {call.hook for call in deliveries if results[call.id].unsubscribed}
        problems = {id_: result.error for id_, result in results.items()}
        waits = {id_: result.retry_after_s for id_, result in results.items()}
        raw = (await self._events.store.read([OUTBOX_KEY]))[0]
        left, dead = apply_results(decode_outbox(raw), problems, gone, now_ms, random.random(), waits)
        if await self._save(raw, left, dead) is None:
            return
        self.delivered += sum(problem is None for problem in problems.values())
        self.failed_attempts += sum(problem is not None for problem in problems.values())
        for call in dead:
            log.error("webhook %s: the call %s was given up: %s", call.hook, call.id, call.result)
        await self._subscriptions.mutate(lambda hooks: _record_results(hooks, deliveries, results, now_ms))

    async def _save(
        self, raw: bytes | None, outbox: Outbox, dead_letters: Sequence[Delivery]
    ) -> Outbox | None:
        """The outbox, if it still is what was read."""
        writes: list[Write] = [Put(OUTBOX_KEY, msgspec.msgpack.encode(outbox))]
        writes += [StreamAdd(DEAD_LETTERS_KEY, msgspec.msgpack.encode(call)) for call in dead_letters]
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
    return decode_value(_outbox_decoder, raw, "The outbox of calls") if raw is not None else Outbox()


def _record_results(
    subscriptions: dict[str, Subscription],
    deliveries: Sequence[Delivery],
    results: dict[str, DeliveryResult],
    now_ms: int,
) -> None:
    """How the webhooks have fared; one that answered "gone" is called no more."""
    for call in deliveries:
        hook, result = subscriptions.get(call.hook), results[call.id]
        if hook is None:
            continue
        changes: dict[str, Any] = {"last_ms": now_ms, "last_result": result.error or "delivered"}
        changes["delivered" if result.error is None else "failed"] = (
            hook.delivered + 1 if result.error is None else hook.failed + 1
        )
        if result.unsubscribed:
            changes["disabled"] = "the receiver answered 410 Gone"
        subscriptions[call.hook] = msgspec.structs.replace(hook, **changes)
