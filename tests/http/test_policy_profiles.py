"""Policy profiles over the real service: by source, by request, repeated posts, explanation, metrics."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from aggregator.app import Service, open_service
from aggregator.settings import Settings
from tests.support.factories import edited, story
from tests.support.fake_service import Client, serving

pytestmark = pytest.mark.integration

FILE = """
[profiles.wire]
updates_are_new = true

[profiles.paper]
policy = "hamming"
duplicate_bits = 0

[[rules]]
sources = ["*.wire.example", "Coastline Wire"]
profile = "wire"
"""
FIRST = {"id": "first", "text": "At least 12 people were hurt. " + story(1), "source": "Harbour Post"}
# Other figures: a duplicate by default, related under the profile wire.
UPDATE = {"text": "At least 15 people were hurt. " + story(1)}


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """A service in memory with two profiles."""
    file = tmp_path / "profiles.toml"
    file.write_text(FILE)
    async with open_service(Settings(store_url="memory", policy_profiles_file=str(file))) as opened:
        yield opened


@pytest.fixture
async def client(service: Service) -> AsyncIterator[Client]:
    """A client of the service, which has one article."""
    async with serving(service) as opened:
        assert (await opened.post("/v1/articles", json=FIRST)).status == 201
        yield opened


async def verdict(client: Client, body: dict[str, Any], query: str = "?dry_run=true") -> str:
    """The verdict on an article, by default of a dry run."""
    response = await client.post(f"/v1/articles{query}", json=body)
    answer = await response.json(content_type=None)
    assert response.status in (200, 201), answer
    return str(answer["verdict"])


async def lines(client: Client, query: str, *bodies: dict[str, Any]) -> list[dict[str, Any]]:
    """The answer lines of a batch."""
    data = "".join(json.dumps(body) + "\n" for body in bodies)
    response = await client.post(f"/v1/articles/batch{query}", data=data)
    return [json.loads(line) for line in (await response.text()).splitlines()]


@pytest.mark.parametrize(
    ("source", "expected"),
    [("coastline WIRE", "related"), ("a.wire.example", "related"), ("Harbour Post", "duplicate")],
)
async def test_the_source_selects_the_policy(client: Client, source: str, expected: str) -> None:
    """The same text gets different verdicts, by the outlet that sent it."""
    assert await verdict(client, {**UPDATE, "source": source}) == expected


async def test_the_request_selects_the_policy(client: Client) -> None:
    """By a field of the article, else by the query; both take precedence over the source."""
    wire = {**UPDATE, "source": "Coastline Wire"}

    assert await verdict(client, {**UPDATE, "policy": "wire"}) == "related"
    assert await verdict(client, UPDATE, "?dry_run=true&policy=wire") == "related"
    assert await verdict(client, {**wire, "policy": "default"}) == "duplicate"
    assert await verdict(client, wire, "?dry_run=true&policy=default") == "duplicate"
    assert await verdict(client, {**wire, "policy": "wire"}, "?dry_run=true&policy=default") == "related"
    assert await verdict(client, {**wire, "policy": None}) == "related"
    assert await verdict(client, {**UPDATE, "policy": ""}) == "duplicate"


async def test_each_line_of_a_batch_has_its_own_policy(client: Client) -> None:
    """The query applies to the lines that name no profile."""
    answers = await lines(
        client,
        "?dry_run=true&policy=wire",
        {**UPDATE, "id": "a"},
        {**UPDATE, "id": "b", "policy": "default"},
        {**UPDATE, "id": "c", "policy": "wires"},
        {**UPDATE, "id": "d"},
    )

    assert [answer.get("verdict") for answer in answers] == ["related", "duplicate", None, "related"]
    assert (answers[2]["line"], answers[2]["error"]["field"]) == (3, "policy")


@pytest.mark.parametrize("path", ["/v1/articles", "/v1/articles?dry_run=true", "/v1/articles/batch"])
async def test_an_unknown_profile_is_refused_with_the_known_names(client: Client, path: str) -> None:
    """Nothing is stored; a batch whose query names it is refused as a whole."""
    separator = "&" if "?" in path else "?"
    response = await client.post(f"{path}{separator}policy=wires", json={**UPDATE, "id": "new"})
    problem = await response.json(content_type=None)

    assert (response.status, problem["code"], problem["field"]) == (400, "bad_input", "policy")
    assert problem["errors"][0]["parameter"] == "policy"
    assert (
        problem["detail"]
        == "policy: unknown profile 'wires'; did you mean 'wire'? known: default, wire, paper."
    )
    assert (await client.get("/v1/articles/new")).status == 404


async def test_a_repeated_post_returns_the_stored_verdict(client: Client) -> None:
    """Under any profile, and so does an update of the text."""
    body = {**UPDATE, "id": "repeated"}
    first = await verdict(client, {**body, "policy": "wire"}, "")
    again = [await verdict(client, {**body, "policy": name}, "") for name in ("default", "paper", "wire")]
    update = {"id": "repeated", "text": f"{UPDATE['text']} {story(7)}", "policy": "default"}
    updated = await verdict(client, update, "")

    assert [first, *again, updated] == ["related"] * 5
    assert (await (await client.get("/v1/articles/repeated")).json())["verdict"] == "related"


async def test_articles_of_one_batch_are_judged_by_their_own_policies(client: Client) -> None:
    """An edited copy is a duplicate by wording; the paper's rule at 0 bits calls it related or new."""
    copy = edited(story(3), 1)
    answers = await lines(
        client,
        "",
        {"id": "original", "text": story(3)},
        {"id": "by paper", "text": copy, "policy": "paper"},
        {"id": "by default", "text": edited(story(3), 2)},
    )

    assert answers[0]["verdict"] == "new"
    assert answers[1]["verdict"] != "duplicate" and answers[1]["distance"] != 0
    assert answers[2]["verdict"] == "duplicate"


async def test_explain_names_the_profile(client: Client) -> None:
    """That of the article that arrived later, by its source, or the one of the request."""
    await client.post("/v1/articles", json={**UPDATE, "id": "second", "source": "Coastline Wire"})

    async def explain(**body: Any) -> tuple[str, bool]:
        response = await client.post("/v1/explain", json={"a": "first", "b": "second"} | body)
        assert response.status == 200, await response.text()
        found = await response.json()
        assert ("Policy profile:" in found["summary"]) == (found["policy"] != "default")
        return found["policy"], found["is_copy"]

    assert await explain() == ("wire", False)
    assert await explain(a="second", b="first") == ("wire", False)
    assert await explain(policy="default") == ("default", True)
    assert await explain(b=UPDATE) == ("default", True)
    assert await explain(b={**UPDATE, "source": "x.wire.example"}) == ("wire", False)
    assert await explain(b={**UPDATE, "policy": "wire"}) == ("wire", False)
    unknown = await client.post("/v1/explain", json={"a": "first", "b": "second", "policy": "wires"})
    assert unknown.status == 400
    assert "known: default, wire, paper" in (await unknown.json(content_type=None))["detail"]


async def test_the_comparison_page_uses_the_profile_of_the_source(client: Client) -> None:
    """As /v1/explain."""
    await client.post("/v1/articles", json={**UPDATE, "id": "second", "source": "Coastline Wire"})

    assert "Policy profile: wire." in await (await client.get("/compare?a=first&b=second")).text()


async def test_verdicts_are_counted_per_profile(client: Client) -> None:
    """Only profiles of the file are values of the label, all of them from the start."""
    await client.post("/v1/articles", json={**UPDATE, "source": "Coastline Wire"})
    await client.post("/v1/articles?policy=wires", json=UPDATE)
    text = await (await client.get("/metrics")).text()

    assert 'aggregator_articles_total{policy="default",verdict="new"} 1.0' in text
    assert 'aggregator_articles_total{policy="wire",verdict="related"} 1.0' in text
    assert 'aggregator_articles_total{policy="paper",verdict="duplicate"} 0.0' in text
    assert "wires" not in text


async def test_profiles_are_listed_on_the_health_page_only(client: Client) -> None:
    """Readiness needs no key, so it does not name them."""
    assert "profiles: wire, paper" in await (await client.get("/health")).text()
    assert "wire" not in await (await client.get("/readyz")).text()


async def test_a_key_bound_to_a_source_selects_its_profile(service: Service) -> None:
    """The source comes from the key; a crawler's key may name a profile."""
    async with serving(service) as client:
        await service.edge.api_keys.add("Desk", "admin")
        _, key = await service.edge.api_keys.add("Wire", "crawler", sources=("Coastline Wire",))
        headers = {"Authorization": f"Bearer {key}"}

        async def post(body: dict[str, Any]) -> str:
            response = await client.post("/v1/articles", json=body, headers=headers)
            return str((await response.json())["verdict"])

        assert await post({"id": "one", "text": FIRST["text"]}) == "new"
        assert await post({**UPDATE, "id": "two", "policy": "default"}) == "duplicate"
        assert await post({**UPDATE, "id": "three"}) == "duplicate"  # equal to the text of "two"
        assert await post({"id": "four", "text": "At least 17 people were hurt. " + story(1)}) == "related"
