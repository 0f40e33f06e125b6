"""Related articles and explanations over HTTP."""

import pytest


@pytest.fixture
async def stored(client):
    """Two stored articles."""
    for id_ in ("a", "b"):
        await client.post(
            "/v1/articles", json={"id": id_, "title": f"Title {id_}", "text": f"Text of {id_}."}
        )


async def test_related_of_a_stored_article(client, stored):
    """Neighbours come with their metadata; the article itself is not among them."""
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


async def test_related_of_a_text_and_of_ids(client, stored, service):
    """A text that is not stored, or ids just read; nothing is stored by asking."""
    by_text = await (await client.post("/v1/related", json={"title": "Bridge"})).json()
    by_ids = await (await client.post("/v1/related?limit=3", json={"ids": ["a"]})).json()

    assert [item["id"] for item in by_text["related"]] == ["a", "b"]
    assert [item["id"] for item in by_ids["related"]] == ["b"]
    assert set(service.articles) == {"a", "b"}


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
async def test_bad_related_requests(client, stored, body, field):
    """Ids or an article, not both, not neither."""
    response = await client.post("/v1/related", json=body)
    told = await response.json(content_type="application/problem+json")

    assert (response.status, told["field"]) == (400, field)


async def test_related_of_nothing_names_both_ways_to_ask(client, stored):
    """Who gives neither learns of ids, too."""
    response = await client.post("/v1/related", json={})

    assert response.status == 400
    assert (await response.json())["detail"].startswith(
        "text: give an article by text, html or title, or the ids"
    )


async def test_related_of_unknown_ids_is_404(client, stored):
    """The id that is not stored is named."""
    response = await client.post("/v1/related", json={"ids": ["a", "ghost"]})

    assert response.status == 404
    assert "ghost" in (await response.json(content_type=None))["detail"]


async def test_explain_ids_and_texts(client, stored):
    """Either side may be an id or an article."""
    body = await (await client.post("/v1/explain", json={"a": "a", "b": {"title": "Pasted"}})).json()

    assert body["a"]["label"] == "a"
    assert body["b"]["label"] == "Pasted"
    assert body["overlap"] == {"containment": 0.5, "resemblance": 0.25, "shared": 12.0}
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
async def test_bad_explain_requests(client, stored, body, status, field):
    """The side that is wrong is named."""
    response = await client.post("/v1/explain", json=body)
    told = await response.json(content_type="application/problem+json")

    assert (response.status, told.get("field")) == (status, field)


@pytest.mark.parametrize(
    ("tag", "lang"),
    [("de", "de"), ("de-AT", "de"), ("ENG", "en"), ("zh_Hant", "zh"), ("und", "und"), ("", None)],
)
async def test_related_takes_the_language_tags_that_articles_do(client, stored, service, tag, lang):
    """The filter speaks of the language under which an article with this tag is stored."""
    response = await client.get(f"/v1/articles/a/related?lang={tag}")

    assert response.status == 200
    assert service.wanted.lang == lang


@pytest.mark.parametrize("tag", ["qq", "english-", "*"])
async def test_related_in_no_language_is_refused(client, stored, tag):
    """What names no language would find nothing, silently."""
    response = await client.get(f"/v1/articles/a/related?lang={tag}")
    told = await response.json(content_type="application/problem+json")

    assert (response.status, told["field"]) == (400, "lang")
    assert 'a language tag such as "en"' in told["detail"] or 'a tag such as "en"' in told["detail"]
