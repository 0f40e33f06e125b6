"""The feed, checked with a feed parser and against its specification."""

from dataclasses import replace
from xml.etree import ElementTree

import feedparser  # no stubs
import pytest

from aggregator.events.desks import Desk
from aggregator.events.event import EditorAction
from tests.support.factories import EVENT_MS, event
from tests.support.fake_service import Client, FakeService, serving

pytestmark = pytest.mark.integration

ATOM = "{http://www.w3.org/2005/Atom}"
HOSTILE = "Bridge \x00\x0b<script>alert(1)</script> & \ufffe \ud800 桥 جسر"


@pytest.fixture
def with_events(service: FakeService) -> FakeService:
    """A service with two events, one with a headline that XML cannot represent."""
    service.fake_events.stored = [
        event("e1", HOSTILE, ("a", "b")),
        event("a/b c", "Harbour on fire", ("c",), status="fading"),
    ]
    return service


async def test_a_feed_parser_accepts_the_atom_feed(client: Client, with_events: FakeService) -> None:
    """Well-formed, complete, and titles are plain text."""
    response = await client.get("/v1/events.atom")
    read = feedparser.parse(await response.read())

    assert response.content_type == "application/atom+xml"
    assert (read.bozo, read.version) == (False, "atom10")
    assert [entry.title for entry in read.entries] == [
        "Bridge <script>alert(1)</script> &   桥 جسر",
        "Harbour on fire",
    ]
    assert read.entries[1].link.endswith("/events/a%2Fb%20c")
    assert read.entries[0].summary.startswith("2 items from 2 outlets, breaking.")
    assert read.feed.updated == read.entries[0].updated


async def test_atom_has_the_required_elements(client: Client, with_events: FakeService) -> None:
    """RFC 4287: one id, title and updated each, an author, self and alternate links; ids are IRIs."""
    root = ElementTree.fromstring(await (await client.get("/v1/events.atom?min_size=1")).read())

    for node in (root, *root.findall(f"{ATOM}entry")):
        for name in ("id", "title", "updated"):
            assert len(node.findall(ATOM + name)) == 1, name
        assert node.findtext(f"{ATOM}id", "").startswith("urn:uuid:")
        assert any(link.get("rel") == "alternate" for link in node.findall(f"{ATOM}link"))
    self_link = next(link for link in root.findall(f"{ATOM}link") if link.get("rel") == "self")
    assert self_link.get("href", "").endswith("/v1/events.atom?min_size=1")
    assert root.find(f"{ATOM}author/{ATOM}name") is not None
    ids = [node.text for node in root.iter(f"{ATOM}id")]
    assert len(set(ids)) == len(ids) == 3


async def test_entries_keep_their_id_when_they_change(client: Client, service: FakeService) -> None:
    """An entry is updated in place; an editor's action is an update, too."""
    service.fake_events.stored = [event("e1", "Bridge closed", ("a",))]
    before = feedparser.parse(await (await client.get("/v1/events.atom")).read()).entries[0]
    action = EditorAction(action="acknowledge", actor="Ada", at_ms=EVENT_MS + 9_000, event="e1")
    service.fake_events.stored = [event("e1", "Bridge opens", ("a", "b"), actions=(action,))]
    after = feedparser.parse(await (await client.get("/v1/events.atom")).read()).entries[0]

    assert (before.id, before.link) == (after.id, after.link)
    assert before.updated < after.updated
    assert after.title == "Bridge opens"


async def test_an_unchanged_feed_is_304(client: Client, with_events: FakeService) -> None:
    """By ETag, and by Last-Modified without an ETag."""
    path = "/v1/events.atom"
    first = await client.get(path)
    tag, modified = first.headers["ETag"], first.headers["Last-Modified"]
    same = await client.get(path, headers={"If-None-Match": tag})
    since = await client.get(path, headers={"If-Modified-Since": modified})
    with_events.fake_events.stored = [event("e1", "Another", last_seen_ms=EVENT_MS + 60_000)]
    new = await client.get(path, headers={"If-None-Match": tag, "If-Modified-Since": modified})
    newer = await client.get(path, headers={"If-Modified-Since": modified})

    assert (same.status, since.status, await same.read()) == (304, 304, b"")
    assert (new.status, newer.status) == (200, 200)


async def test_a_feed_is_named_by_its_desk_and_filter(client: Client, service: FakeService) -> None:
    """A reader has several of them."""
    desk, _ = await service.events.desks.create(Desk("", "Harbour", 0))
    atom = feedparser.parse(await (await client.get(f"/v1/events.atom?watch={desk.id}&lang=de")).read())
    plain = feedparser.parse(await (await client.get("/v1/events.atom")).read())
    page = await (await client.get(f"/?watch={desk.id}")).text()

    assert (atom.feed.title, plain.feed.title) == ("Breaking events: Harbour, de", "Breaking events")
    assert f'href="/v1/events.atom?watch={desk.id}"' in page


async def test_an_empty_feed_is_a_feed(client: Client, service: FakeService) -> None:
    """No events yet."""
    read = feedparser.parse(await (await client.get("/v1/events.atom")).read())

    assert (read.bozo, read.entries) == (False, [])


async def test_links_use_the_public_url(with_events: FakeService) -> None:
    """Behind a proxy the request's own address is not reachable for readers."""
    with_events.settings = replace(with_events.settings, public_url="https://news.example/desk/")
    async with serving(with_events) as client:
        feed = feedparser.parse(await (await client.get("/v1/events.atom")).read())

    assert feed.entries[0].link == "https://news.example/desk/events/e1"
