"""Announcement of routes that will go."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from aggregator.http import routes
from aggregator.http.deprecation import Deprecation
from aggregator.http.openapi import build_document
from aggregator.http.routes import ENDPOINTS
from aggregator.settings import Settings
from tests.support.fake_service import Client, FakeService, serving

OLD = Deprecation(datetime(2026, 11, 20, tzinfo=UTC), datetime(2027, 11, 20, tzinfo=UTC))
DEPRECATED = tuple(replace(e, deprecation=OLD) if e.operation_id == "getArticle" else e for e in ENDPOINTS)


async def test_a_deprecated_route_says_so_in_every_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors included; other routes, also of the same address, do not."""
    monkeypatch.setattr(routes, "ENDPOINTS", DEPRECATED)
    async with serving(FakeService()) as client:
        await client.post("/v1/articles", json={"id": "a", "text": "One text."})
        answers = [await client.get(f"/v1/articles/{id_}") for id_ in ("a", "none")]
        other = await client.delete("/v1/articles/a")

    assert [answer.status for answer in answers] == [200, 404]
    for answer in answers:
        assert answer.headers["Deprecation"] == "@1795132800"
        assert answer.headers["Sunset"] == "Sat, 20 Nov 2027 00:00:00 GMT"
        assert answer.headers["Link"] == '</docs#getArticle>; rel="deprecation"; type="text/html"'
    assert "Deprecation" not in other.headers


async def test_the_link_is_below_the_path_of_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the type of a problem is; both are read by clients that only know the public address."""
    monkeypatch.setattr(routes, "ENDPOINTS", DEPRECATED)
    async with serving(
        FakeService(Settings(store_url="memory", public_url="http://127.0.0.1/news"))
    ) as client:
        answer = await client.get("/v1/articles/none")
        problem = await answer.json(content_type="application/problem+json")

    assert answer.headers["Link"] == '</news/docs#getArticle>; rel="deprecation"; type="text/html"'
    assert (problem["type"], problem["instance"]) == ("/news/docs#error-not_found", "/news/v1/articles/none")


def test_the_document_marks_it() -> None:
    """The operation, and no other."""
    marked = [
        operation["operationId"]
        for path in build_document(DEPRECATED)["paths"].values()
        for operation in path.values()
        if operation.get("deprecated")
    ]

    assert marked == ["getArticle"]


async def test_nothing_is_deprecated_at_present(client: Client) -> None:
    """As docs/api-versioning.md states; with the first one, that sentence goes."""
    assert [e.operation_id for e in ENDPOINTS if e.deprecation is not None] == []
    assert "Deprecation" not in (await client.get("/v1/events")).headers
