"""Download of feeds: redirects, conditions, limits, politeness."""

from __future__ import annotations

import asyncio
import gzip
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from aiohttp import web

from aggregator_client.feed_fetch import Document, Feed, FeedGone, Fetcher, FetchFailed
from tests.client.feed_server import feed_server
from tests.client.misbehaving import serving

MAX_BYTES = 100_000


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    """With a limit of 100,000 bytes."""
    async with Fetcher(max_bytes=MAX_BYTES) as opened:
        yield opened


def feed_at(url: str) -> Feed:
    """A feed that was never polled."""
    return Feed(url, url)


async def test_a_second_request_is_conditional(fetcher: Fetcher) -> None:
    """With the headers that the server sent, as it sent them."""
    asked = []

    async def answer(request: web.Request) -> web.Response:
        asked.append([request.headers.get(name) for name in ("If-None-Match", "If-Modified-Since")])
        if request.headers.get("If-None-Match") == 'W/"7"':
            return web.Response(status=304)
        return web.Response(body=b"feed", headers={"ETag": 'W/"7"', "Last-Modified": "yesterday"})

    async with serving(answer) as url:
        feed = feed_at(url)
        document = await fetcher.fetch(feed)
        assert document is not None and document.data == b"feed"
        feed.validators = document.validators
        assert await fetcher.fetch(feed) is None
    assert asked == [[None, None], ['W/"7"', "yesterday"]]


@pytest.mark.parametrize(
    ("statuses", "remembered"),
    [((301,), "/1"), ((308, 301), "/2"), ((302,), "/0"), ((301, 302), "/1"), ((307, 301), "/0")],
)
async def test_permanent_redirects_are_remembered(
    statuses: tuple[int, ...], remembered: str, fetcher: Fetcher
) -> None:
    """Up to the first temporary one."""

    async def answer(request: web.Request) -> web.Response:
        hop = int(request.path.strip("/"))
        if hop == len(statuses):
            return web.Response(body=b"feed")
        return web.Response(status=statuses[hop], headers={"Location": f"/{hop + 1}"})

    async with serving(answer) as url:
        document = await fetcher.fetch(feed_at(f"{url}/0"))

    assert isinstance(document, Document)
    assert document.url == url + remembered


@pytest.mark.parametrize(
    ("location", "sentence"),
    [
        ("/again", "more than 5 redirects"),
        ("file:///etc/hostname", "status 301 to 'file:///etc/hostname', which is no address"),
        ("", "status 301 to '', which is no address"),
    ],
)
async def test_a_redirect_to_nowhere(location: str, sentence: str, fetcher: Fetcher) -> None:
    """It ends, and no file of this machine is read."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=301, headers={"Location": location} if location else {})

    async with serving(answer) as url:
        with pytest.raises(FetchFailed) as error:
            await fetcher.fetch(feed_at(url))
    assert str(error.value) == sentence


async def test_statuses(fetcher: Fetcher) -> None:
    """410 ends a feed; Retry-After may be seconds or a date."""
    later = format_datetime(datetime.now(UTC) + timedelta(hours=2), usegmt=True)
    answers = {"404": "", "410": "", "429": "120", "503": later, "500": "soon"}

    async def answer(request: web.Request) -> web.Response:
        status = request.path.strip("/")
        return web.Response(status=int(status), headers={"Retry-After": answers[status]})

    found = {}
    async with serving(answer) as url:
        for status in answers:
            with pytest.raises(FetchFailed) as error:
                await fetcher.fetch(feed_at(f"{url}/{status}"))
            found[status] = error.value

    assert {status: isinstance(error, FeedGone) for status, error in found.items()} == {
        status: status == "410" for status in answers
    }
    assert str(found["404"]) == "status 404 Not Found"
    assert found["429"].retry_after_s == 120
    assert 7100 < found["503"].retry_after_s <= 7200
    assert found["500"].retry_after_s == 0


@pytest.mark.parametrize("declared", [True, False])
async def test_gzip_with_or_without_a_header(declared: bool, fetcher: Fetcher) -> None:
    """Its size is limited unpacked; damaged data is named."""
    packed = gzip.compress(os.urandom(5000))
    bodies = {
        "good": gzip.compress(b"feed " * 1000),
        "bomb": gzip.compress(bytes(2 * MAX_BYTES)),
        "damaged": packed[:2000] + bytes(100) + packed[2100:],
    }

    async def answer(request: web.Request) -> web.Response:
        headers = {"Content-Encoding": "gzip"} if declared else {}
        return web.Response(body=bodies[request.path.strip("/")], headers=headers)

    async with serving(answer) as url:
        document = await fetcher.fetch(feed_at(f"{url}/good"))
        with pytest.raises(FetchFailed, match=r"^more than 100000 bytes$"):
            await fetcher.fetch(feed_at(f"{url}/bomb"))
        with pytest.raises(FetchFailed, match=r"compressed data is damaged$"):
            await fetcher.fetch(feed_at(f"{url}/damaged"))
    assert document is not None and document.data == b"feed " * 1000


async def test_an_endless_answer_ends() -> None:
    """By size, also if no length is declared, and by time."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while request.path == "/large":
            await response.write(bytes(10_000))
        await asyncio.Event().wait()
        return response

    async with Fetcher(max_bytes=MAX_BYTES, timeout_s=0.5) as fetcher, serving(answer) as url:
        with pytest.raises(FetchFailed, match=r"^no answer within 0\.5 s$"):
            await fetcher.fetch(feed_at(f"{url}/slow"))
    async with Fetcher(max_bytes=MAX_BYTES) as fetcher, serving(answer) as url:
        with pytest.raises(FetchFailed, match=r"^more than 100000 bytes$"):
            await fetcher.fetch(feed_at(f"{url}/large"))


async def test_servers_that_are_not_there(free_port: int, fetcher: Fetcher) -> None:
    """In the words of the operating system; an address that is none, too."""
    with pytest.raises(FetchFailed, match=r"^Connection refused$"):
        await fetcher.fetch(feed_at(f"http://127.0.0.1:{free_port}/"))
    with pytest.raises(FetchFailed):
        await fetcher.fetch(feed_at("http://127.0.0.1:99999/"))


async def test_one_request_per_host_at_a_time(fetcher: Fetcher) -> None:
    """Different hosts at the same time."""
    async with feed_server() as feeds:
        same_host = [feeds.address(60 * number) for number in range(12)]
        await asyncio.gather(*(fetcher.fetch(feed_at(address)) for address in same_host))
        assert list(feeds.parallel.values()) == [1]
        assert sum(feeds.requests.values()) == 12


async def test_a_file_is_read_when_it_changes(tmp_path: Path, fetcher: Fetcher) -> None:
    """Also compressed; a file that is gone is an error."""
    path = tmp_path / "feed.xml.gz"
    path.write_bytes(gzip.compress(b"feed"))
    feed = feed_at(str(path))

    document = await fetcher.fetch(feed)
    assert document is not None and document.data == b"feed"
    feed.validators = document.validators
    assert await fetcher.fetch(feed) is None
    path.unlink()
    with pytest.raises(FetchFailed, match=r"^cannot be read: No such file or directory$"):
        await fetcher.fetch(feed)
