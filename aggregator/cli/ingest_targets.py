"""Targets of commands that send articles: a store opened in this process, or a running service.

Both give one answer line per input line, in order. A line that was not processed because of load or an
outage is sent again until it is, or ``--wait`` ends (``line_sender.py``). Only a store imports the service.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from aggregator import errors, jsonl
from aggregator.cli.common_options import check_profile, requested_profile
from aggregator.concurrency import CHUNK_ARTICLES, Prefetcher
from aggregator.contract.problems import to_problem
from aggregator.contract.responses import encode
from aggregator.domain import Answer, Article
from aggregator.jsonl import Line
from aggregator.runtime.addresses import service_url
from aggregator.runtime.event_loop import tune_interpreter
from aggregator.settings import Settings
from aggregator_client import errors as client_errors
from aggregator_client import retry_forever
from aggregator_client.line_sender import LineAnswer, LineResult, LineSender
from aggregator_client.wire import LineProblem

if TYPE_CHECKING:
    from aggregator.app import Service

RETRYABLE: tuple[type[errors.AggregatorError], ...] = (errors.StoreUnavailable, errors.RateLimited)
MAX_ANALYSIS_PROCESSES = 4
PARALLEL_ABOVE_BYTES = 4_000_000  # input size from which on the start of analysis processes pays off


@dataclass(frozen=True, slots=True)
class BatchDefaults:
    """What the command declares for all articles; ``profile`` applies to those that name none.

    ``wait_s``: after this time without an answer to any of them the command ends.
    """

    profile: str = ""
    backfill: bool = False
    wait_s: float = math.inf

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
        raise errors.ConfigurationError("store: give either --store or --server, not both.")
    if args.store is None and args.policy is not None and not requested_profile(args):
        raise errors.ConfigurationError(
            "policy: a server uses its own rule; name one of its profiles, or use --policy with --store."
        )


@asynccontextmanager
async def open_target(
    args: argparse.Namespace, settings: Settings
) -> AsyncIterator[LocalTarget | ServerTarget]:
    """The target for ``--store`` or ``--server``; by default the local server."""
    backfill, wait_s = getattr(args, "backfill", False), getattr(args, "wait", None) or math.inf
    defaults = BatchDefaults(requested_profile(args), backfill, wait_s)
    if args.store is None:
        url = args.server or service_url(settings.host, settings.port)
        with client_errors_translated():
            async with LineSender.open(url, settings.key, wait_s) as sender:
                yield ServerTarget(sender, defaults)
        return
    size = jsonl.total_bytes(args.files)
    is_large = size is not None and size > PARALLEL_ABOVE_BYTES
    processes = min(MAX_ANALYSIS_PROCESSES, os.cpu_count() or 1) if is_large else 0
    async with LocalTarget.open(settings, processes, defaults) as store:
        if processes:
            tune_interpreter()
        yield store


def error_reply(line: Line, error: Exception) -> LineAnswer:
    """The answer line for a line that was rejected."""
    problem = to_problem(error)
    problem.detail = str(error) if problem.code == "internal" else problem.detail  # of RepeatedInternalError
    problem.instance = line.location
    return LineAnswer(encode(LineProblem(line.number, problem)))


class LocalTarget:
    """The service opened in this process, without HTTP."""

    def __init__(self, service: Service, defaults: BatchDefaults = BatchDefaults()) -> None:
        self._service = service
        self._defaults, self._limit_s = defaults, lambda: defaults.wait_s

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: Settings, processes: int = 0, defaults: BatchDefaults = BatchDefaults()
    ) -> AsyncIterator[LocalTarget]:
        """Open the store and load the models. Raises ConfigurationError, ModelError, StoreUnavailable."""
        from aggregator.app import open_service

        async with open_service(settings, processes=processes) as service:
            if problem := await service.articles.foreign_index.check():
                raise errors.ConfigurationError(f"store: {problem}")
            if defaults.profile:
                check_profile(service.articles.policies, defaults.profile)
            await service.articles.foreign_index.record_writes()
            yield cls(service, defaults)

    @property
    def throttled_s(self) -> float:
        """Seconds that this process has paused for interactive requests of a service."""
        return self._service.articles.load_control.throttle.throttled_s

    async def send(self, lines: Sequence[Line], *, dry_run: bool) -> AsyncIterator[LineAnswer]:
        """One LineAnswer per line, in order; when the wait ends, those that exist, then StoreUnavailable."""
        decoded = [_decode(line, self._defaults) for line in lines]
        articles = [article for article in decoded if isinstance(article, Article)]
        answers: list[Answer | errors.AggregatorError] = await retry_forever.send_until_answered(
            articles, lambda rest: self._submit(rest, dry_run), RETRYABLE, limit_s=self._limit_s
        )
        remaining = iter(answers)
        for line, item in zip(lines, decoded, strict=True):
            result = next(remaining) if isinstance(item, Article) else item
            if not isinstance(result, RETRYABLE):
                yield self._encode(line, result)
        for ended in (answer for answer in answers if isinstance(answer, RETRYABLE)):
            raise errors.StoreUnavailable(str(ended))

    async def _submit(
        self, articles: Sequence[Article], dry_run: bool
    ) -> list[Answer | errors.AggregatorError]:
        """Process like a batch of the service: the next chunk is analyzed while this one is committed."""
        ingest = self._service.articles.ingest
        answers: list[Answer | errors.AggregatorError] = []
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

    def _encode(self, line: Line, result: Answer | errors.AggregatorError) -> LineAnswer:
        if isinstance(result, errors.AggregatorError):
            return error_reply(line, result)
        from aggregator.contract import encoding

        outcome = result.outcome
        return LineAnswer(
            encode(encoding.verdict_out(result, self._service.settings)), outcome.verdict, outcome.keep
        )


async def _single_batch(articles: Sequence[Article]) -> AsyncIterator[Sequence[Article]]:
    yield articles


def _decode(line: Line, defaults: BatchDefaults) -> Article | errors.InvalidInput:
    if line.error is not None:
        return line.error
    from aggregator.contract.decoding import decode_article

    try:
        return defaults.apply(decode_article(line.data))
    except errors.InvalidInput as error:
        return error


class ServerTarget:
    """A running service at ``url``; lines are posted in batches."""

    throttled_s = 0.0  # this process does not pause

    def __init__(self, sender: LineSender, defaults: BatchDefaults = BatchDefaults()) -> None:
        self._sender = sender
        self._defaults = defaults

    async def send(self, lines: Sequence[Line], *, dry_run: bool) -> AsyncIterator[LineAnswer]:
        """As that of ``LocalTarget``, with errors of the client."""
        usable = [line.data for line in lines if line.error is None]
        answers = await self._sender.send(usable, self._defaults.query(dry_run))
        remaining = iter(answers)
        for line in lines:
            result = line.error or next(remaining)
            if not isinstance(result, client_errors.Unavailable):
                yield _reply(line, result)
        for ended in (answer for answer in answers if isinstance(answer, client_errors.Unavailable)):
            raise ended


def _reply(line: Line, answer: LineResult | errors.InvalidInput) -> LineAnswer:
    if isinstance(answer, client_errors.InputTooLarge):
        answer = errors.InputTooLarge(str(answer))
    if isinstance(answer, Exception):
        return error_reply(line, answer)
    if answer.problem is None:
        return answer
    answer.problem.instance = line.location
    return LineAnswer(encode(LineProblem(line.number, answer.problem)))


@contextmanager
def client_errors_translated(option: str = "server: ") -> Iterator[None]:
    """Errors of the client become those of the command line; ``option``: precedes a configuration error."""
    try:
        yield
    except client_errors.ConfigurationError as error:
        raise errors.ConfigurationError(f"{option}{error}") from None
    except client_errors.NotFound as error:
        raise errors.NotFound(str(error)) from None
    except client_errors.InputTooLarge as error:
        raise errors.InputTooLarge(str(error)) from None
    except client_errors.Unavailable as error:
        raise errors.StoreUnavailable(str(error)) from error.__cause__
