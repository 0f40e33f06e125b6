"""Targets of commands that send articles: a store opened in this process, or a running service.

Both take input lines and return one answer line per input line, in order; for an invalid line it contains the
error. Both retry for ``RETRY_TIMEOUT_S`` while the store or the service is unavailable, then raise
StoreUnavailable. A line may be sent again safely, since articles are idempotent by id.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Protocol, TypeVar

import aiohttp
import msgspec

from aggregator.app import Service, open_service
from aggregator.clients.transport import (
    NDJSON_TYPE,
    authorization_headers,
    check_http_url,
    connection_error_reason,
    retry,
)
from aggregator.concurrency.prefetch import CHUNK_ARTICLES, Prefetcher
from aggregator.contract import encoding, responses
from aggregator.contract.decoding import decode_article
from aggregator.contract.problems import to_problem
from aggregator.contract.responses import LineProblem, encode
from aggregator.domain import Answer, Article
from aggregator.errors import (
    AggregatorError,
    ConfigurationError,
    InputTooLarge,
    InvalidInput,
    NotFound,
    StoreUnavailable,
)
from aggregator.offline import jsonl
from aggregator.offline.jsonl import Line
from aggregator.runtime.addresses import service_url
from aggregator.runtime.event_loop import tune_interpreter
from aggregator.settings import Settings

RETRY_TIMEOUT_S = 60.0
FIRST_CONTACT_TIMEOUT_S = 3.0  # a server that was never reached is probably not running
INITIAL_BACKOFF_S, MAX_BACKOFF_S = 0.2, 5.0
BATCH_TIMEOUT_S = 600.0
MAX_ANALYSIS_PROCESSES = 4
PARALLEL_ABOVE_BYTES = 4_000_000  # input size from which on the start of analysis processes pays off

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer line for one input line; ``verdict`` is None if the line was invalid."""

    data: bytes
    verdict: str | None


class IngestTarget(Protocol):
    """Where articles are sent."""

    @property
    def throttled_s(self) -> float:
        """Seconds that this process has paused for interactive requests of a service; 0 for a server."""

    async def send(self, lines: Sequence[Line], *, dry_run: bool) -> list[Reply]:
        """One Reply per line, in order. Raises StoreUnavailable after the retry timeout."""


def check_target_options(args: argparse.Namespace) -> None:
    """Raise ConfigurationError for options that exclude one another."""
    if args.store is not None and args.server is not None:
        raise ConfigurationError("store: give either --store or --server, not both.")
    if args.store is None and args.policy is not None:
        raise ConfigurationError("policy: a server uses its own setting; use --policy with --store.")


@asynccontextmanager
async def open_target(args: argparse.Namespace, settings: Settings) -> AsyncIterator[IngestTarget]:
    """The target for ``--store`` or ``--server``; by default the local server."""
    if args.store is None:
        async with ServerTarget.open(
            args.server or service_url(settings.host, settings.port), settings.key
        ) as server:
            yield server
        return
    processes = _analysis_processes(args.files)
    async with LocalTarget.open(settings, processes) as store:
        if processes:
            tune_interpreter()
        yield store


def _analysis_processes(files: list[str]) -> int:
    size = jsonl.total_bytes(files)
    is_large = size is not None and size > PARALLEL_ABOVE_BYTES
    return min(MAX_ANALYSIS_PROCESSES, os.cpu_count() or 1) if is_large else 0


def error_reply(line: Line, error: Exception) -> Reply:
    """The answer line for a line that was rejected."""
    problem = to_problem(error)
    problem.instance = line.location
    return Reply(encode(LineProblem(line.number, problem)), None)


async def retry_while_unavailable(
    attempt: Callable[[], Awaitable[T]], timeout_s: float = RETRY_TIMEOUT_S
) -> T:
    """Repeat ``attempt`` while it raises StoreUnavailable, with doubling pauses, for ``timeout_s``."""
    return await retry(
        lambda _: attempt(),
        timeout_s,
        retry_on=StoreUnavailable,
        initial_backoff_s=INITIAL_BACKOFF_S,
        max_backoff_s=MAX_BACKOFF_S,
    )


class LocalTarget:
    """The service opened in this process, without HTTP."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._thresholds = encoding.DistanceThresholds(
            service.settings.duplicate_bits, service.settings.related_bits
        )

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings, processes: int = 0) -> AsyncIterator[LocalTarget]:
        """Open the store and load the models; ``processes``: analysis processes.

        Raises ConfigurationError, ModelError, StoreUnavailable.
        """
        async with open_service(settings, processes=processes) as service:
            yield cls(service)

    @property
    def throttled_s(self) -> float:
        """See ``IngestTarget``."""
        return self._service.load_control.throttle.throttled_s

    async def send(self, lines: Sequence[Line], *, dry_run: bool) -> list[Reply]:
        """See ``IngestTarget``."""
        decoded = [_decode(line) for line in lines]
        articles = [article for article in decoded if isinstance(article, Article)]
        answers = iter(await retry_while_unavailable(lambda: self._submit(articles, dry_run)))
        return [
            self._encode_reply(line, next(answers) if isinstance(item, Article) else item)
            for line, item in zip(lines, decoded, strict=True)
        ]

    async def _submit(self, articles: Sequence[Article], dry_run: bool) -> list[Answer | AggregatorError]:
        """Process like a batch of the service: the next chunk is analyzed while this one is committed."""
        ingest = self._service.ingest
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
        for answer in answers:
            if isinstance(answer, StoreUnavailable):
                raise answer
        return answers

    def _encode_reply(self, line: Line, result: Answer | AggregatorError) -> Reply:
        if isinstance(result, AggregatorError):
            return error_reply(line, result)
        return Reply(encode(encoding.verdict_out(result, self._thresholds)), result.outcome.verdict)


async def _single_batch(articles: Sequence[Article]) -> AsyncIterator[Sequence[Article]]:
    yield articles


def _decode(line: Line) -> Article | InvalidInput:
    if line.error is not None:
        return line.error
    try:
        return decode_article(line.data)
    except InvalidInput as error:
        return error


class ServerTarget:
    """A running service at ``url``; lines are posted in batches."""

    throttled_s = 0.0

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url
        self._has_connected = False

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, key: str = "") -> AsyncIterator[ServerTarget]:
        """A target that sends nothing yet. Raises ConfigurationError for an invalid URL."""
        try:
            checked_url = check_http_url(url)
        except ConfigurationError as error:
            raise ConfigurationError(f"server: {error}") from None
        timeout = aiohttp.ClientTimeout(total=BATCH_TIMEOUT_S, sock_connect=5.0)
        async with aiohttp.ClientSession(timeout=timeout, headers=authorization_headers(key)) as session:
            yield cls(session, checked_url)

    async def send(self, lines: Sequence[Line], *, dry_run: bool) -> list[Reply]:
        """See ``IngestTarget``."""
        usable = [line for line in lines if line.error is None]
        replies = iter(await self._send_batch(usable, dry_run))
        return [error_reply(line, line.error) if line.error is not None else next(replies) for line in lines]

    async def _send_batch(self, lines: Sequence[Line], dry_run: bool) -> list[Reply]:
        if not lines:
            return []
        try:
            timeout_s = RETRY_TIMEOUT_S if self._has_connected else FIRST_CONTACT_TIMEOUT_S
            return await retry_while_unavailable(lambda: self._post_batch(lines, dry_run), timeout_s)
        except InputTooLarge as error:  # the server's limit is below the size of this batch
            if len(lines) == 1:
                return [error_reply(lines[0], error)]
            half = len(lines) // 2
            return [
                *await self._send_batch(lines[:half], dry_run),
                *await self._send_batch(lines[half:], dry_run),
            ]

    async def _post_batch(self, lines: Sequence[Line], dry_run: bool) -> list[Reply]:
        body = b"\n".join(line.data for line in lines) + b"\n"
        path = "/v1/articles/batch" + ("?dry_run=true" if dry_run else "")
        status, answer = await self.request("POST", path, body, NDJSON_TYPE)
        if status != 200:
            raise error_from_response(status, answer, self._url)
        answered = answer.splitlines()
        if answered and b"max_batch_lines" in answered[-1] and b'"too_large"' in answered[-1]:
            raise InputTooLarge("The batch has more lines than the server accepts.")
        if len(answered) != len(lines):
            raise StoreUnavailable(
                f"{self._url} answered {len(answered)} of {len(lines)} lines; send them again."
            )
        return [_parse_reply(line, data) for line, data in zip(lines, answered, strict=True)]

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
    """The fields of an answer line or a problem that are read here."""

    verdict: str | None = None
    error: responses.Problem | None = None
    detail: str = ""
    code: str = ""


_decode_reply = msgspec.json.Decoder(_ReplyFields).decode


def _parse_reply(line: Line, data: bytes) -> Reply:
    fields = _decode_reply(data)
    if fields.error is None:
        return Reply(data, fields.verdict)
    if fields.error.status == 503:
        raise StoreUnavailable(fields.error.detail)
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
    if status >= 500 or status == 429:
        return StoreUnavailable(detail)
    return ConfigurationError(f"server: {detail}")
