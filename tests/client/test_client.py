"""The Python clients against a service on loopback."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from aggregator.app import open_service
from aggregator.http.server import make_app
from aggregator.settings import Settings
from aggregator_client import Client, SyncClient, Unavailable
from aggregator_client.errors import ConfigurationError, InvalidInput, NotFound
from tests.client.conftest import VirtualTime
from tests.support.factories import edited, story
from tests.support.hang_limit import HANG_LIMIT_S

pytestmark = pytest.mark.integration

DEADLINE_S = 30.0  # long, so that a busy machine does not make the tests fail

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """The URL of a service with a memory store."""
    async with (
        open_service(Settings(store_url="memory", request_timeout_seconds=HANG_LIMIT_S)) as service,
        TestServer(make_app(service)) as server,
    ):
        yield str(server.make_url(""))


@pytest.fixture
async def client(url: str) -> AsyncIterator[Client]:
    """A client of it with a long deadline."""
    async with Client(url, deadline_s=DEADLINE_S) as opened:
        yield opened


async def start_server(handler: Handler) -> TestServer:
    """A server on loopback that answers every request by ``handler``."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    server = TestServer(app)
    await server.start_server()
    return server


async def test_all_calls(client: Client) -> None:
    """Submit, get, copies, explain, related, search, events, ready, delete."""
    first = await client.submit({"id": "a", "title": "One", "text": story(1)})
    duplicate = await client.submit({"id": "b", "text": edited(story(1), 2)})

    assert (first.verdict, first.keep, first.stored) == ("new", True, True)
    assert (duplicate.verdict, duplicate.keep, duplicate.canonical_id) == ("duplicate", False, "a")
    assert (await client.get("a")).title == "One"
    assert [copy.id for copy in (await client.copies("b")).copies] == ["a", "b"]
    assert (await client.explain("a", "b")).is_copy
    assert "b" not in [related.id for related in await client.related("a")]
    assert [article.id for article in (await client.search("a", limit=1)).articles] == ["a"]
    assert (await client.events("status=breaking")).events == []
    assert await client.ready()
    assert (await client.delete("a"), await client.delete("a")) == (True, False)
    with pytest.raises(NotFound):
        await client.get("a")


async def test_check_stores_nothing(client: Client) -> None:
    """It is a dry run."""
    assert (await client.check({"id": "a", "text": story(1)})).verdict == "new"
    with pytest.raises(NotFound):
        await client.get("a")


async def test_submit_many_keeps_the_order_and_isolates_invalid_articles(client: Client) -> None:
    """One decision per article; invalid ones are refused."""
    rows = [{"id": str(i), "text": story(i // 2)} for i in range(300)]
    rows[7] = {"id": "bad"}
    rows[9] = {"id": "worse", "body": "no such field"}
    rows[11] = {"id": "response.body", "text": b"Words."}  # type: ignore[dict-item]
    decisions = await client.submit_many(rows)

    assert [d.verdict for d in decisions[:10]] == [
        "new", "duplicate", "new", "duplicate", "new", "duplicate", "new", "refused", "new", "refused",
    ]  # fmt: skip
    assert (decisions[11].verdict, decisions[11].problem) == (
        "refused", "text: expected str, found bytes; decode it.",
    )  # fmt: skip
    assert await client.submit(rows[11]) == decisions[11]
    assert "text" in decisions[7].problem and "body" in decisions[9].problem
    assert all(d.id == str(i) for i, d in enumerate(decisions) if i not in (7, 9, 11))


async def test_a_failed_insert_removes_its_reservation(client: Client) -> None:
    """A later copy by another outlet is then new."""
    with pytest.raises(RuntimeError, match="disk full"):
        async with client.reservation({"id": "a", "text": story(1)}) as decision:
            assert decision.keep
            raise RuntimeError("disk full")

    assert (await client.submit({"id": "b", "text": edited(story(1), 2)})).verdict == "new"


async def test_a_failed_insert_takes_the_copies_that_were_dropped(client: Client) -> None:
    """Nobody has the story then: the next copy is new. A plain delete makes the first copy the original."""
    for n, undo in ((1, True), (2, False), (3, True)):
        first = await client.submit({"id": f"a{n}", "text": story(n)})
        assert not (await client.submit({"id": f"b{n}", "text": edited(story(n), 2)})).keep
        assert await (client.undo(first) if n == 1 else client.delete(f"a{n}", undo=undo))

        copy = await client.submit({"id": f"c{n}", "text": edited(story(n), 3)})
        assert (copy.verdict, copy.keep) == (("new", True) if undo else ("duplicate", False))
        again = await client.submit({"id": f"a{n}", "text": story(n)})
        assert again.canonical_id == (f"c{n}" if undo else f"b{n}")


async def test_a_failed_insert_of_a_duplicate_with_news_is_undone(client: Client) -> None:
    """Else copies of the fuller version would be dropped, though the crawler does not have it."""
    beginning = " ".join(story(1).split()[:120])
    await client.submit({"id": "a", "title": "Ferry sold", "text": beginning, "source": "Gazette"})
    fuller = {"id": "b", "title": "Ferry sold", "text": story(1), "source": "Radio"}
    copy = {"title": "Ferry sold", "text": edited(story(1), 2), "source": "Coastline News"}
    with pytest.raises(RuntimeError, match="disk full"):
        async with client.reservation(fuller) as decision:
            assert (decision.verdict, decision.keep, decision.stored) == ("duplicate", True, True)
            raise RuntimeError("disk full")

    assert (await client.submit({"id": "c", **copy})).keep
    assert not (await client.submit({"id": "d", "text": edited(beginning, 3)})).keep
    assert (client.counts["duplicate"], client.counts["duplicate/kept"]) == (3, 2)
    with pytest.raises(NotFound):
        await client.get("b")


async def test_undo_removes_only_what_the_call_stored(client: Client) -> None:
    """A repeated call gets the same verdict, but undoing it must not delete an article that is in use."""
    await client.submit({"id": "a", "text": story(1)})
    again = await client.submit({"id": "a", "text": story(1)})

    assert (again.verdict, again.stored, await client.undo(again)) == ("new", False, False)
    assert (await client.get("a")).id == "a"


async def test_undoing_an_update_keeps_the_article(client: Client) -> None:
    """In single calls, reservations and batches; its first version is gone, the article stays."""
    await client.submit({"id": "a", "text": story(1)})
    update = await client.submit({"id": "a", "text": edited(story(1), 2)})
    with pytest.raises(RuntimeError, match="disk full"):
        async with client.reservation({"id": "a", "text": edited(story(1), 3)}) as reserved:
            raise RuntimeError("disk full")
    batch = await client.submit_many([{"id": "a", "text": edited(story(1), seed)} for seed in (4, 5)])

    for decision in (update, reserved, *batch):
        assert (decision.verdict, decision.keep, decision.stored) == ("new", True, False)
        assert decision.answer is not None and not decision.answer.created
        assert not await client.undo(decision)
    assert (await client.get("a")).verdict == "new"
    assert (await client.submit({"id": "b", "text": edited(story(1), 6)})).canonical_id == "a"


async def test_what_a_batch_stored_is_undone(client: Client) -> None:
    """Its first articles, and no duplicate, repetition or dry run."""
    await client.submit({"id": "a", "text": story(1)})
    batch = [
        {"id": "a", "text": story(1)},
        {"id": "b", "text": story(2)},
        {"id": "c", "text": edited(story(2), 1)},
    ]
    dry = await client.submit_many([{"id": "d", "text": story(3)}], dry_run=True)
    decisions = await client.submit_many(batch)

    assert [decision.stored for decision in (*decisions, *dry)] == [False, True, False, False]
    assert [await client.undo(decision) for decision in (*decisions, *dry)] == [False, True, False, False]
    assert (await client.get("a")).id == "a"
    with pytest.raises(NotFound):
        await client.get("b")


async def test_a_rejected_article_is_a_decision(client: Client) -> None:
    """The service and the client reject alike."""
    decisions = [await client.submit({"id": "a"}), await client.check({"id": "a", "maintext": "x"})]

    assert [(d.verdict, d.keep, d.kind) for d in decisions] == [("refused", True, "refused")] * 2
    assert "text" in decisions[0].problem
    assert decisions[1].problem.startswith("maintext: unknown field")


@pytest.mark.usefixtures("virtual_time")
async def test_a_rejected_article_names_all_its_errors(client: Client) -> None:
    """The list of errors in the answer, to which its detail refers, is not part of a decision."""
    article = {"id": 1, "text": 2, "title": "Ferry"}
    one, (two,) = await client.submit(article), await client.submit_many([article])

    sentences = "id: expected a string, got an integer. text: expected a string, got an integer."
    assert (one.problem, two.problem) == (sentences, sentences)


async def test_an_unreachable_service(free_port: int, virtual_time: VirtualTime) -> None:
    """Failing open returns "unknown", failing closed raises Unavailable."""
    address = f"http://127.0.0.1:{free_port}"
    async with (
        Client(address, deadline_s=DEADLINE_S) as opened,
        Client(address, on_failure="closed", deadline_s=DEADLINE_S) as closed,
    ):
        decision = await opened.submit({"text": "x"})
        started_s = virtual_time.monotonic()
        many = await opened.submit_many([{"text": "x"}] * 3)

        assert 1 < virtual_time.monotonic() - started_s <= DEADLINE_S
        assert (decision.verdict, decision.keep, decision.answer) == ("unknown", True, None)
        assert address in decision.problem
        assert [d.verdict for d in many] == ["unknown"] * 3
        assert not await opened.ready()
        with pytest.raises(Unavailable, match=rf"^{address}: Connection refused\.$"):
            await closed.submit({"text": "x"})


@pytest.mark.usefixtures("virtual_time")
async def test_a_long_wait_is_logged(free_port: int, caplog: pytest.LogCaptureFixture) -> None:
    """Every 5 s or the next attempt, with what it waits for."""
    async with Client(f"http://127.0.0.1:{free_port}", on_failure="closed", deadline_s=60.0) as client:
        with pytest.raises(Unavailable):
            await client.submit({"text": "x"})

    waits = [r.getMessage() for r in caplog.records if r.getMessage().startswith("waiting for ")]
    assert 9 <= len(waits) <= 12
    assert all(
        wait.endswith(f"s at most: http://127.0.0.1:{free_port}: Connection refused.") for wait in waits
    )


async def test_the_deadline_holds_if_the_server_never_answers() -> None:
    """The crawler is not blocked for longer."""
    never = asyncio.Event()

    async def hang(request: web.Request) -> web.Response:
        await never.wait()
        return web.Response()

    server = await start_server(hang)
    async with Client(str(server.make_url("")), deadline_s=0.1) as client:
        started = asyncio.get_running_loop().time()
        decision = await client.submit({"text": "x"})
        took = asyncio.get_running_loop().time() - started
    never.set()
    await server.close()

    assert decision.verdict == "unknown"
    assert took >= 0.1


async def test_a_failed_request_is_retried(url: str) -> None:
    """After 503 and after a broken connection; posts are idempotent."""
    attempts: list[bytes] = []

    async def flaky(request: web.Request) -> web.Response:
        attempts.append(await request.read())
        if len(attempts) == 1:
            return web.Response(status=503, headers={"Retry-After": "0"})
        if len(attempts) == 2:
            assert request.transport is not None
            request.transport.close()  # breaks the connection
            raise web.HTTPBadGateway
        async with (
            ClientSession() as session,
            session.post(
                f"{url}/v1/articles", data=attempts[-1], headers={"Content-Type": request.content_type}
            ) as answer,
        ):
            return web.Response(status=answer.status, body=await answer.read())

    server = await start_server(flaky)
    async with Client(str(server.make_url("")), deadline_s=DEADLINE_S) as client:
        decision = await client.submit({"id": "a", "text": story(1)})
    await server.close()

    assert (decision.verdict, len(attempts), len(set(attempts))) == ("new", 3, 1)


async def test_an_answer_of_another_server_is_no_verdict() -> None:
    """For example a login page with status 200."""

    async def login(request: web.Request) -> web.Response:
        return web.Response(text="<html>Please sign in</html>", content_type="text/html")

    server = await start_server(login)
    async with Client(str(server.make_url("")), on_failure="closed", deadline_s=DEADLINE_S) as client:
        with pytest.raises(Unavailable, match="not an aggregator service"):
            await client.submit({"text": "x"})
    await server.close()


@pytest.mark.parametrize(
    "options",
    [
        {"url": "localhost:8080"},
        {"on_failure": "ajar"},
        {"deadline_s": 0},
        {"deadline_s": "2"},
        {"batch_deadline_s": -1},
        {"concurrency": 0},
        {"concurrency": "8"},
        {"concurrency": 0.5},
        {"backfill": "no"},
        {"key": b"secret"},
        {"timezone": 1},
        {"url": None},
    ],
)
def test_invalid_options_are_rejected_by_the_constructor(options: dict[str, Any]) -> None:
    """When the client is created, not at the first article; by name, and without the key."""
    ((name, _),) = options.items()
    with pytest.raises(
        ConfigurationError, match="URL" if options == {"url": "localhost:8080"} else f"^{name}: "
    ) as raised:
        Client(**options)
    assert "secret" not in str(raised.value)


async def test_the_blocking_client_has_the_same_calls(url: str) -> None:
    """In a thread without an event loop."""

    def crawl() -> list[str]:
        with SyncClient(url, deadline_s=DEADLINE_S) as client:
            verdicts: list[str] = [client.submit({"id": "a", "text": story(1)}).verdict]
            verdicts.append(client.check({"id": "b", "text": edited(story(1), 2)}).verdict)
            verdicts += [d.verdict for d in client.submit_many([{"id": "c", "text": story(3)}, {"id": "d"}])]
            with pytest.raises(OSError), client.reservation({"id": "e", "text": story(4)}):
                raise OSError
            verdicts.append(client.submit({"id": "f", "text": story(4)}).verdict)
            assert client.readiness_problem() == client.readiness_problem(policy="default") == ""
            with pytest.raises(ConfigurationError, match="unknown profile 'nope'"):
                client.readiness_problem(policy="nope")
            assert client.ready() and client.get("a").id == "a" and client.delete("a")
            assert client.copies("c").canonical_id == "c" and client.events().events == []
            assert all(
                len(list(found)) <= 2
                for found in (client.related("c", limit=2), client.related_to({"text": story(9)}, limit=2))
            )
            read = {"id": "gone", "read_at": "2026-11-20T08:00:00Z"}
            assert client.related_to_ids(["c", read]).not_found == ["gone"]
            return verdicts

    assert await asyncio.to_thread(crawl) == ["new", "duplicate", "new", "refused", "new"]


async def test_a_client_does_not_hang_after_a_fork(url: str) -> None:
    """Its thread does not exist in the child: calls raise there, and the parent's client continues."""

    def ask_in_child(client: SyncClient) -> None:
        with pytest.raises(RuntimeError, match="before this process was forked"):
            client.check({"text": story(1)})
        client.close()

    with SyncClient(url, deadline_s=DEADLINE_S) as client:
        child = multiprocessing.get_context("fork").Process(target=ask_in_child, args=(client,))
        child.start()
        await asyncio.to_thread(child.join, HANG_LIMIT_S)
        assert child.exitcode == 0
        assert (await asyncio.to_thread(client.check, {"text": story(1)})).verdict == "new"


async def test_a_value_that_is_not_a_mapping_is_rejected_before_sending() -> None:
    """The problem names the type."""
    async with Client("http://127.0.0.1:9") as client:
        for given, found in (("nonsense", "str"), ([{"text": "a"}], "list")):
            decision = await client.submit(given)  # type: ignore[arg-type]  # the test is the wrong type
            assert decision.problem.startswith("An article is a mapping of id, ")
            assert decision.problem.endswith(f"; found {found}.")


def test_a_closed_client_is_an_error() -> None:
    """RuntimeError, without a warning about a coroutine that was never awaited."""
    client = SyncClient("http://127.0.0.1:9")
    client.close()
    client.close()

    with pytest.raises(RuntimeError, match="The client is closed"):
        client.submit({"text": "a"})


async def test_a_closed_asyncio_client_is_an_error() -> None:
    """As the blocking one, failing open as well, instead of a connection that nothing closes."""
    client = Client("http://127.0.0.1:9")
    await client.close()
    await client.close()

    for call in (client.submit({"text": "a"}), client.get("a"), client.submit_many([{"text": "a"}])):
        with pytest.raises(RuntimeError, match="The client is closed"):
            await call


@pytest.mark.parametrize("given", [{"text": "a"}, "a", b"a"], ids=["mapping", "str", "bytes"])
async def test_one_value_is_no_list(given: Any) -> None:
    """Its keys or characters are not sent as articles or ids."""
    client = Client("http://127.0.0.1:9")

    with pytest.raises(TypeError, match=r"^articles: expected a list, found one (dict|str|bytes); put it in"):
        await client.submit_many(given)
    if not isinstance(given, dict):  # ids with the times when they were read
        for call in (client.related_to_ids(given), client.related_to_each(given)):
            with pytest.raises(TypeError, match=r"^ids: expected a list, found one "):
                await call


async def test_an_empty_id_is_an_invalid_one() -> None:
    """Not an address that the service does not have."""
    client = Client("http://127.0.0.1:9")

    for call in (client.get(""), client.copies(""), client.delete(""), client.event("")):
        with pytest.raises(InvalidInput, match=r"^id: expected an id, found an empty one"):
            await call


async def test_an_article_names_its_policy_profile(tmp_path: Path) -> None:
    """In single calls and batches; an unknown profile is a rejected article, with the known names."""
    file = tmp_path / "profiles.toml"
    file.write_text('[profiles.paper]\npolicy = "hamming"\nduplicate_bits = 0\n')
    settings = Settings(
        store_url="memory", policy_profiles_file=str(file), request_timeout_seconds=HANG_LIMIT_S
    )
    copy = {"id": "b", "text": edited(story(1), 2, changes=20)}
    async with (
        open_service(settings) as service,
        TestServer(make_app(service)) as server,
        Client(str(server.make_url("")), deadline_s=DEADLINE_S) as client,
    ):
        await client.submit({"id": "a", "text": story(1)})
        assert (await client.check(copy)).verdict == "duplicate"
        assert (await client.check({**copy, "policy": "paper"})).verdict != "duplicate"
        named = [{**copy, "policy": policy} for policy in ("paper", None, "wire")]
        decisions = await client.submit_many(named, dry_run=True)
        assert [d.verdict == "duplicate" for d in decisions] == [False, True, False]
        assert decisions[2].problem == "policy: unknown profile 'wire'; known: default, paper."
        assert (await client.submit({**copy, "policy": "wire"})).problem == decisions[2].problem
        await client.submit(copy)
        explained = [await client.explain("a", "b"), await client.explain("a", "b", policy="paper")]
        assert [(e.policy, e.is_copy) for e in explained] == [("default", True), ("paper", False)]


@pytest.mark.parametrize("backfill", [True, False])
async def test_a_backfilling_client_fires_no_event(backfill: bool) -> None:
    """20 outlets report one story; the client submits them one by one and in a batch."""
    async with (
        open_service(Settings(store_url="memory", request_timeout_seconds=HANG_LIMIT_S)) as service,
        TestServer(make_app(service)) as server,
        Client(str(server.make_url("")), deadline_s=DEADLINE_S, backfill=backfill) as client,
    ):
        articles = [
            {"title": f"Harbour bridge collapse kills {i} people", "source": f"outlet{i}.example"}
            for i in range(20)
        ]
        for article in articles[:3]:
            assert (await client.submit(article)).verdict in ("new", "related")
        await client.submit_many(articles[3:])
        await service.background.scheduler.detector.run_once()
        events = (await client.events()).events

    assert len(events) == (0 if backfill else 1)


def test_help_of_the_blocking_client_shows_what_the_methods_do() -> None:
    """``help(SyncClient.submit)`` is read before the documents; a reference to ``Client`` answers nothing."""
    documented = {name: member for name, member in vars(SyncClient).items() if name in vars(Client)}

    assert SyncClient.submit.__doc__ == Client.submit.__doc__
    assert [name for name, member in documented.items() if "See ``Client" in (member.__doc__ or "")] == []
