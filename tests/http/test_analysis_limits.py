"""Limits of analysis over HTTP: deterministic sizes are refused, a lack of processor time is not."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest

from aggregator.analysis.analyzer import MAX_TEXT_CHARS
from aggregator.analysis.pool import worker as worker_module
from aggregator.analysis.pool.worker import AnalysisWorker
from aggregator.analysis.text.html import MAX_HTML_TAGS, MAX_TAG_ATTRIBUTES
from aggregator.app import Service, open_service
from aggregator.settings import Settings
from tests.support.factories import story
from tests.support.fake_service import Client, serving
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.starved_workers import stop_most_of_the_time

EXPANDING = "\ufdfa"  # 18 characters after normalization
PAGE = f"<html><body><article><h1>Ferry</h1><p>{story(1, 8)}</p></article></body></html>"


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """A service with the memory store and one analysis worker, without a deadline of requests."""
    settings = Settings(store_url="memory", request_timeout_seconds=3600)
    async with open_service(settings, processes=1) as opened:
        yield opened


@pytest.mark.integration
@pytest.mark.parametrize(
    ("article", "problem"),
    [
        (
            {"text": EXPANDING * (MAX_TEXT_CHARS // 18 + 1)},
            "text has 3,000,006 characters after Unicode normalization; the limit is 3,000,000",
        ),
        ({"html": "<p>" * (MAX_HTML_TAGS + 1)}, "html has 100,001 tags; the limit is 100,000"),
        (
            {"html": "<p " + " ".join(f"a{n}" for n in range(MAX_TAG_ATTRIBUTES + 1)) + ">Ferry</p>"},
            "html has a tag of more than 256 attributes",
        ),
    ],
    ids=["characters", "tags", "attributes"],
)
async def test_too_large_articles_are_refused(client: Client, article: dict[str, str], problem: str) -> None:
    """413 in a single post and in a batch; the sizes do not depend on the machine."""
    body = {"id": "a", **article}
    single = await client.post("/v1/articles", json=body)
    batch = await client.post("/v1/articles/batch", data=json.dumps(body).encode())
    answers = [await single.json(content_type=None), json.loads(await batch.read())["error"]]

    assert single.status == 413
    for answer in answers:
        assert (answer["status"], answer["code"]) == (413, "too_large")
        assert answer["field"] in article
        assert problem in answer["detail"]


def batch_body(count: int) -> bytes:
    """Articles as JSON lines."""
    lines = [json.dumps({"id": str(n), "text": story(n % (count - 9), 6)}) for n in range(count)]
    return "\n".join(lines).encode()


async def post_batch(client: Client, count: int) -> list[Any]:
    """The verdict of each line; None for an error."""
    response = await client.post("/v1/articles/batch", data=batch_body(count))
    return [json.loads(line).get("verdict") for line in (await response.read()).splitlines()]


@pytest.mark.integration
async def test_a_batch_whose_worker_is_stopped_most_of_the_time_is_stored(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No line is refused, and the verdicts are those of a calm machine."""
    async with open_service(Settings(store_url="memory")) as calm, serving(calm) as calm_client:
        expected = await post_batch(calm_client, 100)
    checks = stop_most_of_the_time(monkeypatch)

    assert await post_batch(client, 100) == expected
    assert checks() > 0
    assert None not in expected
    assert "duplicate" in expected


@pytest.mark.integration
async def test_a_page_whose_workers_get_no_processor_can_be_sent_again(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503 with Retry-After, never 400: a crawler would take that as final."""
    exchange = AnalysisWorker._exchange

    async def exchange_with_stopped(self: AnalysisWorker, *args: Any) -> list[Any]:
        os.kill(self._pid, signal.SIGSTOP)
        return await exchange(self, *args)

    with monkeypatch.context() as starved:
        starved.setattr(worker_module, "STALL_CHECK_INTERVAL_S", 0.01)
        starved.setattr(AnalysisWorker, "_exchange", exchange_with_stopped)
        refused = await client.post("/v1/articles", json={"id": "a", "html": PAGE})
    again = await client.post("/v1/articles", json={"id": "a", "html": PAGE})

    assert refused.status == 503
    assert int(refused.headers["Retry-After"]) >= 1
    assert "no processor time" in (await refused.json(content_type=None))["detail"]
    assert again.status == 201


@pytest.mark.integration
async def test_a_page_that_outlasts_the_deadline_is_answered_when_it_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its analysis continues after the 503 and is not begun again, however long it takes."""
    proceed = asyncio.Event()
    started = 0
    exchange = AnalysisWorker._exchange

    async def exchange_later(self: AnalysisWorker, *args: Any) -> list[Any]:
        nonlocal started
        started += 1
        await proceed.wait()
        return await exchange(self, *args)

    monkeypatch.setattr(AnalysisWorker, "_exchange", exchange_later)
    settings = Settings(store_url="memory", request_timeout_seconds=0.5)
    async with open_service(settings, processes=1) as opened, serving(opened) as client:
        late = [await client.post("/v1/articles", json={"id": "a", "html": PAGE}) for _ in range(2)]
        proceed.set()
        async with asyncio.timeout(HANG_LIMIT_S):
            while (
                answered := await client.post("/v1/articles", json={"id": "a", "html": PAGE})
            ).status == 503:
                pass

    assert [(response.status, int(response.headers["Retry-After"])) for response in late] == [(503, 1)] * 2
    assert (answered.status, started) == (201, 1)
