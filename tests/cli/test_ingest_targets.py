"""The server target: retries, batch limits, line numbers and errors of a running service."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from aggregator.analysis.pool.pool import AnalysisPool
from aggregator.cli import ingest_targets, main
from aggregator.cli.ingest_targets import BatchDefaults, client_errors_translated
from aggregator.contract.problems import to_problem
from aggregator.contract.responses import encode
from aggregator.domain import Analysis, Article
from aggregator.errors import (
    AggregatorError,
    ConfigurationError,
    InputTooLarge,
    InvalidInput,
    Overloaded,
    StoreUnavailable,
)
from aggregator.jsonl import Line
from aggregator.settings import Settings
from aggregator_client import retry_forever
from aggregator_client.errors import Unavailable
from aggregator_client.line_sender import LineSender, RepeatedInternalError
from tests.cli.helpers import write_jsonl
from tests.support.factories import story

pytestmark = pytest.mark.integration

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def open_server(url: str, defaults: BatchDefaults) -> AsyncIterator[ingest_targets.ServerTarget]:
    """As ``open_target``, which gives the limit of the wait in whole seconds."""
    async with LineSender.open(url, "", defaults.wait_s) as sender:
        yield ingest_targets.ServerTarget(sender, defaults)


@asynccontextmanager
async def target_with_handler(handle: Handler) -> AsyncIterator[ingest_targets.ServerTarget]:
    """A target whose server answers every batch by ``handle``."""
    app = web.Application()
    app.router.add_post("/v1/articles/batch", handle)
    async with (
        TestServer(app) as server,
        open_server(str(server.make_url("/")), BatchDefaults()) as target,
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
        replies = [reply async for reply in target.send(lines, dry_run=False)]

    assert [reply.verdict for reply in replies] == ["new"] * 4 + [None]
    assert refused == {"2": 2, "3": 3}


@pytest.mark.parametrize("option", [["--wait", "30"], []])
def test_a_wait_ends_where_the_command_says(
    option: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After 30 s without progress with code 3 and the reason; by default it lasts as long as needed."""
    clock_s, refusals = count(0, 10), iter(range(20))
    analyze_many = AnalysisPool.analyze_many

    async def overloaded(self: AnalysisPool, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        results = await analyze_many(self, articles)
        return results if next(refusals, None) is None else [StoreUnavailable("The store is full.")]

    monkeypatch.setattr(AnalysisPool, "analyze_many", overloaded)
    monkeypatch.setattr(retry_forever, "time", SimpleNamespace(monotonic=lambda: next(clock_s)))
    file = write_jsonl(tmp_path / "a.jsonl", {"id": "1", "text": story(1, 3)})
    code = main(["ingest", "--store", "memory", "--no-progress", *option, str(file)])

    assert (code, len([*refusals])) == ((3, 16) if option else (0, 0))
    assert ("aggregator: The store is full." in capsys.readouterr().err) == bool(option)


async def test_a_server_that_takes_nothing_is_waited_for_within_the_limit() -> None:
    """Also one that was reached, which answers 503."""

    async def handle(_: web.Request) -> web.Response:
        return web.Response(status=503, body=encode(to_problem(StoreUnavailable("The store is full."))))

    app = web.Application()
    app.router.add_post("/v1/articles/batch", handle)
    async with TestServer(app) as server:
        url, defaults = str(server.make_url("/")), BatchDefaults(wait_s=0.0)
        async with open_server(url, defaults=defaults) as target:
            with pytest.raises(Unavailable, match="is full"):
                _ = [reply async for reply in target.send(numbered_lines(1), dry_run=False)]


async def test_answers_are_written_when_the_wait_for_the_others_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of the same batch, in order; the reason says how many there are, and nothing follows a half."""
    posted: list[list[int]] = []

    async def handle(request: web.Request) -> web.Response:
        lines = (await request.read()).splitlines()
        posted.append([int(json.loads(line)["id"]) for line in lines])
        if len(lines) > 3:
            return web.Response(status=413, body=encode(to_problem(InputTooLarge("Too long."))))
        full = {"error": msgspec.to_builtins(to_problem(StoreUnavailable("The store is full.")))}
        refused = json.dumps(full).encode() + b"\n"
        return web.Response(
            body=b"".join(new_verdict(n) if json.loads(n)["id"] in "24" else refused for n in lines)
        )

    file = write_jsonl(tmp_path / "a.jsonl", *({"id": str(n)} for n in range(1, 7)))
    app = web.Application()
    app.router.add_post("/v1/articles/batch", handle)
    async with TestServer(app) as server:
        command = ["ingest", "--server", str(server.make_url("/")), "--wait", "1", "--no-progress", str(file)]
        code = await asyncio.to_thread(main, command)

    captured = capsys.readouterr()
    assert code == 3
    assert [json.loads(line)["id"] for line in captured.out.splitlines()] == ["2"]
    assert "The store is full. 1 lines are answered; repeat the command for the others." in captured.err
    assert posted[:2] == [[1, 2, 3, 4, 5, 6], [1, 2, 3]] and not any(4 in numbers for numbers in posted[1:])


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
        replies = [reply async for reply in target.send([Line("f", 1003, b"{}")], dry_run=False)]

    answer = json.loads(replies[0].data)
    assert replies[0].verdict is None
    assert (answer["line"], answer["error"]["instance"], answer["error"]["field"]) == (1003, "f:1003", "text")


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
            async with open_server(url, defaults=defaults) as target:
                _ = [reply async for reply in target.send(numbered_lines(2), dry_run=dry_run)]
        async with open_server(url, defaults=BatchDefaults("wires")) as target:
            wrong = pytest.raises(ConfigurationError, match="unknown profile 'wires'; known: default")
            with wrong, client_errors_translated():
                _ = [reply async for reply in target.send(numbered_lines(2), dry_run=False)]

    assert queries == [
        {},
        {"policy": "wire"},
        {"dry_run": "true", "policy": "wire"},
        {"backfill": "true"},
        {"policy": "wires"},
    ]


def test_a_refused_line_says_how_many_more_errors_it_has() -> None:
    """What an answer of the server says, too; one that the client gave up has its own sentence."""
    line = Line("f", 3, b"{}")
    many = InvalidInput("title: expected text.", field="title")
    many.others = (InvalidInput("url: no URL.", field="url"),)
    said = json.loads(ingest_targets.error_reply(line, many).data)["error"]
    repeated = json.loads(ingest_targets.error_reply(line, RepeatedInternalError()).data)["error"]

    assert said["detail"] == "title: expected text. Number of further errors: 1, see `errors`."
    assert (said["instance"], repeated["detail"]) == ("f:3", str(RepeatedInternalError()))
