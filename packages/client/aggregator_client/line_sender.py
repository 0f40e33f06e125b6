"""Lines of JSON posted to a running service until each has an answer: ``aggregator ingest`` and ``check``.

A line that was not processed because of load or an outage is sent again until it is (articles are idempotent
by id); a service that was never reached ends that, and a limit of the caller. A line at which the service
repeatedly answers 500 gets an error.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
import msgspec

from aggregator_client import retry_forever
from aggregator_client.decision import kind_of_problem, problem_of
from aggregator_client.errors import ClientError, ConfigurationError, InputTooLarge, NotFound, Unavailable
from aggregator_client.transport import (
    JSON_TYPE,
    NDJSON_TYPE,
    authorization_headers,
    check_http_url,
    connection_error_reason,
    has_too_many_lines,
    key_problem,
)
from aggregator_client.wire import Problem

READ_TIMEOUT_S = 600.0  # without any byte of the answer
# Statuses of a whole answer that say nothing about the articles: slow body, rate limit.
RETRYABLE_STATUSES = (408, 429)
MAX_INTERNAL_ERRORS = 5  # answers 500 to one line, or to a batch with it, until it gets an error

NumberedLine = tuple[int, bytes]


@dataclass(frozen=True, slots=True)
class LineAnswer:
    """The answer to one line: its bytes and verdict, or the problem for which it was rejected."""

    data: bytes
    verdict: str | None = None
    keep: bool = False
    problem: Problem | None = None


class RepeatedInternalError(ClientError):
    """A batch, or one of its lines, was answered 500 too often."""

    def __init__(self) -> None:
        super().__init__(f"The service failed {MAX_INTERNAL_ERRORS} times at this line; its log says why.")


LineResult = LineAnswer | InputTooLarge | RepeatedInternalError | Unavailable


class LineSender:
    """A running service at ``url``."""

    def __init__(self, session: aiohttp.ClientSession, url: str, wait_s: float) -> None:
        self._session = session
        self._url = url
        self._wait_s = wait_s
        self._limit_s = min(wait_s, retry_forever.FIRST_CONTACT_TIMEOUT_S)  # until it is reached

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, key: str = "", wait_s: float = math.inf) -> AsyncIterator[LineSender]:
        """A sender that sends nothing yet. Raises ConfigurationError for an invalid URL."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5.0, sock_read=READ_TIMEOUT_S)
        async with aiohttp.ClientSession(timeout=timeout, headers=authorization_headers(key)) as session:
            yield cls(session, check_http_url(url), wait_s)

    async def send(self, lines: Sequence[bytes], query: str = "") -> list[LineResult]:
        """One result per line, in order; waits while lines cannot be processed. ``query``: with its "?".

        Unavailable: the wait ended. Raises ConfigurationError or NotFound for what no line causes.
        """
        return await self._send_batch(list(enumerate(lines)), Counter(), query)

    async def _send_batch(
        self, lines: Sequence[NumberedLine], errors: Counter[int], query: str
    ) -> list[LineResult]:
        try:
            return await retry_forever.send_until_answered(
                lines,
                lambda rest: self._post_batch(rest, errors, query),
                (Unavailable,),
                limit_s=lambda: self._limit_s,
            )
        except (InputTooLarge, RepeatedInternalError) as error:
            # The server's limit is below the size of this batch, or the server fails at one of its lines.
            if len(lines) == 1:
                return [error]
            half = len(lines) // 2
            first = await self._send_batch(lines[:half], errors, query)
            if ended := [result for result in first if isinstance(result, Unavailable)]:
                return [*first, *ended[:1] * (len(lines) - half)]
            return [*first, *await self._send_batch(lines[half:], errors, query)]

    async def _post_batch(
        self, lines: Sequence[NumberedLine], errors: Counter[int], query: str
    ) -> list[LineAnswer | Exception]:
        """Post once; updates ``errors``, answers 500 by line. Raises if the batch as a whole failed."""
        body = b"\n".join(data for _, data in lines) + b"\n"
        status, answer = await self._request("/v1/articles/batch" + query, body, NDJSON_TYPE)
        if status == 500:
            _count_internal_errors(lines, errors)
        if status != 200:
            raise self._error_of(status, answer)
        answered = answer.splitlines()
        if has_too_many_lines(answered):
            raise InputTooLarge("The batch has more lines than the server accepts.")
        if len(answered) > len(lines):
            raise Unavailable(f"{self._url} answered {len(answered)} lines instead of {len(lines)}.")
        answers = [_parse_answer(data) for data in answered]
        failed = [
            line
            for line, found in zip(lines, answers, strict=False)
            if isinstance(found, Unavailable) and found.kind == "server_error"
        ]
        _count_internal_errors(failed, errors)
        missing = Unavailable(f"{self._url} answered {len(answered)} of {len(lines)} lines.")
        return [*answers, *[missing] * (len(lines) - len(answered))]

    async def post(self, path: str, body: bytes) -> bytes:
        """The body of the answer to one JSON request, which is not repeated. Raises ClientError."""
        status, answer = await self._request(path, body, JSON_TYPE)
        if status != 200:
            raise self._error_of(status, answer)
        return answer

    async def _request(self, path: str, body: bytes, content_type: str) -> tuple[int, bytes]:
        headers = {"Content-Type": content_type}
        try:
            async with self._session.post(self._url + path, data=body, headers=headers) as response:
                self._limit_s = self._wait_s
                return response.status, await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            remedy = "start it with `aggregator serve`, or name a running one with --server URL."
            if isinstance(error, aiohttp.ClientSSLError):
                remedy = "SSL_CERT_FILE names the certificate of an authority of your own."
            reason = connection_error_reason(error)
            raise Unavailable(f"No service answers at {self._url} ({reason}); {remedy}") from error
        except ValueError as error:
            raise ConfigurationError(f"{self._url!r} is not a valid URL ({error}).") from error

    def _error_of(self, status: int, body: bytes) -> ClientError:
        """The error for a request that was rejected as a whole."""
        foreign = f"{self._url} answered with status {status}; is it an aggregator?"
        problem = problem_of(body) or Problem("", "", status, foreign, "")
        detail = problem.sentences
        if status == 413:
            return InputTooLarge(detail)
        if problem.code == "unauthenticated":
            return ConfigurationError(key_problem(self._url))
        if problem.code in ("not_found", "gone"):
            return NotFound(detail)
        if status >= 500 or status in RETRYABLE_STATUSES:
            return Unavailable(detail)
        return ConfigurationError(detail)


class _AnswerFields(msgspec.Struct):
    verdict: str | None = None
    keep: bool = False
    error: Problem | None = None


_decode_answer = msgspec.json.Decoder(_AnswerFields).decode


def _parse_answer(data: bytes) -> LineAnswer | Unavailable:
    try:
        fields = _decode_answer(data)
    except msgspec.MsgspecError:  # the last line of an interrupted answer
        return Unavailable("The answer is incomplete.")
    if fields.error is not None and fields.error.status in (429, 500, 503):
        return Unavailable(fields.error.detail, kind_of_problem(fields.error))
    return LineAnswer(data, fields.verdict, fields.keep, fields.error)


def _count_internal_errors(lines: Sequence[NumberedLine], errors: Counter[int]) -> None:
    errors.update(number for number, _ in lines)
    if any(errors[number] >= MAX_INTERNAL_ERRORS for number, _ in lines):
        raise RepeatedInternalError
