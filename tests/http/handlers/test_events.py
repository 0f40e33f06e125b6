"""Events over HTTP."""

import re

import pytest

from aggregator.errors import Conflict
from tests.support.factories import event


async def test_list_and_filters(client, service):
    """The list carries what an editor needs; filters reach the events as plain values."""
    service.events.told = [
        event("e1", "Bridge closed", ("a", "b")),
        event("e2", "Old", (), status="closed"),
    ]
    everything = await (await client.get("/v1/events")).json()
    closed = await (await client.get("/v1/events?status=closed&since=2026-11-20T00:00:00Z&limit=5")).json()

    assert [one["id"] for one in everything["events"]] == ["e1", "e2"]
    assert everything["events"][0]["size"] == 2
    assert everything["events"][0]["detected_at"].endswith("Z")
    assert "items" not in everything["events"][0]
    assert [one["id"] for one in closed["events"]] == ["e2"]
    assert service.events.asked == {"status": "closed", "since_ms": 1_795_132_800_000, "limit": 6}


async def test_special_report(client, service):
    """The detail names all items and shows those that are still stored."""
    await client.post("/v1/articles", json={"id": "a", "title": "Bridge closed", "text": "It is closed."})
    service.events.told = [event("e1", "Bridge closed", ("a", "gone"))]
    body = await (await client.get("/v1/events/e1")).json()

    assert body["items"] == ["a", "gone"] and body["cosines"] == [1.0, 1.0]
    assert body["first_source"] == "one.example"
    assert [article["id"] for article in body["articles"]] == ["a"]
    assert [point["items"] for point in body["timeline"]] == [4, 12]


async def test_unknown_event_is_404(client):
    """An id that no event has."""
    response = await client.get("/v1/events/none")

    assert response.status == 404


async def test_unknown_status_names_those_there_are(client):
    """A misspelt status is refused with the list of what may stand there."""
    response = await client.get("/v1/events?status=hot")

    assert response.status == 400
    assert (await response.json())["detail"] == "status: expected one of breaking, closed, emerging, fading."


async def test_a_merged_event_redirects_to_the_one_that_goes_on(client, service):
    """Its address stays good for ever."""
    service.events.told = [event("e1", "Old", merged_into="e2", status="closed"), event("e2", "New")]

    bare = await client.get("/v1/events/e1", allow_redirects=False)
    followed = await client.get("/v1/events/e1")

    assert (bare.status, bare.headers["Location"]) == (308, "/v1/events/e2")
    assert (await followed.json())["id"] == "e2"


async def test_an_action_is_carried_out_and_shown(client, service):
    """The answer is the event as it stands then, with who and when."""
    service.events.told = [event("e1", "Bridge closed")]
    body = {"action": "mute", "actor": " Ada\n", "scope": "routine"}

    answer = await (await client.post("/v1/events/e1/actions", json=body)).json()

    assert (answer["muted"], answer["false_alarm"], answer["acknowledged_by"]) == ("routine", False, None)
    (done,) = answer["actions"]
    assert (done["action"], done["actor"], done["scope"]) == ("mute", "Ada", "routine")
    assert done["at"].endswith("Z")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"action": "acknowledge"}, "actor"),
        ({"action": "acknowledge", "actor": " "}, "actor"),
        ({"action": "praise", "actor": "Ada"}, "action"),
        ({"action": "merge", "actor": "Ada"}, "into"),
        ({"action": "remove_item", "actor": "Ada"}, "item"),
        ({"action": "acknowledge", "actor": "Ada", "into": "e2"}, "into"),
        ({"action": "mute", "actor": "Ada", "scope": "all"}, "scope"),
        ({"action": "merge", "actor": "Ada", "into": ""}, "into"),
    ],
)
async def test_an_action_that_makes_no_sense_is_refused(client, service, body, field):
    """400, and the sentence names the field."""
    service.events.told = [event("e1", "Bridge closed")]

    response = await client.post("/v1/events/e1/actions", json=body)

    assert response.status == 400
    assert (await response.json())["detail"].startswith(f"{field}: ")


async def test_an_unknown_action_is_answered_with_those_that_there_are(client):
    """An editor's program learns from the refusal what it may send."""
    response = await client.post("/v1/events/e1/actions", json={"action": "pin", "actor": "Ada"})

    told = (await response.json())["detail"]
    assert response.status == 400
    assert told.startswith("action: expected one of ")
    assert {"acknowledge", "merge", "mute", "remove_item"} <= set(re.findall(r"\w+", told))


async def test_an_action_on_an_unknown_event_is_404(client):
    """As reading it is."""
    response = await client.post("/v1/events/none/actions", json={"action": "acknowledge", "actor": "Ada"})

    assert response.status == 404


async def test_an_action_that_cannot_be_is_409(client, service):
    """A conflict with what is stored is told apart from a mistake in the request."""
    service.failure = Conflict("into: event e2 is closed and e1 is not; merge it the other way round.")
    body = {"action": "merge", "actor": "Ada", "into": "e2"}

    response = await client.post("/v1/events/e1/actions", json=body)

    assert response.status == 409
    assert (await response.json())["code"] == "conflict"
