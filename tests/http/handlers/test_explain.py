"""The route that compares two articles."""

from typing import Any

import pytest

from tests.support.fake_service import Client

pytestmark = pytest.mark.integration


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
    assert (body["is_copy"], body["keep"]) == (False, True)
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
