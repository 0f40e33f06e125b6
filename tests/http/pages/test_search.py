"""The search page over the real service: one field, which decides what it got."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest

from aggregator.app import Service
from aggregator.events.repository import number_key
from aggregator.queries import headline_index
from aggregator.store.base import Put, Transaction
from tests.http.handlers.test_search import client, service
from tests.support.factories import commit_event, event, load_all
from tests.support.fake_service import Client
from tests.support.hang_limit import HANG_LIMIT_S

__all__ = ["client", "service"]

pytestmark = pytest.mark.integration
REPORT = (
    "The river otter came back to the mill pond of Estmark after forty years, and nobody had seen one there. "
    "Fishermen filmed the animal at the weir, where it ate a pike, and the town now plans a nature reserve."
)
HEADLINE = "Forty years later an otter swims in the mill pond of Estmark again"


async def page(client: Client, query: str = "", **form: str) -> str:
    """The text of the page of a query, or of a form."""
    path = f"/search?{query}" if query else "/search"
    async with client.post(path, data=form) if form else client.get(path) as response:
        assert response.status == 200
        return await response.text()


async def store_otters(service: Service, client: Client) -> None:
    """An event of two articles that share their subject, and few of their words."""
    for id_, title in (
        ("o1", "Otter is back at the mill pond"),
        ("o2", "Mill pond: otter after forty years"),
    ):
        body = {"id": id_, "title": title, "text": REPORT + f" Said by {id_} on the day.", "source": id_}
        assert (await client.post("/v1/articles", json=body)).status in (200, 201)
    await store_event(service, "otter", "Otters return to Estmark", ["o1", "o2"])


async def store_event(service: Service, id_: str, title: str, articles: list[str]) -> None:
    """An event, which its articles lead to."""
    found = event(id_, title, articles, languages=("en",))
    await commit_event(service.events.repository, "fired", found, found.last_seen_ms)
    stored = (await service.articles.index.articles.get_many(articles)).values()
    writes = tuple(Put(number_key(article.group), id_.encode()) for article in stored)
    assert await service.events.repository.store.commit(Transaction((), writes)) == ()


async def test_articles_stand_below_their_events(
    service: Service, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of no event follow; each links to what is known of it, and to its own page."""
    monkeypatch.setattr(headline_index, "FIRST_PATIENCE_S", HANG_LIMIT_S)
    await store_event(service, "dam", "Dam above Kareth bursts", ["d1"])
    text = await page(client, "q=dam")
    assert text.index("Dam above Kareth bursts") < text.index("Dam report 1") < text.index("Dam report 4")
    assert re.search(r'of-event"><li>\s*<p class="headline"><a href="/search\?q=d1"', text)
    assert 'href="/events/dam"' in text and 'href="https://news.example/4"' in text
    assert "headlines and sources of 5 articles" in text and "still being read" not in text
    for internal in ("bits", "fingerprint", "Index"):
        assert internal not in text


async def test_a_headline_finds_the_event_that_it_belongs_to(service: Service, client: Client) -> None:
    """No article has all of its words, so what is related is found; bits and indexes are folded away."""
    await store_otters(service, client)

    text = await page(client, urlencode({"q": HEADLINE}))
    shown, _, folded = text.partition("How this was decided")

    assert "An event is about this" in shown and 'href="/events/otter"' in shown
    assert "Compared with" in folded and "Fingerprint" not in shown
    assert "No similar article" not in text and ">New<" not in text


async def test_what_was_not_searched_and_not_found_is_said(service: Service, client: Client) -> None:
    """Words that are too common, words that are missing, a minus; a few words are no headline to compare."""
    await store_otters(service, client)

    common = await page(client, "q=the+otter+is+back")
    partly = await page(client, "q=otter+zebra")
    nowhere = await page(client, "q=Ottter")
    minus = await page(client, "q=otter+-mill")
    assert "too common: <bdi>the, is, back</bdi>" in common and "not found" not in common
    assert "<bdi>zebra</bdi> not found" in partly and "too common" not in partly
    assert "<bdi>Ottter</bdi>: not found." in nowhere and "search?q=o" not in nowhere
    assert "A minus excludes nothing: <bdi>-mill</bdi>" in minus and "A minus" not in partly


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ("source=norpres", "filter source “<bdi>norpres</bdi>”. "),
        ("source=o1&until=2020-01-01", "filters source “<bdi>o1</bdi>”, until “<bdi>2020-01-01</bdi>”. "),
    ],
)
async def test_filters_that_exclude_all_are_named(
    service: Service, client: Client, filters: str, said: str
) -> None:
    """The words are spelled right; without the filters, or with another one, they are found."""
    await store_otters(service, client)

    text = await page(client, f"q=otter&{filters}")
    assert f"2 articles have this word, but do not meet the {said}" in text and "spelling" not in text
    assert '<a href="/search?q=otter">Search without' in text
    assert "otr</bdi>: not found. Check the spelling" in await page(client, f"q=otr&{filters}")
    assert "do not meet" not in await page(client, "q=otter&source=o1")


async def test_a_share_of_a_short_text_says_that_its_headline_counts(
    service: Service, client: Client
) -> None:
    """A cut version is contained word for word, but not its headline."""
    for id_, title, text in (
        ("whole", "Otter is back at the mill pond", REPORT * 3),
        ("cut", "Rare animal was filmed near the town", REPORT),
        ("same", "Otter is back at the mill pond", REPORT * 3),
    ):
        body = {"id": id_, "title": title, "text": text, "source": id_}
        assert (await client.post("/v1/articles", json=body)).status in (200, 201)
    cut, same = [await (await client.get(f"/compare?a=whole&b={id_}")).text() for id_ in ("cut", "same")]

    assert re.search(
        r"\d\d% <small>of the shorter text, an estimate, which of short texts counts the headline too<", cut
    )
    assert "100% <small>of the shorter text<" in same


async def test_a_stored_headline_that_is_pasted_finds_what_the_field_promises(
    service: Service, client: Client
) -> None:
    """Its event, that it is a copy, and what is related; the article itself is listed once."""
    await store_otters(service, client)
    headline = "Mill pond of Estmark has its otter after forty years"
    for id_, title in (("h1", headline), ("h2", "Otter of the Estmark mill pond is back after forty years")):
        body = {"id": id_, "title": title, "source": id_}
        assert (await client.post("/v1/articles", json=body)).status == 201
    await store_event(service, "pond", "Otter at the pond", ["h1"])

    text = await page(client, urlencode({"q": headline}))

    assert "This headline is stored" in text and "Duplicate</span>" not in text
    assert 'href="/events/pond"' in text and "Related" in text
    assert text.count('href="/search?q=h1"') == 1 and "too common" not in text


async def test_the_exact_headline_of_any_stored_article_is_found(service: Service, client: Client) -> None:
    """Of one with a text, and of a duplicate, as one of a bare headline: not the article it repeats."""
    await store_otters(service, client)
    headline = "Mill pond of Estmark: an otter returned this week"
    copy = {"id": "copy", "title": headline, "text": REPORT, "source": "copy"}
    assert (await (await client.post("/v1/articles", json=copy)).json())["verdict"] == "duplicate"

    for stored, id_ in ((headline, "copy"), ("otter is back  at the Mill Pond", "o1")):
        text = await page(client, urlencode({"q": stored}))
        original = text.partition('"original"')[2].partition("</div>")[0]
        assert "This headline is stored" in text and f'href="/search?q={id_}"' in original, id_
        assert "Probably belongs to" not in text and text.count(f'href="/search?q={id_}"') == 1, id_


async def test_what_lacks_words_is_folded_where_something_has_them_all(
    service: Service, client: Client
) -> None:
    """Articles; events are left out."""
    for id_, title in (("a", "Ferry strike"), ("b", "Ferry timetable"), ("c", "Teachers strike")):
        await client.post("/v1/articles", json={"id": id_, "title": title, "source": id_})
    await store_event(service, "both", "Strike of the ferry crews", [])
    await store_event(service, "half", "Ferry sinks", [])

    both = await page(client, "q=ferry+strike")
    shown, _, folded = both.partition("<summary>2 articles with some of the words</summary>")
    partly = await page(client, "q=ferry+zebra")

    assert "q=a" in shown and "q=b" not in shown and "q=b" in folded and "q=c" in folded
    assert 'href="/events/both"' in both and 'href="/events/half"' not in both
    assert "Articles with some of the words" in partly and 'href="/events/half"' in partly


async def test_events_with_all_words_come_first(service: Service, client: Client) -> None:
    """In their headline or in one of an article; newest first, by their newest article."""
    for number, (id_, title) in enumerate(
        [
            ("f1", "Ferry sinks: first deaths confirmed"),
            ("f2", "Ferry deaths: mayor speaks"),
            ("q1", "Quake: deaths rise"),
            ("f3", "Ferry salvage"),
        ]
    ):
        body = {
            "id": id_,
            "title": title,
            "text": f"Report {number}.",
            "published_at": f"2026-11-05T0{number}:00:00Z",
        }
        assert (await client.post("/v1/articles", json=body)).status in (200, 201)
    await store_event(service, "b-quake", "Quake deaths rise", ["q1"])
    await store_event(service, "c-ferry", "Ferry sinks off Kareth", ["f1", "f2", "f3"])
    await store_event(service, "a-both", "Deaths confirmed at the pass", [])

    def order(text: str) -> list[str]:
        return re.findall(r'headline"><a href="/events/(\S+?)"', text)

    assert order(await page(client, "q=first+deaths+confirmed")) == ["a-both", "c-ferry", "b-quake"]
    assert order(await page(client, "q=deaths&sort=time"))[:2] == ["b-quake", "c-ferry"]
    newest = await page(client, "sort=time")
    assert re.findall(r"search\?q=([fq]\d)", newest) == ["f3", "q1", "f2", "f1"] and order(newest) == []
    assert newest.count('href="/events/c-ferry">event<') == 3


async def test_a_text_finds_its_event_and_what_it_copies(service: Service, client: Client) -> None:
    """In a body, since it is too long for an address; filters hold for what is related."""
    await store_otters(service, client)
    text = f"{REPORT}\nIt was filmed at night."

    found, other = (
        await page(client, q=text),
        await page(client, q="Ferry strike\nends at the quay on Friday"),
    )
    filtered = await page(client, q="Estmark otter\npond after years", source="Radio")

    assert 'verdict duplicate">Duplicate' in found and 'href="/events/otter"' in found
    assert "Nothing like it is stored." in other
    assert "Otter is back" not in filtered


async def test_addresses_and_ids_lead_to_what_they_name(client: Client) -> None:
    """An event by the address of its report, an article by its id."""
    report = "https://desk.example/events/dam?view=outlets"
    async with client.post("/search", data={"q": f" {report}\n"}, allow_redirects=False) as posted:
        assert posted.status == 303
    async with client.get(posted.headers["Location"], allow_redirects=False) as response:
        assert (response.status, response.headers["Location"]) == (303, "/events/dam")
    assert "<code>d3</code>" in await page(client, "q=d3")


async def test_an_address_needs_no_scheme(client: Client) -> None:
    """As browsers show it; an unknown one has a sentence of its own, and its parts are no words to search."""
    body = {
        "id": "own-id",
        "title": "Dam of Kareth",
        "text": "Water rises.",
        "url": "https://dam.example/a/b",
    }
    assert (await client.post("/v1/articles", json=body)).status in (200, 201)

    for address in ("dam.example/a/b", "https://dam.example/a/b", "dam.example:443/a/b"):
        found = await page(client, urlencode({"q": address}))
        assert "<code>own-id</code>" in found and "No article is stored" not in found, address
    for unknown in ("dam.example/kareth-report", "https://no.example/dam", "https://no.example/"):
        found = await page(client, urlencode({"q": unknown}))
        assert f"No article is stored under the address {unknown}. Paste its headline." in found
        assert "Dam report" not in found and "Articles <span" not in found and "Searched" not in found
    for no_address in ("3.5/10", "and/or", "U.S./China"):
        assert "under the address" not in await page(client, urlencode({"q": no_address})), no_address


async def test_filters_and_the_cursor_are_in_the_address_of_the_next_page(client: Client) -> None:
    """So that a page of results can be sent to a colleague; it continues in the same order."""
    for number in range(40):
        body = {"id": f"x{number}", "title": f"Otter {number}", "text": f"The otter {number} of the river."}
        await client.post("/v1/articles", json=body)
    text = await page(client, "q=otter&lang=en&sort=time")

    assert 'rel="next"' in text
    assert "/search?q=otter&amp;lang=en&amp;sort=time&amp;cursor=" in text


async def test_dates_are_days_of_the_time_zone_of_the_reader(service: Service, client: Client) -> None:
    """Both included; 8 o'clock in London is 22 o'clock at the date line."""
    await load_all(service.articles.search.headlines)

    utc = await page(client, "q=dam&since=2026-11-02&until=2026-11-03")
    assert re.findall(r"search\?q=(d\d)", utc) == ["d2", "d1"]
    far = await page(client, "q=dam&since=2026-11-02&until=2026-11-02&time_zone=Pacific/Kiritimati")
    assert re.findall(r"search\?q=(d\d)", far) == ["d1"]
    assert "expected a date such as" in await page(client, "q=dam&since=yesterday"[:24])
    assert "unknown time zone" in await page(client, "q=dam&since=2026-11-02&time_zone=Mars")


async def test_the_newest_articles_are_a_search_without_words(client: Client) -> None:
    """All of them, or those of a verdict: what the front page links to."""
    assert re.findall(r"search\?q=(d\d)", await page(client, "sort=time")) == ["d4", "d3", "d2", "d1", "d0"]
    assert "No article meets these filters" in await page(client, "sort=time&verdict=duplicate")


async def test_an_empty_search_says_what_it_finds(client: Client) -> None:
    """And reads nothing."""
    text = await page(client)

    assert "One field for all" in text
    assert "Articles <span" not in text


async def test_a_bare_headline_with_news_is_not_called_the_same(service: Service, client: Client) -> None:
    """Similar is not equal, and what it adds is said."""
    for id_, title in (
        ("r1", "Armed robbery at Brenn lottery hall"),
        ("r2", "Two arrested after robbery at Brenn lottery hall"),
        ("r3", "Armed robbery at Brenn Lottery Hall"),
    ):
        body = {"id": id_, "title": title, "source": f"Outlet {id_}"}
        assert (await client.post("/v1/articles", json=body)).status in (200, 201)
    kept, same = await page(client, "q=r2"), await page(client, "q=r3")

    assert "A similar headline, with news of its own; no text of this article is known." in kept
    assert "To keep: it has news" in kept and "The same headline" not in kept
    assert "The same headline; no text of this article is known." in same
    assert "A copy without news" in same


async def test_bare_headlines_are_compared_as_such(service: Service, client: Client) -> None:
    """Nothing is said of texts that nobody knows; whether both are of one event, is."""
    for id_, title in (
        ("h1", "Ferry aground off Kareth"),
        ("h2", "Ferry aground off Kareth"),
        ("h3", "Storm on the way"),
    ):
        body = {"id": id_, "title": title, "source": f"Outlet {id_}"}
        assert (await client.post("/v1/articles", json=body)).status in (200, 201)
    await store_event(service, "ferry", "Ferry aground", ["h1", "h3"])

    async def compared(pair: str) -> str:
        async with client.get(f"/compare?{pair}") as response:
            return (await response.text()).partition("How this was decided")[0]

    same, other, with_text = [await compared(f"a=h1&b={id_}") for id_ in ("h2", "h3", "d1")]
    assert "The same headline" in same and "Only the headlines are known" in same
    assert "Different headlines" in other and 'Both belong to the same <a href="/events/ferry">' in other
    assert "Only the headline of A is known" in with_text and 'Only <a href="/events/ferry">A<' in with_text
    assert not any(
        "Shared wording" in text or "Different articles" in text for text in (same, other, with_text)
    )


async def test_headlines_of_two_languages_are_shown_once(service: Service, client: Client) -> None:
    """With what differs marked in them; what is decided is said, its models only behind the details."""
    for id_, title in (
        ("n1", "Port of Kareth closes for 3 days after the storm"),
        ("n2", "Port of Kareth closes for 5 days after the storm"),
        ("n3", "Der Hafen von Kareth bleibt nach dem Sturm drei Tage lang geschlossen"),
    ):
        body = {"id": id_, "title": title, "source": f"Outlet {id_}"}
        assert (await client.post("/v1/articles", json=body)).status in (200, 201)
    figures = await (await client.get("/compare?a=n1&b=n2")).text()
    languages, _, details = (await (await client.get("/compare?a=n1&b=n3")).text()).partition("<details>")

    assert figures.count(">storm</mark>") == 2 and 'class="figure">3<' in figures
    assert "with different figures" in figures
    assert "Different languages (en and de): not compared, neither as copies nor as related." in languages
    assert "spaces" not in languages and "analyzed with the word weights <code>en." in details


async def test_an_article_of_no_event_can_be_added_to_that_of_its_story(
    service: Service, client: Client
) -> None:
    """It probably belongs to it; what does is said plainly, without a button."""
    await store_otters(service, client)
    assert (await client.post("/v1/articles", json={"id": "o3", "title": HEADLINE})).status == 201

    text = await page(client, "q=o3")
    assert "Probably belongs to" in text and "Otters return to Estmark" in text
    assert 'data-action="move_items" data-event="otter" data-into="otter" data-item="o3"' in text

    text = await page(client, "q=o1")
    assert '<p class="label">Event</p>' in text and "data-into" not in text
