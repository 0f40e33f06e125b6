"""Lines posted to a running service: retries, batch limits and errors."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from aggregator_client import line_sender, retry_forever
from aggregator_client.errors import ConfigurationError
from aggregator_client.line_sender import LineAnswer, LineResult, LineSender, RepeatedInternalError

pytestmark = pytest.mark.integration

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def sender_with_handler(handle: Handler) -> AsyncIterator[LineSender]:
    """A sender whose server answers every batch by ``handle``."""
    app = web.Application()
    app.router.add_post("/v1/articles/batch", handle)
    async with TestServer(app) as server, LineSender.open(str(server.make_url("/"))) as sender:
        yield sender


def numbered_lines(count: int) -> list[bytes]:
    """Lines numbered from 1."""
    return [json.dumps({"id": str(number)}).encode() for number in range(1, count + 1)]


def new_verdict(data: bytes) -> bytes:
    """The answer line for an input line."""
    return json.dumps({"id": json.loads(data)["id"], "verdict": "new"}).encode() + b"\n"


def verdicts(results: list[LineResult]) -> list[str | None]:
    """The verdicts; None for a line without one."""
    return [result.verdict if isinstance(result, LineAnswer) else None for result in results]


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

    async with sender_with_handler(handle) as sender:
        replies = await sender.send(numbered_lines(5))

    assert verdicts(replies) == ["new", "new", None, "new", "new"]
    assert isinstance(replies[2], LineAnswer)
    assert replies[2].problem is not None
    assert replies[2].problem.status == 400
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

    async with sender_with_handler(handle) as sender:
        (reply,) = await sender.send(numbered_lines(1))

    assert (verdicts([reply]), attempts) == (["new"], 41)


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

    async with sender_with_handler(handle) as sender:
        replies = await sender.send(numbered_lines(7))

    ids = [json.loads(reply.data)["id"] for reply in replies if isinstance(reply, LineAnswer)]
    assert ids == [str(n) for n in range(1, 8)]


async def test_another_server_is_a_configuration_error() -> None:
    """A wrong URL must not look like an outage."""

    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(status=404, text="<h1>Not here</h1>")

    async with sender_with_handler(handle) as sender:
        with pytest.raises(ConfigurationError, match="answered with status 404; is it an aggregator"):
            await sender.send(numbered_lines(1))


async def test_a_required_key_names_the_variable() -> None:
    """The command line names AGGREGATOR_KEY instead of the HTTP header."""

    async def handle(_: web.Request) -> web.Response:
        problem = {"type": "", "title": "", "status": 401, "detail": "", "code": "unauthenticated"}
        return web.json_response(problem, status=401)

    async with sender_with_handler(handle) as sender:
        with pytest.raises(
            ConfigurationError,
            match=r"requires a valid API key: .*set AGGREGATOR_KEY for a command.*two seconds",
        ):
            await sender.send(numbered_lines(1))


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

    async with sender_with_handler(handle) as sender:
        replies = await sender.send(numbered_lines(20))

    assert verdicts(replies) == ["new"] * 5 + [None] + ["new"] * 14
    assert isinstance(replies[5], RepeatedInternalError)
    assert "failed 5 times at this line" in str(replies[5])
    assert len(bodies) < 20


async def test_a_passing_internal_error_fails_no_line() -> None:
    """It is sent again like after an outage."""
    attempts = 0

    async def handle(request: web.Request) -> web.StreamResponse:
        nonlocal attempts
        attempts += 1
        given = (await request.read()).splitlines()
        if attempts < line_sender.MAX_INTERNAL_ERRORS:
            return web.Response(status=500)
        return web.Response(body=b"".join(map(new_verdict, given)))

    async with sender_with_handler(handle) as sender:
        replies = await sender.send(numbered_lines(3))

    assert verdicts(replies) == ["new"] * 3
