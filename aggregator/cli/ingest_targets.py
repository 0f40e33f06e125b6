"""Targets of commands that send articles: a store opened in this process, or a running service.

Both give one answer line per input line, in order. A line that was not processed because of load or an
outage is sent again until it is (articles are idempotent by id); only a service that was never reached ends
the command. A line that the service repeatedly answers with 500 is reported as failed.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import chain
from urllib.parse import urlencode

import aiohttp
import msgspec

from aggregator import jsonl
from aggregator.app import Service, open_service
from aggregator.cli.common_options import check_profile, requested_profile
from aggregator.cli.retry_forever import send_until_answered
from aggregator.concurrency import CHUNK_ARTICLES, Prefetcher
from aggregator.contract import encoding
from aggregator.contract.decoding import decode_article
from aggregator.contract.problems import to_problem
from aggregator.contract.responses import encode
from aggregator.domain import Answer, Article
from aggregator.errors import (
    AggregatorError,
    ConfigurationError,
    InputTooLarge,
    InvalidInput,
    NotFound,
    StoreUnavailable,
)
from aggregator.jsonl import Line
from aggregator.runtime.addresses import service_url
from aggregator.runtime.event_loop import tune_interpreter
from aggregator.settings import Settings
from aggregator_client import wire
from aggregator_client.errors import ConfigurationError as InvalidUrl
from aggregator_client.transport import (
    NDJSON_TYPE,
    authorization_headers,
    check_http_url,
    connection_error_reason,
    has_too_many_lines,
)
from aggregator_client.wire import LineProblem

READ_TIMEOUT_S = 600.0  # without any byte of the answer
# Statuses of a whole answer that say nothing about the articles: slow body, rate limit.
RETRYABLE_STATUSES = (408, 429)
# Answers 500 to one line, or to a batch with it, until it is reported as failed.
MAX_INTERNAL_ERRORS = 5
MAX_ANALYSIS_PROCESSES = 4
PARALLEL_ABOVE_BYTES = 4_000_000  # input size from which on the start of analysis processes pays off


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer line for one input line; ``verdict`` is None if the line was invalid."""

    data: bytes
    verdict: str | None
    keep: bool = False


class _RepeatedInternalError(Exception):
    """A batch, or one of its lines, was answered 500 too often."""

    def __str__(self) -> str:
        return f"The service failed {MAX_INTERNAL_ERRORS} times at this line; its log says why."


@dataclass(frozen=True, slots=True)
class BatchDefaults:
    """What the command declares for all articles; ``profile`` applies to those that name none."""

    profile: str = ""
    backfill: bool = False

    def apply(self, article: Article) -> Article:
        """The article with these declarations."""
        if self.backfill:
            article = replace(article, backfill=True)
        return replace(article, policy=self.profile) if self.profile and not article.policy else article

    def query(self, dry_run: bool) -> str:
        """Query string of the batch call, with its question mark; empty without declarations."""
        values = {"dry_run": dry_run and "true", "policy": self.profile, "backfill": self.backfill and "true"}
        given = urlencode({name: value for name, value in values.items() if value})
        return f"?{given}" if given else ""


def check_target_options(args: argparse.Namespace) -> None:
    """Raise ConfigurationError for options that exclude one another."""
    if args.store is not None and args.server is not None:
        raise ConfigurationError("store: give either --store or --server, not both.")
    if args.store is None and args.policy is not None and not requested_profile(args):
        raise ConfigurationError(
            "policy: a server uses its own rule; name one of its profiles, or use --policy with --store."
        )


@asynccontextmanager
async def open_target(
    args: argparse.Namespace, settings: Settings
) -> AsyncIterator[LocalTarget | ServerTarget]:
    """The target for ``--store`` or ``--server``; by default the local server."""
    defaults = BatchDefaults(requested_profile(args), getattr(args, "backfill", False))
    if args.store is None:
        url = args.server or service_url(settings.host, settings.port)
        async with ServerTarget.open(url, settings.key, defaults) as server:
            yield server
        return
    size = jsonl.total_bytes(args.files)
    is_large = size is not None and size > PARALLEL_ABOVE_BYTES
    processes = min(MAX_ANALYSIS_PROCESSES, os.cpu_count() or 1) if is_large else 0
    async with LocalTarget.open(settings, processes, defaults) as store:
        if processes:
            tune_interpreter()
        yield store


def error_reply(line: Line, error: Exception) -> Reply:
    """The answer line for a line that was rejected."""
    problem = to_problem(error)
    if isinstance(error, _RepeatedInternalError):
        problem.detail = str(error)
    problem.instance = line.location
    return Reply(encode(LineProblem(line.number, problem)), None)


class LocalTarget:
    """The service opened in this process, without HTTP."""

    def __init__(self, service: Service, defaults: BatchDefaults = BatchDefaults()) -> None:
        self._service = service
        self._defaults = defaults

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: Settings, processes: int = 0, defaults: BatchDefaults = BatchDefaults()
    ) -> AsyncIterator[LocalTarget]:
        """Open the store and load the models. Raises ConfigurationError, ModelError, StoreUnavailable."""
        async with open_service(settings, processes=processes) as service:
            if problem := await service.articles.foreign_index.check():
                raise ConfigurationError(f"store: {problem}")
            if defaults.profile:
                check_profile(service.articles.policies, defaults.profile)
            await service.articles.foreign_index.record_exclusive_writes()
            yield cls(service, defaults)

    @property
    def throttled_s(self) -> float:
        """Seconds that this process has paused for interactive requests of a service."""
        return self._service.articles.load_control.throttle.throttled_s

    async def send(self, lines: Sequence[Line], *, dry_run: bool) -> list[Reply]:
        """One Reply per line, in order; waits while lines cannot be processed."""
        decoded = [_decode(line, self._defaults) for line in lines]
        articles = [article for article in decoded if isinstance(article, Article)]
        answers: list[Answer | AggregatorError] = await send_until_answered(
            articles, lambda rest: self._submit(rest, dry_run)
        )
        remaining = iter(answers)
        return [
            self._encode(line, next(remaining) if isinstance(item, Article) else item)
            for line, item in zip(lines, decoded, strict=True)
        ]

    async def _submit(self, articles: Sequence[Article], dry_run: bool) -> list[Answer | AggregatorError]:
        """Process like a batch of the service: the next chunk is analyzed while this one is committed."""
        ingest = self._service.articles.ingest
        answers: list[Answer | AggregatorError] = []
        analyses = Prefetcher(_single_batch(articles), CHUNK_ARTICLES, ingest.analyze_many)
        try:
            async for first in analyses:
                analyzed = list(chain(first, *analyses.take_ready()))
                chunk = articles[len(answers) :][: len(analyzed)]
                answers += await ingest.process_analyzed(
                    chunk, analyzed, dry_run=dry_run, group_size=CHUNK_ARTICLES
                )
        finally:
            await analyses.close()
        return answers

    def _encode(self, line: Line, result: Answer | AggregatorError) -> Reply:
        if isinstance(result, AggregatorError):
            return error_reply(line, result)
        outcome = result.outcome
        return Reply(
            encode(encoding.verdict_out(result, self._service.settings)), outcome.verdict, outcome.keep
        )


async def _single_batch(articles: Sequence[Article]) -> AsyncIterator[Sequence[Article]]:
    yield articles


def _decode(line: Line, defaults: BatchDefaults) -> Article | InvalidInput:
    if line.error is not None:
        return line.error
    try:
        return defaults.apply(decode_article(line.data))
    except InvalidInput as error:
        return error


class ServerTarget:
    """A running service at ``url``; lines are posted in batches."""

    throttled_s = 0.0  # this process does not pause

    def __init__(
        self, session: aiohttp.ClientSession, url: str, defaults: BatchDefaults = BatchDefaults()
    ) -> None:
        self._session = session
        self._url = url
        self._defaults = defaults
        self._has_connected = False

    @classmethod
    @asynccontextmanager
    async def open(
        cls, url: str, key: str = "", defaults: BatchDefaults = BatchDefaults()
    ) -> AsyncIterator[ServerTarget]:
        """A target that sends nothing yet. Raises ConfigurationError for an invalid URL."""
        try:
            checked_url = check_http_url(url)
        except InvalidUrl as error:
            raise ConfigurationError(f"server: {error}") from None
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5.0, sock_read=READ_TIMEOUT_S)
        async with aiohttp.ClientSession(timeout=timeout, headers=authorization_headers(key)) as session:
            yield cls(session, checked_url, defaults)

    async def send(self, lines: Sequence[Line], *, dry_run: bool) -> list[Reply]:
        """As that of ``LocalTarget``."""
        usable = [line for line in lines if line.error is None]
        replies = iter(await self._send_batch(usable, Counter(), dry_run))
        return [error_reply(line, line.error) if line.error is not None else next(replies) for line in lines]

    async def _send_batch(self, lines: Sequence[Line], errors: Counter[str], dry_run: bool) -> list[Reply]:
        try:
            return await send_until_answered(
                lines, lambda rest: self._post_batch(rest, errors, dry_run), lambda: self._has_connected
            )
        except (InputTooLarge, _RepeatedInternalError) as error:
            # The server's limit is below the size of this batch, or the server fails at one of its lines.
            if len(lines) == 1:
                return [error_reply(lines[0], error)]
            half = len(lines) // 2
            return [
                *await self._send_batch(lines[:half], errors, dry_run),
                *await self._send_batch(lines[half:], errors, dry_run),
            ]

    async def _post_batch(
        self, lines: Sequence[Line], errors: Counter[str], dry_run: bool
    ) -> list[Reply | StoreUnavailable]:
        """Post once; updates ``errors``, answers 500 by line. Raises if the batch as a whole failed."""
        body = b"\n".join(line.data for line in lines) + b"\n"
        path = "/v1/articles/batch" + self._defaults.query(dry_run)
        status, answer = await self.request("POST", path, body, NDJSON_TYPE)
        if status == 500:
            _count_internal_errors(lines, errors)
        if status != 200:
            raise error_from_response(status, answer, self._url)
        answered = answer.splitlines()
        if has_too_many_lines(answered):
            raise InputTooLarge("The batch has more lines than the server accepts.")
        if len(answered) > len(lines):
            raise StoreUnavailable(f"{self._url} answered {len(answered)} lines instead of {len(lines)}.")
        replies = [_parse_reply(line, data) for line, data in zip(lines, answered, strict=False)]
        _count_internal_errors(
            [line for line, reply in zip(lines, replies, strict=False) if isinstance(reply, _LineFailed)],
            errors,
        )
        missing = StoreUnavailable(f"{self._url} answered {len(answered)} of {len(lines)} lines.")
        return [*replies, *[missing] * (len(lines) - len(answered))]

    async def request(self, method: str, path: str, body: bytes, content_type: str) -> tuple[int, bytes]:
        """Status and body. Raises StoreUnavailable if the server cannot be reached."""
        headers = {"Content-Type": content_type}
        try:
            async with self._session.request(
                method, self._url + path, data=body, headers=headers
            ) as response:
                self._has_connected = True
                return response.status, await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise StoreUnavailable(
                f"No service answers at {self._url} ({connection_error_reason(error)}); "
                "start it with `aggregator serve`."
            ) from error
        except ValueError as error:
            raise ConfigurationError(f"server: {self._url!r} is not a valid URL ({error}).") from error


class _ReplyFields(msgspec.Struct):
    verdict: str | None = None
    keep: bool = False
    error: wire.Problem | None = None
    detail: str = ""
    code: str = ""


_decode_reply = msgspec.json.Decoder(_ReplyFields).decode


class _LineFailed(StoreUnavailable):
    """A line was answered 500; it is sent again like one that found no store."""


def _count_internal_errors(lines: Sequence[Line], errors: Counter[str]) -> None:
    errors.update(line.location for line in lines)
    if any(errors[line.location] >= MAX_INTERNAL_ERRORS for line in lines):
        raise _RepeatedInternalError


def _parse_reply(line: Line, data: bytes) -> Reply | StoreUnavailable:
    try:
        fields = _decode_reply(data)
    except msgspec.MsgspecError:  # the last line of an interrupted answer
        return StoreUnavailable("The answer is incomplete.")
    if fields.error is None:
        return Reply(data, fields.verdict, fields.keep)
    if fields.error.status in (503, 429):
        return StoreUnavailable(fields.error.detail)
    if fields.error.status == 500:
        return _LineFailed(fields.error.detail)
    fields.error.instance = line.location
    return Reply(encode(LineProblem(line.number, fields.error)), None)


def error_from_response(status: int, body: bytes, url: str) -> AggregatorError:
    """The error for a request that was rejected as a whole."""
    try:
        problem = _decode_reply(body)
    except msgspec.MsgspecError:
        problem = _ReplyFields()
    detail = problem.detail or f"{url} answered with status {status}; is it an aggregator?"
    if status == 413:
        return InputTooLarge(detail)
    if problem.code == "unauthenticated":
        return ConfigurationError(f"server: {url} requires a valid API key; set AGGREGATOR_KEY to one.")
    if problem.code in ("not_found", "gone"):
        return NotFound(detail)
    if status >= 500 or status in RETRYABLE_STATUSES:
        return StoreUnavailable(detail)
    return ConfigurationError(f"server: {detail}")
