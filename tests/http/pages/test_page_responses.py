"""The pages over the real service: what they say of real articles, and of what cannot be had."""

from collections.abc import AsyncIterator

import pytest
from aiohttp.test_utils import TestClient

from aggregator.app import Service, open_service
from aggregator.errors import StoreUnavailable
from aggregator.settings import Settings
from tests.support.factories import event, story, tell
from tests.support.fake_service import serving

ORIGINAL, OTHER = story(1), story(2)
EDITED = ORIGINAL.replace(" ", " extra ", 2)


@pytest.fixture(params=[True, False], ids=["texts kept", "texts not kept"])
async def real(request) -> AsyncIterator[Service]:
    """A service in memory with an article, its copy and a stranger."""
    async with open_service(Settings(store_url="memory", store_texts=request.param)) as service:
        yield service


@pytest.fixture
async def client(real: Service) -> AsyncIterator[TestClient]:
    """A client of it."""
    async with serving(real) as opened:
        for id_, text in (("one", ORIGINAL), ("two", EDITED), ("three", OTHER)):
            body = {"id": id_, "title": f"Title {id_}", "text": text, "source": f"{id_}.example"}
            assert (await opened.post("/v1/articles", json=body)).status in (200, 201)
        yield opened


async def test_a_stored_article_is_looked_up_by_id_or_address(client):
    """Its verdict, its original, its copies and its bits."""
    await client.post("/v1/articles", json={"url": "https://four.example/a?utm_source=x", "text": ORIGINAL})
    by_id = await (await client.get("/lookup", params={"q": "two"})).text()
    by_url = await (await client.get("/lookup", params={"q": "HTTPS://four.example/a/"})).text()

    assert "The same text, edited." in by_id
    assert by_id.count("Title one") >= 1
    assert by_id.count('<i class="on"></i>') + by_id.count('<i class="off"></i>') == 64
    assert "The same text word for word." in by_url


async def test_what_is_not_stored_is_said(client):
    """With what to do in its place."""
    page = await (await client.get("/lookup", params={"q": "nothing"})).text()

    assert "Nothing is stored under" in page
    assert "Paste the text itself" in page


async def test_a_pasted_text_is_judged_and_not_stored(client):
    """A copy is known, a stranger is new; a pasted id becomes an address that can be passed on."""
    copy = await (await client.post("/lookup", data={"q": EDITED + " More."})).text()
    stranger = await (await client.post("/lookup", data={"q": story(9)})).text()
    id_ = await client.post("/lookup", data={"q": " one "}, allow_redirects=False)

    assert "The same text, edited." in copy
    assert "Nothing like it is stored." in stranger
    assert (id_.status, id_.headers["Location"]) == (303, "/lookup?q=one")
    assert (await client.get("/v1/articles/content:x")).status == 404
    assert "There is no text" not in await (await client.post("/lookup", data={"q": ""})).text()


@pytest.mark.parametrize("text", ["!?", "\u200b \n \u200b"])
async def test_a_text_without_words_is_said(client, text):
    """A sentence on the page, not an error."""
    response = await client.post("/lookup", data={"q": text + "\n" + text})

    assert response.status == 200
    assert 'role="alert"' in await response.text() or "verdict" not in await response.text()


async def test_two_stored_articles_side_by_side(client, real):
    """With kept texts the wording is marked; without, the page says which setting is off."""
    page = await (await client.get("/compare?a=one&b=two")).text()

    assert page.count('class="side"') == 2
    assert "Title one" in page
    assert ("<mark" in page) is real.settings.store_texts
    assert ("store_texts" in page) is not real.settings.store_texts


async def test_pasted_texts_side_by_side(client):
    """Needs no setting; an id that is not stored is said."""
    page = await (await client.post("/compare", data={"a": ORIGINAL, "b": EDITED})).text()
    unknown = await (await client.get("/compare?a=one&b=nothing")).text()

    assert '<mark data-passage="0"' in page
    assert "Nothing is stored under" in unknown


async def test_forms_of_other_sites_are_refused(client):
    """A page elsewhere cannot make a browser paste into ours, nor send what is no form."""
    foreign = await client.post("/lookup", data={"q": "x"}, headers={"Origin": "https://evil.example"})
    no_form = await client.post("/lookup", data=b"\xff\xfe")

    assert (foreign.status, no_form.status) == (403, 400)


async def test_a_report_folds_copies_under_their_original(client, real):
    """Outlets in order of their first item, "also from" for copies, who was first."""
    await tell(real.events, "fired", event("e1", "Bridge closed", ["one", "two", "three", "gone"]), 1)
    page = await (await client.get("/events/e1")).text()

    assert page.count('class="outlet"') == 2
    assert "Also from <bdi>two.example</bdi>" in page
    assert "4 items; 1 copy folded under its original" in page
    assert page.index("First source") < page.index("one.example")
    assert "16 items within 4 hours, where 0.4 are usual." in page


async def test_the_list_filters_and_keeps_the_filter_in_its_stream(client, real):
    """What is listed is what is listened to."""
    await tell(real.events, "fired", event("e1", "Bridge closed", ["one"]), 1)
    found = await (await client.get("/?term=bridge&min_size=1")).text()
    nothing = await (await client.get("/?term=volcano")).text()

    assert "/events/e1" in found
    assert 'data-stream="/v1/events/stream?term=bridge&amp;min_size=1"' in found
    assert "No open event matches this filter." in nothing


async def test_health_tells_what_came_and_when_the_store_is_away(client, real, monkeypatch):
    """Counts, models and latency; and still a page when nothing can be read."""
    page = await (await client.get("/health")).text()
    assert "All is well" in page
    assert all(f"<code>{space}</code>" in page for space in real.index.spaces)
    assert "in all" in page

    async def away(limit: int) -> None:
        raise StoreUnavailable("The store does not answer; try again.")

    monkeypatch.setattr(type(real.index), "recent_entries", lambda self, limit: away(limit))
    page = await client.get("/health")
    assert page.status == 200
    assert "The store is away." in await page.text()
