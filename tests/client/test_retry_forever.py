"""Retries without an end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from aggregator.cli.ingest_targets import RETRYABLE
from aggregator.errors import EXIT_INTERRUPTED, InvalidInput, Overloaded, StoreUnavailable
from aggregator_client import retry_forever
from tests.cli.helpers import OTHER, ROOT, article_body, write_jsonl


@pytest.fixture(autouse=True)
def no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries have no delay."""
    monkeypatch.setattr(retry_forever, "INITIAL_BACKOFF_S", 0.0)


async def test_a_step_is_repeated_until_it_succeeds() -> None:
    """Outages and overload are waited for."""
    failures = [StoreUnavailable("away"), Overloaded("busy")] * 20

    async def step() -> str:
        if failures:
            raise failures.pop()
        return "done"

    assert await retry_forever.until_available(step, RETRYABLE) == "done"


async def test_other_errors_are_final() -> None:
    """A retry would not change them."""

    async def step() -> None:
        raise InvalidInput("no")

    with pytest.raises(InvalidInput):
        await retry_forever.until_available(step, RETRYABLE)


async def test_a_long_wait_is_logged_once_a_minute(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short one is not."""
    times_s = [100.0, 100.5, 101.5, 110.0, 160.0, 162.0, 170.0]
    clock_s, outages = iter(times_s), iter(times_s)
    monkeypatch.setattr(retry_forever, "time", SimpleNamespace(monotonic=lambda: next(clock_s)))

    async def step() -> None:
        if next(outages, None) is not None:
            raise StoreUnavailable("away")

    with caplog.at_level(logging.WARNING):
        await retry_forever.until_available(step, RETRYABLE)
    assert caplog.messages == ["articles not processed yet, retrying until it succeeds: away"] * 2


async def test_the_wait_for_a_service_that_was_never_reached_says_its_end(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is 3 s, whatever the pauses are, and the log says so."""
    monkeypatch.setattr(retry_forever, "INITIAL_BACKOFF_S", 0.2)
    clock_s = [100.0]

    async def sleep(pause_s: float) -> None:
        clock_s[0] += pause_s

    monkeypatch.setattr(retry_forever, "time", SimpleNamespace(monotonic=lambda: clock_s[0]))
    monkeypatch.setattr(retry_forever, "asyncio", SimpleNamespace(sleep=sleep))

    async def attempt(_: Sequence[int]) -> list[int | Exception]:
        raise StoreUnavailable("refused")

    with caplog.at_level(logging.WARNING):
        (ended,) = await retry_forever.send_until_answered(
            [1], attempt, (StoreUnavailable,), limit_s=lambda: 3
        )
    assert isinstance(ended, StoreUnavailable)
    assert clock_s[0] == pytest.approx(103.0)
    assert caplog.messages == ["1 articles not processed yet, retrying for about 3 s in all: refused"]


@pytest.mark.integration
async def test_an_interrupt_ends_a_wait(tmp_path: Path) -> None:
    """Ctrl-C while ``ingest`` waits for an overloaded service: exit code 130, and no traceback."""

    async def overloaded(request: web.Request) -> web.StreamResponse:
        await request.read()
        return web.Response(status=503, body=b'{"detail": "overloaded"}')

    app = web.Application()
    app.router.add_post("/v1/articles/batch", overloaded)
    async with TestServer(app) as server:
        command = [sys.executable, "-m", "aggregator", "ingest", "--server", str(server.make_url("/"))]
        process = await asyncio.create_subprocess_exec(
            *command, write_jsonl(tmp_path / "a.jsonl", article_body(OTHER)),
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT, env={**os.environ, "NO_COLOR": "1"},
        )  # fmt: skip
        try:
            assert process.stderr is not None
            said = b""
            while b"retrying until it succeeds" not in said:
                said = await process.stderr.readline()
                assert said, "the command ended before it waited"
            process.send_signal(signal.SIGINT)
            rest = await process.stderr.read()
            code = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    assert code == EXIT_INTERRUPTED
    assert rest.endswith(b"aggregator: interrupted.\n")
    assert b"Traceback" not in rest
