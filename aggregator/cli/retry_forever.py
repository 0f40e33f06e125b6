"""Retries without an end, for commands that must not drop an article: ``ingest``, ``check``, ``reindex``."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, cast

from aggregator.errors import AggregatorError, RateLimited, StoreUnavailable

RETRYABLE: tuple[type[AggregatorError], ...] = (StoreUnavailable, RateLimited)
INITIAL_BACKOFF_S, MAX_BACKOFF_S = 0.2, 5.0
LOG_AFTER_S, LOG_INTERVAL_S = 1.0, 60.0
FIRST_CONTACT_TIMEOUT_S = 3.0  # a server that was never reached is probably not running

T = TypeVar("T")
R = TypeVar("R")

log = logging.getLogger("aggregator.wait")


class Backoff:
    """Pauses that double, from one success to the next; a wait that takes long is logged once a minute."""

    def __init__(self, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self.succeeded()

    def succeeded(self) -> None:
        """Begin again with the shortest pause."""
        self._pause_s = INITIAL_BACKOFF_S
        self._waiting_since_s: float | None = None
        self._log_at_s = 0.0

    @property
    def waited_s(self) -> float:
        """Seconds since the first failure after the last success."""
        return 0.0 if self._waiting_since_s is None else self._clock_s() - self._waiting_since_s

    async def pause(self, reason: Exception, what: str) -> None:
        """Pause after a failure. ``what`` is waiting, in the words of the log line."""
        now_s = self._clock_s()
        if self._waiting_since_s is None:
            self._waiting_since_s, self._log_at_s = now_s, now_s + LOG_AFTER_S
        elif now_s >= self._log_at_s:
            log.warning("%s not processed yet, retrying until it succeeds: %s", what, reason)
            self._log_at_s = now_s + LOG_INTERVAL_S
        await asyncio.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, MAX_BACKOFF_S)


async def until_available(step: Callable[[], Awaitable[T]]) -> T:
    """Repeat ``step`` while it raises one of ``RETRYABLE``."""
    backoff = Backoff()
    while True:
        try:
            return await step()
        except RETRYABLE as error:
            await backoff.pause(error, "articles")


async def send_until_answered(
    items: Sequence[T],
    attempt: Callable[[Sequence[T]], Awaitable[Sequence[R | StoreUnavailable]]],
    may_wait: Callable[[], bool] = lambda: True,
) -> list[R]:
    """Repeat ``attempt`` with the items that got one of ``RETRYABLE``, until all have another answer.

    ``may_wait``: asked after a failure before the first answer; False raises the failure.
    """
    results: dict[int, R] = {}
    backoff = Backoff()
    while missing := [i for i in range(len(items)) if i not in results]:
        failure: AggregatorError | None = None
        answered = len(results)
        try:
            answers = await attempt([items[i] for i in missing])
        except RETRYABLE as error:
            answers, failure = [], error
        for i, answer in zip(missing, answers, strict=False):  # an interrupted answer lacks the last ones
            if isinstance(answer, RETRYABLE):
                failure = answer
            else:
                results[i] = cast(R, answer)
        if len(results) > answered:
            backoff.succeeded()
        if failure is not None:
            if backoff.waited_s > FIRST_CONTACT_TIMEOUT_S and not may_wait():
                raise failure
            await backoff.pause(failure, f"{len(items) - len(results)} articles")
    return [results[i] for i in range(len(items))]
