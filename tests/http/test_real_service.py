"""The HTTP contract over the real service with the memory store."""

import json
from collections.abc import AsyncIterator

import pytest

from aggregator.app import Service, open_service
from aggregator.settings import Settings
from tests.support.fake_service import Client

pytestmark = pytest.mark.integration

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
    """A service with the memory store that stores texts."""
    async with open_service(Settings(store_url="memory", store_texts=True)) as opened:
        yield opened


async def test_duplicates_from_post_to_delete(client: Client) -> None:
    """A new article, an edited copy and an unrelated one; copies, comparison, deletion."""
    first = await client.post("/v1/articles", json={"url": "https://one.example/bridge/", "text": STORY})
    copy = await client.post(
        "/v1/articles", json={"url": "https://two.example/b?utm_source=x", "text": EDITED}
    )
    other = await client.post("/v1/articles", json={"id": "bread", "text": OTHER})
    answers = [await response.json() for response in (first, copy, other)]

    assert [response.status for response in (first, copy, other)] == [201, 200, 201]
    assert [answer["verdict"] for answer in answers] == ["new", "duplicate", "new"]
    assert answers[1]["id"] == "two.example/b"
    assert answers[1]["duplicate_of"]["canonical_id"] == "one.example/bridge"
    assert "analyse;dur=" in first.headers["Server-Timing"]

    copies = await (await client.get("/v1/articles/two.example/b/copies")).json()
    assert [article["id"] for article in copies["copies"]] == ["one.example/bridge", "two.example/b"]
    assert copies["canonical_id"] == "one.example/bridge"

    explanation = await (
        await client.post("/v1/explain", json={"a": "one.example/bridge", "b": "two.example/b"})
    ).json()
    assert explanation["is_copy"] is True
    assert any("council will meet" in passage for passage in explanation["shared_passages"])

    assert (await client.delete("/v1/articles/one.example%2Fbridge")).status == 204
    remaining = await (await client.get("/v1/articles/two.example/b")).json()
    deleted = await client.get("/v1/articles/one.example/bridge")
    assert (remaining["duplicate_of"], deleted.status) == (None, 404)


async def test_a_text_without_words_is_rejected(client: Client) -> None:
    """422, and nothing is stored."""
    response = await client.post("/v1/articles", json={"id": "a", "text": "🌪 !!"})

    assert (response.status, (await response.json(content_type=None))["code"]) == (422, "no_text")
    assert (await client.get("/v1/articles/a")).status == 404


async def test_retries_get_the_same_verdict(client: Client) -> None:
    """A client may repeat a POST after any failure."""
    body = {"id": "a", "title": "Bridge closed", "text": STORY}
    first = await (await client.post("/v1/articles", json=body)).json()
    again = await client.post("/v1/articles", json=body)

    assert (again.status, (await again.json())["verdict"]) == (200, first["verdict"])


async def test_a_batch_gets_the_verdicts_of_single_posts(client: Client) -> None:
    """In the order of the lines."""
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
async def test_short_texts_are_marked(client: Client, body: dict[str, str], short: bool) -> None:
    """Any text with a letter or digit gets a verdict; ``short`` marks too few words."""
    response = await client.post("/v1/articles", json=body)
    answer = await response.json()

    assert (response.status, answer["short"]) == (201, short), answer


async def test_html_extraction(client: Client) -> None:
    """The main text of a page is stored; a page without one is rejected."""
    article = f"<article><h1>Bridge closed</h1><p>{STORY}</p></article>"
    head = "<html><head><title>Bridge closed</title></head>"
    page = f"{head}<body><nav>Home</nav>{article}</body></html>"
    good = await client.post("/v1/articles", json={"id": "a", "html": page})
    empty = await client.post(
        "/v1/articles", json={"id": "b", "html": "<html><body><script>1</script></body></html>"}
    )
    stored = await (await client.get("/v1/articles/a")).json()

    assert (good.status, empty.status) == (201, 422)
    assert (await empty.json(content_type=None))["code"] == "no_text"
    assert stored["title"] == "Bridge closed"
    assert (await client.get("/v1/articles/b")).status == 404


async def test_reading_routes_and_pages(client: Client) -> None:
    """All answer with a stored article."""
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


async def test_a_new_reader_of_a_site_with_one_outlet(client: Client) -> None:
    """Each subject of the newest articles once, no copies; ids that nobody stored are no history."""
    words = STORY.split()
    for id_, text, source in (
        ("bread", OTHER, "Post"),
        ("bridge", STORY, "Post"),
        ("bridge-2", " ".join(words[1::2] + words[::2]), "Post"),
        ("copy", EDITED, "Radio"),
    ):
        await client.post("/v1/articles", json={"id": id_, "text": text, "source": source})
    lists = [
        await client.get("/v1/related"),
        await client.post("/v1/related", json={"ids": ["ghost"]}),
        await client.get("/v1/related?source=radio&source=None"),
        await client.get("/v1/related?exclude_ids=copy"),
    ]
    found = [[(i["id"], i["kind"]) for i in (await a.json())["related"]] for a in lists]

    whole = [("bridge", "recent"), ("bread", "recent")]
    assert found == [whole, whole, [("copy", "recent")], [("bridge-2", "recent"), whole[1]]]
    assert (await lists[1].json())["not_found"] == ["ghost"]


async def test_an_article_of_two_subjects_is_listed_once(client: Client) -> None:
    """The newest article of both: a new reader gets it, and no second time."""
    texts = (
        "The harbour monitor of Estmark is called Ferrywatch.",
        "Ferries sail on northern routes, every pier works again.",
        "Every northern pier works: ferries again sail all routes.",
        "Routes sail: the pier in northern works has every ferry.",
        "Ferrywatch, a monitor that Estmark harbour runs, sees ferries sail on northern routes. Captains "
        "complain about broken radar screens, and tickets sold online remain invalid until Friday.",
    )
    for text in texts:
        await client.post("/v1/articles", json={"id": text, "text": text})
    body = await (await client.get("/v1/related")).json()

    assert [item["id"] for item in body["related"]] == [texts[-1]]


async def test_sources_of_a_text_are_a_filter(client: Client) -> None:
    """A list is as in the query; a text is the outlet of the article that is asked about."""
    await client.post("/v1/articles", json={"id": "a", "text": STORY, "source": "Post"})
    for source, expected in (
        (["Post"], ["a"]),
        (["Radio"], []),
        ([], ["a"]),
        ("Radio", ["a"]),
        (None, ["a"]),
    ):
        answer = await client.post("/v1/related", json={"text": EDITED, "source": source})
        assert [item["id"] for item in (await answer.json())["related"]] == expected, source


async def test_responses_match_their_schemas(client: Client) -> None:
    """Field names equal the required ones of the OpenAPI schema."""
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


@pytest.mark.parametrize(
    ("repeats", "is_created"),
    [("60000", True), ("٦٠٠٠٠", True), ("", False), ("-60000", False), ("6e4", False), ("9" * 9, False)],
)
async def test_a_repeated_request_says_when_it_was_sent_first(
    client: Client, repeats: str, is_created: bool
) -> None:
    """In milliseconds; any other value is ignored. What it stored then can be undone."""
    await client.post("/v1/articles", json={"id": "bread", "text": OTHER})
    headers = {"X-Repeats-Ms": repeats}
    again = await client.post("/v1/articles", json={"id": "bread", "text": OTHER}, headers=headers)
    in_batch = await client.post(
        "/v1/articles/batch", data=json.dumps({"id": "bread", "text": OTHER}), headers=headers
    )

    assert (again.status, (await again.json())["created"]) == (201 if is_created else 200, is_created)
    assert json.loads(await in_batch.text())["created"] == is_created
