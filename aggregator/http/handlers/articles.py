"""Routes of articles: taking them in, one by one or many, reading and removing them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import web

from aggregator.concurrency import fair_semaphore
from aggregator.contract import encoding
from aggregator.contract.decoding import check_path_id, decode_article
from aggregator.contract.requests import IngestQuery, NoQuery
from aggregator.contract.responses import CopiesOut, LineProblem, encode
from aggregator.domain import Analysis, Answer, Article
from aggregator.errors import AggregatorError, InvalidInput, RateLimited, StoreUnavailable
from aggregator.http import body as bodies
from aggregator.http import json_response
from aggregator.http.app_keys import (
    BATCH_LIMIT,
    CALLER_KEY,
    DISTANCE_THRESHOLDS,
    LOAD_SHEDDER,
    METRICS,
    REQUEST_ID,
    SERVICE,
)
from aggregator.http.limits.load_shedding import Overloaded
from aggregator.http.middleware import auth
from aggregator.http.middleware.errors import to_problem
from aggregator.http.prefetch import CHUNK_LINES, Prefetcher

log = logging.getLogger(__name__)


async def post(request: web.Request, query: IngestQuery) -> web.StreamResponse:
    """Check one article and store it."""
    service, metrics = request.app[SERVICE], request.app[METRICS]
    try:
        body = await bodies.read_body(request, service.settings.max_body_bytes)
        with request.app[LOAD_SHEDDER].slot(fair_semaphore.current_caller.get()):
            article = decode_article(body)
            auth.check_source(request, article.source)
            answer = await service.ingest.submit(article, dry_run=query.dry_run)
    except (InvalidInput, Overloaded) as error:
        metrics.rejected_articles.labels(to_problem(error).code).inc()
        raise
    if not query.dry_run:
        metrics.record_answer(answer)
    created = answer.stored and answer.outcome.verdict != "duplicate"
    return json_response.struct_response(
        encoding.verdict_out(answer, request.app[DISTANCE_THRESHOLDS]),
        status=201 if created else 200,
        headers=json_response.server_timing(answer.timings_ms),
    )


async def post_batch(request: web.Request, query: IngestQuery) -> web.StreamResponse:
    """Check and store many articles. Raises Overloaded while too many batches are open."""
    bodies.check_encoding(request)
    try:
        with request.app[BATCH_LIMIT].slot(fair_semaphore.current_caller.get()):
            return await _stream_batch(request, query)
    except Overloaded as error:
        request.app[METRICS].rejected_articles.labels(to_problem(error).code).inc()
        raise


async def _stream_batch(request: web.Request, query: IngestQuery) -> web.StreamResponse:
    """Answers flow while lines still arrive.

    Reading does not wait for the caller to take its answers: a client that sends everything before
    it reads anything must not bring both sides to a stand. ``max_batch_lines`` bounds what waits.
    """
    settings = request.app[SERVICE].settings
    response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
    await response.prepare(request)
    waiting: asyncio.Queue[bytes | None] = asyncio.Queue()
    writer = asyncio.create_task(_write_queued(response, waiting))
    ahead = Prefetcher(
        bodies.read_lines(request, settings.max_body_bytes, settings.max_batch_lines),
        CHUNK_LINES,
        lambda lines: _prepare(request, lines),
    )
    try:
        async for prepared in ahead:
            if writer.done():  # the caller is gone
                break
            waiting.put_nowait(
                await _process_lines(request, _concatenate([prepared, *ahead.take_ready()]), query)
            )
        waiting.put_nowait(None)
        await writer
    finally:
        writer.cancel()  # when the service leaves: an answer without its end says that lines are missing
        await ahead.close()
    return response


async def get(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """A stored article."""
    service = request.app[SERVICE]
    stored = await service.index.get(check_path_id(request.match_info["id"]))
    event = (await service.events.event_ids_of([stored.group])).get(stored.group)
    return json_response.struct_response(
        encoding.article_out(stored.record, stored.outcome, event, request.app[DISTANCE_THRESHOLDS])
    )


async def delete(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """Undo a reservation, or take an article down."""
    service, id_ = request.app[SERVICE], check_path_id(request.match_info["id"])
    if request.get(CALLER_KEY) is not None and request[CALLER_KEY].sources:
        auth.check_source(request, (await service.index.get(id_)).record.source)
    await service.ingest.delete(id_)
    return web.Response(status=204)


async def get_copies(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """All stored articles of the group that an article belongs to."""
    id_ = check_path_id(request.match_info["id"])
    records = await request.app[SERVICE].index.group_members(id_)
    return json_response.struct_response(
        CopiesOut(
            id=id_,
            canonical_id=records[0].id if records else id_,
            copies=[encoding.article_ref(record) for record in records],
        )
    )


async def _write_queued(response: web.StreamResponse, queue: asyncio.Queue[bytes | None]) -> None:
    while (chunk := await queue.get()) is not None:
        await response.write(chunk)
    await response.write_eof()


@dataclass(frozen=True, slots=True)
class _PreparedLines:
    """Lines of a batch, decoded and analysed, or what forbids to take them in."""

    line_numbers: list[int]
    decoded_lines: list[Article | AggregatorError]
    articles: list[Article]  # those of ``decoded``
    analyses: Sequence[Analysis | Exception]
    analysis_ms: float  # all articles together


async def _prepare(request: web.Request, lines: Sequence[bodies.BatchLine]) -> _PreparedLines:
    """Headers are sent already, so every failure must become lines: none is raised."""
    decoded = [_decode_line(request, line) for line in lines]
    articles = [found for found in decoded if isinstance(found, Article)]
    analysed: Sequence[Analysis | Exception] = []
    started = time.perf_counter()
    try:
        if articles:
            await auth.charge(request, len(articles))
            analysed = await request.app[SERVICE].ingest.analyze_many(articles)
    except Exception as error:
        analysed = [_log_unexpected(request, error)] * len(articles)
    analyse_ms = (time.perf_counter() - started) * 1000
    return _PreparedLines([line.number for line in lines], decoded, articles, analysed, analyse_ms)


def _concatenate(prepared_parts: Sequence[_PreparedLines]) -> _PreparedLines:
    return _PreparedLines(
        [number for part in prepared_parts for number in part.line_numbers],
        [found for part in prepared_parts for found in part.decoded_lines],
        [article for part in prepared_parts for article in part.articles],
        [found for part in prepared_parts for found in part.analyses],
        sum(part.analysis_ms for part in prepared_parts),
    )


async def _process_lines(request: web.Request, prepared: _PreparedLines, query: IngestQuery) -> bytes:
    """Answers to some lines, in order, each with its line end."""
    results = iter(await _commit_lines(request, prepared, query))
    out = [
        _result_line(request, number, next(results) if isinstance(found, Article) else found, query)
        for number, found in zip(prepared.line_numbers, prepared.decoded_lines, strict=True)
    ]
    return b"".join(out)


def _decode_line(request: web.Request, line: bodies.BatchLine) -> Article | AggregatorError:
    if line.error is not None:
        return line.error
    try:
        article = decode_article(line.data)
        return auth.source_error(request, article.source) or article
    except InvalidInput as error:
        return error


async def _commit_lines(
    request: web.Request, prepared: _PreparedLines, query: IngestQuery
) -> Sequence[Answer | Exception]:
    """One result per article. Headers are sent already, so every failure must become lines."""
    articles = prepared.articles
    if not articles:
        return []
    each_ms = prepared.analysis_ms / len(articles)
    try:
        return await request.app[SERVICE].ingest.process_analyzed(
            articles, prepared.analyses, each_ms, dry_run=query.dry_run, group_size=CHUNK_LINES
        )
    except Exception as error:
        return [_log_unexpected(request, error)] * len(articles)


def _log_unexpected(request: web.Request, error: Exception) -> Exception:
    """The error; one that nobody expected is logged and counted."""
    if not isinstance(error, (StoreUnavailable, RateLimited)):
        request.app[METRICS].unexpected_errors.inc()
        log.error("request %s failed in a batch", request[REQUEST_ID], exc_info=error)
    return error


def _result_line(request: web.Request, number: int, result: Answer | Exception, query: IngestQuery) -> bytes:
    metrics = request.app[METRICS]
    if isinstance(result, Answer):
        if not query.dry_run:
            metrics.record_answer(result)
        return encode(encoding.verdict_out(result, request.app[DISTANCE_THRESHOLDS])) + b"\n"
    told = to_problem(result)
    if not isinstance(result, AggregatorError):
        told.request_id = request[REQUEST_ID]
    metrics.rejected_articles.labels(told.code).inc()
    return encode(LineProblem(number, told)) + b"\n"
