"""Outbox of webhook deliveries: pending ones, their retry schedule, dead letters. Pure.

It is stored as one value, together with the position in the change stream.
"""

from __future__ import annotations

import msgspec

from aggregator.time_units import DAY_MS

# Standard Webhooks, "Retry schedule": about a day in total, then the delivery is a dead letter.
RETRY_DELAYS_S = (5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600)
MAX_PENDING = 2000
# Above all delays, also those that receivers ask for: a delivery due later was postponed by a wrong clock.
MAX_DELAY_MS = 2 * DAY_MS


class Delivery(msgspec.Struct, frozen=True):
    """One call to the subscription ``hook``; ``id`` and ``body`` are the same in all attempts.

    ``due_ms``: time of the next attempt; ``result``: error of the last; ``event``: the first of ``events``.
    """

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


def enqueue(
    outbox: Outbox, position: bytes, new_deliveries: tuple[Delivery, ...]
) -> tuple[Outbox, list[Delivery]]:
    """The outbox with new deliveries, and the oldest ones above MAX_PENDING as dead letters."""
    deliveries = (*outbox.calls, *new_deliveries)
    dead = [
        msgspec.structs.replace(delivery, result="too many deliveries were pending")
        for delivery in deliveries[: max(0, len(deliveries) - MAX_PENDING)]
    ]
    return Outbox(position, deliveries[len(dead) :]), dead


def apply_results(
    outbox: Outbox,
    results: dict[str, str | None],
    unsubscribed: set[str],
    now_ms: int,
    jitter: float,
    retry_after_s: dict[str, int],
) -> tuple[Outbox, list[Delivery]]:
    """The outbox after some attempts, and the dead letters.

    results        by delivery id: None for a success, else the error
    unsubscribed   webhooks that accept no more calls
    jitter         in 0..1, lengthens the retry delays by up to 20 %
    retry_after_s  minimum delay that the receiver asked for, by delivery id
    """
    pending: list[Delivery] = []
    dead: list[Delivery] = []
    for delivery in outbox.calls:
        error = results.get(delivery.id, "")
        if error is None:
            continue
        if delivery.hook in unsubscribed:
            dead.append(msgspec.structs.replace(delivery, result=error or "the webhook was disabled"))
        elif delivery.id not in results:
            pending.append(delivery)
        else:
            tried = msgspec.structs.replace(delivery, attempts=delivery.attempts + 1, result=error)
            if delivery.attempts >= len(RETRY_DELAYS_S):
                dead.append(tried)
            else:
                delay_s = RETRY_DELAYS_S[delivery.attempts] * (1 + 0.2 * jitter)
                delay_s = max(delay_s, retry_after_s.get(delivery.id, 0))
                pending.append(msgspec.structs.replace(tried, due_ms=now_ms + int(delay_s * 1000)))
    return Outbox(outbox.position, tuple(pending)), dead


def retry_now(outbox: Outbox, target: str, now_ms: int) -> Outbox:
    """The outbox with all deliveries of a target due now; their numbers of attempts stay."""
    return msgspec.structs.replace(
        outbox,
        calls=tuple(
            msgspec.structs.replace(delivery, due_ms=now_ms) if delivery.hook == target else delivery
            for delivery in outbox.calls
        ),
    )


def requeue(outbox: Outbox, letter: Delivery, now_ms: int) -> Outbox:
    """The outbox with a dead letter as a new delivery under its id, unless it is pending."""
    if any(delivery.id == letter.id for delivery in outbox.calls) or len(outbox.calls) >= MAX_PENDING:
        return outbox
    again = msgspec.structs.replace(letter, attempts=0, due_ms=now_ms)
    return msgspec.structs.replace(outbox, calls=(*outbox.calls, again))
