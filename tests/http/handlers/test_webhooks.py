"""Routes of webhooks."""

from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.support.fake_service import Client, FakeService, serving


@pytest.fixture
async def hook(client: Client) -> dict[str, Any]:
    """A registered webhook."""
    response = await client.post(
        "/v1/webhooks", json={"url": "https://desk.example/in", "query": "min_size=20"}
    )
    assert response.status == 201
    created: dict[str, Any] = await response.json()
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
        ({"url": "https://desk.example/", "watch": "none"}, 404, "watch"),
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
    service.webhook_dispatcher._allow_private = True
    async with TestServer(app) as receiver, serving(service) as client:
        created = await (
            await client.post("/v1/webhooks", json={"url": str(receiver.make_url("/in"))})
        ).json()
        path = f"/v1/webhooks/{created['id']}/actions"
        good = await client.post(path, json={"action": "ping"})
        bad = await client.post(path, json={"action": "ping"})
        detail = (await bad.json(content_type=None))["detail"]
    await service.webhook_dispatcher.close()

    assert (good.status, bad.status) == (200, 409)
    assert "answered with status 500" in detail
