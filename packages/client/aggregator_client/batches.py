"""Submission of a batch of articles: lines without a verdict are sent again, a large batch is halved."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from aggregator_client.connection import INITIAL_BACKOFF_S, MAX_BACKOFF_S, UNREACHED_KINDS, Connection
from aggregator_client.decision import Decision, decode_line_decision, rejection
from aggregator_client.errors import ConfigurationError, InputTooLarge, InvalidInput, NotFound, Unavailable
from aggregator_client.transport import has_too_many_lines, retry

Result = Decision | Unavailable | ConfigurationError


async def submit_lines(
    connection: Connection, lines: Sequence[bytes], query: str, deadline_s: float, unreached_s: float
) -> list[Result]:
    """One result per line, each a JSON article: the Decision, or why there is none after ``deadline_s``.

    ``query``: query string of the call, empty or with its question mark. ``unreached_s``: time limit while
    nothing answers at the address, in seconds. A server of another kind is asked once.
    """
    results: list[Result] = [Unavailable("The article was not sent.")] * len(lines)
    attempts, started_s = 0, time.monotonic()

    async def attempt(left_s: float) -> None:
        nonlocal attempts
        undecided = [number for number, result in enumerate(results) if isinstance(result, Unavailable)]
        batch = [lines[number] for number in undecided]
        repeats_s = time.monotonic() - started_s if attempts else 0.0
        answers = await _post_batch(connection, batch, query, left_s, unreached_s, repeats_s)
        for number, result in zip(undecided, answers, strict=True):
            # The last attempt may be cut short: an earlier reason says more than its time-out.
            if not (attempts and isinstance(result, Unavailable) and result.kind == "timeout"):
                results[number] = result
        attempts += 1
        failures = [result for result in results if isinstance(result, Unavailable)]
        if failures and failures[-1].kind not in (*UNREACHED_KINDS, "not_an_aggregator"):
            raise failures[-1]

    with suppress(Unavailable):  # it is among the results
        await retry(
            attempt,
            deadline_s if lines else 0.0,
            retry_on=Unavailable,
            initial_backoff_s=INITIAL_BACKOFF_S,
            max_backoff_s=MAX_BACKOFF_S,
        )
    return results


async def _post_batch(
    connection: Connection,
    lines: Sequence[bytes],
    query: str,
    left_s: float,
    unreached_s: float,
    repeats_s: float,
) -> Sequence[Result]:
    """One attempt."""
    if not lines:
        return []
    path = "/v1/articles/batch" + query
    try:
        body = b"\n".join(lines) + b"\n"
        answer = await connection.request(
            "POST", path, body, left_s, ndjson=True, unreached_s=unreached_s, repeats_s=repeats_s
        )
        return _parse_answer(answer.body, len(lines))
    except InputTooLarge as error:
        if len(lines) == 1:
            return [rejection(error)]
        half = len(lines) // 2
        return [
            *await _post_batch(connection, lines[:half], query, left_s, unreached_s, repeats_s),
            *await _post_batch(connection, lines[half:], query, left_s, unreached_s, repeats_s),
        ]
    except (InvalidInput, NotFound) as error:
        return [rejection(error)] * len(lines)
    except (Unavailable, ConfigurationError) as error:
        return [error] * len(lines)


def _parse_answer(data: bytes, count: int) -> Sequence[Result]:
    """One result per line. Raises Unavailable for an incomplete answer, InputTooLarge for too many lines."""
    lines = data.splitlines()
    if has_too_many_lines(lines):
        raise InputTooLarge("The batch has more lines than the service accepts.")
    results = [_parse_line(line) for line in lines]
    if len(lines) != count:
        for result in results:
            if isinstance(result, Unavailable) and result.kind == "not_an_aggregator":
                raise result
        raise Unavailable(f"The service answered {len(lines)} of {count} lines.", "connection_lost")
    return results


def _parse_line(line: bytes) -> Decision | Unavailable:
    try:
        return decode_line_decision(line)
    except Unavailable as error:
        return error
