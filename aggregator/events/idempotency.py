"""Answers to requests with an Idempotency-Key, so that a repeated request is answered as the first time.

idempotency:<owner>    reservations and the newest answers of one API key, msgpack

A request first reserves its key, then acts, then records its answer in place of the reservation, by
compare-and-write on one value: of simultaneous requests with one key exactly one acts, also across processes.
A reservation whose process died ends after 60 s. An answer is kept for 24 h; one value has at most
MAX_ANSWERS answers and MAX_BYTES bytes of bodies (older ones are dropped first).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import accumulate
from typing import TypeVar

import msgspec

from aggregator.store.base import Store
from aggregator.store.optimistic import StoredValue, ValueFormat
from aggregator.time_units import DAY_MS

MAX_ANSWERS = 200
MAX_BYTES = 256_000
RETENTION_MS = DAY_MS
RESERVATION_MS = 60_000
RESERVED = 0  # the status of a reservation


class StoredAnswer(msgspec.Struct, frozen=True, array_like=True):
    """The answer to a request, or its reservation (status RESERVED, no body).

    ``fingerprint`` identifies method, address and body of the request; ``made_ms``: ms since 1970.
    """

    key: str
    fingerprint: bytes
    made_ms: int
    status: int = RESERVED
    location: str = ""
    body: bytes = b""


T = TypeVar("T")
Answers = tuple[StoredAnswer, ...]
_FORMAT = ValueFormat(msgspec.msgpack.Decoder(Answers), "The list of recorded answers", tuple)


class IdempotentAnswers:
    """The reservations and recorded answers of all API keys of a store. ``clock``: ms since 1970.

    All methods raise CommitConflict and StoreUnavailable. ``owner``: id of the API key.
    """

    def __init__(self, store: Store, clock: Callable[[], int]) -> None:
        self._store, self._clock = store, clock
        # Requests of one process queue here instead of failing each other's commit.
        self._lock = asyncio.Lock()

    async def reserve(self, owner: str, reservation: StoredAnswer) -> StoredAnswer | None:
        """Reserve a key. None: the caller acts; otherwise the answer or reservation of another request."""

        def change(entries: Answers) -> tuple[Answers, StoredAnswer | None]:
            earlier = _find(entries, reservation.key)
            return (entries if earlier else (*entries, reservation)), earlier

        return await self._edit(owner, change)

    async def record(self, owner: str, answer: StoredAnswer) -> StoredAnswer:
        """Replace the reservation by an answer; returns the one that another request recorded, if any."""

        def change(entries: Answers) -> tuple[Answers, StoredAnswer]:
            earlier = _find(entries, answer.key)
            if earlier is not None and earlier.status != RESERVED:
                return entries, earlier
            return (*_without(entries, earlier), answer), answer

        return await self._edit(owner, change)

    async def release(self, owner: str, reservation: StoredAnswer) -> None:
        """Remove a reservation whose request failed, if it is still that of the caller."""
        await self._edit(owner, lambda entries: (_without(entries, reservation), None))

    async def _edit(self, owner: str, change: Callable[[Answers], tuple[Answers, T]]) -> T:
        def edit(stored: Answers) -> tuple[Answers, T]:
            current = self._without_expired(stored)
            changed, result = change(current)
            return (stored if changed == current else _bounded(changed)), result

        key = b"idempotency:" + owner.encode()
        answers = StoredValue(self._store, key, _FORMAT, lambda _: RETENTION_MS)
        async with self._lock:
            return await answers.edit_with_result(edit)

    def _without_expired(self, entries: Answers) -> Answers:
        now_ms = self._clock()
        return tuple(
            entry
            for entry in entries
            if now_ms - entry.made_ms < (RESERVATION_MS if entry.status == RESERVED else RETENTION_MS)
        )


def _find(entries: Answers, key: str) -> StoredAnswer | None:
    return next((entry for entry in entries if entry.key == key), None)


def _without(entries: Answers, removed: StoredAnswer | None) -> Answers:
    return tuple(entry for entry in entries if entry != removed)


def _bounded(entries: Answers) -> Answers:
    """The newest entries within the limits, at least the last one (or none of none)."""
    newest = entries[-MAX_ANSWERS:]
    sizes = accumulate(len(entry.body) for entry in reversed(newest))
    return newest[-max(1, sum(size <= MAX_BYTES for size in sizes)) :]
