"""Every failure of a service, when failing open and when failing closed."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import trustme
from aiohttp import web
from aiohttp.test_utils import TestServer, unused_port

from aggregator.app import open_service
from aggregator.http.server import make_app
from aggregator.settings import Settings
from aggregator_client import Client, Unavailable
from aggregator_client.errors import ConfigurationError
from tests.client import misbehaving
from tests.support.factories import story
from tests.support.hang_limit import HANG_LIMIT_S

pytestmark = pytest.mark.integration

UNRESOLVED = "aggregator.invalid"
DEADLINE_S = 0.5  # in which nothing answers; no other failure here passes within any deadline
ARTICLE = {"id": "a", "text": story(1)}


@pytest.fixture(autouse=True)
def no_name_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name resolution of one name fails, without a request to a name server."""
    resolve = socket.getaddrinfo

    def fail(host: Any, *args: Any, **options: Any) -> Any:
        if host == UNRESOLVED:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return resolve(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", fail)


@asynccontextmanager
async def real_service() -> AsyncIterator[tuple[str, str, str]]:
    """URL of a service that requires keys, a crawler's key and a reader's key."""
    async with (
        open_service(Settings(store_url="memory", request_timeout_seconds=HANG_LIMIT_S)) as service,
        TestServer(make_app(service)) as server,
    ):
        _, crawler = await service.edge.api_keys.add("crawler", "crawler")
        _, reader = await service.edge.api_keys.add("reader", "reader")
        yield str(server.make_url("")).rstrip("/"), crawler, reader


SERVERS = {
    "timeout": misbehaving.hang,
    "connection_lost": misbehaving.disconnect,
    "overloaded": misbehaving.problem(503, "overloaded", 60),
    "rate_limited": misbehaving.problem(429, "over_limit", 60),
    "unavailable": misbehaving.problem(503, "store_unavailable", 1),
    "server_error": misbehaving.problem(500, "internal"),
    "not_an_aggregator": misbehaving.page(200),
}
MESSAGES = {
    "timeout": "gave no answer within 0.5 s.",
    "connection_refused": ": Connection refused.",
    "connection_lost": ": ",
    "name_resolution": f"https://{UNRESOLVED}: Name or service not known.",
    "tls": "the TLS certificate is not valid",
    "not_an_aggregator": "The server that answered is not an aggregator service; check the URL.",
    "overloaded": "The reason is overloaded.",
    "rate_limited": "The reason is over_limit.",
    "unavailable": "The reason is store_unavailable.",
    "server_error": "The reason is internal.",
}


@asynccontextmanager
async def failing(kind: str) -> AsyncIterator[str]:
    """URL of a service that fails in this way."""
    async with AsyncExitStack() as stack:
        if kind in SERVERS:
            yield await stack.enter_async_context(misbehaving.serving(SERVERS[kind]))
        elif kind == "tls":
            certificate = trustme.CA().issue_cert("127.0.0.1")
            yield await stack.enter_async_context(tls_server(certificate))
        elif kind == "name_resolution":
            yield f"https://{UNRESOLVED}"
        else:
            yield f"http://127.0.0.1:{unused_port()}"


@asynccontextmanager
async def tls_server(certificate: trustme.LeafCert) -> AsyncIterator[str]:
    """A server whose certificate is of an unknown authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", misbehaving.page(200))
    server = TestServer(app, scheme="https")
    await server.start_server(ssl=context)
    try:
        yield f"https://127.0.0.1:{server.port}"
    finally:
        await server.close()


@pytest.mark.parametrize("kind", MESSAGES)
async def test_without_an_answer(
    kind: str, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    """Open: "unknown", counted and logged with its reason. Closed: Unavailable with the same reason."""
    deadline_s = DEADLINE_S
    if kind != "timeout":
        request.getfixturevalue("virtual_time")
        deadline_s = 30.0
    async with failing(kind) as url:
        async with Client(url, deadline_s=deadline_s, batch_deadline_s=deadline_s) as client:
            decision = await client.submit(ARTICLE)
            batch = await client.submit_many([ARTICLE, ARTICLE])
            assert [d.verdict for d in (decision, *batch)] == ["unknown"] * 3
            assert (decision.kind, decision.keep) == (kind, True)
            assert MESSAGES[kind] in decision.problem
            assert client.counts == {"unchecked": 3, f"unchecked/{kind}": 3}
            assert not await client.ready()
        async with Client(url, deadline_s=deadline_s, on_failure="closed") as client:
            with pytest.raises(Unavailable) as raised:
                await client.submit(ARTICLE)
            assert raised.value.kind == kind

    levels = [(r.levelno, r.getMessage()) for r in caplog.records if "passed unchecked" in r.getMessage()]
    name = kind.replace("_", " ")
    assert [level for level, _ in levels] == [logging.WARNING, logging.ERROR]
    assert levels[0][1].startswith(f"1 of 1 articles passed unchecked: {name} 1 (last error: ")
    assert levels[1][1].startswith(f"at the end: 3 of 3 articles passed unchecked: {name} 3 (last error: ")
    assert any(r.getMessage().startswith("The service is not ready: ") for r in caplog.records)


@pytest.mark.parametrize("key", ["wrong", "reader"])
async def test_a_refused_key(key: str, caplog: pytest.LogCaptureFixture) -> None:
    """Open: "unknown". Closed: ConfigurationError, since no later attempt succeeds."""
    async with real_service() as (url, crawler, reader):
        sent = reader if key == "reader" else "wrong"
        async with Client(url, key=sent, deadline_s=30) as client:
            assert not await client.ready()
            decisions = [await client.submit(ARTICLE), *await client.submit_many([ARTICLE])]
            assert [(d.verdict, d.kind) for d in decisions] == [("unknown", "access_denied")] * 2
            assert client.counts["unchecked/access_denied"] == 2
        async with Client(url, key=sent, deadline_s=30, on_failure="closed") as client:
            told = (
                "requires a valid API key: pass one as key="
                if sent == "wrong"
                else "The service denies access: "
            )
            with pytest.raises(ConfigurationError, match=told):
                await client.submit(ARTICLE)
        async with Client(url, key=crawler, deadline_s=30) as client:
            assert await client.ready()
            assert (await client.submit(ARTICLE)).verdict == "new"

    ready = [r for r in caplog.records if r.getMessage().startswith("The service is not ready: ")]
    assert len(ready) == 1


@pytest.mark.parametrize("mode", ["open", "closed"])
async def test_an_unknown_policy(mode: Any) -> None:
    """It is no fault of the article, which is unchecked: the answer names the profile that was meant."""
    async with (
        real_service() as (url, crawler, _),
        Client(url, key=crawler, deadline_s=30, on_failure=mode) as client,
    ):
        article = {**ARTICLE, "policy": "defualt"}
        decisions = [await client.submit(article), *await client.submit_many([article])]
        assert {(d.verdict, d.kind, d.keep) for d in decisions} == {("unknown", "policy", True)}
        assert {d.problem for d in decisions} == {
            "policy: unknown profile 'defualt'; did you mean 'default'? known: default."
        }
        assert client.counts == {"unchecked": 2, "unchecked/policy": 2}


@pytest.mark.parametrize("mode", ["open", "closed"])
async def test_an_invalid_article(mode: Any) -> None:
    """The same in both modes, alone and in a batch: the service did answer. It is counted as rejected."""
    async with (
        real_service() as (url, crawler, _),
        Client(url, key=crawler, deadline_s=30, on_failure=mode) as client,
    ):
        alone = await client.submit({"id": "a"})
        batch = await client.submit_many([{"id": "a"}, ARTICLE])
        assert batch[0] == alone and alone.keep and "text" in alone.problem
        assert [(d.verdict, d.kind) for d in batch] == [("refused", "refused"), ("new", "")]
        assert client.counts == {
            "rejected": 2,
            "checked": 1,
            "new": 1,
            "problem/undated": 1,
        }


@pytest.mark.parametrize("status", [404, 405, 501, 502])
@pytest.mark.usefixtures("virtual_time")
async def test_an_error_page_of_another_server_is_no_answer(status: int) -> None:
    """A wrong URL must not look like a rejected article."""
    async with (
        misbehaving.serving(misbehaving.page(status)) as url,
        Client(url, deadline_s=30) as client,
    ):
        decision = await client.submit(ARTICLE)

    assert decision.verdict == "unknown"
    assert decision.kind == ("unavailable" if status == 502 else "not_an_aggregator")


@pytest.mark.parametrize("status", [200, 404, 501])
async def test_a_batch_asks_another_server_once(status: int) -> None:
    """As a single call does: 300 articles took two minutes to say that the URL is wrong."""
    requests = []

    async def answer(request: web.Request) -> web.StreamResponse:
        requests.append(request.path)
        return await misbehaving.page(status)(request)

    async with misbehaving.serving(answer) as url, Client(url) as client:
        decisions = await client.submit_many([ARTICLE] * 3)

    assert {decision.kind for decision in decisions} == {"not_an_aggregator"}
    assert requests == ["/v1/articles/batch"]


@pytest.mark.usefixtures("virtual_time")
async def test_a_batch_that_no_tls_connection_carries_ends_within_the_shorter_deadline() -> None:
    """Nothing was sent, as with a refused connection."""
    loop = asyncio.get_running_loop()
    async with failing("tls") as url, Client(url, deadline_s=2, batch_deadline_s=10_000) as client:
        started_s = loop.time()
        decisions = await client.submit_many([ARTICLE])

        assert (decisions[0].kind, loop.time() - started_s < 1_000) == ("tls", True)


@pytest.mark.parametrize("mode", ["open", "closed"])
async def test_a_failed_insert_keeps_its_error_while_the_service_is_down(
    mode: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """That the article stays reserved is logged and counted."""
    async with AsyncExitStack() as running:
        url, crawler, _ = await running.enter_async_context(real_service())
        async with Client(url, key=crawler, on_failure=mode) as client:
            with pytest.raises(ZeroDivisionError):
                async with client.reservation(ARTICLE):
                    await running.aclose()
                    raise ZeroDivisionError

    assert client.counts["undo_failed"] == 1
    assert "the reservation of a could not be removed: " in caplog.text
    assert "undo the decision again, or insert the article." in caplog.text
