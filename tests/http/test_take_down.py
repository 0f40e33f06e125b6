"""Taking an article down over the real service: who may, what is answered afterwards, what is audited."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator

import pytest

from aggregator.app import open_service
from aggregator.auth.api_keys import ROLE_PERMISSIONS
from aggregator.settings import Settings
from tests.support.fake_service import Client, serving

pytestmark = pytest.mark.integration

TEXT = "The lighthouse keeper of Estmark has been named in a report that a court has ordered removed today."
OTHER = "A court has ordered a report about the lighthouse of Estmark removed; the town comments on Friday."
PATH = "/v1/articles/radio.example%2Fkeeper"
ARTICLE = {"url": "https://radio.example/keeper", "title": "Keeper named", "text": TEXT}

Keys = dict[str, dict[str, str]]


@pytest.fixture
def keys() -> Keys:
    """Headers of each role; filled by ``client``."""
    return {}


@pytest.fixture
async def client(keys: Keys) -> AsyncIterator[Client]:
    """A service that requires keys and has the article."""
    async with open_service(Settings(store_url="memory")) as service, serving(service) as client:
        for role in ROLE_PERMISSIONS:
            _, text = await service.edge.api_keys.add(role, role)
            keys[role] = {"Authorization": f"Bearer {text}"}
        _, text = await service.edge.api_keys.add("bound", "crawler", sources=("Radio",))
        keys["bound"] = {"Authorization": f"Bearer {text}"}
        assert (await client.post("/v1/articles", json=ARTICLE, headers=keys["crawler"])).status == 201
        yield client


@pytest.mark.parametrize("value", ["true", "false"])
async def test_only_editors_and_admins_take_down_and_lift(client: Client, keys: Keys, value: str) -> None:
    """A crawler's key deletes only; an editor's takes down only."""
    for role in ("crawler", "bound", "reader"):
        answer = await client.delete(PATH, params={"take_down": value}, headers=keys[role])
        assert (answer.status, (await answer.json())["code"]) == (403, "forbidden")
    assert (await client.delete(PATH, headers=keys["editor"])).status == 403
    assert (await client.get(PATH, headers=keys["crawler"])).status == 200
    for role in ("editor", "admin"):
        await client.post("/v1/articles", json=ARTICLE, headers=keys["crawler"])
        for take_down in ("true", "false"):
            answer = await client.delete(PATH, params={"take_down": take_down}, headers=keys[role])
            assert answer.status == 204


async def test_the_next_poll_is_answered_410_until_it_is_lifted(
    client: Client, keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    """As a problem of its own code, in batches in the line of the article; the audit log says which call."""
    caplog.set_level(logging.INFO, "aggregator.audit")
    crawler, editor = keys["crawler"], keys["editor"]

    await client.delete(PATH, params={"take_down": "true"}, headers=editor)

    assert caplog.messages[-1].startswith(f"deleteArticle {PATH}?take_down=true by='editor' ")
    answer = await client.post("/v1/articles", json=ARTICLE, headers=crawler)
    problem = await answer.json()
    assert (answer.status, problem["code"]) == (410, "taken_down")
    assert problem["detail"] == (
        "The text of the article 'radio.example/keeper' was taken down; it is not stored."
    )
    lines = [{"id": "copy", "text": TEXT, "title": "Keeper named"}, {"id": "other", "text": OTHER}]
    body = "\n".join(map(json.dumps, lines))
    batch = await client.post("/v1/articles/batch", data=body, headers=crawler)
    refused, stored = map(json.loads, (await batch.text()).splitlines())
    assert (refused["line"], refused["error"]["code"], refused["error"]["status"]) == (1, "taken_down", 410)
    assert stored["verdict"] == "new"
    scrape = await (await client.get("/metrics", headers=keys["admin"])).text()
    assert 'aggregator_articles_rejected_total{code="taken_down"} 2.0' in scrape

    await client.delete(PATH, params={"take_down": "false"}, headers=editor)

    assert (await client.post("/v1/articles", json=ARTICLE, headers=crawler)).status == 201
    again = await client.delete(PATH, params={"take_down": "false"}, headers=editor)
    assert again.status == 404
    assert (await client.get(PATH, headers=crawler)).status == 200
