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
from aggregator.contract.decoding import decode_article, path_id
from aggregator.contract.requests import IngestQuery, NoQuery
from aggregator.contract.responses import CopiesOut, LineProblem, encode
from aggregator.domain import Analysis, Answer, Article
from aggregator.errors import AggregatorError, BadInput, OverLimit, StoreUnavailable
from aggregator.http import body as bodies
from aggregator.http import json_response
from aggregator.http.app_keys import ADMISSION, BANDS, BATCHES, CALLER, METRICS, REQUEST_ID, SERVICE
from aggregator.http.limits.load_shedding import Overloaded
from aggregator.http.middleware import auth
from aggregator.http.middleware.errors import problem
from aggregator.http.prefetch import CHUNK_LINES, ReadAhead

log = logging.getLogger(__name__)


async def post(request: web.Request, query: IngestQuery) -> web.StreamResponse:
    """Check one article and store it."""
    service, metrics = request.app[SERVICE], request.app[METRICS]
    try:
        body = await bodies.read_body(request, service.settings.max_body_bytes)
        with request.app[ADMISSION].place(fair_semaphore.CALLER.get()):
            article = decode_article(body)
            auth.check_source(request, article.source)
            answer = await service.ingest.submit(article, dry_run=query.dry_run)
    except (BadInput, Overloaded) as error:
        metrics.rejected.labels(problem(error).code).inc()
        raise
    if not query.dry_run:
        metrics.answered(answer)
    created = answer.stored and answer.outcome.verdict != "duplicate"
    return json_response.json(
        encoding.answer(answer, request.app[BANDS]),
        status=201 if created else 200,
        headers=json_response.server_timing(answer.timings_ms),
    )


async def batch(request: web.Request, query: IngestQuery) -> web.StreamResponse:
    """Check and store many articles. Raises Overloaded while too many batches are open."""
    bodies.check_encoding(request)
    try:
        with request.app[BATCHES].place(fair_semaphore.CALLER.get()):
            return await _batch(request, query)
    except Overloaded as error:
        request.app[METRICS].rejected.labels(problem(error).code).inc()
        raise


async def _batch(request: web.Request, query: IngestQuery) -> web.StreamResponse:
    """Answers flow while lines still arrive.

    Reading does not wait for the caller to take its answers: a client that sends everything before
    it reads anything must not bring both sides to a stand. ``max_batch_lines`` bounds what waits.
    """
    settings = request.app[SERVICE].settings
    response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
    await response.prepare(request)
    waiting: asyncio.Queue[bytes | None] = asyncio.Queue()
    writer = asyncio.create_task(_write(response, waiting))
    ahead = ReadAhead(
        bodies.lines(request, settings.max_body_bytes, settings.max_batch_lines),
        CHUNK_LINES,
        lambda lines: _prepared(request, lines),
    )
    try:
        async for prepared in ahead:
            if writer.done():  # the caller is gone
                break
            waiting.put_nowait(await _answer_lines(request, _joined([prepared, *ahead.at_hand()]), query))
        waiting.put_nowait(None)
        await writer
    finally:
        writer.cancel()  # when the service leaves: an answer without its end says that lines are missing
        await ahead.close()
    return response


async def get(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """A stored article."""
    service = request.app[SERVICE]
    stored = await service.index.get(path_id(request.match_info["id"]))
    event = (await service.events.event_of([stored.group])).get(stored.group)
    return json_response.json(encoding.article(stored.record, stored.outcome, event, request.app[BANDS]))


async def delete(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """Undo a reservation, or take an article down."""
    service, id_ = request.app[SERVICE], path_id(request.match_info["id"])
    if request.get(CALLER) is not None and request[CALLER].sources:
        auth.check_source(request, (await service.index.get(id_)).record.source)
    await service.ingest.delete(id_)
    return web.Response(status=204)


async def copies(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """All stored articles of the group that an article belongs to."""
    id_ = path_id(request.match_info["id"])
    records = await request.app[SERVICE].index.copies(id_)
    return json_response.json(
        CopiesOut(
            id=id_,
            canonical_id=records[0].id if records else id_,
            copies=[encoding.reference(record) for record in records],
        )
    )


async def _write(response: web.StreamResponse, waiting: asyncio.Queue[bytes | None]) -> None:
    while (chunk := await waiting.get()) is not None:
        await response.write(chunk)
    await response.write_eof()


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Lines of a batch, decoded and analysed, or what forbids to take them in."""

    numbers: list[int]
    decoded: list[Article | AggregatorError]
    articles: list[Article]  # those of ``decoded``
    analysed: Sequence[Analysis | Exception]
    analyse_ms: float  # all articles together


async def _prepared(request: web.Request, lines: Sequence[bodies.Line]) -> _Prepared:
    """Headers are sent already, so every failure must become lines: none is raised."""
    decoded = [_decoded(request, line) for line in lines]
    articles = [found for found in decoded if isinstance(found, Article)]
    analysed: Sequence[Analysis | Exception] = []
    started = time.perf_counter()
    try:
        if articles:
            await auth.spend(request, len(articles))
            analysed = await request.app[SERVICE].ingest.analyse_many(articles)
    except Exception as error:
        analysed = [_told(request, error)] * len(articles)
    analyse_ms = (time.perf_counter() - started) * 1000
    return _Prepared([line.number for line in lines], decoded, articles, analysed, analyse_ms)


def _joined(parts: Sequence[_Prepared]) -> _Prepared:
    return _Prepared(
        [number for part in parts for number in part.numbers],
        [found for part in parts for found in part.decoded],
        [article for part in parts for article in part.articles],
        [found for part in parts for found in part.analysed],
        sum(part.analyse_ms for part in parts),
    )


async def _answer_lines(request: web.Request, prepared: _Prepared, query: IngestQuery) -> bytes:
    """Answers to some lines, in order, each with its line end."""
    results = iter(await _settled(request, prepared, query))
    out = [
        _line(request, number, next(results) if isinstance(found, Article) else found, query)
        for number, found in zip(prepared.numbers, prepared.decoded, strict=True)
    ]
    return b"".join(out)


def _decoded(request: web.Request, line: bodies.Line) -> Article | AggregatorError:
    if line.error is not None:
        return line.error
    try:
        article = decode_article(line.data)
        return auth.refusal(request, article.source) or article
    except BadInput as error:
        return error


async def _settled(
    request: web.Request, prepared: _Prepared, query: IngestQuery
) -> Sequence[Answer | Exception]:
    """One result per article. Headers are sent already, so every failure must become lines."""
    articles = prepared.articles
    if not articles:
        return []
    each_ms = prepared.analyse_ms / len(articles)
    try:
        return await request.app[SERVICE].ingest.settle_many(
            articles, prepared.analysed, each_ms, dry_run=query.dry_run, together=CHUNK_LINES
        )
    except Exception as error:
        return [_told(request, error)] * len(articles)


def _told(request: web.Request, error: Exception) -> Exception:
    """The error; one that nobody expected is logged and counted."""
    if not isinstance(error, (StoreUnavailable, OverLimit)):
        request.app[METRICS].errors.inc()
        log.error("request %s failed in a batch", request[REQUEST_ID], exc_info=error)
    return error


def _line(request: web.Request, number: int, result: Answer | Exception, query: IngestQuery) -> bytes:
    metrics = request.app[METRICS]
    if isinstance(result, Answer):
        if not query.dry_run:
            metrics.answered(result)
        return encode(encoding.answer(result, request.app[BANDS])) + b"\n"
    told = problem(result)
    if not isinstance(result, AggregatorError):
        told.request_id = request[REQUEST_ID]
    metrics.rejected.labels(told.code).inc()
    return encode(LineProblem(number, told)) + b"\n"
