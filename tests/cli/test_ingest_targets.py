"""The server target: retries, batch limits, line numbers and errors of a running service."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from aggregator.cli import ingest_targets
from aggregator.contract.problems import to_problem
from aggregator.contract.responses import encode
from aggregator.errors import ConfigurationError, StoreUnavailable, Unauthenticated
from aggregator.offline.jsonl import Line

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
    monkeypatch.setattr(ingest_targets, "INITIAL_BACKOFF_S", 0.0)
    monkeypatch.setattr(ingest_targets, "FIRST_CONTACT_TIMEOUT_S", 0.2)


async def test_a_batch_is_sent_again_while_the_server_is_unavailable() -> None:
    """After a 503, an incomplete answer, and a line with status 503."""
    bodies: list[bytes] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        given = (await request.read()).splitlines()
        bodies.append(b"|".join(given))
        failed = json.dumps(
            {"line": 2, "error": {"type": "", "title": "", "status": 503, "detail": "away", "code": "c"}}
        )
        responses = {
            1: web.Response(status=503, body=b'{"detail": "loading"}'),
            2: web.Response(body=new_verdict(given[0])),
            3: web.Response(body=new_verdict(given[0]) + failed.encode() + b"\n"),
        }
        return responses.get(len(bodies)) or web.Response(body=b"".join(map(new_verdict, given)))

    async with target_with_handler(handle) as target:
        replies = await target.send(numbered_lines(2), dry_run=False)

    assert [reply.verdict for reply in replies] == ["new", "new"]
    assert len(bodies) == 4
    assert len(set(bodies)) == 1


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


async def test_retries_end_with_the_last_error() -> None:
    """After the timeout."""
    attempts = 0

    async def fail() -> None:
        nonlocal attempts
        attempts += 1
        raise StoreUnavailable("still away")

    with pytest.raises(StoreUnavailable, match="still away"):
        await ingest_targets.retry_while_unavailable(fail, 0.0)

    assert attempts >= 1
