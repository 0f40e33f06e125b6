"""Routes of related articles and of comparisons."""

from typing import Any

import pytest

from tests.support.fake_service import Client, FakeService

pytestmark = pytest.mark.integration


@pytest.fixture
async def stored(client: Client) -> None:
    """Two stored articles."""
    for id_ in ("a", "b"):
        await client.post(
            "/v1/articles", json={"id": id_, "title": f"Title {id_}", "text": f"Text of {id_}."}
        )


async def test_related_of_a_stored_article(client: Client, stored: None) -> None:
    """Related articles with metadata, without the article itself."""
    body = await (
        await client.get("/v1/articles/a/related?limit=5&source=x&since=2026-01-01T00:00:00+01:00")
    ).json()

    assert body == {
        "related": [
            {
                "id": "b",
                "title": "Title b",
                "url": "",
                "source": "",
                "published_at": None,
                "distance": 5,
                "similarity": 0.5,
            }
        ]
    }


async def test_related_by_content_and_by_ids(client: Client, stored: None, service: FakeService) -> None:
    """Neither stores anything."""
    by_text = await (await client.post("/v1/related", json={"title": "Bridge"})).json()
    by_ids = await (await client.post("/v1/related?limit=3", json={"ids": ["a"]})).json()

    assert [item["id"] for item in by_text["related"]] == ["a", "b"]
    assert [item["id"] for item in by_ids["related"]] == ["b"]
    assert set(service.stored) == {"a", "b"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"ids": []}, "ids"),
        ({"ids": ["a"] * 21}, "ids"),
        ({"ids": ["a", ""]}, "ids[1]"),
        ({"ids": ["a", 7]}, "ids[1]"),
        ({"ids": ["a"], "text": "x"}, "ids"),
        ({}, "text"),
    ],
)
async def test_invalid_related_requests_are_rejected(
    client: Client, stored: None, body: dict[str, Any], field: str
) -> None:
    """Either ids or an article is required."""
    response = await client.post("/v1/related", json=body)
    problem = await response.json(content_type="application/problem+json")

    assert (response.status, problem["field"]) == (400, field)


async def test_an_empty_related_request_names_both_options(client: Client, stored: None) -> None:
    """An article or ids."""
    response = await client.post("/v1/related", json={})

    assert response.status == 400
    assert (await response.json())["detail"].startswith(
        "text: give an article by text, html or title, or the ids"
    )


async def test_unknown_ids_do_not_fail_the_others(client: Client, stored: None) -> None:
    """200 with what the other ids are related to, and the names of those that are not stored."""
    some = await client.post("/v1/related", json={"ids": ["a", "ghost"]})
    none = await client.post("/v1/related", json={"ids": ["ghost"]})
    body = await some.json()

    assert (some.status, none.status) == (200, 200)
    assert ([item["id"] for item in body["related"]], body["not_found"]) == (["b"], ["ghost"])
    assert await none.json() == {"related": [], "not_found": ["ghost"]}


async def test_explain_accepts_ids_and_articles(client: Client, stored: None) -> None:
    """On either side."""
    body = await (await client.post("/v1/explain", json={"a": "a", "b": {"title": "Pasted"}})).json()

    assert body["a"]["label"] == "a"
    assert body["b"]["label"] == "Pasted"
    assert body["overlap"] == {
        "containment": 0.5, "resemblance": 0.25, "shared": 12.0, "opening": 0.0, "common_opening": 0.0,
        "length_ratio": 0.0,
    }  # fmt: skip
    assert (body["headline_similarity"], body["same_outlet"], body["hours_apart"]) == (0.2, False, None)
    assert body["related_similarity"] == 0.6
    assert len(body["differing_bits"]) == body["distance"]


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"a": "a"}, 400, "b"),
        ({"a": "a", "b": 3}, 400, "b"),
        ({"a": "a", "b": {"text": ""}}, 400, "b.text"),
        ({"a": {"title": 1}, "b": "a"}, 400, "a.title"),
        ({"a": "", "b": "a"}, 400, "a"),
        ({"a": "a", "b": "ghost"}, 404, None),
    ],
)
async def test_invalid_explain_requests_are_rejected(
    client: Client, stored: None, body: dict[str, Any], status: int, field: str | None
) -> None:
    """The field names the side."""
    response = await client.post("/v1/explain", json=body)
    problem = await response.json(content_type="application/problem+json")

    assert (response.status, problem.get("field")) == (status, field)


@pytest.mark.parametrize(
    ("tag", "lang"),
    [("de", "de"), ("de-AT", "de"), ("ENG", "en"), ("zh_Hant", "zh"), ("und", "und"), ("", None)],
)
async def test_the_language_filter_accepts_language_tags(
    client: Client, stored: None, service: FakeService, tag: str, lang: str | None
) -> None:
    """Tags are mapped to the language that articles are stored with."""
    response = await client.get(f"/v1/articles/a/related?lang={tag}")

    assert response.status == 200
    assert service.related_filter.lang == lang


@pytest.mark.parametrize("tag", ["qq", "english-", "*"])
async def test_an_unknown_language_filter_is_rejected(client: Client, stored: None, tag: str) -> None:
    """It would silently find nothing."""
    response = await client.get(f"/v1/articles/a/related?lang={tag}")
    problem = await response.json(content_type="application/problem+json")

    assert (response.status, problem["field"]) == (400, "lang")
    assert 'a language tag such as "en"' in problem["detail"] or 'a tag such as "en"' in problem["detail"]
