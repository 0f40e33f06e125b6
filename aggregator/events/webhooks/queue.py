"""Stored outbox, dead letters and delivery log of all targets.

{events}outbox      pending deliveries and the position in the change stream, one value (``outbox.py``)
{events}dead-calls  stream of deliveries that were given up, the newest 1,000
{events}deliveries  stream of attempts with their results, the newest 2,000

The dispatcher and the pages change the outbox; each change is committed only if the outbox is still the one
that was read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from aggregator.errors import NotFound
from aggregator.events.webhooks.outbox import Attempt, Delivery, Outbox, requeue, retry_now
from aggregator.store.base import Store, StreamAdd, Transaction, Write
from aggregator.store.decoding import decode_value
from aggregator.store.optimistic import StoredValue, ValueFormat

OUTBOX_KEY = b"{events}outbox"
DEAD_LETTERS_KEY = b"{events}dead-calls"
ATTEMPTS_KEY = b"{events}deliveries"
MAX_DEAD_LETTERS = 1000
MAX_ATTEMPTS = 2000

_OUTBOX_FORMAT = ValueFormat(msgspec.msgpack.Decoder(Outbox), "The webhook outbox", Outbox)
_delivery_decoder = msgspec.msgpack.Decoder(Delivery)
_attempt_decoder = msgspec.msgpack.Decoder(Attempt)


class DeliveryQueue:
    """The outbox of one store. Every method may raise StoreUnavailable."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._outbox = StoredValue(store, OUTBOX_KEY, _OUTBOX_FORMAT)

    async def read(self) -> tuple[bytes | None, Outbox]:
        """The stored value, for the condition of the next commit, and the outbox."""
        return await self._outbox.read_with_raw()

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
        if not await self._outbox.replace(raw, outbox, (*writes, *entries)):
            return None
        if dead_letters:
            await self._trim(DEAD_LETTERS_KEY, MAX_DEAD_LETTERS)
        if attempts:
            await self._trim(ATTEMPTS_KEY, MAX_ATTEMPTS)
        return outbox

    async def add_attempt(self, attempt: Attempt) -> None:
        """Log an attempt that was made without the outbox: a test."""
        entry = StreamAdd(ATTEMPTS_KEY, msgspec.msgpack.encode(attempt))
        await self._store.commit(Transaction((), (entry,)))
        await self._trim(ATTEMPTS_KEY, MAX_ATTEMPTS)

    async def pending(self) -> dict[str, int]:
        """Number of pending deliveries by target."""
        _, outbox = await self.read()
        return dict(Counter(delivery.hook for delivery in outbox.calls))

    async def dead_letters(self, target: str, count: int = 50) -> list[Delivery]:
        """The newest dead letters of a target, newest first."""
        entries = await self._store.stream_tail(DEAD_LETTERS_KEY, MAX_DEAD_LETTERS)
        found = [decode_value(_delivery_decoder, payload, "A dead letter") for _, payload in entries]
        return [delivery for delivery in found if delivery.hook == target][:count]

    async def dead_letter_count(self) -> int:
        """Number of dead letters of all targets that are kept, at most about ``MAX_DEAD_LETTERS``."""
        return sum(await self._store.stream_lengths([DEAD_LETTERS_KEY]))

    async def attempts(self, targets: frozenset[str], count: int = 50) -> list[Attempt]:
        """The newest attempts at some targets, newest first."""
        entries = await self._store.stream_tail(ATTEMPTS_KEY, MAX_ATTEMPTS)
        found = [decode_value(_attempt_decoder, payload, "A delivery attempt") for _, payload in entries]
        return [attempt for attempt in found if attempt.target in targets][:count]

    async def retry_now(self, target: str, now_ms: int) -> int:
        """Make the pending deliveries of a target due; returns their number."""
        changed = await self._outbox.edit(lambda outbox: retry_now(outbox, target, now_ms))
        return sum(delivery.hook == target for delivery in changed.calls)

    async def resend(self, target: str, delivery_id: str, now_ms: int) -> None:
        """Enqueue a dead letter again, under its id. Raises NotFound."""
        letters = await self.dead_letters(target, MAX_DEAD_LETTERS)
        letter = next((found for found in letters if found.id == delivery_id), None)
        if letter is None:
            raise NotFound(f"There is no undelivered notification {delivery_id[:80]!r} of this target.")
        await self._outbox.edit(lambda outbox: requeue(outbox, letter, now_ms))

    async def _trim(self, key: bytes, limit: int) -> None:
        kept = await self._store.stream_tail(key, limit)
        if len(kept) == limit:
            await self._store.stream_trim(key, kept[-1][0])


def decode_outbox(raw: bytes | None) -> Outbox:
    """The stored outbox; an empty one for an absent value. Raises StoreUnavailable when it is damaged."""
    return _OUTBOX_FORMAT.decode(raw)
