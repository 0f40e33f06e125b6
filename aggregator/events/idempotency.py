"""Answers to requests with an Idempotency-Key, so that a repeated request is answered as the first time.

idempotency:<owner>    the newest answers to requests of one API key, msgpack

An answer is kept for 24 h. One value has at most MAX_ANSWERS answers and MAX_BYTES bytes of bodies (older
ones are dropped first), so 1,000 keys take at most 256 MB, and usually nothing: only requests that create
watches, webhooks, desks and targets are recorded, and the value expires with its newest answer.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

import msgspec

from aggregator.store.base import Put, Store, Transaction, ValueEquals
from aggregator.store.decoding import decode_value
from aggregator.store.optimistic import commit_attempts
from aggregator.time_units import DAY_MS

MAX_ANSWERS = 200
MAX_BYTES = 256_000
RETENTION_MS = DAY_MS


class StoredAnswer(msgspec.Struct, frozen=True, array_like=True):
    """The answer to a request: ``fingerprint`` identifies its method, address and body."""

    key: str
    fingerprint: bytes
    made_ms: int
    status: int
    location: str
    body: bytes


_decoder = msgspec.msgpack.Decoder(tuple[StoredAnswer, ...])


class IdempotentAnswers:
    """The recorded answers of all API keys of a store. ``clock``: ms since 1970."""

    def __init__(self, store: Store, clock: Callable[[], int]) -> None:
        self._store, self._clock = store, clock

    async def get(self, owner: str, key: str) -> StoredAnswer | None:
        """The answer to the request of ``owner`` (id of the API key) with this key, None without."""
        return _find(self._current((await self._store.read([_name(owner)]))[0]), key)

    async def record(self, owner: str, answer: StoredAnswer) -> StoredAnswer:
        """Record an answer; returns the one that another request recorded for this key meanwhile, if any.

        Raises CommitConflict, StoreUnavailable.
        """
        for _ in commit_attempts("The recorded answers kept changing; repeat the request."):
            raw = (await self._store.read([_name(owner)]))[0]
            answers = self._current(raw)
            earlier = _find(answers, answer.key)
            if earlier is not None:
                return earlier
            write = Put(_name(owner), msgspec.msgpack.encode(_bounded((*answers, answer))), RETENTION_MS)
            if not await self._store.commit(Transaction((ValueEquals(_name(owner), raw),), (write,))):
                return answer
        raise AssertionError("unreachable")

    def _current(self, raw: bytes | None) -> tuple[StoredAnswer, ...]:
        """The answers that have not expired, oldest first."""
        answers = decode_value(_decoder, raw, "A list of recorded answers") if raw else ()
        oldest_ms = self._clock() - RETENTION_MS
        return tuple(answer for answer in answers if answer.made_ms > oldest_ms)


def _find(answers: tuple[StoredAnswer, ...], key: str) -> StoredAnswer | None:
    return next((answer for answer in answers if answer.key == key), None)


def _bounded(answers: tuple[StoredAnswer, ...]) -> tuple[StoredAnswer, ...]:
    """The newest answers within the limits, at least the last one."""
    newest = answers[-MAX_ANSWERS:]
    sizes = accumulate(len(answer.body) for answer in reversed(newest))
    return newest[-max(1, sum(size <= MAX_BYTES for size in sizes)) :]


def _name(owner: str) -> bytes:
    return b"idempotency:" + owner.encode()
