"""Events over HTTP."""

from newsroom import event


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
    assert service.events.asked == {"status": "closed", "since_ms": 1_795_132_800_000, "limit": 5}


async def test_special_report(client, service):
    """The detail names all items and shows those that are still stored."""
    await client.post("/v1/articles", json={"id": "a", "title": "Bridge closed", "text": "It is closed."})
    service.events.told = [event("e1", "Bridge closed", ("a", "gone"))]
    body = await (await client.get("/v1/events/e1")).json()

    assert body["items"] == ["a", "gone"]
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
