"""Following feeds into a service: rounds, verdicts, pauses, report, memory."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from aggregator.app import open_service
from aggregator.http.server import make_app
from aggregator.settings import Settings
from aggregator_client import Client
from aggregator_client.errors import Unavailable
from aggregator_client.feed_fetch import Fetcher
from aggregator_client.feed_follow import Follower
from tests.client import misbehaving
from tests.client.feed_server import HOSTS, ITEMS, KINDS, feed_server, opml, rss, rss_item
from tests.support.factories import edited, story
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.processes import resident_bytes

INTERVAL_S = 900.0


@dataclass(slots=True)
class Following:
    """A follower with a clock of its own, and the lines that it wrote."""

    client: Client
    fetcher: Fetcher
    lines: list[str] = field(default_factory=list)
    now_s: float = 0.0
    follower: Follower | None = None

    def follow(self, *locations: str) -> Follower:
        """Start with these feeds."""
        self.follower = Follower(
            self.client,
            self.fetcher,
            locations,
            interval_s=INTERVAL_S,
            write=self.lines.append,
            clock=lambda: self.now_s,
        )
        return self.follower

    async def next_round(self) -> dict[str, int]:
        """The counts of a round, one interval after the last one."""
        assert self.follower is not None
        self.lines.clear()
        self.now_s += INTERVAL_S
        return dict(await self.follower.poll_round())


@asynccontextmanager
async def following_to(url: str) -> AsyncIterator[Following]:
    """Following into a service at this address."""
    async with (
        Client(url, on_failure="closed", deadline_s=HANG_LIMIT_S, batch_deadline_s=HANG_LIMIT_S) as client,
        Fetcher(timeout_s=2.0) as fetcher,
    ):
        yield Following(client, fetcher)


@pytest.fixture
async def following() -> AsyncIterator[Following]:
    """Following into a service with a memory store."""
    async with (
        open_service(Settings(store_url="memory", request_timeout_seconds=HANG_LIMIT_S)) as service,
        TestServer(make_app(service)) as server,
        following_to(str(server.make_url(""))) as opened,
    ):
        yield opened


@asynccontextmanager
async def documents(pages: dict[str, bytes]) -> AsyncIterator[str]:
    """A server of these documents by name, which may be added and replaced."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=pages[request.path.strip("/")])

    async with misbehaving.serving(answer) as url:
        yield url


@pytest.mark.integration
async def test_two_hundred_feeds(following: Following) -> None:
    """Each kind is read or named; a second round posts nothing, a third one what has changed."""
    async with feed_server() as feeds:
        addresses = [feeds.address(number) for number in range(200)]
        following.follow(*addresses)
        count = {kind: sum(f"/{kind}/" in address for address in addresses) for kind in KINDS}

        counts = await following.next_round()
        articles = ITEMS * sum(count.values()) - count["broken"]
        articles -= ITEMS * (count["gone"] + count["missing"] + count["hanging"] + count["page"])
        assert counts == {
            "polled": 200,
            "articles": articles,
            "new": articles,
            "kept": articles,
            "undated": ITEMS * count["undated"],
            "failed": count["missing"] + count["hanging"] + count["page"],
            "gone": count["gone"],
            "broken": count["broken"],
        }
        assert len(following.lines) == 201
        sentences = [re.sub(r"^http://[^ ]+?/(\w+)/\d+: ", r"\1: ", line) for line in following.lines]
        assert {
            "gone: status 410: the feed has ended and is not polled again.",
            "missing: error: status 404 Not Found; next poll in 30 min.",
            "hanging: error: no answer within 2 s; next poll in 30 min.",
            "broken: 2 articles: 2 new, 0 related, 0 duplicate; 2 kept; "
            "the XML is broken (no element found); 2 items were read.",
            "undated: 3 articles: 3 new, 0 related, 0 duplicate; 3 kept, 3 undated",
            "same_guid: 3 articles: 3 new, 0 related, 0 duplicate; 3 kept",
        } <= set(sentences)
        assert any(line.startswith("moved: moved permanently to http://127.0.0.") for line in sentences)
        assert (
            sum("a page, which names the feed http://127.0.0." in line for line in sentences) == count["page"]
        )
        assert sentences[-1].startswith(
            f"200 polls: 0 unchanged, {counts['failed']} failed, {counts['gone']} gone, "
            f"{counts['broken']} broken; {articles} articles: {articles} new, 0 related, 0 duplicate; "
            f"{articles} kept, "
        )
        assert set(feeds.parallel.values()) == {1} and len(feeds.parallel) == HOSTS

        feeds.requests.clear()
        counts = await following.next_round()
        due = 200 - count["gone"] - count["missing"] - count["hanging"] - count["page"]
        assert counts == {"polled": due, "unchanged": due}
        assert len(following.lines) == 1
        answered = {status for path, status in feeds.requests if path.startswith("/cached/")}
        assert answered == {304} and not any(path.startswith("/moved/") for path, _ in feeds.requests)

        feeds.version = 1
        counts = await following.next_round()
        assert counts["articles"] == counts["new"] == articles
        assert counts["polled"] == 200 - count["gone"]


async def test_verdicts_of_copies(following: Following) -> None:
    """A copy of another outlet is a duplicate; an item that two feeds list is stored already, not new."""
    text = story(1)
    first = rss([rss_item("https://a.example/1", "A title", f"<p>{text}</p>", link="https://a.example/1")])
    second = rss([rss_item("1", "Another title", edited(text, 2), link="https://b.example/9")])
    async with documents({"a": first, "b": second, "again": first + b" "}) as url:
        following.follow(f"{url}/a")
        assert (await following.next_round())["new"] == 1
        following.follow(f"{url}/b", f"{url}/again")
        assert await following.next_round() == {
            "polled": 2,
            "articles": 2,
            "already_stored": 1,
            "duplicate": 1,
            "kept": 1,
        }


async def test_lists_are_followed_at_any_depth(following: Following, tmp_path: Path) -> None:
    """A file, a list that it names, and one that names itself."""
    pages = {f"feed{n}": rss([rss_item("1", f"Title {n}", story(n))]) for n in range(4)}
    async with documents(pages) as url:
        pages["inner"] = opml([f"{url}/inner", f"{url}/feed2", f"{url}/feed3"]).encode()
        path = tmp_path / "feeds.opml"
        path.write_text(opml([f"{url}/feed0", f"{url}/feed1", f"{url}/inner", f"{url}/feed0"]))
        following.follow(str(path))
        counts = await following.next_round()

        assert counts["articles"] == 4
        assert f"{path}: a list of 3 feeds" in following.lines
        assert following.lines[-1].startswith("4 polls: ")
        assert (await following.next_round())["unchanged"] == 6


async def test_a_changed_item_is_posted_again(following: Following) -> None:
    """An item that its feed lists no more is forgotten in time; one that stays is not posted again."""
    pages: dict[str, bytes] = {}

    def show(*texts: str) -> None:
        pages["feed"] = rss([rss_item(text[:9], text[:30], text) for text in texts])

    async with documents(pages) as url:
        follower = following.follow(f"{url}/feed")
        for number in range(50):
            show(*(story(number + at) for at in range(5)))
            counts = await following.next_round()
            assert counts["articles"] == (1 if number else 5)
        show(story(53) + " More was added later.", story(52))
        assert (await following.next_round())["articles"] == 1
    (feed,) = follower.feeds.values()
    assert len(feed.known) <= 10


@pytest.mark.integration
async def test_feeds_of_a_host_that_share_guids(following: Following) -> None:
    """Addresses tell their items apart; without them the line says how many replaced those of another."""
    pages = {
        name: rss([rss_item("0", f"About {name}", story(len(name)), link=link)])
        for name, link in (
            ("art", ""),
            ("chess", ""),
            ("theatre", "http://gazette.example/theatre"),
            ("athletics", "http://gazette.example/athletics"),
        )
    }
    async with documents(pages) as url:
        following.follow(*(f"{url}/{name}" for name in pages))
        counts = await following.next_round()

    assert (counts["articles"], counts["new"], counts["replaced_others"]) == (4, 4, 1)
    assert any(", 1 replaced others" in line for line in following.lines if "/chess: " in line)


async def test_a_failing_feed_is_polled_less_often(following: Following) -> None:
    """30 min, an hour, ... a day; a success restores the interval. Retry-After is respected."""
    status, headers = [500], dict[str, str]()

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status[0], headers=headers, body=rss([]))

    async def rounds_until_polled() -> int:
        rounds = 1
        while "polled" not in await following.next_round():
            rounds += 1
        return rounds

    async with misbehaving.serving(answer) as url:
        following.follow(url)
        assert await rounds_until_polled() == 1
        assert [await rounds_until_polled() for _ in range(3)] == [2, 4, 8]
        assert following.lines[0] == f"{url}: error: status 500 Internal Server Error; next poll in 4 h."
        headers["Retry-After"] = "36000"
        assert [await rounds_until_polled() for _ in range(2)] == [16, 40]
        headers.clear()
        status[0] = 200
        assert [await rounds_until_polled() for _ in range(3)] == [64, 1, 1]


async def test_what_an_absent_service_did_not_get_is_posted_later() -> None:
    """The round ends early, no feed is to blame, and nothing is remembered as posted."""
    service: dict[str, misbehaving.Handler] = {}

    async def answer(request: web.Request) -> web.StreamResponse:
        return await service["now"](request)

    async def ready(request: web.Request) -> web.Response:
        return web.Response(body=b"")

    async def fail_at_batches(request: web.Request) -> web.StreamResponse:
        if request.method == "POST" and "dry_run" not in request.query_string:
            service["now"] = misbehaving.problem(503, "store_unavailable")
            return await service["now"](request)
        return await ready(request)

    async with (
        misbehaving.serving(answer) as url,
        Client(url, on_failure="closed", deadline_s=0.05, batch_deadline_s=0.05) as client,
        Fetcher() as fetcher,
        feed_server() as feeds,
    ):
        service["now"] = fail_at_batches
        following = Following(client, fetcher)
        follower = following.follow(*(feeds.address(60 * n) for n in range(3)))
        with pytest.raises(Unavailable):
            await following.next_round()
        assert sum("not posted, since the service is unavailable" in line for line in following.lines) == 1
        assert sum(feeds.requests.values()) == 1
        with pytest.raises(Unavailable, match=r"^The service is not ready: "):
            await following.next_round()
        assert following.lines == []
        assert all(feed.failures == 0 and not feed.known for feed in follower.feeds.values())


async def test_headlines_above_nothing_but_links_are_posted(following: Following) -> None:
    """As aggregators write descriptions; the headline alone is compared."""
    links = '<ol><li><a href="https://a.example/1">Other news</a></li></ol>'
    async with documents({"feed": rss([rss_item("1", "The ferry to Estmark runs again", links)])}) as url:
        following.follow(f"{url}/feed")
        assert (await following.next_round())["new"] == 1


async def test_what_was_taken_down_stays_down(following: Following) -> None:
    """It is not posted in another form either."""
    feed = rss(
        [rss_item("https://a.example/1", "The ferry", f"<p>{story(1)}</p>", link="https://a.example/1")]
    )
    async with documents({"feed": feed, "again": feed + b" "}) as url:
        following.follow(f"{url}/feed")
        assert (await following.next_round())["new"] == 1
        await following.client.delete("a.example/1", take_down=True)
        following.follow(f"{url}/again")
        assert await following.next_round() == {"polled": 1, "articles": 1, "taken_down": 1}
        assert following.lines[0].endswith("0 duplicate; 0 kept, 1 taken down")


async def test_rounds_are_scheduled(following: Following) -> None:
    """Until the stop event, or the end of the last feed; the totals are written."""
    stop, third = asyncio.Event(), asyncio.Event()

    def write(line: str) -> None:
        following.lines.append(line)
        if follower.rounds == 3:
            third.set()

    async with documents({"feed": rss([rss_item("1", "A", story(1))])}) as url:
        follower = Follower(
            following.client, following.fetcher, [f"{url}/feed"], interval_s=0.01, write=write
        )
        run = asyncio.create_task(follower.run(stop))
        async with asyncio.timeout(HANG_LIMIT_S):
            await third.wait()
        stop.set()
        await run
    assert re.match(r"in all, \d+ rounds: \d+ polls: .*; 1 articles: 1 new, ", following.lines[-1])

    async with feed_server() as feeds:
        gone = Follower(
            following.client, following.fetcher, [feeds.address(KINDS.index("gone"))], interval_s=0.01,
            write=following.lines.append,
        )  # fmt: skip
        await gone.run(asyncio.Event())
    assert gone.rounds == 1


async def test_a_service_that_is_not_there_ends_the_command(free_port: int) -> None:
    """At the start; later it is waited for."""
    async with following_to(f"http://127.0.0.1:{free_port}") as following:
        following.client._deadline_s = 0.05
        with pytest.raises(Unavailable, match=r"^The service is not ready: "):
            await following.follow("http://127.0.0.1/").run(asyncio.Event())


@pytest.mark.integration
async def test_memory_is_flat(following: Following) -> None:
    """1,000 polls of feeds that change each time: after the first 100, no more than 8 MB are added."""

    async def accept(request: web.Request) -> web.Response:
        lines = (await request.read()).splitlines()
        refused = (
            b'{"line": 1, "error": {"type": "", "title": "", "status": 400, "detail": "No.", "code": "x"}}'
        )
        return web.Response(body=b"\n".join([refused] * len(lines)) + b"\n" * bool(lines))

    sizes = []
    async with misbehaving.serving(accept) as url, following_to(url) as opened, feed_server() as feeds:
        kinds = [KINDS.index(kind) for kind in ("rss", "atom", "json", "gzip", "broken", "undated", "moved")]
        opened.follow(*(feeds.address(kind + len(KINDS) * n) for kind in kinds for n in range(3)))
        polls = 0
        while polls < 1000:
            feeds.version += 1
            polls += (await opened.next_round())["polled"]
            sizes.append((polls, resident_bytes()))
    early = next(size for polls, size in sizes if polls >= 100)
    assert sizes[-1][1] - early < 8_000_000, sizes
