"""Which calls are owed and when: pure. Saved as one value together with the position in the change stream."""

from __future__ import annotations

import msgspec

# Standard Webhooks, "Retry schedule": about a day in all, then somebody has to look.
RETRY_DELAYS_S = (5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600)
MAX_PENDING = 2000


class Delivery(msgspec.Struct, frozen=True):
    """One call owed to one webhook. ``id`` and ``body`` stay the same over all attempts."""

    id: str
    hook: str
    event: str
    kind: str
    body: bytes
    made_ms: int
    due_ms: int
    attempts: int = 0
    result: str = ""


class Outbox(msgspec.Struct, frozen=True):
    """``position``: of the change stream, up to which calls were made out."""

    position: bytes = b""
    calls: tuple[Delivery, ...] = ()

    def due(self, now_ms: int) -> list[Delivery]:
        """The oldest call of each webhook, where its time has come: one at a time, in order."""
        first: dict[str, Delivery] = {}
        for call in self.calls:
            first.setdefault(call.hook, call)
        return [call for call in first.values() if call.due_ms <= now_ms]


def enqueue(
    outbox: Outbox, position: bytes, new_deliveries: tuple[Delivery, ...]
) -> tuple[Outbox, list[Delivery]]:
    """With further calls; and those that had to be given up, since too many are owed (the oldest go)."""
    calls = (*outbox.calls, *new_deliveries)
    spilled = [
        msgspec.structs.replace(call, result="too many calls were owed")
        for call in calls[: max(0, len(calls) - MAX_PENDING)]
    ]
    return Outbox(position, calls[len(spilled) :]), spilled


def apply_results(
    outbox: Outbox,
    results: dict[str, str | None],
    unsubscribed: set[str],
    now_ms: int,
    jitter: float,
    retry_after_s: dict[str, int],
) -> tuple[Outbox, list[Delivery]]:
    """After some attempts: ``results`` has None for a success, else what went wrong, by call id.

    ``gone``: webhooks that want no more. ``jitter``: in 0..1, spreads the pauses by up to a fifth.
    ``wait_s``: seconds a receiver asked for, by call id. Second: calls that were given up.
    """
    kept: list[Delivery] = []
    dead: list[Delivery] = []
    for call in outbox.calls:
        if call.hook in unsubscribed:
            if results.get(call.id, "") is not None:
                dead.append(
                    msgspec.structs.replace(call, result=results.get(call.id) or "the webhook was disabled")
                )
        elif call.id not in results:
            kept.append(call)
        elif (problem := results[call.id]) is not None:
            tried = msgspec.structs.replace(call, attempts=call.attempts + 1, result=problem)
            if call.attempts >= len(RETRY_DELAYS_S):
                dead.append(tried)
            else:
                pause_s = max(
                    RETRY_DELAYS_S[call.attempts] * (1 + 0.2 * jitter), retry_after_s.get(call.id, 0)
                )
                kept.append(msgspec.structs.replace(tried, due_ms=now_ms + int(pause_s * 1000)))
    return Outbox(outbox.position, tuple(kept)), dead
