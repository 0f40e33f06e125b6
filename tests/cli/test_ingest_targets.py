"""The server target: retries, batch limits, line numbers and errors of a running service."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from aggregator.analysis.pool.pool import AnalysisPool
from aggregator.cli import ingest_targets, retry_forever
from aggregator.cli.ingest_targets import BatchDefaults
from aggregator.contract.problems import to_problem
from aggregator.contract.responses import encode
from aggregator.domain import Analysis, Article
from aggregator.errors import (
    AggregatorError,
    ConfigurationError,
    InvalidInput,
    Overloaded,
    StoreUnavailable,
    Unauthenticated,
)
from aggregator.jsonl import Line
from aggregator.settings import Settings
from tests.support.factories import story

pytestmark = pytest.mark.integration

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def target_with_handler(handle: Handler) -> AsyncIterator[ingest_targets.ServerTarget]:
    """A target whose server answers every batch by ``handle``."""
    app = web.Application()
    app.router.add_post("/v1/articles/batch", handle)
    async with (
        TestServer(app) as server,
        ingest_targets.ServerTarget.open(str(server.make_url("/"))) as target,
    ):
        yield target


def numbered_lines(count: int) -> list[Line]:
    """Input lines numbered from 1."""
    return [Line("f", number, json.dumps({"id": str(number)}).encode()) for number in range(1, count + 1)]


def new_verdict(data: bytes) -> bytes:
    """The answer line for an input line."""
    return json.dumps({"id": json.loads(data)["id"], "verdict": "new"}).encode() + b"\n"


@pytest.fixture(autouse=True)
def no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries have no delay."""
    monkeypatch.setattr(retry_forever, "INITIAL_BACKOFF_S", 0.0)
    monkeypatch.setattr(retry_forever, "FIRST_CONTACT_TIMEOUT_S", 0.2)


def failed_line(number: int, status: int) -> bytes:
    """The answer line for an input line that was not processed, or was rejected."""
    error = {"type": "", "title": "", "status": status, "detail": "because", "code": "c"}
    return json.dumps({"line": number, "error": error}).encode() + b"\n"


async def test_lines_without_an_answer_are_sent_again() -> None:
    """After a 503, 429, 408, an interrupted answer, and lines of status 503 and 429; rejections are final."""
    bodies: list[list[bytes]] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        given = (await request.read()).splitlines()
        bodies.append(given)
        match len(bodies):
            case 1:
                return web.Response(status=503, body=b'{"detail": "loading"}')
            case 2:
                return web.Response(status=429, body=b'{"detail": "limit"}')
            case 3:
                return web.Response(status=408, body=b'{"detail": "slow"}')
            case 4:
                return web.Response(body=new_verdict(given[0]) + b'{"id": "2", "verd')
            case 5:
                failed = failed_line(1, 503) + failed_line(2, 400) + failed_line(3, 429)
                return web.Response(body=failed + new_verdict(given[3]))
        return web.Response(body=b"".join(map(new_verdict, given)))

    async with target_with_handler(handle) as target:
        replies = await target.send(numbered_lines(5), dry_run=False)

    assert [reply.verdict for reply in replies] == ["new", "new", None, "new", "new"]
    rejected = json.loads(replies[2].data)
    assert (rejected["line"], rejected["error"]["status"]) == (3, 400)
    assert [len(body) for body in bodies] == [5, 5, 5, 5, 4, 2]


async def test_a_service_that_was_reached_is_waited_for() -> None:
    """Longer than any timeout, with one log line; here 40 refusals."""
    attempts = 0

    async def handle(request: web.Request) -> web.StreamResponse:
        nonlocal attempts
        attempts += 1
        given = (await request.read()).splitlines()
        if attempts <= 40:
            return web.Response(status=503, body=b'{"detail": "overloaded"}')
        return web.Response(body=b"".join(map(new_verdict, given)))

    async with target_with_handler(handle) as target:
        (reply,) = await target.send(numbered_lines(1), dry_run=False)

    assert (reply.verdict, attempts) == ("new", 41)


async def test_a_local_store_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Articles that were not analyzed, or not stored, are processed again; invalid lines are not."""
    refused: Counter[str] = Counter()
    analyze_many = AnalysisPool.analyze_many

    async def overloaded(self: AnalysisPool, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        results = await analyze_many(self, articles)
        for i, article in enumerate(articles):
            if article.id in ("2", "3") and refused[article.id] < int(article.id):
                refused[article.id] += 1
                results[i] = Overloaded("busy") if article.id == "2" else StoreUnavailable("away")
        return results

    monkeypatch.setattr(AnalysisPool, "analyze_many", overloaded)
    lines = [Line("f", n, json.dumps({"id": str(n), "text": story(n, 3)}).encode()) for n in range(1, 5)]
    lines.append(Line("f", 5, b"{"))
    async with ingest_targets.LocalTarget.open(Settings(store_url="memory")) as target:
        replies = await target.send(lines, dry_run=False)

    assert [reply.verdict for reply in replies] == ["new"] * 4 + [None]
    assert refused == {"2": 2, "3": 3}


@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("by_lines", [True, False])
async def test_a_batch_above_the_limits_of_the_server_is_split(limit: int, by_lines: bool) -> None:
    """The server rejects the body, or the line after the last that it accepts; no line is lost."""

    async def handle(request: web.Request) -> web.StreamResponse:
        given = (await request.read()).splitlines()
        if len(given) <= limit:
            return web.Response(body=b"".join(map(new_verdict, given)))
        if not by_lines:
            return web.Response(status=413, body=b'{"detail": "too large"}')
        error = {
            "type": "",
            "title": "",
            "status": 413,
            "code": "too_large",
            "detail": "more (setting max_batch_lines)",
        }
        last = json.dumps({"line": limit + 1, "error": error}, separators=(",", ":")).encode()
        return web.Response(body=b"".join(map(new_verdict, given[:limit])) + last + b"\n")

    async with target_with_handler(handle) as target:
        replies = await target.send(numbered_lines(7), dry_run=True)

    assert [json.loads(reply.data)["id"] for reply in replies] == [str(n) for n in range(1, 8)]


async def test_line_numbers_of_a_batch_become_those_of_the_file() -> None:
    """Line 1 of a batch may be line 1003 of its file."""

    async def handle(request: web.Request) -> web.StreamResponse:
        error = {
            "type": "t",
            "title": "t",
            "status": 400,
            "code": "bad_input",
            "detail": "no",
            "field": "text",
        }
        return web.Response(body=json.dumps({"line": 1, "error": error}).encode() + b"\n")

    async with target_with_handler(handle) as target:
        replies = await target.send([Line("f", 1003, b"{}")], dry_run=False)

    answer = json.loads(replies[0].data)
    assert replies[0].verdict is None
    assert (answer["line"], answer["error"]["instance"], answer["error"]["field"]) == (1003, "f:1003", "text")


async def test_another_server_is_a_configuration_error() -> None:
    """A wrong URL must not look like an outage."""

    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(status=404, text="<h1>Not here</h1>")

    async with target_with_handler(handle) as target:
        with pytest.raises(ConfigurationError, match="answered with status 404; is it an aggregator"):
            await target.send(numbered_lines(1), dry_run=False)


async def test_a_required_key_names_the_variable() -> None:
    """The command line names AGGREGATOR_KEY instead of the HTTP header."""

    async def handle(_: web.Request) -> web.Response:
        problem = to_problem(Unauthenticated("Authorization: send an access key."))
        return web.Response(status=problem.status, body=encode(problem))

    async with target_with_handler(handle) as target:
        with pytest.raises(ConfigurationError, match=r"requires a valid API key; set AGGREGATOR_KEY to one"):
            await target.send(numbered_lines(1), dry_run=False)


@pytest.mark.parametrize("whole", [True, False], ids=["batch", "lines"])
async def test_a_line_that_the_service_cannot_process_is_reported(whole: bool) -> None:
    """The service answers 500 whenever line 6 is in a batch; the other lines are processed."""
    bodies: list[list[bytes]] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        given = (await request.read()).splitlines()
        bodies.append(given)
        if b'{"id": "6"}' not in given:
            return web.Response(body=b"".join(map(new_verdict, given)))
        if whole:
            return web.Response(status=500, body=b'{"detail": "Unexpected error"}')
        return web.Response(body=b"".join(failed_line(n + 1, 500) for n in range(len(given))))

    async with target_with_handler(handle) as target:
        replies = await target.send(numbered_lines(20), dry_run=False)

    assert [reply.verdict for reply in replies] == ["new"] * 5 + [None] + ["new"] * 14
    problem = json.loads(replies[5].data)
    assert (problem["line"], problem["error"]["status"], problem["error"]["instance"]) == (6, 500, "f:6")
    assert "failed 5 times at this line" in problem["error"]["detail"]
    assert len(bodies) < 20


async def test_a_passing_internal_error_fails_no_line() -> None:
    """It is sent again like after an outage."""
    attempts = 0

    async def handle(request: web.Request) -> web.StreamResponse:
        nonlocal attempts
        attempts += 1
        given = (await request.read()).splitlines()
        if attempts < ingest_targets.MAX_INTERNAL_ERRORS:
            return web.Response(status=500)
        return web.Response(body=b"".join(map(new_verdict, given)))

    async with target_with_handler(handle) as target:
        replies = await target.send(numbered_lines(3), dry_run=False)

    assert [reply.verdict for reply in replies] == ["new"] * 3


async def test_declarations_for_all_lines_are_sent_as_query() -> None:
    """Once per batch: policy profile and backfill; an unknown profile is a configuration error."""
    queries: list[dict[str, str]] = []

    async def handle(request: web.Request) -> web.Response:
        queries.append(dict(request.query))
        if request.query.get("policy") == "wires":
            problem = to_problem(InvalidInput("policy: unknown profile 'wires'; known: default."))
            return web.Response(status=400, body=encode(problem))
        return web.Response(body=b"".join(map(new_verdict, (await request.read()).splitlines())))

    app = web.Application()
    app.router.add_post("/v1/articles/batch", handle)
    async with TestServer(app) as server:
        url = str(server.make_url("/"))
        for defaults, dry_run in (
            (BatchDefaults(), False),
            (BatchDefaults("wire"), False),
            (BatchDefaults("wire"), True),
            (BatchDefaults(backfill=True), False),
        ):
            async with ingest_targets.ServerTarget.open(url, defaults=defaults) as target:
                await target.send(numbered_lines(2), dry_run=dry_run)
        async with ingest_targets.ServerTarget.open(url, defaults=BatchDefaults("wires")) as target:
            with pytest.raises(ConfigurationError, match="unknown profile 'wires'; known: default"):
                await target.send(numbered_lines(2), dry_run=False)

    assert queries == [
        {},
        {"policy": "wire"},
        {"dry_run": "true", "policy": "wire"},
        {"backfill": "true"},
        {"policy": "wires"},
    ]
