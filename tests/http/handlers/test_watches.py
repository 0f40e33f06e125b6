"""Routes of watches: desks whose view is one query."""

import asyncio

import pytest

from aggregator.events.desks import MAX_DESKS, Desk
from tests.support.factories import event
from tests.support.fake_service import Client, FakeService, serving

pytestmark = pytest.mark.integration


@pytest.fixture
async def watch(client: Client, service: FakeService) -> dict[str, str]:
    """A watch for events about a bridge with at least 2 items."""
    service.fake_events.stored = [
        event("e1", "Bridge closed", tuple("abc")),
        event("e2", "Bridge painted", ("d",)),
        event("e3", "Bakery opens", tuple("efg"), terms=("bakery",)),
    ]
    response = await client.post(
        "/v1/watches", json={"name": " Bridges ", "query": "?term=bridge&min_size=2&lang="}
    )
    assert response.status == 201
    saved: dict[str, str] = await response.json()
    assert response.headers["Location"] == f"/v1/watches/{saved['id']}"
    return saved


async def test_a_watch_is_stored_and_listed(client: Client, watch: dict[str, str]) -> None:
    """Its query is normalized: no empty parameters."""
    listed = await (await client.get("/v1/watches")).json()

    assert (watch["name"], watch["query"]) == ("Bridges", "term=bridge&min_size=2")
    assert listed["watches"] == [watch] == [await (await client.get(f"/v1/watches/{watch['id']}")).json()]


async def test_lists_and_feeds_accept_a_watch(client: Client, watch: dict[str, str]) -> None:
    """Alone, and combined with the request's own filter."""
    listed = await (await client.get(watch["list"])).json()
    narrowed = await (await client.get(watch["list"] + "&status=closed")).json()
    feed = await (await client.get(watch["json"])).json(content_type=None)

    assert [item["id"] for item in listed["events"]] == ["e1"]
    assert narrowed["events"] == []
    assert [item["title"] for item in feed["items"]] == ["Bridge closed"]
    assert (await client.get("/?watch=" + watch["id"])).status == 200


async def test_a_deleted_watch_is_404_everywhere(client: Client, watch: dict[str, str]) -> None:
    """A feed that names it does not silently become unfiltered."""
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
async def test_an_invalid_query_is_rejected_when_saved(
    client: Client, body: dict[str, str], named: str
) -> None:
    """Not only when the first event is missed."""
    response = await client.post("/v1/watches", json=body)

    assert response.status == 400
    assert named in (await response.json(content_type=None))["detail"]


async def test_a_repeated_post_creates_one_watch(client: Client, watch: dict[str, str]) -> None:
    """200 with the watch that exists, also for many retries at once; another name is another watch."""
    body = {"name": "Bridges", "query": "min_size=2&term=bridge"}
    retries = await asyncio.gather(*(client.post("/v1/watches", json=body) for _ in range(5)))
    other = await client.post("/v1/watches", json={**body, "name": "Bridges and tunnels"})

    assert {response.status for response in retries} == {200}
    assert [await response.json() for response in retries] == [watch] * 5
    assert other.status == 201
    assert len((await (await client.get("/v1/watches")).json())["watches"]) == 2


async def test_one_key_creates_half_of_the_watches() -> None:
    """The error names the share and how to free some; another key's first one is still stored."""
    service = FakeService()
    keys = [await service.edge.api_keys.add(name, "editor") for name in ("Ada", "Bob")]
    headers = [{"Authorization": f"Bearer {text}"} for _, text in keys]
    share = MAX_DESKS // 2
    own = {f"w{n}": Desk(f"w{n}", f"{n}", 0, keys[0][0].id) for n in range(share)}
    await service.events.desks.mutate(lambda known: known.update(own))
    async with serving(service) as client:
        responses = [
            await client.post("/v1/watches", json={"name": "More", "query": ""}, headers=header)
            for header in headers
        ]
        detail = (await responses[0].json(content_type=None))["detail"]

    assert [response.status for response in responses] == [409, 201]
    assert "500 of the kind desk, its share (half of the limit of 1000); delete one" in detail


async def test_a_watch_is_a_desk(client: Client, watch: dict[str, str]) -> None:
    """A status is kept although desks have no such field; a desk of two terms is no watch."""
    other = await (
        await client.post("/v1/watches", json={"name": "Closed", "query": "lang=de&status=closed"})
    ).json()
    desks = (await (await client.get("/v1/desks")).json())["desks"]
    changed = {name: desks[1][name] for name in ("name", "languages")} | {"min_size": 3}
    await client.put(f"/v1/desks/{other['id']}", json=changed)
    edited = await (await client.get(f"/v1/watches/{other['id']}")).json()
    await client.put(f"/v1/desks/{other['id']}", json=changed | {"terms": ["flood", "rain"]})
    listed = (await (await client.get("/v1/watches")).json())["watches"]

    assert [(desk["id"], desk["terms"], desk["min_size"]) for desk in desks] == [
        (watch["id"], ["bridge"], 2),
        (other["id"], [], 0),
    ]
    assert (other["query"], edited["query"]) == ("lang=de&status=closed", "lang=de&min_size=3&status=closed")
    assert listed == [watch]
    for method in ("get", "delete"):
        response = await client.request(method, f"/v1/watches/{other['id']}")
        assert response.status == 404
        assert f"There is no watch '{other['id']}'." in await response.text()
