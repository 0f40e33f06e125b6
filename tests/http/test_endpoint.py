"""Endpoints: the deadline of a request, JSON responses, Server-Timing."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from aggregator.app import open_service
from aggregator.domain import Answer, Article
from aggregator.http.endpoint import server_timing, struct_response
from aggregator.settings import Settings
from aggregator.store.embedded import EmbeddedServer
from tests.support.fake_service import FakeService, serving
from tests.support.hang_limit import HANG_LIMIT_S

DEADLINE_S = 2.0


class _BlockedService(FakeService):
    """Articles wait until ``proceed`` is set; ``cancelled`` counts those that were given up."""

    def __init__(self) -> None:
        super().__init__(Settings(store_url="memory", request_timeout_seconds=DEADLINE_S))
        self.proceed = asyncio.Event()
        self.cancelled = 0

    async def submit(
        self, article: Article, *, dry_run: bool = False, sources: tuple[str, ...] = ()
    ) -> Answer:
        try:
            await self.proceed.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return await super().submit(article, dry_run=dry_run, sources=sources)

    async def delete(
        self, id_: str, *, sources: tuple[str, ...] = (), take_down: bool = False, undo: bool = False
    ) -> None:
        await self.proceed.wait()
        await super().delete(id_)


@pytest.mark.integration
async def test_a_request_is_answered_503_when_its_time_has_passed() -> None:
    """Its work is cancelled, its slot is free, and repeating it succeeds."""
    service = _BlockedService()
    async with serving(service) as client:
        late = await client.post("/v1/articles", json={"id": "a", "text": "words"})
        problem = await late.json(content_type=None)
        in_flight_cancelled = service.cancelled
        service.proceed.set()
        again = await client.post("/v1/articles", json={"id": "a", "text": "words"})

    assert (late.status, problem["code"], late.headers["Retry-After"]) == (503, "deadline_exceeded", "1")
    assert "request_timeout_seconds" in problem["detail"] and "repeat" in problem["detail"]
    assert (in_flight_cancelled, again.status) == (1, 201)


@pytest.mark.integration
async def test_a_change_that_has_begun_is_completed() -> None:
    """A delete is not interrupted by the deadline; repeating it finds nothing more to delete."""
    service = _BlockedService()
    async with serving(service) as client:
        service.proceed.set()
        await client.post("/v1/articles", json={"id": "a", "text": "words"})
        service.proceed.clear()
        late = await client.delete("/v1/articles/a")
        service.proceed.set()
        async with asyncio.timeout(HANG_LIMIT_S):
            while service.stored:  # noqa: ASYNC110 (no event to wait for)
                await asyncio.sleep(0.01)
        again = await client.delete("/v1/articles/a")

    assert (late.status, again.status) == (503, 404)


@pytest.mark.integration
async def test_a_batch_may_take_longer() -> None:
    """The deadline covers its admission only."""
    service = _BlockedService()
    async with serving(service) as client:
        lines = b"\n".join(b'{"id": "%d", "text": "words %d"}' % (i, i) for i in range(3))

        async def body() -> object:
            yield lines[:20]
            await asyncio.wait([asyncio.ensure_future(asyncio.Event().wait())], timeout=1.2 * DEADLINE_S)
            yield lines[20:]

        response = await client.post("/v1/articles/batch", data=body())
        answers = (await response.read()).splitlines()

    assert response.status == 200 and len(answers) == 3


@pytest.mark.integration
async def test_a_body_that_does_not_arrive_is_408() -> None:
    """The sender is slow, not the service."""
    settings = Settings(store_url="memory", request_timeout_seconds=0.2)
    async with serving(FakeService(settings)) as client:
        reader, writer = await asyncio.open_connection(client.host, client.port)
        writer.write(b"POST /v1/articles HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        head = await reader.readuntil(b"\r\n\r\n")
        writer.close()

    assert head.startswith(b"HTTP/1.1 408 ")


async def test_a_stopped_store_delays_no_answer_beyond_the_deadline(own_server: EmbeddedServer) -> None:
    """One request could wait for three time-outs of the store (15 s); what was posted is there afterwards."""
    settings = Settings(store_url=own_server.url, request_timeout_seconds=DEADLINE_S)
    article = {"id": "a", "text": "The ferry to the northern pier leaves an hour later than planned today."}
    async with open_service(settings) as service, serving(service) as client:
        await client.post("/v1/articles", json={"id": "first", "text": "Words that warm the service up."})
        pid = own_server.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            answers = await asyncio.gather(
                *(client.post("/v1/articles", json={**article, "id": f"a{i}"}) for i in range(3)),
                client.get("/v1/articles/first"),
            )
        finally:
            os.kill(pid, signal.SIGCONT)
        codes = [(await answer.json(content_type=None))["code"] for answer in answers]
        async with asyncio.timeout(HANG_LIMIT_S):
            while (await client.post("/v1/articles", json={**article, "id": "a0"})).status == 503:
                pass
        stored = await client.get("/v1/articles/a0")

    assert [answer.status for answer in answers] == [503] * 4
    # A time-out of the store (5 s) would be "store_unavailable".
    assert codes == ["deadline_exceeded"] * 4
    assert stored.status == 200


class Greeting(Struct):
    name: str
    count: int | None = None


def test_a_struct_is_one_line_of_json() -> None:
    """In UTF-8, without a charset parameter, which JSON does not define."""
    response = struct_response(Greeting("渡轮\n"), 201, {"Location": "/v1/answers/1"})

    assert isinstance(response.body, bytes)
    assert json.loads(response.body) == {"name": "渡轮\n", "count": None}
    assert response.body.endswith(b"}\n")
    assert response.body.count(b"\n") == 1
    assert response.headers["Content-Type"] == "application/json"
    assert (response.status, response.headers["Location"]) == (201, "/v1/answers/1")


def test_no_timings_are_no_header() -> None:
    """An empty Server-Timing header would be invalid."""
    assert server_timing({}) == {}


def test_stages_keep_their_order_and_have_two_decimals() -> None:
    """The order of processing, in milliseconds."""
    assert server_timing({"lookup": 0.5, "analyse": 1.256}) == {
        "Server-Timing": "lookup;dur=0.50, analyse;dur=1.26"
    }


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=20), st.floats(min_value=0, max_value=1e6), min_size=1, max_size=4
    )
)
def test_any_stage_name_gives_a_valid_header(timings_ms: dict[str, float]) -> None:
    """Separators and line breaks in a name cannot add a metric or a header."""
    parts = server_timing(timings_ms)["Server-Timing"].split(", ")

    assert len(parts) == len(timings_ms)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+;dur=\d+\.\d\d", part) for part in parts)
