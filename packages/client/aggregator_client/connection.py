"""Connections to one service: limited requests in flight, deadlines, retries.

A request first waits for a free slot, without a time limit: a caller that sends more than the service answers
is slowed down (backpressure). Its deadline starts when it is sent. Within the deadline it is repeated after a
broken connection, a time-out and the statuses 408, 429, 502, 503 and 504, since every request is idempotent.
An answer by which the service asks for a later attempt because it is busy (429, or 503 "overloaded", with
Retry-After) restarts the deadline after that pause, within ``BUSY_BUDGET_S`` since the first attempt. A long
wait is logged every ``NOTICE_S``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass

import aiohttp

from aggregator_client.decision import NOT_AN_AGGREGATOR, TAKEN_DOWN, kind_of_problem, problem_of
from aggregator_client.errors import (
    ClientError,
    ConfigurationError,
    InputTooLarge,
    InvalidInput,
    NotFound,
    TakenDown,
    Unavailable,
)
from aggregator_client.transport import (
    JSON_TYPE,
    NDJSON_TYPE,
    SHORTEST_ATTEMPT_S,
    authorization_headers,
    check_http_url,
    connection_error_kind,
    connection_error_reason,
    key_problem,
)

BUSY_BUDGET_S = 10.0
ATTEMPT_S = 10.0  # a single request that hangs is repeated within a longer deadline
INITIAL_BACKOFF_S, MAX_BACKOFF_S = 0.02, 2.0
NOTICE_S = 5.0
CLOSED = "The client is closed; create a new one."
RETRYABLE_STATUSES = frozenset({408, 429, 502, 503, 504})
UNREACHED_KINDS = frozenset({"connection_refused", "name_resolution", "tls"})  # nothing was sent

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Response:
    """Status and body of an answer; ``retry_after_s``: the header Retry-After, 0 if absent."""

    status: int
    body: bytes
    retry_after_s: float


@dataclass(frozen=True, slots=True)
class _Request:
    """``body``: JSON, or with ``ndjson`` one JSON text per line; None: there is none."""

    method: str
    path: str
    body: bytes | None
    ndjson: bool

    def headers(self, repeats_s: float) -> dict[str, str]:
        """Its own headers, when it was sent first ``repeats_s`` ago."""
        if self.body is None:
            return {}
        headers = {"Content-Type": NDJSON_TYPE if self.ndjson else JSON_TYPE}
        if repeats_ms := int(1000 * repeats_s):
            headers["X-Repeats-Ms"] = str(repeats_ms)
        return headers


class Connection:
    """A pool of connections to ``url`` that has at most ``concurrency`` requests in flight.

    Raises ConfigurationError for an invalid URL.
    """

    def __init__(self, url: str, key: str, concurrency: int) -> None:
        self.url = check_http_url(url)
        self._headers = authorization_headers(key)
        self._concurrency = concurrency
        self._slots = asyncio.Semaphore(concurrency)
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = False
        self._last_notice_s = float("-inf")

    async def close(self) -> None:
        """Close the connections; a later request raises RuntimeError. Idempotent."""
        self._is_closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None,
        deadline_s: float,
        *,
        ndjson: bool = False,
        unreached_s: float = float("inf"),
        repeats_s: float = 0.0,
    ) -> Response:
        """The answer of a request that succeeded, with a status below 300.

        Args:
            method: HTTP method.
            path: Path and query.
            body: JSON, or with ``ndjson`` one JSON text per line, which is given ``deadline_s`` per attempt.
            deadline_s: Time limit in seconds from sending, retries included.
            ndjson: Whether the body is a batch.
            unreached_s: Likewise since the last answer, while nothing answers at the address.
            repeats_s: How long ago an earlier call sent the same; what that stored counts as stored by this.

        Raises Unavailable with the reason of the last attempt that did not time out; InvalidInput,
        InputTooLarge or NotFound if the service rejects the request, ConfigurationError if it rejects the
        key.
        """
        request = _Request(method, path, body, ndjson)
        answer = await self._request_until(request, deadline_s, unreached_s, repeats_s)
        if answer.status < 300:
            return answer
        raise self._error_of(answer)

    async def _request_until(
        self, request: _Request, deadline_s: float, unreached_s: float, repeats_s: float
    ) -> Response:
        """The first answer that is not to be retried. Raises Unavailable."""
        async with self._slots:
            started_s = reached_s = time.monotonic()
            end_s = started_s + deadline_s
            pause_s = INITIAL_BACKOFF_S
            failure = None
            while True:
                left_s = max(SHORTEST_ATTEMPT_S, end_s - time.monotonic())
                attempt_s = left_s if request.ndjson else min(left_s, ATTEMPT_S)
                headers = request.headers(repeats_s + time.monotonic() - started_s)
                answer = await self._attempt(request, headers, attempt_s, deadline_s)
                if isinstance(answer, Response):
                    if answer.status not in RETRYABLE_STATUSES:
                        return answer
                    failure, retry_after_s = self._failure_of(answer), answer.retry_after_s
                else:
                    # The last attempt may be cut short: an earlier reason says more than its time-out.
                    failure = failure if failure and answer.kind == "timeout" else answer
                    retry_after_s = 0.0
                wait_s = max(pause_s, retry_after_s)
                now_s = time.monotonic()
                if failure.kind in ("overloaded", "rate_limited") and retry_after_s:
                    busy_end_s = min(started_s + BUSY_BUDGET_S, now_s + wait_s + deadline_s)
                    end_s = max(end_s, busy_end_s)
                if failure.kind in UNREACHED_KINDS:
                    end_s = min(end_s, reached_s + unreached_s)
                else:
                    reached_s = now_s
                if now_s + wait_s >= end_s:
                    raise failure
                if now_s >= max(started_s, self._last_notice_s) + NOTICE_S:
                    self._last_notice_s = now_s
                    log.warning("waiting for %d s at most: %s", end_s - now_s, failure)
                await asyncio.sleep(wait_s)
                pause_s = min(2 * pause_s, MAX_BACKOFF_S)

    async def _attempt(
        self, request: _Request, headers: dict[str, str], attempt_s: float, deadline_s: float
    ) -> Response | Unavailable:
        try:
            async with asyncio.timeout(attempt_s):
                return await self._send(request, headers)
        except TimeoutError:
            return Unavailable(f"{self.url} gave no answer within {deadline_s:g} s.", "timeout")
        except (aiohttp.ClientError, OSError) as error:
            reason = connection_error_reason(error).rstrip(".")
            return Unavailable(f"{self.url}: {reason}.", connection_error_kind(error))

    async def _send(self, request: _Request, headers: dict[str, str]) -> Response:
        if self._is_closed:
            raise RuntimeError(CLOSED)
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._concurrency),
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=None),
            )
        url, body = self.url + request.path, request.body
        async with self._session.request(request.method, url, data=body, headers=headers) as response:
            after = response.headers.get("Retry-After", "")
            retry_after_s = float(after) if after.isascii() and after.isdigit() else 0.0
            return Response(response.status, await response.read(), retry_after_s)

    def _failure_of(self, answer: Response) -> Unavailable:
        problem = problem_of(answer.body)
        if problem is None:
            return Unavailable(f"{self.url} answered with status {answer.status}.")
        return Unavailable(problem.detail, kind_of_problem(problem))

    def _error_of(self, answer: Response) -> ClientError:
        """The error that matches the status of an answer."""
        problem = problem_of(answer.body)
        detail = problem.sentences if problem else f"The service answered with status {answer.status}."
        if answer.status in (401, 403) and not (problem and problem.field):  # of the article: its source
            needs_key = problem is not None and problem.code == "unauthenticated"
            denied = key_problem(self.url) if needs_key else f"The service denies access: {detail}"
            return ConfigurationError(denied)
        if answer.status == 413:
            return InputTooLarge(detail)
        if answer.status >= 500 and answer.status != 501:  # which the service never answers
            return Unavailable(detail, "server_error")
        if problem is None or problem.code in ("no_route", "method_not_allowed"):
            wrong_url = problem and f"{detail} Check the URL, which ends before /v1."
            return Unavailable(wrong_url or NOT_AN_AGGREGATOR, "not_an_aggregator")
        if problem.code == TAKEN_DOWN:
            return TakenDown(detail)
        return NotFound(detail) if answer.status in (404, 410) else InvalidInput(detail, field=problem.field)
