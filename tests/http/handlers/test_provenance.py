"""Routes and pages of provenance, over the real service."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from aggregator.app import Service, open_service
from aggregator.events.detection.numbers import Item, with_items
from aggregator.provenance.statistics import Family, Partner, SourcesReport
from aggregator.settings import Settings
from tests.support.factories import EVENT_MS, commit_event, edited, event, story
from tests.support.fake_service import Client

pytestmark = pytest.mark.integration

TEXT = story(1, 20) + " The bill came to 1,200 crowns."
COPY = edited(TEXT, 1).replace("1,200", "1,500")


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """A service with the memory store that stores texts."""
    async with open_service(Settings(store_url="memory", store_texts=True)) as opened:
        yield opened


PUBLISHED_MS = round(datetime(2026, 11, 20, 8, 10, tzinfo=UTC).timestamp() * 1000)
AGROUND = event(
    "e1", "Ferry aground", ("b/1", "a/1"), sources=("A", "B <i>"), first=(PUBLISHED_MS, "a/1", "A"),
    times=(PUBLISHED_MS + 900_000, PUBLISHED_MS),
)  # fmt: skip


async def post(client: Client, id_: str, text: str, source: str, minute: int, title: str = "") -> None:
    """Post an article that was published in this minute."""
    body: dict[str, Any] = {"id": id_, "text": text, "source": source, "title": title}
    response = await client.post(
        "/v1/articles?backfill=true", json={**body, "published_at": f"2026-11-20T08:{minute:02}:00Z"}
    )
    assert response.status in (200, 201)


@pytest.fixture
async def stored(client: Client) -> None:
    """A copy that arrives before its original."""
    await post(client, "b/1", COPY, "B <i>", 25, "Copy & paste")
    await post(client, "a/1", TEXT, "A", 10, "Original")


async def test_provenance_of_an_article(client: Client, stored: None) -> None:
    """First publisher, lag and changes; ids with slashes."""
    body = await (await client.get("/v1/articles/b/1/provenance")).json()

    assert body["first"]["id"] == "a/1" and body["certain"] is True and body["outlets"] == 2
    first, copy = body["steps"]
    assert (first["copied_from"], first["changes"], first["lag_minutes"]) == (None, None, 0)
    assert (copy["copied_from"], copy["lag_minutes"], copy["basis"]) == ("a/1", 15, "published")
    assert copy["changes"]["cut_figures"] == ["1200"] and copy["changes"]["added_figures"] == ["1500"]
    assert copy["changes"]["headline_changed"] is True
    assert "another headline" in copy["changes"]["summary"]


async def test_the_page_of_an_article(client: Client, stored: None) -> None:
    """Names are text, and the copy follows its original."""
    page = await (await client.get("/articles/b%2F1/provenance")).text()

    assert page.index("Original") < page.rindex("Copy &amp; paste")
    assert "B &lt;i&gt;" in page and "<i>" not in page
    assert "+15\u00a0min" in page
    assert "New figures: 1500" in page
    assert "order is not certain" not in page


async def test_a_text_that_nobody_repeated(client: Client) -> None:
    """One step, which is the first."""
    await post(client, "a", TEXT, "A", 10)
    body = await (await client.get("/v1/articles/a/provenance")).json()
    page = await (await client.get("/articles/a/provenance")).text()

    assert len(body["steps"]) == 1
    assert "No other stored article has this text." in page


async def test_unknown_articles_and_events(client: Client) -> None:
    """404 for both, as JSON and as pages."""
    for path in ("/v1/articles/x/provenance", "/v1/events/x/provenance"):
        assert (await client.get(path)).status == 404
        assert (await client.get(path.removeprefix("/v1"))).status == 404


async def test_provenance_of_an_event(client: Client, service: Service, stored: None) -> None:
    """Outlets in order, and the texts that they share."""
    await commit_event(service.events.repository, "fired", AGROUND, EVENT_MS)
    body = await (await client.get("/v1/events/e1/provenance")).json()
    page = await (await client.get("/events/e1/provenance")).text()

    assert body["first"]["source"] == "A"
    assert [(o["source"], o["kind"], o["lag_minutes"]) for o in body["outlets"]] == [
        ("A", "first", 0),
        ("B <i>", "copy", 15),
    ]
    assert [text["outlets"] for text in body["texts"]] == [2]
    assert (body["families"], body["independent"]) == ([], 2)
    assert "Texts or headlines that several outlets published" in page and "+15\u00a0min" in page
    assert "an estimate, which of short texts counts the headline too" in page
    assert 'href="/events/e1"' in page


async def test_an_uncertain_first_is_not_called_the_same_time(
    client: Client, service: Service, stored: None
) -> None:
    """Nobody else had it at its time; what an outlet sent twice is shown apart."""
    await post(client, "a/2", TEXT, "A", 40, "Sent again")
    told = replace(AGROUND, first=None, sightings=1)
    await commit_event(service.events.repository, "fired", told, EVENT_MS)
    page = await (await client.get("/events/e1/provenance")).text()

    assert "earliest, not certain" in page and "same time" not in page
    assert "not certain: what came first may not be about it, or its first article was removed." in page
    left_out = page.partition('id="repeats"')[2].partition("</section>")[0]
    assert "1 further copy</a> by the same outlets is not counted" in page
    assert "by outlets that are in the list above" in left_out and "still stored" not in left_out
    assert "Sent again" in left_out and "Original" not in left_out
    assert re.search('id="as-of" data-live-whole>As of <time datetime="[^"]*" data-exact>', page)
    for first, doubtful, why in (
        (told.items[0], told.items[:1], "its first article is doubtful"),
        ("gone", (), "its first article is no longer stored"),
        ("gone", (), "an earlier article than its first one is in it"),
    ):
        at_ms = 2 * EVENT_MS if why.startswith("an earlier") else 0
        told = replace(told, first=(at_ms, first, "A"), doubtful=doubtful, sightings=told.sightings + 1)
        await commit_event(service.events.repository, "updated", told, EVENT_MS)
        page = await (await client.get("/events/e1/provenance")).text()
        assert f"Who had it first is not certain: {why}." in page


async def test_a_copy_by_an_outlet_with_another_article_is_shown_with_its_text(
    client: Client, service: Service, stored: None
) -> None:
    """It is also named with the further copies, which have no heading where none is stored."""
    await post(client, "c", story(77), "C", 5, "Own lines")
    await post(client, "c/2", TEXT, "C", 50, "Word for word")
    times = (*AGROUND.times, AGROUND.times[0] + 5 * 60_000)
    told = replace(event("e1", "Ferry aground", (*AGROUND.items, "c"), times=times), sightings=1)
    await commit_event(service.events.repository, "fired", told, EVENT_MS)
    page = await (await client.get("/events/e1/provenance")).text()
    texts = (await (await client.get("/v1/events/e1/provenance")).json())["texts"]

    assert texts[0]["steps"][-1]["article"]["id"] == "c/2" and texts[0]["outlets"] == 3
    shared, left_out = page.partition('id="texts"')[2], page.partition('id="repeats"')[2]
    assert "Word for word" in shared and "not counted: another article of this outlet is" in shared
    left_out = left_out.partition("</section>")[0]
    assert 'also shown <a href="#texts">with the text of another outlet' in left_out
    assert "Word for word" in left_out and "still stored" not in left_out
    async with client.delete("/v1/articles/c%2F2") as response:
        assert response.status in (200, 204), await response.text()
    await commit_event(service.events.repository, "updated", replace(told, revision=9), EVENT_MS)
    gone = await (await client.get("/events/e1/provenance")).text()
    assert "1 further copy by the same outlets is not counted" in gone and "Further copies" not in gone


async def test_what_each_copy_has_more_is_said_in_the_order_of_outlets(
    client: Client, service: Service, stored: None
) -> None:
    """Which version it is closest to, and how many words it is longer; a repeated headline is not a text."""
    longer = f"{TEXT} {story(78, 8)}"
    await post(client, "a/2", longer, "A", 30, "UPDATE Original")
    await post(client, "c", longer, "C", 40, "Out of the update")
    await post(client, "d", "Aground and alone", "D", 50, "Aground and alone")
    ids = ("b/1", "a/1", "a/2", "c", "d")
    times = [PUBLISHED_MS + 60_000 * minutes for minutes in (15, 0, 20, 30, 40)]
    told = replace(event("e1", "Ferry aground", ids, times=tuple(times)), first=AGROUND.first)
    await commit_event(service.events.repository, "fired", told, EVENT_MS)
    page = await (await client.get("/events/e1/provenance")).text()
    outlets = page.partition('id="outlets"')[2].partition("</section>")[0].split("<li>")[1:]
    kinds = [re.findall('class="kind [^"]*">([^<]*)', outlet) for outlet in outlets]

    assert kinds == [[], ["copy"], ["extended copy"], ["headline only"]]
    assert re.search("first published by <bdi>A</bdi> at <time[^>]*>20 Nov 2026, 08:10", outlets[2])
    words = len(longer.split()) - len(TEXT.split())
    assert f"{words} words longer" in outlets[2] and "shorter" not in page
    closest = re.search("Closest to <bdi>A</bdi> of <time[^>]*>([^<]*)</time>: ([^<]*)", outlets[2])
    assert closest and closest.groups() == ("20 Nov 2026, 08:30 UTC", "the same text, another headline")
    await commit_event(service.events.repository, "merged", replace(told, merged_into="e0", revision=9), 1)
    merged = await (await client.get("/events/e1/provenance")).text()
    assert 'part of another one: <a href="/events/e0/provenance">' in merged and "part of another" not in page


async def test_an_updated_article_has_its_text_from_its_update_on(
    client: Client, service: Service, stored: None
) -> None:
    """Its outlet keeps its place; the text of the update is a copy of what others had before it."""
    await post(client, "c", edited(TEXT, 3), "C", 5, "Ferry aground, 17 hurt")
    await post(client, "c", edited(TEXT, 2), "C", 40, "Ferry aground, 62 hurt")
    times = (*AGROUND.times, PUBLISHED_MS - 300_000)
    told = event("e1", "Ferry aground", (*AGROUND.items, "c"), times=times, first=(times[2], "c", "C"))
    await commit_event(service.events.repository, "fired", told, EVENT_MS)
    body = await (await client.get("/v1/events/e1/provenance")).json()
    page = await (await client.get("/events/e1/provenance")).text()

    assert [(o["source"], o["kind"], o["lag_minutes"]) for o in body["outlets"]] == [
        ("C", "first", 0), ("A", "own", 5), ("B <i>", "copy", 20),
    ]  # fmt: skip
    assert [step["article"]["source"] for step in body["texts"][0]["steps"]] == ["A", "B <i>", "C"]
    box = page.partition('class="first-box"')[2].partition("<dl")[0]
    assert re.search("08:05 UTC</time> <span>shown as updated <time[^>]*>20 Nov 2026, 08:40 UTC", box)
    assert "by arrival here" not in page
    later = replace(told, id="e2", times=(*AGROUND.times, PUBLISHED_MS + 60_000))  # after A, before B
    before = replace(told, id="e3", items=("c", "b/1"), times=(PUBLISHED_MS - 300_000, AGROUND.times[0]))
    kinds = []
    for each in (later, before):
        await commit_event(service.events.repository, "fired", replace(each, first=None), EVENT_MS)
        outlets = (await (await client.get(f"/v1/events/{each.id}/provenance")).json())["outlets"]
        kinds.append({o["source"]: o["kind"] for o in outlets})
    assert kinds == [{"A": "own", "C": "copy", "B <i>": "copy"}, {"C": "own", "B <i>": "own"}]


async def test_an_agency_that_updates_in_place_keeps_its_copies(client: Client, service: Service) -> None:
    """They arrived as copies of its first version, of which the update has all."""
    for id_, source, minute, more in (
        ("d", "Wire", 10, ""),
        ("e", "Metro", 20, ""),
        ("d", "Wire", 40, "More."),
    ):
        await post(client, id_, f"{TEXT} {more}", source, minute, f"Ferry aground {more}")
    times = tuple(PUBLISHED_MS + 60_000 * minute for minute in (0, 10))
    told = event("e1", "Ferry aground", ("d", "e"), times=times, first=(times[0], "d", "Wire"))
    await commit_event(service.events.repository, "fired", told, EVENT_MS)
    body = await (await client.get("/v1/events/e1/provenance")).json()

    page = await (await client.get("/events/e1/provenance")).text()
    outlets = page.partition('id="outlets"')[2].partition("</section>")[0]
    assert "copy of an earlier version" not in outlets and "shorter" not in outlets
    assert "<bdi>Wire</bdi> updated it <time" in outlets and '<span class="kind copy">copy</span>' in outlets
    shared = page.partition('id="texts"')[2]
    assert "as it was then: it was updated since" in shared and "shortened copy" not in shared
    assert "a text of <bdi>Wire</bdi>, updated since" in shared and "shown as updated" in shared
    assert {each["source"]: each["kind"] for each in body["outlets"]} == {"Wire": "first", "Metro": "copy"}
    assert [step["article"]["source"] for step in body["texts"][0]["steps"]] == ["Wire", "Metro"]


async def test_a_copy_is_compared_with_the_version_that_it_copied(client: Client, service: Service) -> None:
    """How much longer or shorter it was, and when that version was published, though it was updated since."""
    whole, own = f"{TEXT} {story(31, 2)}", story(32, 6)
    half = " ".join(whole.split()[: len(whole.split()) // 2])
    sent = [("d", "Wire", 10, whole), ("e", "Metro", 20, half), ("f", "Post", 25, f"{whole} {own}")]
    sent += [
        ("d", "Wire", 40, f"{whole} More is expected at noon."),
        ("g", "Echo", 50, f"{whole} More is expected at noon."),
    ]
    for id_, source, minute, text in sent:
        await post(client, id_, text, source, minute, f"Ferry aground near {source}")
    times = tuple(PUBLISHED_MS + 60_000 * minute for minute in (10, 20, 25, 50))
    told = event("e1", "Ferry aground", ("d", "e", "f", "g"), times=times, first=(times[0], "d", "Wire"))
    await commit_event(service.events.repository, "fired", told, EVENT_MS)

    page = await (await client.get("/events/e1/provenance")).text()
    outlets = page.partition('id="outlets"')[2].partition("</section>")[0].split("<li>")[2:]
    for outlet, kind, said in zip(
        outlets,
        ("shortened copy", "extended copy", "copy"),
        ("shorter than it was then", "longer than it was then", "text first published by"),
        strict=True,
    ):
        assert f">{kind}<" in outlet and said in outlet, outlet
    assert "updated it" in outlets[0] and "updated it" not in outlets[2]
    first_times = [re.search('at <time datetime="([^"]+)"', outlet) for outlet in outlets]
    assert [
        found and datetime.fromisoformat(found[1]).timestamp() * 1000 == times[0] for found in first_times
    ] == [True, True, False]


async def test_a_first_that_arrived_late_or_not_alone_is_said_to(client: Client, service: Service) -> None:
    """Its own date makes it the first: the page adds when it arrived, and who states the same time."""
    began = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    first_ms = round(began.timestamp() * 1000)
    items = {}
    for id_, minutes in (("b", 10), ("c", 0), ("a", 0)):
        body = {"id": id_, "text": story(ord(id_)), "source": id_.upper()}
        published = (began + timedelta(minutes=minutes)).isoformat()
        assert (await client.post("/v1/articles", json=body | {"published_at": published})).status == 201
        items[id_] = Item(0.5, first_ms + minutes * 60_000, id_.upper())
    told = event("e1", "Ferry aground", first=(first_ms, "c", "C"))
    await commit_event(service.events.repository, "fired", with_items(told, items, ()), EVENT_MS)
    page = await (await client.get("/events/e1/provenance")).text()
    box = page.partition('class="first-box"')[2].partition("<dl")[0]

    assert re.search("by its own date; it arrived here <time [^>]*>[^<]*</time>, after 1 other outlet<", box)
    assert re.search("Not alone: <bdi>A</bdi> has the same time", box)
    tiles = re.findall(r"<dt>([^<]+)</dt><dd>(\d+)", page)
    assert sum(int(count) for label, count in tiles[1:]) + 1 == int(tiles[0][1])  # the first, and the parts


async def test_an_old_article_that_an_editor_added_may_be_background(
    client: Client, service: Service, stored: None
) -> None:
    """It is first, and the page says how long before the others, in days, hours and minutes."""
    await post(client, "y", story(91), "Y", 0, "Ferry was late again")
    times = (*AGROUND.times, PUBLISHED_MS - 97_500_000)
    told = event("e1", "Ferry aground", (*AGROUND.items, "y"), times=times, first=(times[2], "y", "Y"))
    added = replace(told, id="e2", added={"y": Item(0.5, times[2], "Y")})
    for each in (told, added):
        await commit_event(service.events.repository, "fired", each, EVENT_MS)
    without, page = [await (await client.get(f"/events/{id_}/provenance")).text() for id_ in ("e1", "e2")]

    said = (
        "An editor added this article; the next outlet, <bdi>A</bdi>, followed 1\u00a0d 3\u00a0h 5\u00a0min"
    )
    assert said in page and said not in without
    assert page.count("+1\u00a0d 3\u00a0h 5\u00a0min") == 1


async def test_a_day_without_a_time_gets_no_invented_hour(client: Client, service: Service) -> None:
    """Midnight UTC is 01:00 in Berlin, at which nothing was published."""
    today = f"{datetime.now(UTC):%Y-%m-%d}T00:00:00Z"
    body = {"id": "a", "text": TEXT, "source": "A", "published_at": today}
    assert (await client.post("/v1/articles", json=body)).status == 201
    page = await (await client.get("/articles/a/provenance")).text()
    found = await (await client.get("/search?q=a")).text()
    day = f"{datetime.now(UTC):%-d %b %Y} (no time)"

    assert f"by arrival here; dated {day}" in page and "Only publisher so far" in page
    assert f"dated {day}, arrived <time" in found


async def test_every_surface_shows_the_same_numbers(client: Client, service: Service) -> None:
    """Five articles of three outlets, in any spelling: list, report, provenance, files, feeds and calls."""
    outlets = ["Pier Post", "PIER  POST", "www.quay.example", "quay.example", "Mole"]
    for n, source in enumerate(outlets):
        await post(client, f"n{n}", story(40 + n), source, 10 + n)
    items = {f"n{n}": Item(0.5, PUBLISHED_MS + n * 60_000, source) for n, source in enumerate(outlets)}
    told = with_items(event("e1", "Ferry aground", first=(PUBLISHED_MS, "n0", "Pier Post")), items, ())
    await commit_event(service.events.repository, "fired", told, EVENT_MS)

    async def text(path: str) -> str:
        return await (await client.get(path)).text()

    listed = json.loads(await text("/v1/events"))["events"][0]
    one, first = [json.loads(await text(f"/v1/events/e1{end}")) for end in ("", "/provenance")]
    rows = [row.split(",") for row in (await text("/v1/events/e1/items.csv")).splitlines()[1:]]
    report, provenance = await text("/events/e1"), await text("/events/e1/provenance")

    shown = [(e["size"], len(e["sources"]), e["first_seen"], e["last_seen"]) for e in (listed, one)]
    assert shown == [(5, 3, "2026-11-20T08:10:00Z", "2026-11-20T08:14:00Z")] * 2
    assert (len(rows), len({row[3].casefold() for row in rows} - {'"pier  post"'})) == (5, 3)
    assert (first["articles"], len(first["outlets"]), first["independent"]) == (5, 3, 3)
    assert (rows[0][0], first["outlets"][0]["at"][:19]) == ('"2026-11-20T08:10:00Z"', "2026-11-20T08:10:00")
    assert (
        "<dt>Sources</dt><dd>3<" in report and ">5<span" in report and "<dt>Outlets</dt><dd>3<" in provenance
    )
    assert "5 items from 3 outlets" in await text("/v1/events.atom")
    assert (told.size, len(told.sources), told.peak) == (5, 3, 5)


async def test_what_is_doubtful_is_so_on_every_page(client: Client, service: Service) -> None:
    """A notice before the first source is not the first item; a recipe is the last one, and marked."""
    ferry = "Night ferry aground near Pellworm pier"
    posts = [("n", "Notices", 10, "Pellworm pier: night ferry timetable"), ("a", "A", 20, ferry),
             ("b", "B", 22, f"{ferry} now"), ("c", "C", 30, "Kale soup"), ("d", "A", 31, "Fig")]  # fmt: skip
    for id_, source, minute, title in posts:
        await post(client, id_, "", source, minute, title)
    items = {
        id_: Item(0.5, PUBLISHED_MS + (minute - 10) * 60_000, source, doubtful=id_ not in "ab")
        for id_, source, minute, _ in posts
    }
    told = event("e1", ferry, first=(items["a"].at_ms, "a", "A"))
    await commit_event(service.events.repository, "fired", with_items(told, items, ()), EVENT_MS)

    body = await (await client.get("/v1/events/e1/provenance")).json()
    listed = (await (await client.get("/v1/events/e1/items")).json())["items"]
    report, page = [await (await client.get(f"/events/e1{end}")).text() for end in ("", "/provenance")]

    assert [i["id"] for i in listed if i["doubtful"]] == ["n", "c", "d"]
    assert [(o["source"], o["kind"], o["lag_minutes"]) for o in body["outlets"]] == [
        ("A", "first", 0), ("B", "headline", 2), ("Notices", "doubtful", -10), ("C", "doubtful", 10),
    ]  # fmt: skip
    newest = report.partition('class="brief"')[2].partition("</section>")[0]
    assert ferry in newest and "Kale soup" not in newest and "Fig" not in newest
    assert (
        "3 of them doubtful" in report and "08:20 UTC" in report.partition("First of those in the event")[2]
    )
    ends = re.findall(
        r'(first item|last published) <time datetime="[^"]*T(.{5})[^>]*>[^<]*</time>(.*?)</span>', report
    )
    assert ends == [("first item", "08:20", ""), ("last published", "08:31", " (doubtful)")]
    assert re.search(r"With doubtful articles only</dt><dd>2 <small><a [^>]*>3 articles</a>", page)
    assert "With a headline only, so copying cannot be told</dt><dd>1<" in page


@pytest.mark.parametrize(("source", "copy_of"), [("A", None), ("B", "a")])
async def test_what_an_outlet_adds_to_its_own_text_is_no_copy(
    client: Client, service: Service, source: str, copy_of: str | None
) -> None:
    """The service answered to keep it; of another outlet's text it is a longer copy."""
    await post(client, "a", story(5, 4), "A", 10)
    await post(client, "a/2", story(5, 4) + " " + story(6, 6), source, 20)
    stored = (await service.articles.index.articles.get_many(["a/2"]))["a/2"]
    told = event("e1", "Ferry aground", ("a", "a/2"), times=(PUBLISHED_MS, PUBLISHED_MS + 600_000))
    await commit_event(service.events.repository, "fired", told, EVENT_MS)
    listed = (await (await client.get("/v1/events/e1/items")).json())["items"]

    assert stored.outcome.verdict == "duplicate" and stored.outcome.keep
    assert [item["copy_of"] for item in listed] == [None, copy_of]


async def test_the_first_of_a_text_is_not_the_first_of_the_event(client: Client, service: Service) -> None:
    """At the end of the page each text names its first outlet."""
    for id_, source, minute, title in [("a", "A", 10, "Ferry aground"), ("b", "B", 25, "Ferry refloated"),
                                       ("c", "C", 26, "Ferry refloated")]:  # fmt: skip
        await post(client, id_, "", source, minute, title)
    items = {
        i: Item(0.5, PUBLISHED_MS + n * 60_000, s)
        for i, s, n in (("a", "A", 0), ("b", "B", 15), ("c", "C", 16))
    }
    told = event("e1", "Ferry aground", first=(PUBLISHED_MS, "a", "A"))
    await commit_event(service.events.repository, "fired", with_items(told, items, ()), EVENT_MS)
    page = await (await client.get("/events/e1/provenance")).text()
    outlets, texts = page.split('id="texts"')

    assert re.findall(r'<p class="lag">(\S[^<]*?) *\n?<', outlets)[0].strip() == "first"
    assert '<p class="lag">first with it' in texts and '<p class="lag">first <' not in texts


async def test_sources_before_the_first_count(client: Client) -> None:
    """An empty list and a page that says when it fills."""
    body = await (await client.get("/v1/sources")).json()
    page = await (await client.get("/sources")).text()

    assert (body["computed_at"], body["sources"], body["total"]) == (None, [], 0)
    assert "Nothing is counted yet" in page


async def test_sources(client: Client, service: Service, stored: None) -> None:
    """Counts, shares, lag and partners; names with slashes and markup."""
    await post(client, "c", story(7), "C/D", 30)
    await service.background.source_collector.run_once()
    listed = await (await client.get("/v1/sources?sort=copies&limit=1")).json()
    one = await (await client.get("/v1/sources/B%20%3Ci%3E")).json()
    page = await (await client.get("/sources?q=b&sort=lag")).text()
    other = await (await client.get("/sources/C%2FD")).text()
    await commit_event(service.events.repository, "fired", AGROUND, EVENT_MS)
    first, second = [await (await client.get(f"/sources/{name}")).text() for name in ("A", "B%20%3Ci%3E")]

    assert listed["total"] == 3 and [s["name"] for s in listed["sources"]] == ["B <i>"]
    assert listed["sources"][0]["copy_share"] == 1 and listed["articles"] == 3
    assert one["copied_from"] == [{"name": "A", "texts": 1}] and one["copied_by"] == []
    assert (one["median_lag_minutes"], one["family"], one["shared_by_family"]) == (15, [], None)
    assert "B &lt;i&gt;" in page and "15\u00a0min" in page and "C/D" not in page
    assert page.index('id="outlets"') < page.index('id="families"')
    everything = await (await client.get("/sources")).text()
    assert everything.index('id="outlets"') > everything.index('id="families"')
    assert everything.count("first or alone (2 outlets on this page)") == 1 and "100%" in everything
    assert everything.count("100%") == 1  # of the one that is a copy
    assert "It never came after another outlet." in other and "First of an event" not in other
    assert "<span>articles that arrived since <time" in other and "arrived since <time" in everything
    assert "1 of its last 1 event" in first and "0 of its last 1 event" in second


async def test_problems_of_a_source(client: Client, service: Service) -> None:
    """In the answer to each post, as shares of the newest articles, and on both pages."""
    for n in range(10):
        article = {"id": f"a{n}", "title": "", "text": f"<p>{story(n, 8)}</p>", "source": "Radio"}
        answer = await (await client.post("/v1/articles", json=article)).json()
        assert "undated" in answer["problems"]
    text = "Read more: " + story(30, 8) + " Read more"
    await post(client, "b", text, "Gazette", 1)
    await service.background.source_collector.run_once()
    listed = (await (await client.get("/v1/sources")).json())["sources"]
    one = await (await client.get("/v1/sources/Radio")).json()
    page = await (await client.get("/sources/Radio")).text()

    assert [(source["name"], source["failing"]) for source in listed] == [
        ("Radio", ["markup"]),
        ("Gazette", []),
    ]
    assert one["checked"] == 10
    assert (one["problems"]["markup"], one["problems"]["undated"], one["problems"]["cut"]) == (1, 1, 0)
    assert "at least half: <strong>HTML left in the text</strong>, <strong>no date</strong>." in page
    assert "other language" in page
    assert ">HTML left in the text, no date</td>" in await (await client.get("/sources")).text()


async def test_a_problem_of_most_outlets_is_said_once(client: Client, service: Service) -> None:
    """Above the table: it does not distinguish outlets."""
    for n in range(20):
        body = {"id": f"a{n}", "text": f"<p>{story(n, 8)}</p>", "source": "Radio" if n % 2 else "Kurier"}
        await client.post("/v1/articles", json=body)
    await service.background.source_collector.run_once()
    page = await (await client.get("/sources")).text()

    one = await (await client.get("/sources/Radio")).text()

    for name in ("HTML left in the text", "no date"):
        assert f"{name} (2 of the 2 outlets with at least 10 articles)" in page and f"{name}</td>" not in page
        assert f'{name} <span class="note">usual here</span>' in one
    assert "at least half" not in one


async def test_outlets_of_one_family_on_an_event(client: Client, service: Service, stored: None) -> None:
    """They count as one independent outlet; the number of names is shown too."""
    family = Family(("A", "B <i>"), 6, (Partner("A", 6),))
    await service.articles.sources.write(SourcesReport(EVENT_MS, None, 0, 0, (), (family,)))
    await commit_event(service.events.repository, "fired", replace(AGROUND, first=None), EVENT_MS)
    body = await (await client.get("/v1/events/e1/provenance")).json()
    page = await (await client.get("/events/e1/provenance")).text()

    assert (body["families"], body["independent"]) == ([["A", "B <i>"]], 1)
    assert (
        "1 if those that usually publish the same count as one" in page
        and "Usually publish the same texts or headlines" in page
    )


async def test_unknown_sources_and_orders(client: Client) -> None:
    """404 for a name, 400 for an order."""
    assert (await client.get("/v1/sources/none")).status == 404
    assert (await client.get("/sources/none")).status == 404
    assert (await client.get("/v1/sources?sort=size")).status == 400
    assert (await client.get("/sources?limit=5")).status == 400


async def test_a_later_copy_with_a_forged_date_is_no_first(client: Client) -> None:
    """The outlet claims a date; what arrived before it stays first, and both times are shown."""
    now = datetime.now(UTC)
    for source, age in (("Good", timedelta(hours=1)), ("Evil", timedelta(days=20))):
        body = {"id": source, "text": TEXT, "source": source, "published_at": (now - age).isoformat()}
        assert (await client.post("/v1/articles", json=body)).status in (200, 201)
    found = await (await client.get("/v1/articles/Good/provenance")).json()
    page = await (await client.get("/articles/Good/provenance")).text()

    assert found["first"]["id"] == "Good" and not found["certain"]
    assert [(step["basis"], step["copied_from"]) for step in found["steps"]] == [
        ("published", None),
        ("claimed", "Good"),
    ]
    assert found["steps"][1]["at"] == found["steps"][1]["article"]["arrived_at"]
    assert "by arrival here; dated" in page and "The order is not certain" in page
