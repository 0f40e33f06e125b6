"""Deliveries of webhooks: pending ones, their retry schedule, dead letters, history.

Each change of the outbox is committed only if it is still as it was read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from aggregator.errors import NotFound
from aggregator.store.base import Store, StreamAdd, Transaction, Write
from aggregator.store.decoding import decode_value
from aggregator.store.optimistic import StoredValue, ValueFormat
from aggregator.time_units import DAY_MS

OUTBOX_KEY = b"{events}outbox"
DEAD_LETTERS_KEY = b"{events}dead-calls"
ATTEMPTS_KEY = b"{events}deliveries"
MAX_DEAD_LETTERS = 1000
MAX_ATTEMPTS = 2000
# Standard Webhooks, "Retry schedule": about a day in total, then the delivery is a dead letter.
RETRY_DELAYS_S = (5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600)
MAX_PENDING = 2000
# Above all delays, also those that receivers ask for: a delivery due later was postponed by a wrong clock.
MAX_DELAY_MS = 2 * DAY_MS


class Delivery(msgspec.Struct, frozen=True):
    """One call to ``hook``. ``id``: of all attempts, ``due_ms``: of the next one, ``title``: as a mail's."""

    id: str
    hook: str
    event: str
    kind: str
    body: bytes
    made_ms: int
    due_ms: int
    attempts: int = 0
    result: str = ""
    events: int = 1
    title: str = ""


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """Result of one attempt. ``error``: None on success; ``unsubscribed``: the receiver answered 410 Gone."""

    error: str | None
    unsubscribed: bool = False
    retry_after_s: int = 0


class Attempt(msgspec.Struct, frozen=True):
    """One attempt at a delivery, for the history of a target; ``error``: "" for a success."""

    delivery: str
    target: str
    kind: str
    at_ms: int
    number: int = 1
    error: str = ""
    next_ms: int = 0
    event: str = ""
    events: int = 1
    title: str = ""

    @classmethod
    def at(cls, of: Delivery, at_ms: int, number: int, error: str, next_ms: int) -> Attempt:
        """An attempt at a delivery."""
        return cls(of.id, of.hook, of.kind, at_ms, number, error, next_ms, of.event, of.events, of.title)


class Outbox(msgspec.Struct, frozen=True):
    """Pending deliveries, oldest first. ``position``: last change that was turned into deliveries."""

    position: bytes = b""
    calls: tuple[Delivery, ...] = ()

    def due(self, now_ms: int) -> list[Delivery]:
        """The oldest delivery of each webhook, if it is due: one at a time, in order."""
        oldest: dict[str, Delivery] = {}
        for delivery in self.calls:
            oldest.setdefault(delivery.hook, delivery)
        return [d for d in oldest.values() if not now_ms < d.due_ms <= now_ms + MAX_DELAY_MS]

    def add(self, position: bytes, new: Sequence[Delivery]) -> tuple[Outbox, list[Delivery]]:
        """The outbox with new deliveries, and the oldest ones above MAX_PENDING as dead letters."""
        deliveries = (*self.calls, *new)
        dead = [
            msgspec.structs.replace(delivery, result="too many deliveries were pending")
            for delivery in deliveries[: max(0, len(deliveries) - MAX_PENDING)]
        ]
        return Outbox(position, deliveries[len(dead) :]), dead

    def apply(
        self, results: Mapping[str, DeliveryResult], now_ms: int, jitter: float
    ) -> tuple[Outbox, list[Delivery]]:
        """After attempts, by delivery id: the outbox and the dead letters; ``jitter``: 0..1, up to 20 %."""
        pending: list[Delivery] = []
        dead: list[Delivery] = []
        unsubscribed = {d.hook for d in self.calls if d.id in results and results[d.id].unsubscribed}
        for delivery in self.calls:
            result = results.get(delivery.id)
            if result is not None and result.error is None:
                continue
            error = (result.error or "") if result is not None else ""
            tried = msgspec.structs.replace(delivery, attempts=delivery.attempts + 1, result=error)
            if delivery.hook in unsubscribed:
                dead.append(msgspec.structs.replace(delivery, result=error or "the webhook was disabled"))
            elif result is None:
                pending.append(delivery)
            elif delivery.attempts >= len(RETRY_DELAYS_S):
                dead.append(tried)
            else:
                delay_s = RETRY_DELAYS_S[delivery.attempts] * (1 + 0.2 * jitter)
                due_ms = now_ms + int(max(delay_s, result.retry_after_s) * 1000)
                pending.append(msgspec.structs.replace(tried, due_ms=due_ms))
        return Outbox(self.position, tuple(pending)), dead

    def requeue(self, letter: Delivery, now_ms: int) -> Outbox:
        """With a dead letter as a new delivery under its id, unless it is pending."""
        if any(delivery.id == letter.id for delivery in self.calls) or len(self.calls) >= MAX_PENDING:
            return self
        again = msgspec.structs.replace(letter, attempts=0, due_ms=now_ms)
        return msgspec.structs.replace(self, calls=(*self.calls, again))


_OUTBOX_FORMAT = ValueFormat(msgspec.msgpack.Decoder(Outbox), "The webhook outbox", Outbox)
_delivery_decoder = msgspec.msgpack.Decoder(Delivery)
_attempt_decoder = msgspec.msgpack.Decoder(Attempt)


class DeliveryQueue:
    """The outbox of one store. Every method may raise StoreUnavailable."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.outbox = StoredValue(store, OUTBOX_KEY, _OUTBOX_FORMAT)

    async def save(
        self,
        raw: bytes | None,
        outbox: Outbox,
        dead_letters: Sequence[Delivery] = (),
        attempts: Sequence[Attempt] = (),
        writes: Sequence[Write] = (),
    ) -> Outbox | None:
        """Commit all of it if the stored outbox is still ``raw``; None otherwise."""
        entries = [StreamAdd(DEAD_LETTERS_KEY, msgspec.msgpack.encode(letter)) for letter in dead_letters]
        entries += [StreamAdd(ATTEMPTS_KEY, msgspec.msgpack.encode(attempt)) for attempt in attempts]
        if not await self.outbox.replace(raw, outbox, (*writes, *entries)):
            return None
        if dead_letters:
            await self._trim(DEAD_LETTERS_KEY, MAX_DEAD_LETTERS)
        if attempts:
            await self._trim(ATTEMPTS_KEY, MAX_ATTEMPTS)
        return outbox

    async def add_attempt(self, attempt: Attempt) -> None:
        """Log an attempt that was made without the outbox: a test."""
        await self._store.commit(Transaction((), (StreamAdd(ATTEMPTS_KEY, msgspec.msgpack.encode(attempt)),)))
        await self._trim(ATTEMPTS_KEY, MAX_ATTEMPTS)

    async def pending(self) -> dict[str, int]:
        """Number of pending deliveries by target."""
        return dict(Counter(delivery.hook for delivery in (await self.outbox.read()).calls))

    async def dead_letters(self, targets: Collection[str], count: int = 50) -> list[Delivery]:
        """The newest dead letters of some targets, newest first."""
        entries = await self._store.stream_tail(DEAD_LETTERS_KEY, MAX_DEAD_LETTERS)
        found = [decode_value(_delivery_decoder, payload, "A dead letter") for _, payload in entries]
        return [delivery for delivery in found if delivery.hook in targets][:count]

    async def attempts(self, targets: Collection[str] | None, count: int = 50) -> list[Attempt]:
        """The newest attempts at some targets, or all, also those that were removed; newest first."""
        entries = await self._store.stream_tail(ATTEMPTS_KEY, MAX_ATTEMPTS)
        found = [decode_value(_attempt_decoder, payload, "A delivery attempt") for _, payload in entries]
        return [attempt for attempt in found if targets is None or attempt.target in targets][:count]

    async def drop(self, ids: Collection[str]) -> None:
        """Drop the pending deliveries of targets that were removed."""
        await self.outbox.edit(lambda o: Outbox(o.position, tuple(d for d in o.calls if d.hook not in ids)))

    async def retry_now(self, target: str, now_ms: int) -> None:
        """Make the pending deliveries of a target due."""

        def due(delivery: Delivery) -> Delivery:
            return msgspec.structs.replace(delivery, due_ms=now_ms) if delivery.hook == target else delivery

        await self.outbox.edit(lambda outbox: Outbox(outbox.position, tuple(map(due, outbox.calls))))

    async def resend(self, target: str, delivery_id: str, now_ms: int) -> None:
        """Enqueue a dead letter again, under its id. Raises NotFound."""
        letters = await self.dead_letters({target}, MAX_DEAD_LETTERS)
        letter = next((found for found in letters if found.id == delivery_id), None)
        if letter is None:
            raise NotFound(f"There is no undelivered notification {delivery_id[:80]!r} of this target.")
        await self.outbox.edit(lambda outbox: outbox.requeue(letter, now_ms))

    async def _trim(self, key: bytes, limit: int) -> None:
        kept = await self._store.stream_tail(key, limit)
        if len(kept) == limit:
            await self._store.stream_trim(key, kept[-1][0])
