"""The contract over the real service with the memory store: the same calls, the real verdicts."""

import json
from collections.abc import AsyncIterator

import pytest

from aggregator.app import Service, open_service
from aggregator.settings import Settings

STORY = (
    "The harbour bridge was closed on Friday after gusts of 140 km/h damaged two of its cables. "
    "Engineers will look at every cable before lorries may cross again, the port authority said. "
    "Ferries carry passengers meanwhile, and the night train ends at the northern pier until further notice. "
    "Shopkeepers on the eastern bank fear for the weekend trade, since most of their customers come by tram. "
    "The council will meet on Monday to decide who pays for the repair, which may last until the spring."
)
EDITED = STORY.replace("on Friday", "on Friday night").replace("most of their", "nearly all")
OTHER = (
    "A baker in the old town has won the national prize for rye bread for the third time in a row. "
    "Her sourdough is older than she is, she said, and travels with her on holidays in a small jar."
)


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """A service in memory that keeps texts."""
    async with open_service(Settings(store_url="memory", store_texts=True)) as real:
        yield real


async def test_a_tour(client):
    """New, its edited copy, an unrelated one; copies, explanation, deletion."""
    one = await client.post("/v1/articles", json={"url": "https://one.example/bridge/", "text": STORY})
    two = await client.post(
        "/v1/articles", json={"url": "https://two.example/b?utm_source=x", "text": EDITED}
    )
    three = await client.post("/v1/articles", json={"id": "bread", "text": OTHER})
    answers = [await response.json() for response in (one, two, three)]

    assert [response.status for response in (one, two, three)] == [201, 200, 201]
    assert [answer["verdict"] for answer in answers] == ["new", "duplicate", "new"]
    assert answers[1]["id"] == "two.example/b"
    assert answers[1]["duplicate_of"]["canonical_id"] == "one.example/bridge"
    assert "analyse;dur=" in one.headers["Server-Timing"]

    copies = await (await client.get("/v1/articles/two.example/b/copies")).json()
    assert [copy["id"] for copy in copies["copies"]] == ["one.example/bridge", "two.example/b"]
    assert copies["canonical_id"] == "one.example/bridge"

    told = await (
        await client.post("/v1/explain", json={"a": "one.example/bridge", "b": "two.example/b"})
    ).json()
    assert told["is_copy"] is True
    assert any("council will meet" in passage for passage in told["shared_passages"])

    assert (await client.delete("/v1/articles/one.example%2Fbridge")).status == 204
    left = await (await client.get("/v1/articles/two.example/b")).json()
    gone = await client.get("/v1/articles/one.example/bridge")
    assert (left["duplicate_of"], gone.status) == (None, 404)


async def test_signs_alone_are_no_text(client):
    """Without a single word there is nothing to compare: 422, nothing stored."""
    response = await client.post("/v1/articles", json={"id": "a", "text": "🌪 !!"})

    assert (response.status, (await response.json(content_type=None))["code"]) == (422, "no_text")
    assert (await client.get("/v1/articles/a")).status == 404


async def test_retries_answer_the_same(client):
    """A POST may be sent again after any failure."""
    body = {"id": "a", "title": "Bridge closed", "text": STORY}
    first = await (await client.post("/v1/articles", json=body)).json()
    again = await client.post("/v1/articles", json=body)

    assert (again.status, (await again.json())["verdict"]) == (200, first["verdict"])


async def test_batch_answers_as_one_by_one(client):
    """The same articles in one batch get the verdicts of posting them in order."""
    rows = [
        {"id": "a", "text": STORY},
        {"id": "b", "text": EDITED},
        {"id": "bad"},
        {"id": "c", "text": OTHER},
    ]
    data = "\n".join(map(json.dumps, rows))
    response = await client.post("/v1/articles/batch", data=data)
    answers = [json.loads(line) for line in (await response.read()).splitlines()]

    assert [a.get("verdict") or a["error"]["field"] for a in answers] == ["new", "duplicate", "text", "new"]


@pytest.mark.parametrize(
    ("body", "short"),
    [
        ({"title": "Storm"}, True),
        ({"title": "暴风雨关闭大桥", "lang": "zh"}, True),
        ({"text": "1 2 3"}, True),
        ({"text": "the of and"}, True),
        ({"text": STORY}, False),
    ],
)
async def test_short_texts_say_so(client, body, short):
    """Whatever has a visible sign gets an answer; too few words are marked."""
    response = await client.post("/v1/articles", json=body)
    told = await response.json()

    assert (response.status, told["short"]) == (201, short), told


async def test_html(client):
    """A page gives its main text; a page without one is refused."""
    page = f"<html><head><title>Bridge closed</title></head><body><nav>Home</nav><article><h1>Bridge closed</h1><p>{STORY}</p></article></body></html>"
    good = await client.post("/v1/articles", json={"id": "a", "html": page})
    empty = await client.post(
        "/v1/articles", json={"id": "b", "html": "<html><body><script>1</script></body></html>"}
    )
    stored = await (await client.get("/v1/articles/a")).json()

    assert (good.status, empty.status) == (201, 422)
    assert (await empty.json(content_type=None))["code"] == "no_text"
    assert stored["title"] == "Bridge closed"
    assert (await client.get("/v1/articles/b")).status == 404


async def test_related_and_pages(client):
    """Reading calls and pages work on what is stored."""
    await client.post("/v1/articles", json={"id": "a", "title": "Bridge closed", "text": STORY})

    for path in (
        "/v1/articles/a/related",
        "/v1/events",
        "/",
        "/docs",
        "/readyz",
        "/metrics",
        "/openapi.json",
    ):
        assert (await client.get(path)).status == 200, path
    assert "Bridge closed" in await (await client.get("/")).text()
    related = await client.post("/v1/related", json={"title": "Bridge closed", "text": EDITED})
    assert [item["id"] for item in (await related.json())["related"]] == ["a"]


async def test_answers_match_their_schemas(client):
    """What is sent is what OpenAPI says: names, and nothing missing."""
    document = await (await client.get("/openapi.json")).json()
    await client.post("/v1/articles", json={"id": "a", "title": "Bridge closed", "text": STORY})
    for path, name in [
        ("/v1/articles/a", "ArticleOut"),
        ("/v1/articles/a/copies", "CopiesOut"),
        ("/v1/articles/a/related", "RelatedListOut"),
        ("/v1/events", "EventsOut"),
        ("/readyz", "ReadyOut"),
        ("/healthz", "HealthOut"),
    ]:
        body = await (await client.get(path)).json()
        assert set(body) == set(document["components"]["schemas"][name]["required"]), path
