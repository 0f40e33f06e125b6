"""Search of events and articles, and the list of articles, over the real service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from aggregator.app import Service, open_service
from aggregator.settings import Settings
from tests.support.factories import commit_event, event, load_all, story
from tests.support.fake_service import Client, serving

pytestmark = pytest.mark.integration


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """A service in memory."""
    async with open_service(Settings(store_url="memory")) as opened:
        yield opened


@pytest.fixture
async def client(service: Service) -> AsyncIterator[Client]:
    """A client of it, with five articles and an event stored."""
    async with serving(service) as opened:
        for number in range(5):
            body = {
                "id": f"d{number}",
                "title": f"Dam report {number}",
                "source": "Estmark Radio" if number % 2 else "Coastline News",
                "text": f"The {story(number, 6)} and that was with this of the.",
                "url": f"https://news.example/{number}",
                "published_at": f"2026-11-0{number + 1}T08:00:00Z",
            }
            assert (await opened.post("/v1/articles", json=body)).status == 201
        found = event("dam", "Dam above Kareth bursts", ["d1"], languages=("en",))
        await commit_event(service.events.repository, "fired", found, found.last_seen_ms)
        yield opened


async def get(client: Client, path: str, **params: str) -> dict[str, Any]:
    """The body of a successful answer."""
    async with client.get(path, params=params) as response:
        body: dict[str, Any] = await response.json()
        assert response.status == 200, body
        return body


def ids(body: dict[str, Any]) -> list[str]:
    """Ids of the articles of an answer."""
    return [article["id"] for article in body["articles"]]


async def test_results_by_time(client: Client) -> None:
    """The newest of the articles with most of the words first, page by page."""
    first = await get(client, "/v1/search", q='"dam report" radio', sort="time", limit="1")
    second = await get(client, "/v1/search", q='"dam report" radio', sort="time", cursor=first["next"])

    assert (ids(first), ids(second), first["total"]) == (["d3"], ["d1"], 2)


async def test_events_and_articles_are_found(service: Service, client: Client) -> None:
    """The newest article first among equals; the answer says what was searched."""
    await load_all(service.articles.search.headlines)
    body = await get(client, "/v1/search", q="dams")

    assert [found["id"] for found in body["events"]] == ["dam"]
    assert ids(body) == ["d4", "d3", "d2", "d1", "d0"]
    assert (body["total"], body["events_total"], body["words"], body["next"]) == (5, 1, 1, None)
    assert body["searched"]["articles"] == 5
    assert body["searched"]["loading"] is False
    first = body["articles"][0]
    assert (first["verdict"], first["lang"], first["missing"], first["event_id"]) == ("new", "en", 0, None)


async def test_pages_follow_the_cursor(client: Client) -> None:
    """Events are in the first page only."""
    first = await get(client, "/v1/search", q="dam", limit="3")
    second = await get(client, "/v1/search", q="dam", limit="3", cursor=first["next"])

    assert (ids(first), ids(second)) == (["d4", "d3", "d2"], ["d1", "d0"])
    assert (second["next"], second["events"], second["total"]) == (None, [], 5)


async def test_filters_apply_to_articles_and_events(client: Client) -> None:
    """Source, verdict, language and times of publication."""
    assert ids(await get(client, "/v1/search", q="dam", source="estmark radio")) == ["d3", "d1"]
    assert ids(await get(client, "/v1/search", q="dam", verdict="duplicate")) == []
    body = await get(client, "/v1/search", q="dam", lang="de")
    assert (ids(body), body["events"]) == ([], [])
    period = {"since": "2026-11-02T00:00:00Z", "until": "2026-11-04T00:00:00Z"}
    assert ids(await get(client, "/v1/search", q="dam", **period)) == ["d2", "d1"]


async def test_articles_are_listed_by_url_source_and_time(client: Client) -> None:
    """Newest first, page by page; a URL in any spelling."""
    assert ids(await get(client, "/v1/articles")) == ["d4", "d3", "d2", "d1", "d0"]
    assert ids(await get(client, "/v1/articles", url="HTTP://news.example/3/#top")) == ["d3"]
    assert ids(await get(client, "/v1/articles", since="2026-11-04T00:00:00Z")) == ["d4", "d3"]
    first = await get(client, "/v1/articles", source="Coastline News", limit="2")
    assert (ids(first), first["total"]) == (["d4", "d2"], 3)
    assert ids(
        await get(client, "/v1/articles", source="Coastline News", limit="2", cursor=first["next"])
    ) == ["d0"]


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/search", "q"),
        ("/v1/search?q=%20", "q"),
        (f"/v1/search?q={'x' * 201}", "q"),
        ("/v1/search?q=dam&cursor=x", "cursor"),
        ("/v1/search?q=dam&cursor=Wy0xLDFd", "cursor"),
        ("/v1/search?q=dam&lang=zz", "lang"),
        ("/v1/search?q=dam&verdict=old", "verdict"),
        ("/v1/search?q=dam&limit=0", "limit"),
        ("/v1/articles?since=yesterday", "since"),
    ],
)
async def test_an_invalid_query_is_refused_by_name(client: Client, path: str, field: str) -> None:
    """400 with the parameter."""
    async with client.get(path) as response:
        body = await response.json(content_type="application/problem+json")
    assert (response.status, body["field"]) == (400, field)
