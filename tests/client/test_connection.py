"""Requests in flight, deadlines and retries."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from aggregator_client import Client
from aggregator_client.connection import ATTEMPT_S, Connection, Response, _Request
from aggregator_client.errors import ConfigurationError, Unavailable
from tests.client import misbehaving
from tests.client.conftest import VirtualTime

VERDICT: dict[str, Any] = {
    "id": "a", "verdict": "new", "keep": True, "distance": None, "hamming_class": "new", "duplicate_of": None,
    "keep_reason": None, "adds": None, "fuller": False, "reversed": False, "text_is_article": True,
    "part_of": None, "follows": None,
    "related": [], "updated_figures": False, "event_id": None, "space": "en.0000",
    "fingerprint": "00000000000000ff", "short": False,
    "stored_as": None, "reused_id": False, "replaces": None,
}  # fmt: skip


class Gate:
    """Holds every request until it is opened, and counts those in flight."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.full = asyncio.Event()
        self.in_flight = self.peak = self.answered = 0

    async def handle(self, request: web.Request) -> web.Response:
        """Answer with a verdict once the gate is open."""
        await request.read()
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        if self.in_flight == 3:
            self.full.set()
        await self.open.wait()
        self.in_flight -= 1
        self.answered += 1
        return web.json_response(VERDICT)


class LimitRecorder(Connection):
    """A connection with one slot that records the time limit of each attempt, in seconds."""

    def __init__(self, url: str, limits_s: list[float]) -> None:
        super().__init__(url, "", concurrency=1)
        self._limits_s = limits_s

    async def _attempt(
        self, request: _Request, headers: dict[str, str], attempt_s: float, deadline_s: float
    ) -> Response | Unavailable:
        self._limits_s.append(attempt_s)
        return await super()._attempt(request, headers, attempt_s, deadline_s)


@pytest.mark.integration
async def test_the_number_of_requests_in_flight_is_limited() -> None:
    """100 calls at once send 3 requests; the others wait."""
    gate = Gate()
    async with misbehaving.serving(gate.handle) as url, Client(url, concurrency=3, deadline_s=60) as client:
        calls = [asyncio.create_task(client.submit({"text": f"t{number}"})) for number in range(100)]
        await gate.full.wait()
        gate.open.set()
        decisions = await asyncio.gather(*calls)

    assert (gate.peak, gate.answered) == (3, 100)
    assert client.counts["checked"] == 100
    assert {decision.verdict for decision in decisions} == {"new"}


@pytest.mark.integration
async def test_the_deadline_does_not_count_the_time_before_sending(virtual_time: VirtualTime) -> None:
    """The second call waits twice its deadline for the slot, and still has all of it for its answer."""
    deadline_s = 60.0
    limits_s: list[float] = []
    sent, release = asyncio.Event(), asyncio.Event()

    async def handler(request: web.Request) -> web.Response:
        if (await request.json())["id"] == "slow":
            sent.set()
            await release.wait()
        return web.json_response(VERDICT)

    async with misbehaving.serving(handler) as url:
        connection = LimitRecorder(url, limits_s)
        slow = asyncio.create_task(connection.request("POST", "/", b'{"id": "slow"}', 600.0))
        await sent.wait()
        queued = asyncio.create_task(connection.request("POST", "/", b'{"id": "b"}', deadline_s, ndjson=True))
        await asyncio.sleep(0)
        virtual_time.now_s += 2 * deadline_s
        release.set()
        assert (await slow).status == (await queued).status == 200
        await connection.close()

    assert limits_s == [ATTEMPT_S, deadline_s]


@pytest.mark.integration
@pytest.mark.parametrize(("status", "code"), [(503, "overloaded"), (429, "over_limit")])
async def test_a_busy_service_is_asked_again_after_its_pause(
    status: int, code: str, virtual_time: VirtualTime
) -> None:
    """Retry-After 7 s is longer than the deadline of 5 s, but the service did answer."""
    requests: list[float] = []

    async def busy_once(request: web.Request) -> web.StreamResponse:
        requests.append(virtual_time.now_s)
        if len(requests) == 1:
            return await misbehaving.problem(status, code, 7)(request)
        return web.json_response(VERDICT)

    async with misbehaving.serving(busy_once) as url:
        connection = Connection(url, "", concurrency=1)
        assert (await connection.request("POST", "/v1/articles", b"{}", 5.0)).status == 200
        await connection.close()

    assert requests == [0.0, 7.0]


async def test_a_service_that_restarts_is_waited_for_from_its_end(virtual_time: VirtualTime) -> None:
    """A batch was under way for longer than ``unreached_s`` when the service broke off."""
    refused = Unavailable("refused", "connection_refused")
    answers: list[Response | Unavailable] = [Unavailable("lost", "connection_lost"), *[refused] * 4]
    answers.append(Response(200, b"", 0.0))

    class Restarting(Connection):
        async def _attempt(self, *request: Any) -> Response | Unavailable:
            virtual_time.now_s += 10.0 if len(answers) == 6 else 0.0
            return answers.pop(0)

    batch = Restarting("http://unused", "", 1)
    assert (await batch.request("POST", "/", b"", 60.0, ndjson=True, unreached_s=2.0)).status == 200


async def test_a_client_needs_a_slot() -> None:
    """Zero would wait indefinitely."""
    with pytest.raises(ConfigurationError, match="concurrency: expected 1 or more, found 0"):
        Client(concurrency=0)
