"""Routes of related articles: parameters, reading histories, top stories, and keys of public pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from aggregator.events.detection.top_stories import TopStory
from aggregator.queries.ranking import RelatedOptions
from aggregator.settings import Settings
from aggregator.time_units import DAY_MS, HOUR_MS
from tests.support.factories import event
from tests.support.fake_service import START_MS, Client, FakeService, serving

pytestmark = pytest.mark.integration


async def test_related_of_a_stored_article(client: Client, stored: None) -> None:
    """Related articles with metadata, without the article itself; caches of others must not keep them."""
    response = await client.get("/v1/articles/a/related?limit=5")

    assert await response.json() == {
        "related": [
            {
                "id": "b",
                "title": "Title b",
                "url": "",
                "source": "",
                "published_at": None,
                "distance": 5,
                "similarity": 0.5,
                "score": None,
                "kind": "",
                "copies": 0,
                "shared": [],
                "hours_apart": None,
                "because_of": "",
            }
        ]
    }
    assert response.headers["Cache-Control"] == "private, no-cache"


async def test_related_by_content_and_by_ids(client: Client, stored: None, service: FakeService) -> None:
    """Neither stores anything."""
    by_text = await (await client.post("/v1/related", json={"title": "Bridge"})).json()
    by_ids = await (await client.post("/v1/related?limit=3", json={"ids": ["a"]})).json()

    assert [item["id"] for item in by_text["related"]] == ["a", "b"]
    assert [item["id"] for item in by_ids["related"]] == ["b"]
    assert set(service.stored) == {"a", "b"}


PARAMETERS = {
    "limit": 7,
    "since": "7d",
    "until": "2026-09-20T08:00:00+02:00",
    "exclude_source": ["Radio", "TV"],
    "exclude_ids": ["x"],
    "half_life": "36h",
    "diversity": 0.5,
    "min_score": 0.25,
}
OPTIONS: dict[str, Any] = {
    "limit": 7,
    "since_ms": START_MS - 7 * DAY_MS,
    "until_ms": 1_789_884_000_000,
    "exclude_sources": ("radio", "tv"),
    "exclude_ids": ["x"],
    "half_life_ms": 36 * HOUR_MS,
    "diversity": 0.5,
    "min_score": 0.25,
}


async def test_the_parameters_mean_the_same_everywhere(
    client: Client, stored: None, service: FakeService
) -> None:
    """In the query of each call, in its body, and divided between both."""
    query = [(n, str(v)) for n, vs in PARAMETERS.items() for v in (vs if isinstance(vs, list) else [vs])]
    filters = [("source", "Gazette"), ("source", "Post"), ("lang", "de-AT")]
    in_body = {**PARAMETERS, "source": ["Gazette", "Post"], "lang": "de-AT"}
    expected = RelatedOptions(**OPTIONS, sources=("gazette", "post"), lang="de")
    half = dict(list(in_body.items())[:4])
    for path, params, body in (
        ("/v1/related", [*query, *filters], {"ids": ["a"]}),
        ("/v1/related", [*query, *filters], {"title": "Bridge", "source": "Radio", "lang": "en"}),
        ("/v1/related", [], {"ids": ["a"], **in_body}),
        ("/v1/related", [p for p in [*query, *filters] if p[0] not in half], {"ids": ["a"], **half}),
        ("/v1/related/batch", [], {"ids": ["a"], **in_body}),
    ):
        response = await client.post(path, params=params, json=body)
        assert response.status == 200, await response.text()
        assert service.related_options == expected
    assert (await client.get("/v1/articles/a/related", params=[*query, *filters])).status == 200
    assert service.related_options == expected

    days = {"ids": ["a"], "source": "Radio", "since": "2026-09-20"}  # one name for a list, a day for a time
    assert (await client.post("/v1/related/batch", json=days)).status == 200
    assert service.related_options == RelatedOptions(sources=("radio",), since_ms=1_789_862_400_000)

    await client.post("/v1/related", json={"title": "Bridge", "source": "Radio", "lang": "en", **PARAMETERS})
    assert service.related_options == RelatedOptions(**OPTIONS)


@pytest.mark.parametrize(
    ("query", "body", "place"),
    [
        ("limit=0", {"ids": ["a"]}, {"parameter": "limit"}),
        ("half_life=soon", {"ids": ["a"]}, {"parameter": "half_life"}),
        ("since=yesterday", {"ids": ["a"]}, {"parameter": "since"}),
        ("lang=qq", {"ids": ["a"]}, {"parameter": "lang"}),
        ("", {"ids": ["a"], "limit": 0}, {"pointer": "#/limit"}),
        ("", {"ids": ["a"], "half_life": "2 days"}, {"pointer": "#/half_life"}),
        ("", {"ids": ["a"], "until": "1500-01-01T00:00:00Z"}, {"pointer": "#/until"}),
        ("", {"ids": ["a"], "lang": "qq"}, {"pointer": "#/lang"}),
        ("", {"ids": ["a", ""]}, {"pointer": "#/ids/1"}),
        ("", {"ids": ["a", 7]}, {"pointer": "#/ids/1"}),
        ("", {"ids": ["a"], "text": "x"}, {"pointer": "#/ids"}),
        ("", {"ids": [{"id": "a", "read_at": "1500-01-01T00:00:00Z"}]}, {"pointer": "#/ids/0/read_at"}),
        ("", {"text": ""}, {"pointer": "#/text"}),
        ("limit=5", {"ids": ["a"], "limit": 6}, {"parameter": "limit"}),
    ],
)
async def test_an_error_says_where_it_stands(
    client: Client, stored: None, query: str, body: dict[str, Any], place: dict[str, str]
) -> None:
    """A parameter of the query, or a member of the body."""
    response = await client.post(f"/v1/related?{query}", json=body)
    problem = await response.json(content_type="application/problem+json")

    assert response.status == 400
    assert problem["errors"][0].items() >= place.items()


async def test_times_of_reading(client: Client, stored: None, service: FakeService) -> None:
    """An id without a time counts as read last, and a repeated one by its latest time."""
    early, late = "2026-09-20T08:00:00Z", "2026-09-21T08:00:00Z"
    ids = [
        {"id": "a", "read_at": late},
        "b",
        {"id": "a", "read_at": early},
        {"id": "ghost", "read_at": early},
    ]
    body = await (await client.post("/v1/related", json={"ids": ids})).json()

    assert service.read_ms == {"ghost": 1_789_891_200_000, "a": 1_789_977_600_000, "b": 1_789_977_600_000}
    assert body == {"related": [], "not_found": ["ghost"]}


async def test_a_new_reader_gets_one_article_of_each_top_story(
    client: Client, stored: None, service: FakeService
) -> None:
    """The largest story first; that of its headline, or another that passes."""
    small = event("s", "Small", ("c", "a"), headline_id="gone", timeline=((START_MS - HOUR_MS, 2),))
    large = event("l", "Large", ("b",), headline_id="b", timeline=((START_MS - HOUR_MS, 9),))
    service.fake_events.stories = [TopStory(e, START_MS - HOUR_MS, True, 0) for e in (small, large)]
    answers = [
        await client.get("/v1/related"),
        await client.post("/v1/related", json={}),
        await client.post("/v1/related", json={"ids": []}),
    ]

    assert [[i["id"] for i in (await a.json())["related"]] for a in answers] == [["b", "a"]] * 3
    for query, expected in (("limit=1", ["b"]), ("exclude_ids=b", ["a"]), ("source=Post", [])):
        found = await (await client.get(f"/v1/related?{query}")).json()
        assert [item["id"] for item in found["related"]] == expected


async def test_a_story_is_told_once_to_a_new_reader(
    client: Client, stored: None, service: FakeService
) -> None:
    """Other articles of a top story are no recent subjects, however they are worded."""
    story = event("l", "Large", ("b", "a"), headline_id="b", timeline=((START_MS - HOUR_MS, 9),))
    groups = [(await service.get(id_)).group for id_ in ("a", "b")]
    for stories in ([TopStory(story, START_MS - HOUR_MS, True, 0)], []):
        service.fake_events.stories = stories
        service.fake_events.event_ids = dict.fromkeys(groups, "l")
        found = await (await client.get("/v1/related")).json()
        assert len(found["related"]) == 1


@pytest.mark.parametrize("body", [{"id": "a"}, {"url": "https://post.example/a"}])
async def test_an_article_without_content_is_asked_for_by_ids(
    client: Client, stored: None, body: dict[str, str]
) -> None:
    """What is given names a stored article, so the answer says how these are asked for."""
    response = await client.post("/v1/related", json=body)

    assert response.status == 400
    assert (await response.json(content_type=None))["errors"][0]["detail"] == (
        "ids: give the ids of stored articles, or a title, text or html."
    )


async def test_a_batch_has_a_list_for_each_id(client: Client, stored: None) -> None:
    """In their order, each once; unknown ones are named."""
    response = await client.post("/v1/related/batch", json={"ids": ["b", "ghost", "a", "b"], "limit": 1})
    body = await response.json()

    assert [(each["id"], [i["id"] for i in each["related"]]) for each in body["lists"]] == [
        ("b", ["a"]),
        ("a", ["b"]),
    ]
    assert body["not_found"] == ["ghost"]
    assert (await client.post("/v1/related/batch", json={"ids": ["a"] * 101})).status == 400


@pytest.fixture
async def page() -> AsyncIterator[Client]:
    """A client with the key of a public page, at most one request per second and address."""
    settings = Settings(store_url="memory", related_rate_limit_per_second=1.0, trusted_proxies="127.0.0.1")
    service = FakeService(settings)
    _, admin = await service.edge.api_keys.add("Ada", "admin")
    _, key = await service.edge.api_keys.add("page", "related")
    async with serving(service) as client:
        client.session.headers["Authorization"] = f"Bearer {admin}"
        for id_ in ("a", "b"):
            await client.post("/v1/articles", json={"id": id_, "text": f"Text of {id_}.", "source": "Post"})
        client.session.headers["Authorization"] = f"Bearer {key}"
        client.session.headers["Origin"] = "https://news.example"
        yield client


async def test_a_page_gets_five_fields_that_any_cache_may_keep(page: Client) -> None:
    """With a strong ETag, for every page; nothing in it depends on the caller. It gets nothing else."""
    refused = await (await page.get("/v1/articles/a")).json(content_type=None)
    response = await page.get("/v1/articles/a/related")
    tag = response.headers["ETag"]
    again = await page.get("/v1/articles/a/related", headers={"If-None-Match": tag})

    assert (await response.json())["related"] == [
        {"id": "b", "title": "", "url": "", "source": "Post", "published_at": None}
    ]
    assert (again.status, again.headers["ETag"]) == (304, tag)
    for answer in (response, again):
        assert answer.headers["Cache-Control"] == "public, max-age=60"
        assert answer.headers["Vary"] == "Authorization"
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert not tag.startswith("W/")
    assert refused["detail"].endswith("not permit this; these do: crawler, reader, editor, admin.")


async def test_a_page_may_send_its_key(page: Client) -> None:
    """The preflight of a browser succeeds for these addresses only; the script may be loaded anywhere."""
    asked = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}
    for path, allowed in (("/v1/articles/a/related", "*"), ("/v1/related", "*"), ("/v1/articles/a", None)):
        preflight = await page.options(path, headers=asked)
        assert (preflight.status, preflight.headers.get("Access-Control-Allow-Origin")) == (204, allowed)
        assert ("Authorization" in preflight.headers.get("Access-Control-Allow-Headers", "")) == bool(allowed)
    script = await page.get("/static/related.js")
    assert script.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert script.headers["Cache-Control"] == "public, max-age=3600"
    assert (await page.get("/static/live.js")).headers["Cross-Origin-Resource-Policy"] == "same-origin"


async def test_requests_of_a_page_are_limited_by_address(page: Client) -> None:
    """A reader does not use up the limit of another; each list of a batch counts."""
    statuses = [(await page.get("/v1/related")).status for _ in range(4)]
    headers = {"X-Forwarded-For": "192.0.2.7"}
    del page.session.headers["Origin"]  # as a server sends it
    batch = await page.post("/v1/related/batch", json={"ids": ["a", "b"]}, headers=headers)
    late = await page.get("/v1/related", headers=headers)

    assert statuses == [200, 200, 429, 429]
    assert (batch.status, late.status) == (200, 429)
