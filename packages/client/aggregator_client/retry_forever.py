"""Retries, by default without an end, for commands that must not drop an article: ``ingest``, ``migrate``."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, cast

# Pauses double from one success to the next.
INITIAL_BACKOFF_S, MAX_BACKOFF_S = 0.2, 5.0
LOG_AFTER_S, LOG_INTERVAL_S = 1.0, 60.0
FIRST_CONTACT_TIMEOUT_S = 3.0  # a server that was never reached is probably not running

T = TypeVar("T")
R = TypeVar("R")

log = logging.getLogger("aggregator.wait")


async def until_available(step: Callable[[], Awaitable[T]], retryable: tuple[type[Exception], ...]) -> T:
    """Repeat ``step`` while it raises one of ``retryable``."""

    async def attempt(_: Sequence[None]) -> list[T | Exception]:
        return [await step()]

    return (await send_until_answered([None], attempt, retryable, what="articles"))[0]


async def send_until_answered(
    items: Sequence[T],
    attempt: Callable[[Sequence[T]], Awaitable[Sequence[R | Exception]]],
    retryable: tuple[type[Exception], ...],
    *,
    limit_s: Callable[[], float] = lambda: math.inf,
    what: str = "",
) -> list[R]:
    """Repeat ``attempt`` with the items that got one of ``retryable``, until all have another answer.

    ``limit_s``: asked after a failure, which becomes the result of the others after this long without any.
    ``what``: waits, in the words of the log, by default the number of articles.
    """
    results: dict[int, R] = {}
    pause_s, waiting_since_s, log_at_s = INITIAL_BACKOFF_S, None, 0.0
    while missing := [i for i in range(len(items)) if i not in results]:
        failure: Exception | None = None
        answered = len(results)
        try:
            answers = await attempt([items[i] for i in missing])
        except retryable as error:
            answers = [error]
        for i, answer in zip(missing, answers, strict=False):  # an interrupted answer lacks the last ones
            if isinstance(answer, retryable):
                failure = answer
            else:
                results[i] = cast(R, answer)
        if len(results) > answered:
            pause_s, waiting_since_s = INITIAL_BACKOFF_S, None
        if failure is None:
            continue
        now_s = time.monotonic()
        if waiting_since_s is None:
            waiting_since_s, log_at_s = now_s, now_s + LOG_AFTER_S
        elif now_s >= log_at_s:
            waiting = what or f"{len(items) - len(results)} articles"
            limit = "until it succeeds" if limit_s() == math.inf else f"for about {limit_s():.0f} s in all"
            log.warning("%s not processed yet, retrying %s: %s", waiting, limit, failure)
            log_at_s = now_s + LOG_INTERVAL_S
        left_s = waiting_since_s + limit_s() - now_s
        if left_s <= 0:
            return [results.get(i, cast(R, failure)) for i in range(len(items))]
        await asyncio.sleep(min(pause_s, left_s))
        pause_s = min(2 * pause_s, MAX_BACKOFF_S)
    return [results[i] for i in range(len(items))]
