"""Routes of webhooks."""

from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from aggregator.events.webhooks.subscriptions import MAX_SUBSCRIPTIONS
from tests.support.fake_service import Client, FakeService, serving

pytestmark = pytest.mark.integration


@pytest.fixture
async def hook(client: Client) -> dict[str, Any]:
    """A registered webhook."""
    response = await client.post(
        "/v1/webhooks", json={"url": "https://desk.example/in", "query": "min_size=20"}
    )
    assert response.status == 201
    created: dict[str, Any] = await response.json()
    assert response.headers["Location"] == f"/v1/webhooks/{created['id']}"
    return created


async def test_the_secret_is_shown_once(client: Client, hook: dict[str, Any]) -> None:
    """In the response to the registration only."""
    listed = (await (await client.get("/v1/webhooks")).json())["webhooks"]
    detail = await (await client.get(f"/v1/webhooks/{hook['id']}")).json()

    assert hook["secret"].startswith("whsec_")
    assert listed[0]["secret"] is None and detail["secret"] is None
    assert (listed[0]["queries"], detail["dead"], detail["owed"]) == (["min_size=20"], [], 0)


async def test_a_deleted_webhook_is_404(client: Client, hook: dict[str, Any]) -> None:
    """It could be enabled before."""
    path = f"/v1/webhooks/{hook['id']}"
    enabled = await client.post(path + "/actions", json={"action": "enable"})

    assert ((await client.delete(path)).status, (await client.get(path)).status, enabled.status) == (
        204,
        404,
        200,
    )


@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        ({"url": "http://desk.example/in"}, 400, "url"),
        ({"url": "https://192.168.0.1/in"}, 400, "url"),
        ({"url": "https://desk.example/", "query": "size=3"}, 400, "size"),
        ({"url": "https://desk.example/", "watch": "none"}, 400, "watch"),
        ({"url": "https://desk.example/", "format": "xml"}, 422, "format"),
    ],
)
async def test_invalid_webhooks_are_rejected(
    client: Client, body: dict[str, str], status: int, named: str
) -> None:
    """The message names the field."""
    response = await client.post("/v1/webhooks", json=body)

    assert response.status in (status, 400)
    assert named in (await response.json(content_type=None))["detail"]


async def test_ping_sends_a_test_delivery(service: FakeService) -> None:
    """The response reports whether the delivery succeeded."""
    statuses = [200, 500]

    async def receive(request: web.Request) -> web.Response:
        assert (await request.json())["type"] == "ping"
        return web.Response(status=statuses.pop(0))

    app = web.Application()
    app.router.add_post("/in", receive)
    service.settings = replace(service.settings, webhook_allow_private_addresses=True)
    service.background.webhook_dispatcher.sender.allow_private = True
    async with TestServer(app) as receiver, serving(service) as client:
        created = await (
            await client.post("/v1/webhooks", json={"url": str(receiver.make_url("/in"))})
        ).json()
        path = f"/v1/webhooks/{created['id']}/actions"
        good = await client.post(path, json={"action": "ping"})
        bad = await client.post(path, json={"action": "ping"})
        detail = (await bad.json(content_type=None))["detail"]
    await service.background.webhook_dispatcher.close()

    assert (good.status, bad.status) == (200, 409)
    assert "answered with status 500" in detail


async def test_a_repeated_post_creates_one_webhook(client: Client, hook: dict[str, Any]) -> None:
    """200 with the same id and secret, for a client whose answer was lost; the format counts."""
    body = {"url": hook["url"], "query": "min_size=20&lang="}
    again = await client.post("/v1/webhooks", json=body)
    repeated = await again.json()
    other = await client.post("/v1/webhooks", json={**body, "format": "slack"})

    assert (again.status, other.status) == (200, 201)
    assert (repeated["id"], repeated["secret"]) == (hook["id"], hook["secret"])
    assert len((await (await client.get("/v1/webhooks")).json())["webhooks"]) == 2


async def test_only_the_key_that_registered_a_webhook_gets_its_secret_again() -> None:
    """Another editor's registration of the same URL finds the webhook, without the secret."""
    service, answers = FakeService(), []
    keys = [(await service.edge.api_keys.add(name, "editor"))[1] for name in ("Ada", "Bob")]
    async with serving(service) as client:
        for key in (keys[0], keys[1], keys[0]):
            response = await client.post(
                "/v1/webhooks",
                json={"url": "https://desk.example/in"},
                headers={"Authorization": f"Bearer {key}"},
            )
            answers.append((response.status, await response.json()))

    assert [status for status, _ in answers] == [201, 200, 200]
    assert len({answer["id"] for _, answer in answers}) == 1
    assert answers[1][1]["secret"] is None
    assert answers[2][1]["secret"] == answers[0][1]["secret"]


async def test_one_key_registers_half_of_the_webhooks() -> None:
    """Another key's first one is still registered."""
    service = FakeService()
    keys = [await service.edge.api_keys.add(name, "editor") for name in ("Ada", "Bob")]
    async with serving(service) as client:
        for n in range(MAX_SUBSCRIPTIONS // 2):
            await service.events.subscriptions.subscribe(
                f"https://desk.example/{n}", (), "standard", 0, keys[0][0].id
            )
        responses = [
            await client.post(
                "/v1/webhooks",
                json={"url": "https://desk.example/more"},
                headers={"Authorization": f"Bearer {text}"},
            )
            for _, text in keys
        ]

    assert [response.status for response in responses] == [409, 201]
