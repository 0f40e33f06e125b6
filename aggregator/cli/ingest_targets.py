"""Where a command sends its articles: the store opened in this process, or a running server.

Both take input lines and give one answer line per input line, in order; what a line could not be used for
stands in its answer line. Both wait for a store or server that is away for ``PATIENCE_S``, then raise
StoreUnavailable: sending a line again is safe, since its id makes it idempotent.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Protocol, TypeVar

import aiohttp
import msgspec

from aggregator.app import Service, open_service
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
from aggregator.offline.jsonl import Line
from aggregator.settings import Settings

RETRY_TIMEOUT_S = 60.0
FIRST_CONTACT_TIMEOUT_S = 3.0  # a server that was never reached is probably not running
INITIAL_BACKOFF_S, MAX_BACKOFF_S = 0.2, 5.0
BATCH_TIMEOUT_S = 600.0
NDJSON = "application/x-ndjson"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer line to one input line; ``verdict`` is None when the line was bad."""

    data: bytes
    verdict: str | None


class IngestTarget(Protocol):
    @property
    def throttled_s(self) -> float:
        """For so long this process has stood still for articles that came one by one; a server paces itself."""

    async def send(self, lines: Sequence[Line], *, dry_run: bool) -> list[Reply]:
        """One Reply per line, in order. Raises StoreUnavailable when patience is over."""


def error_reply(line: Line, error: Exception) -> Reply:
    """The answer line of a line that could not be used."""
    told = to_problem(error)
    told.instance = line.location
    return Reply(encode(LineProblem(line.number, told)), None)


async def retry_while_unavailable(
    attempt: Callable[[], Awaitable[T]], timeout_s: float = RETRY_TIMEOUT_S
) -> T:
    """``attempt`` again while it raises StoreUnavailable, with growing pauses, for ``patience_s``."""
    deadline_s = time.monotonic() + timeout_s
    pause_s = INITIAL_BACKOFF_S
    while True:
        try:
            return await attempt()
        except StoreUnavailable:
            if time.monotonic() + pause_s > deadline_s:
                raise
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, MAX_BACKOFF_S)


class LocalTarget:
    """The service's own chain in this process, without HTTP."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._thresholds = encoding.DistanceThresholds(
            service.settings.duplicate_bits, service.settings.related_bits
        )

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings, processes: int = 0) -> AsyncIterator[LocalTarget]:
        """Raises ConfigurationError, ModelError, StoreUnavailable."""
        async with open_service(settings, processes=processes) as service:
            yield cls(service)

    @property
    def throttled_s(self) -> float:
        return self._service.load_control.throttle.throttled_s

    async def send(self, lines: Sequence[Line], *, dry_run: bool) -> list[Reply]:
        decoded = [_decode(line) for line in lines]
        articles = [article for article in decoded if isinstance(article, Article)]
        answers = iter(await retry_while_unavailable(lambda: self._submit(articles, dry_run)))
        return [
            self._encode_reply(line, next(answers) if isinstance(given, Article) else given)
            for line, given in zip(lines, decoded, strict=True)
        ]

    async def _submit(self, articles: Sequence[Article], dry_run: bool) -> list[Answer | AggregatorError]:
        """As a batch of the service: some are analysed while those before them are looked up and committed."""
        ingest = self._service.ingest
        answers: list[Answer | AggregatorError] = []
        ahead = Prefetcher(_single_batch(articles), CHUNK_ARTICLES, ingest.analyze_many)
        try:
            async for first in ahead:
                analysed = list(chain(first, *ahead.take_ready()))
                some = articles[len(answers) :][: len(analysed)]
                answers += await ingest.process_analyzed(
                    some, analysed, dry_run=dry_run, group_size=CHUNK_ARTICLES
                )
        finally:
            await ahead.close()
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
    """A running service at ``url``, asked by batches."""

    throttled_s = 0.0

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url.rstrip("/")
        self._has_connected = False

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, key: str = "") -> AsyncIterator[ServerTarget]:
        """Raises ConfigurationError for what is not an address; nothing is sent yet."""
        if not url.startswith(("http://", "https://")):
            raise ConfigurationError(f"server: {url!r} is not an http:// or https:// address.")
        timeout = aiohttp.ClientTimeout(total=BATCH_TIMEOUT_S, sock_connect=5.0)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        async with aiohttp.ClientSession(timeout=timeout, headers=headers) as session:
            yield cls(session, url)

    async def send(self, lines: Sequence[Line], *, dry_run: bool) -> list[Reply]:
        usable = [line for line in lines if line.error is None]
        replies = iter(await self._send_batch(usable, dry_run))
        return [error_reply(line, line.error) if line.error is not None else next(replies) for line in lines]

    async def _send_batch(self, lines: Sequence[Line], dry_run: bool) -> list[Reply]:
        if not lines:
            return []
        try:
            patience_s = RETRY_TIMEOUT_S if self._has_connected else FIRST_CONTACT_TIMEOUT_S
            return await retry_while_unavailable(lambda: self._post_batch(lines, dry_run), patience_s)
        except InputTooLarge as error:  # the server's limit is below what we sent at once
            if len(lines) == 1:
                return [error_reply(lines[0], error)]
            half = len(lines) // 2
            return [
                *await self._send_batch(lines[:half], dry_run),
                *await self._send_batch(lines[half:], dry_run),
            ]

    async def _post_batch(self, lines: Sequence[Line], dry_run: bool) -> list[Reply]:
        body = b"\n".join(line.data for line in lines) + b"\n"
        status, answer = await self.request(
            "POST", "/v1/articles/batch" + ("?dry_run=true" if dry_run else ""), body, NDJSON
        )
        if status != 200:
            raise error_from_response(status, answer, self._url)
        answered = answer.splitlines()
        if answered and b"max_batch_lines" in answered[-1] and b'"too_large"' in answered[-1]:
            raise InputTooLarge("The server takes fewer lines at once.")
        if len(answered) != len(lines):
            raise StoreUnavailable(
                f"{self._url} answered {len(answered)} of {len(lines)} lines; send them again."
            )
        return [_parse_reply(line, data) for line, data in zip(lines, answered, strict=True)]

    async def request(self, method: str, path: str, body: bytes, content_type: str) -> tuple[int, bytes]:
        """Status and body. Raises StoreUnavailable when the server cannot be reached."""
        headers = {"Content-Type": content_type}
        try:
            async with self._session.request(
                method, self._url + path, data=body, headers=headers
            ) as response:
                self._has_connected = True
                return response.status, await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise StoreUnavailable(
                f"No service answers at {self._url} ({_connection_error_reason(error)}); start it with `aggregator serve`."
            ) from error
        except ValueError as error:
            raise ConfigurationError(f"server: {self._url!r} is not an address ({error}).") from error


class _ReplyFields(msgspec.Struct):
    """The parts of an answer line or a problem that are looked at here."""

    verdict: str | None = None
    error: responses.Problem | None = None
    detail: str = ""
    code: str = ""


_decode_reply = msgspec.json.Decoder(_ReplyFields).decode


def _parse_reply(line: Line, data: bytes) -> Reply:
    told = _decode_reply(data)
    if told.error is None:
        return Reply(data, told.verdict)
    if told.error.status == 503:
        raise StoreUnavailable(told.error.detail)
    told.error.instance = line.location
    return Reply(encode(LineProblem(line.number, told.error)), None)


def _connection_error_reason(error: BaseException) -> str:
    """Why a server was not reached, in the words of the operating system where it has some."""
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno or 0
        # Name look-ups have negative numbers of their own; refusals on several addresses come as one text.
        return os.strerror(number) if number > 0 else error.os_error.strerror or str(error.os_error)
    return str(error) or type(error).__name__


def error_from_response(status: int, body: bytes, url: str) -> AggregatorError:
    """What a whole request that was refused means for us."""
    try:
        told = _decode_reply(body)
    except msgspec.MsgspecError:
        told = _ReplyFields()
    detail = told.detail or f"{url} answered with status {status}; is it an aggregator?"
    if status == 413:
        return InputTooLarge(detail)
    if told.code == "unauthenticated":
        return ConfigurationError(
            f"server: {url} asks for an access key; set AGGREGATOR_KEY to one that it knows."
        )
    if told.code in ("not_found", "gone"):
        return NotFound(detail)
    if status >= 500 or status == 429:
        return StoreUnavailable(detail)
    return ConfigurationError(f"server: {detail}")
