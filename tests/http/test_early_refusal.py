"""Early refusal: what is refused without being parsed, and what takes the usual way."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack

import pytest

from aggregator.domain import Answer, Article
from aggregator.http.app_keys import LOAD_SHEDDER, METRICS
from aggregator.http.early_refusal import RETRY_AFTER_S, EarlyRefusal
from aggregator.http.limits import GUARANTEED_PER_CALLER, LoadShedder
from aggregator.settings import Settings
from tests.support.fake_service import FakeService, serving

BODY = b'{"text": "words"}'
FULL = 2 * GUARANTEED_PER_CALLER


def request(head: bytes = b"", *, line: bytes = b"POST /v1/articles HTTP/1.1", body: bytes = BODY) -> bytes:
    """A complete request with additional header lines."""
    return b"%s\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n%s" % (line, len(body), head, body)


KEY = b"Authorization: Bearer agg_abcd1234_secret\r\n"


@pytest.mark.parametrize(
    ("data", "is_refused"),
    [
        (request(), True),
        (request(b"Connection: keep-alive\r\nAccept: */*\r\n"), True),
        (request(line=b"POST /v1/articles?dry_run=true HTTP/1.1"), True),
        (request(line=b"POST /v1/articles/batch HTTP/1.1"), False),
        (request(line=b"POST /v1/articles HTTP/1.0"), False),
        (request(line=b"GET /v1/articles/a HTTP/1.1"), False),
        (request(b"Connection: close\r\n"), False),
        (request(b"Transfer-Encoding: chunked\r\n"), False),
        (request(b"Expect: 100-continue\r\n"), False),
        (request(b"Content-Length: 17\r\n"), False),
        (request(b"Cookie: aggregator_session=x\r\n"), False),
        (request(b"Authorization: Basic eA==\r\n"), False),
        (request(KEY + KEY), False),
        (request(KEY), False),  # another caller
        (request()[:-1], False),
        (request() + b"POST", False),
        (b"POST /v1/articles HTTP/1.1\r\nHost: x", False),
    ],
)
def test_only_complete_plain_requests_of_a_caller_without_a_slot(data: bytes, is_refused: bool) -> None:
    """Everything else is left to the parser, which knows better."""
    shedder, refused = LoadShedder(FULL), []
    refusal = EarlyRefusal(shedder, {}, lambda: refused.append(1))
    assert refusal.answer(data, "10.0.0.1") is None
    with ExitStack() as held:
        for _ in range(FULL - 4):
            held.enter_context(shedder.slot("10.0.0.1"))
        answer = refusal.answer(data, "10.0.0.1")
        assert refusal.answer(data, "10.0.0.2") is None

    assert (answer is not None) == is_refused == bool(refused)
    if answer is not None:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert f"Content-Length: {len(body)}".encode() in head
        assert json.loads(body)["code"] == "overloaded"


def test_the_id_of_a_key_is_its_caller() -> None:
    """The secret is not checked: only a caller that holds slots is refused."""
    shedder = LoadShedder(FULL)
    refusal = EarlyRefusal(shedder, {}, lambda: None)
    with ExitStack() as held:
        for _ in range(FULL - 4):
            held.enter_context(shedder.slot("abcd1234"))
        refused = refusal.answer(request(KEY), "1.2.3.4")
        other = refusal.answer(request(KEY.replace(b"abcd", b"zzzz")), "1.2.3.4")

    assert refused is not None and other is None


class _BlockedService(FakeService):
    """Articles of the flood wait until ``proceed`` is set; those with the id "single" do not."""

    def __init__(self) -> None:
        super().__init__(Settings(store_url="memory", max_inflight_articles=32, request_timeout_seconds=60))
        self.waiting = 0
        self.proceed = asyncio.Event()

    async def submit(
        self, article: Article, *, dry_run: bool = False, sources: tuple[str, ...] = ()
    ) -> Answer:
        if not article.id.startswith("single"):
            self.waiting += 1
            await self.proceed.wait()
        return await super().submit(article, dry_run=dry_run, sources=sources)


@pytest.mark.integration
async def test_one_callers_flood_does_not_refuse_anothers_single_posts() -> None:
    """The flood gets three quarters of the slots and 503 beyond; every post of the other caller is stored."""
    service = _BlockedService()
    _, flood_key = await service.edge.api_keys.add("flood", "crawler")
    _, other_key = await service.edge.api_keys.add("other", "crawler")
    flood, other = ({"Authorization": f"Bearer {key}"} for key in (flood_key, other_key))
    async with serving(service) as client:
        posts = [
            asyncio.create_task(client.post("/v1/articles", json={"id": f"f{i}", "text": "x"}, headers=flood))
            for i in range(100)
        ]
        async with asyncio.timeout(30):
            while sum(post.done() for post in posts) < 100 - 24:  # noqa: ASYNC110 (no event to wait for)
                await asyncio.sleep(0.01)
        refused = [post.result() for post in posts if post.done()]
        in_flight = client.app[LOAD_SHEDDER].usage.total
        singles = [
            await client.post("/v1/articles", json={"id": f"single{i}", "text": str(i)}, headers=other)
            for i in range(20)
        ]
        counted = client.app[METRICS].rejected_articles.labels("overloaded")._value.get()
        service.proceed.set()
        admitted = [post.status for post in await asyncio.gather(*posts) if post not in refused]

    assert {response.status for response in refused} == {503}
    assert {int(response.headers["Retry-After"]) for response in refused} <= set(RETRY_AFTER_S)
    assert [response.status for response in singles] == [201] * 20
    assert (in_flight, service.waiting, len(admitted), counted) == (24, 24, 24, 76)
    assert set(admitted) == {200, 201}


@pytest.mark.integration
async def test_a_refused_connection_stays_usable() -> None:
    """The answer to an early refusal ends neither the connection nor the framing of the next request."""
    service = _BlockedService()
    async with serving(service) as client:
        blocked = [
            asyncio.create_task(client.post("/v1/articles", json={"id": f"f{i}", "text": "x"}))
            for i in range(24)
        ]
        async with asyncio.timeout(30):
            while service.waiting < 24:  # noqa: ASYNC110 (no event to wait for)
                await asyncio.sleep(0.01)
        reader, writer = await asyncio.open_connection(client.host, client.port)
        statuses = []
        for data in (request(), request(), b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", request()):
            writer.write(data)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            statuses.append(int(head[9:12]))
            await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
        writer.close()
        service.proceed.set()
        await asyncio.gather(*blocked)

    assert statuses == [503, 503, 200, 503]
