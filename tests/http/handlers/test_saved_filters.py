"""Saved watches over HTTP."""

import pytest

from tests.support.factories import event


@pytest.fixture
async def watch(client, service):
    """A watch for big events about a bridge."""
    service.events.told = [
        event("e1", "Bridge closed", tuple("abc")),
        event("e2", "Bridge painted", ("d",)),
        event("e3", "Bakery opens", tuple("efg"), terms=("bakery",)),
    ]
    made = await client.post(
        "/v1/watches", json={"name": " Bridges ", "query": "?term=bridge&min_size=2&lang="}
    )
    assert made.status == 201
    return await made.json()


async def test_a_watch_is_a_saved_query(client, watch):
    """Kept in its shortest form, listed, read by id."""
    listed = await (await client.get("/v1/watches")).json()

    assert (watch["name"], watch["query"]) == ("Bridges", "term=bridge&min_size=2")
    assert listed["watches"] == [watch] == [await (await client.get(f"/v1/watches/{watch['id']}")).json()]


async def test_list_and_feeds_accept_it(client, watch):
    """Alone, and narrowed by the request's own filter."""
    listed = await (await client.get(watch["list"])).json()
    narrowed = await (await client.get(watch["list"] + "&status=closed")).json()
    feed = await (await client.get(watch["json"])).json(content_type=None)

    assert [one["id"] for one in listed["events"]] == ["e1"]
    assert narrowed["events"] == []
    assert [item["title"] for item in feed["items"]] == ["Bridge closed"]
    assert (await client.get("/?watch=" + watch["id"])).status == 200


async def test_a_forgotten_watch_is_404_everywhere(client, watch):
    """Nobody goes on reading an unfiltered feed by mistake."""
    assert (await client.delete(f"/v1/watches/{watch['id']}")).status == 204
    statuses = [(await client.get(watch[name])).status for name in ("list", "stream", "atom", "json")]

    assert [*statuses, (await client.delete(f"/v1/watches/{watch['id']}")).status] == [404] * 5


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"name": "x", "query": "topic=bridge"}, "topic"),
        ({"name": "x", "query": "min_size=many"}, "min_size"),
        ({"name": "x", "query": "term=a&term=b"}, "term"),
        ({"name": "x", "query": "watch=other"}, "watch"),
        ({"name": " ", "query": ""}, "name"),
    ],
)
async def test_what_is_no_query_is_refused_when_it_is_saved(client, body, named):
    """Not when the first event is missed."""
    response = await client.post("/v1/watches", json=body)

    assert response.status == 400
    assert named in (await response.json(content_type=None))["detail"]


async def test_a_long_list_is_read_page_by_page(client, service):
    """Every event once, the last page without a cursor."""
    service.events.told = [event(f"e{i}", f"Event {i}", last_seen_ms=10_000 - i // 2) for i in range(7)]
    seen, cursor = [], ""
    for _ in range(4):
        page = await (await client.get("/v1/events?limit=2" + (f"&cursor={cursor}" if cursor else ""))).json()
        seen += [one["id"] for one in page["events"]]
        cursor = page["next"]

    assert (sorted(seen), cursor) == ([f"e{i}" for i in range(7)], None)
    assert (await client.get("/v1/events?cursor=nonsense")).status == 400
