"""Routes of desks and their targets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.factories import event
from tests.support.fake_service import Client, FakeService

pytestmark = pytest.mark.integration

DESK = {
    "name": " Harbour ",
    "terms": ["bridge", "bridge", " Brackwater "],
    "alert_size": 20,
    "quiet_from": "22:00",
    "quiet_until": "06:30",
    "time_zone": "Europe/Berlin",
}


@pytest.fixture
async def desk(client: Client) -> dict[str, Any]:
    """A stored desk."""
    response = await client.post("/v1/desks", json=DESK)
    assert response.status == 201
    created: dict[str, Any] = await response.json()
    assert response.headers["Location"] == f"/v1/desks/{created['id']}"
    return created


async def test_a_desk_is_created_once(client: Client, desk: dict[str, Any]) -> None:
    """A repeated request answers the stored one; names and terms are on one line and distinct."""
    again = await client.post("/v1/desks", json={**DESK, "alert_size": 1})

    assert (again.status, await again.json()) == (200, desk)
    assert (desk["name"], desk["terms"], desk["alert_size"]) == ("Harbour", ["bridge", "Brackwater"], 20)
    assert (await (await client.get("/v1/desks")).json())["desks"] == [desk]


async def test_a_desk_is_replaced_and_deleted_with_its_targets(client: Client, desk: dict[str, Any]) -> None:
    """What is not named has its default."""
    path = f"/v1/desks/{desk['id']}"
    target = {"kind": "mail", "address": "desk@newsroom.example"}
    added = await client.post(path + "/targets", json=target)
    assert added.headers["Location"] == f"/v1/webhooks/{(await added.json())['id']}"
    changed = await (await client.put(path, json={"name": "Ports"})).json()
    deleted = await client.delete(path)

    assert (changed["id"], changed["name"], changed["terms"]) == (desk["id"], "Ports", [])
    assert (deleted.status, (await client.get(path)).status) == (204, 404)
    assert (await (await client.get("/v1/webhooks")).json())["webhooks"] == []


async def test_the_view_of_a_desk_is_a_filter(
    client: Client, service: FakeService, desk: dict[str, Any]
) -> None:
    """Its id is accepted by the list."""
    service.fake_events.stored = [
        event("e1", "Harbour bridge closed"),
        event("e2", "Bakery opens", terms=()),
    ]
    listed = await (await client.get(desk["events"])).json()

    assert [found["id"] for found in listed["events"]] == ["e1"]
    assert (await client.get("/v1/events?watch=none")).status == 404


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"name": " \n "}, "name"),
        ({"quiet_until": ""}, "quiet_until"),
        ({"quiet_from": "24:00"}, "quiet_from"),
        ({"time_zone": "Europe/Nowhere"}, "Europe/Nowhere"),
        ({"terms": ["x"] * 51}, "terms"),
        ({"languages": ["not a tag"]}, "languages"),
        ({"alert_size": -1}, "alert_size"),
        ({"place": "Brackwater"}, "place"),
    ],
)
async def test_invalid_desks_are_refused(client: Client, change: dict[str, Any], named: str) -> None:
    """The message names the field."""
    response = await client.post("/v1/desks", json={**DESK, **change})

    assert response.status == 400
    assert named in (await response.json(content_type=None))["detail"]


async def test_a_target_is_masked_and_added_once(client: Client, desk: dict[str, Any]) -> None:
    """The secret of a webhook is shown to the key that added it."""
    path = f"/v1/desks/{desk['id']}/targets"
    mail = {"kind": "mail", "address": "desk@newsroom.example"}
    added = await client.post(path, json=mail)
    again = await client.post(path, json=mail)
    webhook = await client.post(path, json={"kind": "webhook", "address": "https://desk.example/in"})
    listed = (await (await client.get("/v1/webhooks")).json())["webhooks"]

    assert (added.status, again.status) == (201, 200)
    assert "desk@" not in await added.text() + await again.text() + str(listed)
    assert [(t["kind"], t["url"], t["desk"]) for t in listed] == [
        ("mail", "d…@newsroom.example", desk["id"]),
        ("webhook", "https://desk.example/in", desk["id"]),
    ]
    assert (await added.json())["secret"] is None and (await webhook.json())["secret"].startswith("whsec_")


@pytest.mark.parametrize(
    "target",
    [
        {"kind": "mail", "address": "desk"},
        {"kind": "webhook", "address": "file:///etc/passwd"},
        {"kind": "webhook", "address": "https://192.168.0.1/in"},
        {"kind": "webhook", "address": "http://desk.example/in"},
        {"kind": "sms", "address": "1234"},
    ],
)
async def test_other_targets_are_refused(
    client: Client, desk: dict[str, Any], target: dict[str, str]
) -> None:
    """Nothing is stored."""
    response = await client.post(f"/v1/desks/{desk['id']}/targets", json=target)

    assert response.status == 400
    assert (await (await client.get("/v1/webhooks")).json())["webhooks"] == []


async def test_deliveries_are_suspended_and_resumed(client: Client, desk: dict[str, Any]) -> None:
    """The reason is shown; retrying and sending again need something to send."""
    path = f"/v1/desks/{desk['id']}/targets"
    target = await (
        await client.post(path, json={"kind": "webhook", "address": "https://desk.example/in"})
    ).json()
    actions = f"/v1/webhooks/{target['id']}/actions"
    suspended = await (await client.post(actions, json={"action": "disable"})).json()
    retried = await client.post(actions, json={"action": "retry"})
    resumed = await (await client.post(actions, json={"action": "enable"})).json()
    missing = await client.post(actions, json={"action": "resend", "delivery": "msg_1"})

    assert (suspended["disabled"], resumed["disabled"]) == ("paused by an editor", None)
    assert (retried.status, missing.status) == (200, 404)
