"""What is kept for each user (API key): the events that were looked at, and answers to repeated requests.

read:<user>            a ``ReadMark``, at most 20 kB; expires 90 days after its last change
idempotency:<owner>    reservations and the newest answers, at most MAX_ANSWERS and MAX_BYTES of bodies

A request with an Idempotency-Key first reserves the key, then acts, then records its answer in place of the
reservation, by compare-and-write: of simultaneous requests with one key exactly one acts, also across
processes. A reservation whose process died ends after 60 s; an answer is kept for 24 h.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TypeVar

import msgspec

from aggregator.store.base import Store
from aggregator.store.optimistic import StoredValue, ValueFormat
from aggregator.time_units import DAY_MS

MAX_SEEN = 200
MARK_RETENTION_MS = 90 * DAY_MS
MAX_ANSWERS = 200
MAX_BYTES = 256_000
ANSWER_RETENTION_MS = DAY_MS
RESERVATION_MS = 60_000
RESERVED = 0  # the status of a reservation


class ReadMark(msgspec.Struct, frozen=True):
    """Events detected until ``looked_ms`` are seen, and those in ``seen`` (the last MAX_SEEN)."""

    looked_ms: int = 0
    seen: tuple[str, ...] = ()

    def advanced(self, looked_ms: int, seen: Sequence[str]) -> ReadMark:
        """With more events seen. Repeating it or changing the order of two changes has no effect."""
        merged = dict.fromkeys((*self.seen, *seen))
        return ReadMark(max(self.looked_ms, looked_ms), tuple(merged)[-MAX_SEEN:])


_MARK_FORMAT = ValueFormat(msgspec.msgpack.Decoder(ReadMark | None), "The read mark", lambda: None)


class ReadMarks:
    """The read marks of all users of a store. ``user``: id of the API key."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, user: str) -> ReadMark | None:
        """The mark of a user; None before the first. Raises StoreUnavailable."""
        return await self._mark(user).read()

    async def advance(self, user: str, looked_ms: int, seen: Sequence[str]) -> ReadMark:
        """Add to the mark of a user and return it. Raises CommitConflict, StoreUnavailable."""

        def change(mark: ReadMark | None) -> tuple[ReadMark | None, ReadMark]:
            advanced = (mark or ReadMark()).advanced(looked_ms, seen)
            return advanced, advanced

        return await self._mark(user).edit_with_result(change)

    def _mark(self, user: str) -> StoredValue[ReadMark | None]:
        return StoredValue(self._store, b"read:" + user.encode(), _MARK_FORMAT, lambda _: MARK_RETENTION_MS)


class StoredAnswer(msgspec.Struct, frozen=True, array_like=True):
    """The answer to a request, known by ``fingerprint``, or its reservation (status RESERVED, no body)."""

    key: str
    fingerprint: bytes
    made_ms: int
    status: int = RESERVED
    location: str = ""
    body: bytes = b""


T = TypeVar("T")
Answers = dict[str, StoredAnswer]  # by key, oldest first
_ANSWERS_FORMAT = ValueFormat(msgspec.msgpack.Decoder(Answers), "The list of recorded answers", dict)


class IdempotentAnswers:
    """Answers by ``owner``, id of the API key. All methods raise CommitConflict and StoreUnavailable."""

    def __init__(self, store: Store, clock: Callable[[], int]) -> None:
        self._store, self._clock = store, clock
        # Requests of one process queue here instead of failing each other's commit.
        self._lock = asyncio.Lock()

    async def reserve(self, owner: str, reservation: StoredAnswer) -> StoredAnswer | None:
        """Reserve a key. None: the caller acts; otherwise the answer or reservation of another request."""

        def change(entries: Answers) -> tuple[Answers, StoredAnswer | None]:
            earlier = entries.get(reservation.key)
            return (entries if earlier else entries | {reservation.key: reservation}), earlier

        return await self._edit(owner, change)

    async def record(self, owner: str, answer: StoredAnswer) -> StoredAnswer:
        """Replace the reservation by an answer; returns the one that another request recorded, if any."""

        def change(entries: Answers) -> tuple[Answers, StoredAnswer]:
            earlier = entries.get(answer.key)
            if earlier is not None and earlier.status != RESERVED:
                return entries, earlier
            others = {key: entry for key, entry in entries.items() if key != answer.key}
            return others | {answer.key: answer}, answer

        return await self._edit(owner, change)

    async def release(self, owner: str, reservation: StoredAnswer) -> None:
        """Remove a reservation whose request failed, if it is still that of the caller."""

        def change(entries: Answers) -> tuple[Answers, None]:
            return {key: entry for key, entry in entries.items() if entry != reservation}, None

        await self._edit(owner, change)

    async def _edit(self, owner: str, change: Callable[[Answers], tuple[Answers, T]]) -> T:
        def edit(stored: Answers) -> tuple[Answers, T]:
            current = self._without_expired(stored)
            changed, result = change(current)
            return (stored if changed == current else _bounded(changed)), result

        key = b"idempotency:" + owner.encode()
        answers = StoredValue(self._store, key, _ANSWERS_FORMAT, lambda _: ANSWER_RETENTION_MS)
        async with self._lock:
            return await answers.edit_with_result(edit)

    def _without_expired(self, entries: Answers) -> Answers:
        now_ms, kept_ms = self._clock(), {RESERVED: RESERVATION_MS}
        return {
            key: entry
            for key, entry in entries.items()
            if now_ms - entry.made_ms < kept_ms.get(entry.status, ANSWER_RETENTION_MS)
        }


def _bounded(entries: Answers) -> Answers:
    """The newest entries within the limits, at least the last one (or none of none)."""
    newest = list(entries.items())[-MAX_ANSWERS:]
    sizes = accumulate(len(entry.body) for _, entry in reversed(newest))
    return dict(newest[-max(1, sum(size <= MAX_BYTES for size in sizes)) :])
