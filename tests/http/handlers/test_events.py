"""Event routes: list, report, editor actions."""

from __future__ import annotations

import html
import re

import pytest

from aggregator.errors import Conflict
from aggregator.events.detection.model import LearningStatus
from aggregator.events.detection.top_stories import TopStory
from aggregator.time_units import to_datetime
from tests.support.factories import EVENT_MS, event
from tests.support.fake_service import START_MS, Client, FakeService

pytestmark = pytest.mark.integration


async def test_the_list_applies_filters(client: Client, service: FakeService) -> None:
    """Items are omitted from the list; filters are passed on as plain values."""
    service.fake_events.stored = [
        event("e1", "Bridge closed", ("a", "b")),
        event("e2", "Old", (), status="closed"),
    ]
    everything = await (await client.get("/v1/events")).json()
    closed = await (await client.get("/v1/events?status=closed&since=2026-11-20T00:00:00Z&limit=5")).json()

    assert [item["id"] for item in everything["events"]] == ["e1", "e2"]
    assert everything["events"][0]["size"] == 2
    assert everything["events"][0]["detected_at"].endswith("Z")
    assert "items" not in everything["events"][0]
    assert [item["id"] for item in closed["events"]] == ["e2"]
    assert service.fake_events.last_query == {
        "status": "closed",
        "since_ms": 1_795_132_800_000,
        "limit": 6,
    }


async def test_the_list_says_how_much_the_detector_knows(client: Client, service: FakeService) -> None:
    """Rounded down; null when it knows its week, and before it has read anything."""
    answers = []
    for status in (None, LearningStatus(2.97), LearningStatus(7.0)):
        service.fake_events.learning_status = status
        answers.append((await (await client.get("/v1/events")).json())["learning"])

    assert answers == [None, {"known_days": 2.9, "needed_days": 7}, None]


async def test_the_report_lists_items_and_stored_articles(client: Client, service: FakeService) -> None:
    """All item ids, and the articles that are still stored."""
    await client.post("/v1/articles", json={"id": "a", "title": "Bridge closed", "text": "It is closed."})
    service.fake_events.stored = [event("e1", "Bridge closed", ("a", "gone"))]
    body = await (await client.get("/v1/events/e1")).json()

    assert body["items"] == ["a", "gone"] and body["cosines"] == [1.0, 1.0]
    assert body["first_source"] == "one.example"
    assert [article["id"] for article in body["articles"]] == ["a"]
    assert [point["items"] for point in body["timeline"]] == [4, 12]


async def test_a_storyline_has_its_events_and_their_headlines_by_day(
    client: Client, service: FakeService
) -> None:
    """An event names its neighbors; an unknown storyline is 404."""
    await client.post("/v1/articles", json={"id": "a", "title": "Bridge closed", "text": "It is closed."})
    service.fake_events.stored = [
        event("e1", "Bridge closed", ("a",), story_id="e1"),
        event("e2", "Bridge open again", ("gone",), story_id="e1"),
    ]
    body = await (await client.get("/v1/stories/e1")).json()
    first = await (await client.get("/v1/events/e1")).json()

    assert [e["id"] for e in body["events"]] == ["e1", "e2"]
    assert (body["id"], body["title"]) == ("e1", "Bridge open again")
    assert {(d["event_id"], d["title"]) for d in body["developments"]} >= {("e2", "Bridge open again")}
    assert all(len(d["day"]) == 10 and d["items"] for d in body["developments"])
    assert (first["story_id"], first["previous"], first["next"]) == ("e1", None, "e2")
    assert (await client.get("/v1/stories/none")).status == 404


async def test_top_stories_match_a_language_and_a_desk(client: Client, service: FakeService) -> None:
    """With the event and the storyline, and how many articles are missing."""
    bridge = event("e1", "Bridge closed", ["a"] * 16, languages=("en",))
    ferry = event("e2", "Ferry strike", languages=("de",), timeline=((EVENT_MS, 8),), headline_id="f1")
    service.fake_events.stories = [
        TopStory(bridge, EVENT_MS - 7_200_000, is_event=True, needed=0, story_id="e0"),
        TopStory(ferry, EVENT_MS, is_event=False, needed=16),
    ]

    body = await (await client.get("/v1/top-stories")).json()
    german = await (await client.get("/v1/top-stories?lang=de&hours=1")).json()
    recent = await (await client.get("/v1/top-stories?hours=1&limit=1")).json()

    first, second = body["stories"]
    assert (first["title"], first["items"], first["voices"]) == ("Bridge closed", 16, 2)
    assert (first["event_id"], first["storyline_id"], first["needed"]) == ("e1", "e0", None)
    assert (second["event_id"], second["storyline_id"], second["needed"]) == (None, None, 16)
    assert first["since"] < second["since"] and second["headline_id"] == "f1"
    assert [story["title"] for story in body["building_up"]] == ["Ferry strike"]
    assert [story["title"] for story in german["stories"]] == ["Ferry strike"]
    assert [(story["title"], story["items"]) for story in recent["stories"]] == [("Bridge closed", 15)]
    assert (await client.get("/v1/top-stories?desk=none")).status == 404


async def test_unknown_event_is_404(client: Client) -> None:
    """404 for reading an event."""
    response = await client.get("/v1/events/none")

    assert response.status == 404


async def test_an_unknown_status_is_rejected_with_the_allowed_ones(client: Client) -> None:
    """The error lists the allowed values."""
    response = await client.get("/v1/events?status=hot")

    assert response.status == 400
    assert (await response.json())["detail"] == "status: expected one of breaking, closed, emerging, fading."


async def test_a_merged_event_redirects_to_its_successor(client: Client, service: FakeService) -> None:
    """308, so that old addresses stay valid."""
    service.fake_events.stored = [
        event("e1", "Old", merged_into="e2", status="closed"),
        event("e2", "New"),
    ]

    redirect = await client.get("/v1/events/e1", allow_redirects=False)
    followed = await client.get("/v1/events/e1")

    assert (redirect.status, redirect.headers["Location"]) == (308, "/v1/events/e2")
    assert (await followed.json())["id"] == "e2"


async def test_an_action_is_applied_and_returned(client: Client, service: FakeService) -> None:
    """The response is the changed event with the action in its audit trail."""
    service.fake_events.stored = [event("e1", "Bridge closed")]
    body = {"action": "mute", "actor": " Ada\n", "scope": "routine"}

    answer = await (await client.post("/v1/events/e1/actions", json=body)).json()

    assert (answer["muted"], answer["false_alarm"], answer["acknowledged_by"]) == ("routine", False, None)
    (action,) = answer["actions"]
    assert (action["action"], action["actor"], action["scope"]) == ("mute", "Ada", "routine")
    again = await (await client.post("/v1/events/e1/actions", json=body | {"actor": "Ben"})).json()
    assert (answer["done"], again["done"], again["actions"]) == (action["id"], None, [action])
    assert action["at"].endswith("Z")


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
        ({"action": "note", "actor": "Ada"}, "text"),
        ({"action": "note", "actor": "Ada", "text": " \n"}, "text"),
        ({"action": "note", "actor": "Ada", "text": "x" * 2001}, "text"),
        ({"action": "mute", "actor": "Ada", "text": "x"}, "text"),
        ({"action": "delete_note", "actor": "Ada"}, "note"),
        ({"action": "assign", "actor": "Ada"}, "assignee"),
        ({"action": "set_work_status", "actor": "Ada"}, "work_status"),
        ({"action": "move_items", "actor": "Ada", "into": "e2"}, "items"),
        ({"action": "remove_item", "actor": "Ada", "items": []}, "items"),
        ({"action": "undo", "actor": "Ada"}, "of"),
        ({"action": "set_work_status", "actor": "Ada", "work_status": "done"}, "work_status"),
    ],
)
async def test_an_invalid_action_is_rejected(
    client: Client, service: FakeService, body: dict[str, str], field: str
) -> None:
    """400, and the message names the field."""
    service.fake_events.stored = [event("e1", "Bridge closed")]

    response = await client.post("/v1/events/e1/actions", json=body)

    assert response.status == 400
    assert (await response.json())["detail"].startswith(f"{field}: ")


async def test_notes_and_assignment_are_in_the_report(client: Client, service: FakeService) -> None:
    """With author and time; the list has their number only."""
    service.fake_events.stored = [event("e1", "Bridge closed", ("a",))]
    for body in (
        {"action": "note", "actor": "Ada", "text": " Called the port.\r\nNo answer.\x07 "},
        {"action": "set_work_status", "actor": "Ben", "work_status": "on_it"},
        {"action": "assign", "actor": "Ben", "assignee": " Cem\n"},
    ):
        response = await client.post("/v1/events/e1/actions", json=body)
        assert response.status == 200, await response.text()
    detail = await (await client.get("/v1/events/e1")).json()
    listed = (await (await client.get("/v1/events")).json())["events"][0]

    (note,) = detail["notes"]
    assert (note["actor"], note["text"]) == ("Ada", "Called the port.\nNo answer.")
    assert (detail["assignee"], detail["work_status"], detail["note_count"]) == ("Cem", "on_it", 1)
    assert "notes" not in listed and listed["note_count"] == 1
    assert [(a["action"], a["assignee"], a["work_status"]) for a in detail["actions"]] == [
        ("note", None, None),
        ("set_work_status", None, "on_it"),
        ("assign", "Cem", None),
    ]
    gone = {"action": "delete_note", "actor": "Ben", "note": note["id"]}
    assert (await (await client.post("/v1/events/e1/actions", json=gone)).json())["note_count"] == 0
    assert (await client.post("/v1/events/e1/actions", json=gone)).status == 404


async def test_an_unknown_action_is_rejected_with_the_allowed_ones(client: Client) -> None:
    """The error lists the allowed actions."""
    response = await client.post("/v1/events/e1/actions", json={"action": "pin", "actor": "Ada"})

    detail = (await response.json())["detail"]
    assert response.status == 400
    assert detail.startswith("action: expected one of ")
    assert {"acknowledge", "merge", "mute", "remove_item"} <= set(re.findall(r"\w+", detail))


async def test_an_action_on_an_unknown_event_is_404(client: Client) -> None:
    """404, as for reading the event."""
    response = await client.post("/v1/events/none/actions", json={"action": "acknowledge", "actor": "Ada"})

    assert response.status == 404


async def test_a_conflicting_action_is_409(client: Client, service: FakeService) -> None:
    """A conflict with the stored state has another status than an invalid request."""
    service.failure = Conflict("into: event e2 is closed and e1 is not; merge it the other way round.")
    body = {"action": "merge", "actor": "Ada", "into": "e2"}

    response = await client.post("/v1/events/e1/actions", json=body)

    assert response.status == 409
    assert (await response.json())["code"] == "conflict"


async def test_cursors_page_through_a_long_list(client: Client, service: FakeService) -> None:
    """Every event once; the last page has no cursor."""
    service.fake_events.stored = [
        event(f"e{i}", f"Event {i}", last_seen_ms=10_000 - i // 2) for i in range(7)
    ]
    seen: list[str] = []
    cursor: str | None = ""
    for _ in range(4):
        page = await (await client.get("/v1/events?limit=2" + (f"&cursor={cursor}" if cursor else ""))).json()
        seen += [item["id"] for item in page["events"]]
        cursor = page["next"]

    assert (sorted(seen), cursor) == ([f"e{i}" for i in range(7)], None)
    assert (await client.get("/v1/events?cursor=nonsense")).status == 400


async def test_a_mark_belongs_to_the_key(client: Client, service: FakeService) -> None:
    """Posts add to it; the front page has it; a time in the future counts as now."""
    (_, ada), (_, bea) = [await service.edge.api_keys.add(name, "reader") for name in ("Ada", "Bea")]
    as_ada, as_bea = ({"Authorization": f"Bearer {key}"} for key in (ada, bea))
    early, late = (to_datetime(START_MS + ms).isoformat() for ms in (-5, 5))

    first = await (await client.get("/v1/read-mark", headers=as_ada)).json()
    page = await (await client.get("/", headers=as_ada)).text()
    await client.post("/v1/read-mark", json={"looked_at": early, "seen": ["e1"]}, headers=as_ada)
    answer = await (await client.post("/v1/read-mark", json={"seen": ["e2"]}, headers=as_ada)).json()
    future = await (await client.post("/v1/read-mark", json={"looked_at": late}, headers=as_bea)).json()
    marked = await (await client.get("/", headers=as_ada)).text()

    assert first == {"looked_at": None, "seen": []}
    assert 'data-read-mark="null"' in page
    assert answer["seen"] == ["e1", "e2"] and answer["looked_at"] == "2026-09-21T14:13:19.995000Z"
    assert future == {"looked_at": "2026-09-21T14:13:20Z", "seen": []}
    assert f'data-read-mark="{{"at": {START_MS - 5}, "seen": ["e1", "e2"]}}"' in html.unescape(marked)


async def test_without_keys_there_is_no_user(client: Client) -> None:
    """404 says where to keep it; the page has no mark of the server."""
    for response in (await client.get("/v1/read-mark"), await client.post("/v1/read-mark", json={})):
        assert response.status == 404
        assert "Keep the read mark in the client." in (await response.json())["detail"]
    assert "data-read-mark" not in await (await client.get("/")).text()
