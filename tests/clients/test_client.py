"""The Python clients against the real service on loopback."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from aggregator.app import open_service
from aggregator.clients import Client, SyncClient, Unavailable
from aggregator.errors import ConfigurationError, InvalidInput, NotFound
from aggregator.http.app import make_app
from aggregator.settings import Settings
from tests.support.factories import edited, story

PATIENT_S = 30.0  # the shared machine decides how long an answer takes, not the client under test

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """A service in memory."""
    async with open_service(Settings(store_url="memory")) as service, TestServer(make_app(service)) as server:
        yield str(server.make_url(""))


@pytest.fixture
async def client(url: str) -> AsyncIterator[Client]:
    """A patient client of it."""
    async with Client(url, deadline_s=PATIENT_S) as opened:
        yield opened


async def answering(handler: Handler) -> TestServer:
    """A server on loopback that answers everything by ``handler``."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    server = TestServer(app)
    await server.start_server()
    return server


async def test_a_tour(client):
    """New, its copy, what is stored, copies, explanation, deletion."""
    first = await client.submit({"id": "a", "title": "One", "text": story(1)})
    copy = await client.submit({"id": "b", "text": edited(story(1), 2)})

    assert (first.verdict, first.keep, first.stored) == ("new", True, True)
    assert (copy.verdict, copy.keep, copy.canonical_id) == ("duplicate", False, "a")
    assert (await client.get("a")).title == "One"
    assert [one.id for one in (await client.copies("b")).copies] == ["a", "b"]
    assert (await client.explain("a", "b")).is_copy
    assert "b" not in [one.id for one in await client.related("a")]
    assert (await client.events("status=breaking")).events == []
    assert await client.ready()
    assert (await client.delete("a"), await client.delete("a")) == (True, False)
    with pytest.raises(NotFound):
        await client.get("a")


async def test_checking_stores_nothing(client):
    """A dry run leaves no trace."""
    assert (await client.check({"id": "a", "text": story(1)})).verdict == "new"
    with pytest.raises(NotFound):
        await client.get("a")


async def test_many_keep_their_order_and_a_bad_one_costs_nothing(client):
    """One decision per article, whatever stands between them."""
    rows = [{"id": str(i), "text": story(i // 2)} for i in range(300)]
    rows[7] = {"id": "bad"}
    rows[9] = {"id": "worse", "body": "no such field"}
    decisions = await client.submit_many(rows)

    assert [d.verdict for d in decisions[:10]] == [
        "new", "duplicate", "new", "duplicate", "new", "duplicate", "new", "refused", "new", "refused",
    ]  # fmt: skip
    assert "text" in decisions[7].problem and "body" in decisions[9].problem
    assert all(d.id == str(i) for i, d in enumerate(decisions) if i not in (7, 9))


async def test_an_insert_that_fails_gives_its_reservation_back(client):
    """So that the next outlet's copy is not a duplicate of nothing."""
    with pytest.raises(RuntimeError, match="disk full"):
        async with client.reservation({"id": "a", "text": story(1)}) as decision:
            assert decision.keep
            raise RuntimeError("disk full")

    assert (await client.submit({"id": "b", "text": edited(story(1), 2)})).verdict == "new"


async def test_undo_takes_back_only_what_the_call_itself_stored(client):
    """A repeat answers the first verdict; undoing it would take down an article that is in use."""
    await client.submit({"id": "a", "text": story(1)})
    again = await client.submit({"id": "a", "text": story(1)})

    assert (again.verdict, again.stored, await client.undo(again)) == ("new", False, False)
    assert (await client.get("a")).id == "a"


async def test_a_refused_article_says_why(client):
    """The caller's mistake is not an outage."""
    with pytest.raises(InvalidInput, match="text"):
        await client.submit({"id": "a"})
    with pytest.raises(InvalidInput, match="maintext: unknown field"):
        await client.submit({"id": "a", "maintext": "x"})


async def test_nobody_listening(free_port):
    """Failing open goes on without a verdict, failing closed says so."""
    address = f"http://127.0.0.1:{free_port}"
    async with (
        Client(address, batch_deadline_s=0.1) as opened,
        Client(address, on_failure="closed") as closed,
    ):
        decision = await opened.submit({"text": "x"})
        many = await opened.submit_many([{"text": "x"}] * 3)

        assert (decision.verdict, decision.keep, decision.answer) == ("unknown", True, None)
        assert address in decision.problem
        assert [d.verdict for d in many] == ["unknown"] * 3
        assert not await opened.ready()
        with pytest.raises(Unavailable, match="no answer within"):
            await closed.submit({"text": "x"})


async def test_the_deadline_holds_against_a_server_that_never_answers():
    """The crawler waits no longer than it said."""
    never = asyncio.Event()

    async def hang(request: web.Request) -> web.Response:
        await never.wait()
        return web.Response()

    server = await answering(hang)
    async with Client(str(server.make_url("")), deadline_s=0.1) as client:
        started = asyncio.get_running_loop().time()
        decision = await client.submit({"text": "x"})
        took = asyncio.get_running_loop().time() - started
    never.set()
    await server.close()

    assert decision.verdict == "unknown"
    assert 0.1 <= took < 10


async def test_what_fails_once_is_sent_again(url):
    """Posts are idempotent, so an overloaded moment costs nothing but time."""
    attempts = []

    async def flaky(request: web.Request) -> web.Response:
        attempts.append(await request.read())
        if len(attempts) == 1:
            return web.Response(status=503, headers={"Retry-After": "0"})
        if len(attempts) == 2:
            request.transport.close()  # the connection breaks in the midst of the answer
            raise web.HTTPBadGateway
        async with Client(url, deadline_s=PATIENT_S) as real:
            status, data = await real._request("POST", request.path_qs, attempts[-1], PATIENT_S)
        return web.Response(status=status, body=data)

    server = await answering(flaky)
    async with Client(str(server.make_url("")), deadline_s=PATIENT_S) as client:
        decision = await client.submit({"id": "a", "text": story(1)})
    await server.close()

    assert (decision.verdict, len(attempts), len(set(attempts))) == ("new", 3, 1)


async def test_a_stranger_is_not_taken_for_the_service():
    """A login page with status 200 is no verdict."""

    async def login(request: web.Request) -> web.Response:
        return web.Response(text="<html>Please sign in</html>", content_type="text/html")

    server = await answering(login)
    async with Client(str(server.make_url("")), on_failure="closed", deadline_s=PATIENT_S) as client:
        with pytest.raises(Unavailable, match="not an aggregator service"):
            await client.submit({"text": "x"})
    await server.close()


@pytest.mark.parametrize("wrong", [{"url": "localhost:8080"}, {"on_failure": "ajar"}])
def test_options_that_cannot_work(wrong):
    """Said when the client is made, not at the first article."""
    with pytest.raises(ConfigurationError):
        Client(**wrong)


async def test_the_blocking_client_does_the_same(url):
    """From a thread without a loop, as most crawlers call it."""

    def crawl() -> list[str]:
        with SyncClient(url, deadline_s=PATIENT_S) as client:
            seen = [client.submit({"id": "a", "text": story(1)}).verdict]
            seen.append(client.check({"id": "b", "text": edited(story(1), 2)}).verdict)
            seen += [d.verdict for d in client.submit_many([{"id": "c", "text": story(3)}, {"id": "d"}])]
            with pytest.raises(OSError), client.reservation({"id": "e", "text": story(4)}):
                raise OSError
            seen.append(client.submit({"id": "f", "text": story(4)}).verdict)
            assert client.ready() and client.get("a").id == "a" and client.delete("a")
            assert client.copies("c").canonical_id == "c" and client.events().events == []
            assert all(
                len(list(found)) <= 2
                for found in (client.related("c", limit=2), client.related_to({"text": story(9)}, limit=2))
            )
            return seen

    assert await asyncio.to_thread(crawl) == ["new", "duplicate", "new", "refused", "new"]


async def test_what_is_no_article_is_refused_before_it_is_sent() -> None:
    """A text, or a list, in the place of an article is named as what it is, not letter by letter."""
    async with Client("http://127.0.0.1:9") as client:
        for given, found in (("nonsense", "str"), ([{"text": "a"}], "list")):
            with pytest.raises(InvalidInput, match=f"^An article is a mapping of id, .*; found {found}[.]$"):
                await client.submit(given)  # type: ignore[arg-type]


def test_a_closed_client_says_so() -> None:
    """One clear error, and no coroutine that nobody awaits."""
    client = SyncClient("http://127.0.0.1:9")
    client.close()
    client.close()

    with pytest.raises(RuntimeError, match="The client is closed"):
        client.submit({"text": "a"})
