"""Routes of articles: check and store (single or as a streamed batch), read, delete."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from aiohttp import web

from aggregator import errors
from aggregator.analysis.source import spelled_as
from aggregator.app import Service
from aggregator.concurrency import CHUNK_ARTICLES, Prefetcher, current_caller
from aggregator.contract import encoding
from aggregator.contract.decoding import decode_article
from aggregator.contract.problems import to_problem
from aggregator.contract.requests import DeleteQuery, IngestQuery
from aggregator.contract.responses import encode
from aggregator.domain import Analysis, Answer, Article
from aggregator.http import auth
from aggregator.http import body as bodies
from aggregator.http.app_keys import BATCH_LIMIT, LOAD_SHEDDER, METRICS, REQUEST_ID, SERVICE, caller_id
from aggregator.http.endpoint import errors_in_parameters, location, server_timing, struct_response
from aggregator.index.bindings import foreign_article_error
from aggregator_client.wire import ArticleOut, CopiesOut, LineProblem, VerdictOut

# A group may have any size; 1,000 articles are 0.3 MB, with the longest titles and addresses 8 MB.
MAX_COPIES = 1000
CONNECTING_MS = 1000  # a request is repeated over a new connection, which a busy server accepts late
FIRST_SENT_MS = web.RequestKey("first_sent_ms", int)

log = logging.getLogger(__name__)


async def post(request: web.Request, query: IngestQuery) -> web.StreamResponse:
    """Check an article for duplicates and store it."""
    _begin(request, query)
    service, metrics, body = request.app[SERVICE], request.app[METRICS], b""
    try:
        caller = current_caller.get()
        request.app[LOAD_SHEDDER].check(caller)  # before the body is read, while it holds no slot
        body = await bodies.read_body(request)
        with request.app[LOAD_SHEDDER].slot(caller):
            article = _decode_article(request, body, query)
            answer = await service.articles.ingest.submit(
                article, dry_run=query.dry_run, sources=auth.caller_sources(request)
            )
    except (errors.InvalidInput, errors.Forbidden, errors.Overloaded, errors.TakenDown) as error:
        metrics.rejected_articles.labels(to_problem(error).code).inc()
        if not query.dry_run:
            await service.articles.refused.add([(body, error)])
        raise
    if not query.dry_run:
        metrics.record_answer(answer)
    verdict, headers = _verdict_out(request, answer), server_timing(answer.timings_ms)
    if verdict.created:
        headers |= location("/v1/articles", verdict.id)
    return struct_response(verdict, status=201 if verdict.created else 200, headers=headers)


async def post_batch(request: web.Request, query: IngestQuery) -> web.StreamResponse:
    """Check and store many articles: JSON lines, one answer line each, in order."""
    _begin(request, query)
    bodies.check_encoding(request)
    try:
        with request.app[BATCH_LIMIT].slot(current_caller.get()):
            return await _stream_batch(request, query)
    except errors.Overloaded as error:
        request.app[METRICS].rejected_articles.labels(to_problem(error).code).inc()
        raise


async def _stream_batch(request: web.Request, query: IngestQuery) -> web.StreamResponse:
    """Answer lines while later lines still arrive.

    Reading does not wait for the client to read answers: one that sends everything first would deadlock. The
    setting max_batch_lines limits the answers queued.
    """
    response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
    await bodies.send_continue(request)
    await response.prepare(request)
    queue: asyncio.Queue[bytes | None] = asyncio.Queue()
    writer = asyncio.create_task(_write_queued(response, queue))
    prefetcher = Prefetcher(
        bodies.read_lines(request), CHUNK_ARTICLES, lambda lines: _prepare(request, lines, query)
    )
    try:
        async for prepared in prefetcher:
            if writer.done():  # the client disconnected
                break
            available = list(chain(prepared, *prefetcher.take_ready()))
            queue.put_nowait(await _process_lines(request, available, query))
        queue.put_nowait(None)
        await writer
    finally:
        writer.cancel()  # at shutdown: an incomplete response shows the client that lines are missing
        await prefetcher.close()
    return response


async def get(request: web.Request, service: Service, id_: str) -> ArticleOut:
    """Get a stored article and its verdict. A key bound to sources reads only its own."""
    stored = await service.articles.index.articles.get(id_)
    sources = auth.caller_sources(request)
    if sources and spelled_as(stored.record.source, sources) is None:
        raise foreign_article_error(id_, sources)
    event = (await service.events.repository.event_ids_of([stored.group])).get(stored.group)
    return encoding.article_out(stored.record, stored.outcome, event, service.settings)


async def delete(request: web.Request, id_: str, query: DeleteQuery) -> None:
    """Delete an article, undo a reservation, or take an article down so that its text is refused."""
    articles = request.app[SERVICE].articles
    auth.require(request, "crawler" if query.take_down is None else "editor")
    if query.take_down is False:
        await articles.index.takedowns.lift(id_)
    else:
        sources = auth.caller_sources(request)
        await articles.ingest.delete(id_, sources=sources, take_down=bool(query.take_down), undo=query.undo)


async def get_copies(request: web.Request, id_: str) -> CopiesOut:
    """List the articles of an article's duplicate group, the canonical one first. The first MAX_COPIES."""
    records = await request.app[SERVICE].articles.index.articles.group_members(id_, MAX_COPIES + 1)
    return CopiesOut(
        id=id_,
        canonical_id=records[0].id if records else id_,
        copies=[encoding.article_ref(record) for record in records[:MAX_COPIES]],
        truncated=len(records) > MAX_COPIES,
    )


def _verdict_out(request: web.Request, answer: Answer) -> VerdictOut:
    """The answer as its caller may see it: a key bound to sources gets no titles of other sources."""
    sources = auth.caller_sources(request)
    if sources:
        answer = replace(answer, related=tuple(r for r in answer.related if spelled_as(r.source, sources)))
    return encoding.verdict_out(answer, request.app[SERVICE].settings)


async def _write_queued(response: web.StreamResponse, queue: asyncio.Queue[bytes | None]) -> None:
    while (chunk := await queue.get()) is not None:
        await response.write(chunk)
    await response.write_eof()


@dataclass(frozen=True, slots=True)
class _PreparedLine:
    sent: bodies.BatchLine
    article: Article | errors.AggregatorError
    analysis: Analysis | Exception
    analysis_ms: float


async def _prepare(
    request: web.Request, lines: Sequence[bodies.BatchLine], query: IngestQuery
) -> list[_PreparedLine]:
    """Decode and analyze lines. Raises nothing: headers are sent, so failures must become answer lines."""
    decoded = [_decode_line(request, line, query) for line in lines]
    articles = [result for result in decoded if isinstance(result, Article)]
    analyses: Sequence[Analysis | Exception] = []
    started = time.perf_counter()
    try:
        if key_id := caller_id(request):  # invalid lines cost work, too
            await request.app[SERVICE].edge.rate_limiter.acquire(key_id, len(lines))
        if articles:
            analyses = await request.app[SERVICE].articles.ingest.analyze_many(articles)
    except Exception as error:
        analyses = [_log_unexpected(request, error)] * len(articles)
    each_ms = (time.perf_counter() - started) * 1000 / max(1, len(articles))
    remaining = iter(analyses)
    return [
        _PreparedLine(line, item, next(remaining) if isinstance(item, Article) else item, each_ms)
        for line, item in zip(lines, decoded, strict=True)
    ]


async def _process_lines(request: web.Request, lines: Sequence[_PreparedLine], query: IngestQuery) -> bytes:
    answers = iter(await _commit_lines(request, lines, query))
    results = [next(answers) if isinstance(line.article, Article) else line.article for line in lines]
    answered = list(zip([line.sent for line in lines], results, strict=True))
    if not query.dry_run:
        await request.app[SERVICE].articles.refused.add([(line.data, result) for line, result in answered])
    return b"".join(_answer_line(request, line.number, result, query) for line, result in answered)


async def _commit_lines(
    request: web.Request, lines: Sequence[_PreparedLine], query: IngestQuery
) -> Sequence[Answer | Exception]:
    """One result per article. Raises nothing: headers are sent, so failures must become answer lines."""
    articles = [line.article for line in lines if isinstance(line.article, Article)]
    usable = [line for line in lines if isinstance(line.article, Article)]
    if not usable:
        return []
    try:
        return await request.app[SERVICE].articles.ingest.process_analyzed(
            articles,
            [line.analysis for line in usable],
            sum(line.analysis_ms for line in usable) / len(usable),
            dry_run=query.dry_run,
            group_size=CHUNK_ARTICLES,
            sources=auth.caller_sources(request),
        )
    except Exception as error:  # no variable holds it here: its traceback refers to this frame
        return [_log_unexpected(request, error)] * len(usable)


def _begin(request: web.Request, query: IngestQuery) -> None:
    """Note when a repeated request was first sent. Raises InvalidInput for a query with an unknown policy."""
    if query.policy:
        with errors_in_parameters():
            request.app[SERVICE].articles.policies.named(query.policy)
    repeats_ms = request.headers.get("X-Repeats-Ms", "")
    if repeats_ms.isdecimal() and len(repeats_ms) < 8:
        request[FIRST_SENT_MS] = int(time.time() * 1000) - int(repeats_ms) - CONNECTING_MS


def _decode_article(request: web.Request, data: bytes, query: IngestQuery) -> Article:
    """The article with the source of the key and what the query declares for all articles."""
    article = auth.bind_source(request, decode_article(data))
    if FIRST_SENT_MS in request:
        article = replace(article, first_sent_ms=request[FIRST_SENT_MS])
    if query.backfill:
        article = replace(article, backfill=True, is_bound=bool(auth.caller_sources(request)))
    return replace(article, policy=query.policy) if query.policy and not article.policy else article


def _decode_line(
    request: web.Request, line: bodies.BatchLine, query: IngestQuery
) -> Article | errors.AggregatorError:
    if line.error is not None:
        return line.error
    try:
        return _decode_article(request, line.data, query)
    except (errors.InvalidInput, errors.Forbidden) as error:
        return error


def _log_unexpected(request: web.Request, error: Exception) -> Exception:
    if not isinstance(error, (errors.StoreUnavailable, errors.RateLimited)):
        request.app[METRICS].unexpected_errors.inc()
        log.error("request %s failed in a batch", request[REQUEST_ID], exc_info=error)
    return error


def _answer_line(request: web.Request, number: int, result: Answer | Exception, query: IngestQuery) -> bytes:
    metrics = request.app[METRICS]
    if isinstance(result, Answer):
        if not query.dry_run:
            metrics.record_answer(result)
        return encode(_verdict_out(request, result)) + b"\n"
    problem = to_problem(result)
    if not isinstance(result, errors.AggregatorError):
        problem.request_id = request[REQUEST_ID]
    metrics.rejected_articles.labels(problem.code).inc()
    return encode(LineProblem(number, problem)) + b"\n"
