"""The pages as HTML: contents, escaping, caching, static files."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from importlib import resources
from typing import cast
from unittest.mock import AsyncMock

import jinja2
import pytest

from aggregator.app import Service
from aggregator.domain import Article, Match, Outcome, RelatedItem
from aggregator.errors import NotFound, StoreUnavailable
from aggregator.events.desks import Desk
from aggregator.events.detection.top_stories import TopStory
from aggregator.events.event import EditorAction, Note
from aggregator.events.newsroom import split_off
from aggregator.http.openapi import build_document
from aggregator.http.pages.documentation import curl_command
from aggregator.http.routes import ENDPOINTS, TAG_PAGES
from aggregator.http.server import make_app
from aggregator.queries.ranking import RelatedOptions
from aggregator.time_units import DAY_MS, HOUR_MS
from tests.support.factories import EVENT_MS, event
from tests.support.fake_service import START_MS, Client, FakeService

pytestmark = pytest.mark.integration


async def test_the_empty_page_explains_the_first_step(client: Client) -> None:
    """Without articles the page shows a command to copy, with the URL in use."""
    page = await (await client.get("/")).text()

    assert f"curl http://{client.host}:{client.port}/v1/articles" in page
    assert "more than 15 similar items within 4 hours" in page


async def test_events_and_verdicts_are_listed(client: Client, service: FakeService) -> None:
    """Headline, size, sources and rate of events; verdicts newest first."""
    await client.post("/v1/articles", json={"id": "a", "title": "First", "text": "One text."})
    await client.post("/v1/articles", json={"id": "b", "title": "Second", "text": "One text."})
    service.fake_events.stored = [event("e1", "Harbour bridge closed", ("a",) * 16)]
    service.fake_events.event_ids = {service.stored["a"].record.first_version: "e1"}
    page = await (await client.get("/")).text()

    assert "Harbour bridge closed" in page
    assert "<dt>items</dt><dd>16</dd>" in page
    assert "<dt>sources</dt><dd>2</dd>" in page
    assert "peak 16 in 4 h, usually 1 in 10 h" in page
    assert "15 in the last hour, 1 in the hour before" in page
    assert '<span class="state breaking">Breaking</span>' in page
    assert page.index("Second") < page.index("First")
    assert "exact copy" in page
    assert re.findall(">event<[^>]*> of ([^<]*)<", page) == [
        "Second",
        "First",
    ]  # also for a copy that the event does not count


@pytest.mark.parametrize(
    ("expected", "shown"),
    [(0.4, "usually 1 in 10 h"), (0, "usually none"), (1, "usually 1<"), (9.94, "usually 10<")],
)
async def test_the_usual_number_is_one_of_whole_items(
    client: Client, service: FakeService, expected: float, shown: str
) -> None:
    """In a list and a report; below one item it says how often one comes."""
    service.fake_events.stored = [replace(event("e1", "Bridge"), expected=expected)]

    assert all([shown in await (await client.get(path)).text() for path in ("/", "/events/e1")])


async def test_a_top_story_leads_to_a_search_or_its_event(client: Client, service: FakeService) -> None:
    """No link claims to list what is counted; its age is not that of the headline."""
    ferry, strike = event("e1", "Ferry aground", ["f1"], headline_id="f1"), event("e2", "Strike", ["s1"])
    since_ms = ferry.last_seen_ms - 3 * HOUR_MS
    service.fake_events.stories = [
        TopStory(each, since_ms, is_event=each is strike, needed=0) for each in (ferry, strike)
    ]
    page = await (await client.get("/")).text()
    rows = re.findall('<li data-key="se.*?</li>', page, re.DOTALL)

    assert '<a href="/search?q=Ferry%20aground">Search its headline<' in rows[0]
    assert 'href="/search?q=f1"' in rows[0]
    assert 'href="/events/e2"' in rows[1] and "Search its" not in rows[1]
    assert all("<span>1 item</span>" in row for row in rows)
    assert all(re.search("first item <time [^>]*data-exact>", row) for row in rows)
    assert all("last item" in row and "published" not in row for row in rows)  # it may have come late


async def test_an_event_that_a_filter_hides_is_no_top_story(client: Client, service: FakeService) -> None:
    """There it would have a third number of items."""
    strike = event("e2", "Strike")
    service.fake_events.stored = [strike]
    service.fake_events.stories = [TopStory(strike, strike.last_seen_ms, is_event=True, needed=0)]

    page = await (await client.get("/?severity=growing")).text()
    assert "No open event matches" in page and 'data-key="se2"' not in page


async def test_a_headline_behind_the_newest_figure_is_marked(client: Client, service: FakeService) -> None:
    """On list, wall and report, as soon as two outlets report more than it says."""
    tolls = ((EVENT_MS, "dead", 3),)
    service.fake_events.stored = [
        event("e1", "Storm kills 1 sailor", tolls=tolls, languages=("en",)),
        event("e2", "Storm kills 3 sailors", tolls=tolls, languages=("en",)),
    ]

    for path, count in (
        ("/", 1),
        ("/?kiosk=1", 1),
        ("/days/2026-09-21", 1),
        ("/events/e1", 1),
        ("/events/e2", 0),
    ):
        said = "now 3 dead" if "kiosk" in path else "2+ outlets: 3 dead"
        assert (await (await client.get(path)).text()).count(said) == count, path


async def test_a_report_proposes_what_probably_belongs_to_it(
    client: Client, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is one story with two of its articles, in another event or none; not what editors took out."""
    for id_ in ("a1", "a2", "a3", "b1", "c1", "c2", "d1"):
        await service.submit(Article(id=id_, title=f"Quake {id_}", text=f"Text {id_}."))
    quake = event("e1", "Quake", ["a1", "a2", "a3"], removed=("d1",))
    other = event("e2", "Aftershocks", ["b1"])
    service.fake_events.stored = [quake, other]

    async def of_id(id_: str, options: RelatedOptions) -> list[RelatedItem]:
        if id_ == "a3":
            raise NotFound("It was deleted since the report loaded its articles.")
        found = ["b1", "c1", "c2", "d1"] if id_ == "a1" else ["b1", "c1", "d1"]
        kept = [i for i in found if i not in options.exclude_ids]
        return [RelatedItem(i, i, "", "", None, 0, 0.0, kind="same_story") for i in kept]

    monkeypatch.setattr(service, "of_id", of_id)
    numbers = {(await service.get("b1")).group: "e2"}
    monkeypatch.setattr(service.fake_events, "event_ids_of", AsyncMock(return_value=numbers))
    page = await (await client.get("/events/e1")).text()
    shown = page[page.index("Probably part") : page.index("</details>")]

    assert 'data-action="merge" data-event="e2" data-into="e1"' in shown
    assert 'data-event="e2" data-item="b1" data-into="e1"' in shown
    assert 'data-event="e1" data-item="c1" data-into="e1"' in shown
    assert "c2" not in shown and "d1" not in shown
    undone = (
        EditorAction("merge", "Ada", 1, "e2", into="e1", id=1),
        EditorAction("undo", "Ada", 2, "e1", of=1),
    )
    service.fake_events.stored = [replace(quake, actions=undone, revision=2), other]
    page = await (await client.get("/events/e1")).text()
    assert 'data-item="c1"' in page and 'data-item="b1"' not in page


async def test_the_newest_headlines_of_a_report_differ(client: Client, service: FakeService) -> None:
    """One that several outlets have is one of the three."""
    for n, title in enumerate(
        ("Quake hits Orrin", "Quake: rescuers arrive", "Quake hits Orrin", "Quake hits Orrin")
    ):
        await service.submit(Article(id=f"q{n}", title=title, text=f"Text {n}.", source=f"Outlet {n}"))
    service.fake_events.stored = [event("e1", "Quake", [f"q{n}" for n in range(4)])]
    page = await (await client.get("/events/e1")).text()
    brief = page[page.index('id="newest"') : page.index("First of those")]

    assert (brief.count("Quake hits Orrin"), brief.count("rescuers")) == (1, 1)


async def test_a_report_credits_originals_and_marks_copies_and_old_figures(
    client: Client, service: FakeService
) -> None:
    """Newest and alternatives; what the event leaves out is said where its articles are listed."""
    articles = (
        ("q0", "Storm kills 1 sailor", "Lifeboats found the sailor."),
        ("q1", "Ferry sinks off Orrin", "All passengers were rescued."),
        ("q2", "Ferry sinks off Orrin", "All passengers were rescued."),
        ("elsewhere", "Pilots", "The harbour pilots mourn a colleague."),
        ("q3", "Harbour pilots mourn colleague", "The harbour pilots mourn a colleague."),
    )
    for id_, title, text in articles:
        await service.submit(Article(id=id_, title=title, text=text, source=f"Outlet {id_}", lang="en"))
    tolls = ((EVENT_MS, "dead", 3),)
    storm = event("e1", "Storm toll", [f"q{n}" for n in range(4)], tolls=tolls, languages=("en",))
    service.fake_events.stored = [storm]
    page = await (await client.get("/events/e1")).text()
    brief = page[page.index('id="newest"') : page.index("First of those")]
    alternatives = page[page.index(">Alternatives<") : page.index("Why it is an event")]
    items = page[page.index('id="report-items"') :]

    for part in (brief, alternatives):
        assert "Outlet q1" in part and "Outlet q2" not in part
        assert part.count("copy of an article that is not in this event") == 1
    assert "Storm kills 1 sailor" in items and "Storm kills 1 sailor" not in alternatives
    assert "3 further copies</a> by outlets that are counted already" in items


async def test_an_event_has_one_first_item(client: Client, service: FakeService) -> None:
    """The same in the row of a top story and in the report."""
    strike = event("e1", "Strike", ["a1"], first=(EVENT_MS - HOUR_MS, "a1", "Quay News"))
    service.fake_events.stored = [strike]
    service.fake_events.stories = [TopStory(strike, EVENT_MS - 9 * HOUR_MS, is_event=True, needed=0)]
    report = re.search(r"<span>first item .*?</span>", await (await client.get("/events/e1")).text())
    service.fake_events.stored = []

    assert report and report[0] in await (await client.get("/")).text()


async def test_a_merged_event_is_no_top_story(client: Client, service: FakeService) -> None:
    """Its items are those of the event above."""
    merged = event("e2", "Strike", merged_into="e1", status="closed")
    service.fake_events.stored = [event("e1", "Ferry aground"), merged]
    service.fake_events.stories = [TopStory(merged, 0, is_event=True, needed=0)]

    assert "Strike" not in await (await client.get("/")).text()


async def test_the_name_of_the_reader_is_on_every_page(client: Client) -> None:
    """At one place of the header, and may be changed there."""
    for path in ("/", "/days", "/desks", "/sources", "/health", "/docs", "/search", "/compare"):
        page = await (await client.get(path)).text()
        assert 'id="actor"' in page and 'id="actor-dialog"' in page, path


async def test_a_storyline_is_shown_by_day(client: Client, service: FakeService) -> None:
    """The report links to the storyline and to its neighbor; all events but the first can be taken out."""
    for id_, title in (("a", "Harbour bridge closed"), ("b", "Ferries run again")):
        await client.post("/v1/articles", json={"id": id_, "title": title, "text": f"{title}."})
    service.fake_events.stored = [
        event("e1", "Harbour bridge closed", ["a"], story_id="e1"),
        event("e2", "Harbour bridge <open>", ["b"], story_id="e1"),
        event("e3", "Election", story_id="e3"),
    ]
    report = await (await client.get("/events/e2")).text()
    page = await (await client.get("/stories/e1")).text()
    alone = await (await client.get("/events/e3")).text()

    assert 'href="/stories/e1"' in report
    assert re.findall("That day: <span[^>]*>(.*?)</span>", page) == ["Ferries run again"]
    assert 'Before: <a href="/events/e1"><bdi>Harbour bridge closed</bdi></a>' in report
    assert "2 events" in page and 'href="/events/e1"' in page and "Harbour bridge &lt;open&gt;" in page
    assert re.findall('data-action="unlink" data-event="(..)"', page) == ["e2"]
    assert "Storyline" not in alone
    assert (await client.get("/stories/none")).status == 404


async def test_a_merged_event_names_the_one_that_has_its_articles(
    client: Client, service: FakeService
) -> None:
    """One that has expired is linked all the same. The merge is undone there, if an editor made it."""
    merge = EditorAction("merge", "Ada", EVENT_MS, "e2", into="e1", id=7)
    service.fake_events.stored = [
        event("e1", "Harbour <bridge>", actions=(merge,)),
        event("e2", "Pier", merged_into="e1", status="closed", actions=(merge,)),
        event("e4", "Quay", merged_into="e1", status="closed"),
        event("e3", "Mole", merged_into="gone", status="closed"),
    ]

    page = await (await client.get("/events/e2")).text()
    assert '<a href="/events/e1" dir="auto">Harbour &lt;bridge&gt;</a>.' in page
    assert 'data-action="undo" data-event="e1" data-of="7">Undo the merge<' in page
    assert "Undo the merge" not in await (await client.get("/events/e4")).text()
    assert (
        '<a href="/events/gone" dir="auto">another event</a>.'
        in await (await client.get("/events/e3")).text()
    )


async def test_a_split_that_was_undone_leaves_a_way_back(client: Client, service: FakeService) -> None:
    """The page of the event that it made says who did what and when, and shows no empty report."""
    split = EditorAction("move_items", "Ada", EVENT_MS, "e1", items=("a",), id=7)
    made = split_off(event("e1", "Bridge"), split)
    split = replace(split, into=made.id)
    undo = EditorAction("undo", "Ben", EVENT_MS + HOUR_MS, "e1", items=("a",), into="e1", of=7, id=8)
    gone = replace(made, status="closed", merged_into="e1", actions=(split, undo))
    kept = event("e1", "Harbour “bridge”", ["a"], actions=(split, undo))
    service.fake_events.stored = [kept, gone]

    page = await (await client.get(f"/events/{made.id}")).text()
    notice = re.sub(r"<.*?>", "", page[page.index('class="notice"') :].partition("</p>")[0])
    assert notice.endswith(
        "Ada split this event off, 21 Sep 2026, 14:13 UTC; Ben undid that, 21 Sep 2026, 15:13 UTC. "
        "Its articles are again in Harbour “bridge”."
    ), notice
    assert '<a href="/events/e1"' in page and "before the merge" not in page and "Harbour ‘bridge’" in page
    assert 'class="tiles"' not in page and "Over time" not in page and "Why it is an event" not in page
    assert "undid what <bdi>Ada</bdi> did: split off" in page


async def test_the_history_names_new_headlines_of_a_published_event(
    client: Client, service: FakeService
) -> None:
    """Without an editor and without a way to undo it."""
    await client.post("/v1/articles", json={"id": "a", "title": "Bridge “open”", "text": "It is open."})
    renamed = EditorAction("choose_headline", "", EVENT_MS, "e1", item="a")
    service.fake_events.stored = [event("e1", "Bridge", ["a"], actions=(renamed,))]

    page = await (await client.get("/events/e1")).text()
    history = re.sub("<.*?>", "", page.partition('class="audit-trail">')[2].partition("</ol>")[0]).strip()
    assert history.endswith("New headline since it was marked as published: “Bridge ‘open’”")
    assert 'data-action="undo"' not in page


async def test_an_event_that_was_split_off_says_when_and_from_which(
    client: Client, service: FakeService
) -> None:
    """Its own time of detection is that of the other one; that of the split is in the zone of the reader."""
    split = EditorAction("move_items", "Ada", EVENT_MS + HOUR_MS, "e1", items=("a",), id=7)
    made = split_off(event("e1", "Bridge"), split)
    split = replace(split, into=made.id)
    service.fake_events.stored = [event("e1", "Bridge"), replace(made, actions=(split,))]
    assert made.reason == "As part of an event that an editor split."

    page = re.sub(r"<.*?>", "", await (await client.get(f"/events/{made.id}")).text())
    assert "Ada split it off “Bridge” 21 Sep 2026, 15:13 UTC; that was detected 21 Sep 2026, 14:13" in page


async def test_markup_in_articles_and_events_is_escaped(client: Client, service: FakeService) -> None:
    """Titles are text; only http and https URLs become links."""
    await client.post(
        "/v1/articles",
        json={
            "id": "a",
            "title": "<script>alert(1)</script>",
            "text": "x",
            "url": 'https://example.org/"onmouseover="alert(2)',
            "source": "<b>bold</b>",
        },
    )
    service.fake_events.stored = [
        event("<i>", "<img src=x onerror=alert(3)>", (), reason="<u>", sources=("<s>",))
    ]
    stored = service.stored["a"]
    looked_up = await (await client.get("/search?q=a")).text()
    object.__setattr__(stored.record, "id", "<a>")
    service.stored["<a>"] = stored
    front = await (await client.get("/")).text()
    report = await (await client.get("/events/%3Ci%3E")).text()
    unknown = await (await client.get("/search", params={"q": "<u>"})).text()

    for page in (front, looked_up, report, unknown):
        for bad in ("<script>alert", "<img src=x", "<b>bold", "<u>", "<s>", '"onmouseover', "<i>"):
            assert bad not in page, bad
    assert 'rel="noopener noreferrer"' in looked_up


async def test_a_look_up_shows_what_was_decided(client: Client, service: FakeService) -> None:
    """A reversal, a page that is not the article, the collection and the former version, with links."""
    await client.post("/v1/articles", json={"id": "a", "title": "Title", "text": "x"})
    match = Match("b", 1, "b", 1, 0, 1.0, "overlap")
    outcomes = (
        Outcome("duplicate", 0, match, reversed=True, adds=0.25),
        Outcome("related", text_is_article=False, part_of="<briefing>", follows="live 1"),
    )
    object.__setattr__(service.stored["a"].record, "text_words", 60)
    pages = []
    for outcome in outcomes:
        object.__setattr__(service.stored["a"], "outcome", outcome)
        pages.append(await (await client.get("/search?q=a")).text())

    assert "opposite" in pages[0] and "To keep: it has news" in pages[0] and "25" in pages[0]
    assert "is not the article" in pages[1] and "opposite" not in pages[1]
    assert 'href="/search?q=%3Cbriefing%3E"' in pages[1] and "&lt;briefing&gt;" in pages[1]
    assert 'href="/search?q=live%201"' in pages[1]


async def test_an_address_in_a_note_is_a_link(client: Client, service: FakeService) -> None:
    """Such as that of the newsroom's own story; whatever else it says is text."""
    text = "Ours: https://gazette.example/storm?a=1&b=2 javascript:alert(1) <b>now</b>"
    service.fake_events.stored = [event("e1", "Storm", (), notes=(Note(1, "Ada", EVENT_MS, text),))]
    page = await (await client.get("/events/e1")).text()
    note = page.partition('class="keep-lines"')[2].partition("</p>")[0]

    link = '<a href="https://gazette.example/storm?a=1&amp;b=2" rel="noopener noreferrer" target="_blank">'
    assert link in note and note.count("<a ") == 1 and "<b>" not in note
    assert "an address in a note of the report links our story" in page


async def test_script_urls_are_not_links(client: Client, service: FakeService) -> None:
    """A javascript: URL in the store is shown without a link."""
    await client.post("/v1/articles", json={"id": "a", "title": "Title", "text": "x"})
    object.__setattr__(service.stored["a"].record, "url", "javascript:alert(1)")
    page = await (await client.get("/search?q=a")).text()

    assert "javascript:" not in page
    assert "Title" in page


async def test_an_unchanged_page_is_304(client: Client, service: FakeService) -> None:
    """Polling transfers nothing while nothing changes."""
    first = await client.get("/")
    again = await client.get("/", headers={"If-None-Match": first.headers["ETag"]})
    service.fake_events.stored = [event("e1", "News", (), last_seen_ms=START_MS)]
    changed = await client.get("/", headers={"If-None-Match": first.headers["ETag"]})

    assert (first.status, again.status, changed.status) == (200, 304, 200)


async def test_the_documentation_page(client: Client) -> None:
    """It has every operation, schema and error code, with anchors."""
    page = await (await client.get("/docs")).text()

    for part in (
        "/v1/articles/batch",
        "postRelated",
        'id="schema-VerdictOut"',
        'id="error-no_text"',
        "dry_run",
        "/static/docs.js",
        "-H &#39;content-type: application/json&#39;",
        "Time of publication that the outlet states",
    ):
        assert part in page


async def test_every_call_of_the_api_can_be_tried(client: Client) -> None:
    """A labelled form each, except for the endless stream; their fields have unique ids."""
    page = await (await client.get("/docs")).text()
    calls = [e for e in ENDPOINTS if e.tag != TAG_PAGES and e.operation_id != "streamEvents"]
    ids = re.findall(r' id="([^"]+)"', page)

    assert page.count('<form class="try"') == len(calls)
    assert all(f'data-path="{e.path}" data-method="{e.method}"' in page for e in calls)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'<label for="([^"]+)"', page)) <= set(ids)


def test_commands_are_complete() -> None:
    """Paths and bodies of the examples, quoted for a shell."""
    paths = build_document(ENDPOINTS)["paths"]

    assert curl_command("/v1/search", "get", paths["/v1/search"]["get"]) == (
        'curl -s "$api/v1/search?q=swimming%20hall" \\\n  -H "authorization: Bearer $KEY"'
    )
    assert curl_command("/v1/desks/{id}", "delete", paths["/v1/desks/{id}"]["delete"]).startswith(
        'curl -s "$api/v1/desks/5d0c1e8a77b2" \\\n  -X DELETE'
    )
    command = curl_command("/v1/related", "post", paths["/v1/related"]["post"])
    assert json.loads(shlex.split(command)[-1]) == {"ids": ["pool-1", "pool-2", "pool-9"]}


async def test_pages_load_nothing_from_other_hosts(client: Client) -> None:
    """Scripts, styles and images are local, and the markup has no inline style or script."""
    for path in ("/", "/docs", "/search", "/compare", "/health", "/events/none"):
        page = await (await client.get(path, headers={"Accept": "text/html"})).text()
        assert 'src="http' not in page
        assert "<link" in page
        assert ' style="' not in page
        assert page.count("<script") == page.count('<script src="/static/') > 0


async def test_the_address_holds_order_filter_and_kiosk(client: Client, service: FakeService) -> None:
    """The largest first; only one state; the stream and the feed have the filter, not the order."""
    service.fake_events.stored = [
        event("e1", "Small story", ("a",) * 16, expected=0.0),
        event("e2", "Large story", ("a",) * 99, expected=50.0, languages=("de",), timeline=()),
    ]
    unusual = await (await client.get("/")).text()
    largest = await (await client.get("/?sort=size&min_size=5")).text()
    growing = await (await client.get("/?severity=breaking")).text()
    kiosk = await (await client.get("/?kiosk=1")).text()

    assert unusual.index("Small story") < unusual.index("Large story")
    assert largest.index("Large story") < largest.index("Small story")
    assert 'data-stream="/v1/events/stream?min_size=5"' in largest
    assert 'href="/v1/events.atom?min_size=5"' in largest
    assert "Small story" in growing and "Large story" not in growing
    assert "kiosk.js" in kiosk and "data-action" not in kiosk and "kiosk.js" not in unusual
    assert (await client.get("/?sort=fame")).status == 400


async def test_the_latest_articles_follow_the_filter(client: Client, service: FakeService) -> None:
    """Language, outlet, words and desk as for events; the size of an event says nothing about an article."""
    service.fake_events.stored = [event("e1", "Harbour bridge closed", size=30)]
    rows = [
        ("a", "Ferry sinks", "en", "Post"),
        ("b", "Fähre sinkt", "de", "Blatt"),
        ("c", "Rain", "en", "Blatt"),
    ]
    for id_, title, lang, source in rows:
        body = {"id": id_, "title": title, "text": f"{title} now.", "lang": lang, "source": source}
        await client.post("/v1/articles", json=body)
    desk = await service.events.desks.create(
        Desk("", "Sea", 0, terms=("ferry", "fähre"), without=("rain",), min_size=20)
    )

    async def listed(query: str) -> list[str]:
        page = await (await client.get(f"/?{query}")).text()
        return [title for _, title, *_ in rows if f">{title}</a>" in page]

    assert await listed("min_size=20") == ["Ferry sinks", "Fähre sinkt", "Rain"]
    assert await listed("lang=de-AT") == ["Fähre sinkt"]
    assert await listed("source=blatt") == ["Fähre sinkt", "Rain"]
    assert await listed(f"watch={desk[0].id}") == ["Ferry sinks", "Fähre sinkt"]
    assert await listed(f"watch={desk[0].id}&lang=en") == ["Ferry sinks"]


async def test_a_storyline_shows_its_gaps(client: Client, service: FakeService) -> None:
    """One chart of all its events, days without items, the headline of each event and its outlets."""
    early = event("e1", "Strike vote", ["v"], size=20, story_id="e1", times=(EVENT_MS - 4 * DAY_MS,))
    early = replace(early, timeline=((EVENT_MS - 4 * DAY_MS, 20),))
    late = event("e2", "Strike begins", ["b"], size=30, story_id="e1", times=(EVENT_MS,))
    late = replace(late, timeline=((EVENT_MS, 30),))
    service.fake_events.stored = [early, late]
    page = await (await client.get("/stories/e1")).text()

    assert "<span>50 items</span>" in page and page.count("<title>") == 1 + 2  # of the page and its bars
    assert (
        page.index("Strike begins</a>") < page.index("3 days without items") < page.index("Strike vote</a>")
    )
    assert "<bdi>one.example</bdi>" in page and "two.example" not in page  # no outlet of other days


async def test_a_storyline_has_the_days_of_the_reader_newest_first(
    client: Client, service: FakeService
) -> None:
    """In the zone that the browser noted; days and the events within one have one order."""
    midnight_ms = EVENT_MS - EVENT_MS % DAY_MS
    times = {"e1": midnight_ms - HOUR_MS, "e2": midnight_ms + HOUR_MS, "e3": midnight_ms + 2 * HOUR_MS}
    service.fake_events.stored = [
        event(id_, f"Strike {id_}", ["a"], story_id="e1", times=(ms,), detected_at_ms=ms)
        for id_, ms in times.items()
    ]

    async def shown(zone: str) -> tuple[list[str], int]:
        cookie = {"Cookie": f"aggregator_zone={zone}"}
        text = await (await client.get("/stories/e1", headers=cookie)).text()
        report = await (await client.get("/events/e2", headers=cookie)).text()
        assert (f"({zone})" in text and f"by day ({zone})" in report) or zone == "../etc"
        return re.findall(r'headline"><a href="/events/(\w+)"', text), text.count("<section")

    assert await shown("UTC") == await shown("../etc") == (["e3", "e2", "e1"], 2)
    assert await shown("America/Lima") == await shown("Asia/Tokyo") == (["e3", "e2", "e1"], 1)


async def test_an_article_leads_to_its_event(client: Client, service: FakeService) -> None:
    """In the list of the latest articles."""
    await client.post("/v1/articles", json={"id": "a", "title": "Bridge closed", "text": "It is closed."})
    number = service.stored["a"].record.first_version
    service.fake_events.event_ids = {number: "e/1"}
    page = await (await client.get("/")).text()

    assert '<a href="/events/e%2F1">event<span class="visually-hidden"> of Bridge closed</span></a>' in page


async def test_the_icon_counts_new_events(client: Client) -> None:
    """One icon for each count up to nine, and one for more."""
    for name, text in (("icon-1.svg", ">1</text>"), ("icon-9plus.svg", ">9+</text>")):
        response = await client.get(f"/static/{name}")
        body = await response.text()
        assert response.content_type == "image/svg+xml"
        assert body.count("</svg>") == 1 and body.index(text) < body.index("</svg>")
    assert (await client.get("/static/icon-10.svg")).status == 404


async def test_static_files_have_their_media_type(client: Client) -> None:
    """Style, script, font and icon."""
    for name, media in [
        ("page.css", "text/css"),
        ("app.js", "text/javascript"),
        ("inter-latin.woff2", "font/woff2"),
        ("icon.svg", "image/svg+xml"),
    ]:
        response = await client.get(f"/static/{name}")
        assert (response.status, response.content_type) == (200, media)


async def test_an_unavailable_store_is_an_error_page(client: Client, service: FakeService) -> None:
    """HTML for a browser, problem JSON for a program."""
    service.failure = StoreUnavailable("The store does not answer; try again.")
    page = await client.get("/", headers={"Accept": "text/html,*/*"})
    problem = await client.get("/")

    assert (page.status, page.content_type) == (503, "text/html")
    assert "The store does not answer; try again." in await page.text()
    assert page.headers["Retry-After"] == "1"
    assert (problem.status, problem.content_type) == (503, "application/problem+json")


async def test_the_documentation_is_rendered_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes 90 ms of the event loop, and anybody may ask for it."""
    first = await (await client.get("/docs")).text()
    monkeypatch.setattr(jinja2.Environment, "get_template", None)

    assert await (await client.get("/docs")).text() == first


def test_every_address_in_a_template_has_a_route() -> None:
    """Also where no page of the tests shows the link: by the first part of the path."""
    routes = {
        resource.canonical.split("/")[1].split(".")[0]
        for resource in make_app(cast(Service, FakeService())).router.resources()
    }
    templates = resources.files("aggregator.http.pages").joinpath("templates")
    for template in templates.iterdir():
        text = template.read_text(encoding="utf-8")
        found = re.findall(r'(?:href|src|action|formaction|data-stream)="(?:{{ ")?/([\w-]+)', text)
        assert set(found) <= routes, template.name
