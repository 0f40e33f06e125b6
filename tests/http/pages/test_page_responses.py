"""The pages over the real service: verdicts, comparisons, reports, health and errors."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from aggregator.analysis.source import name_outlets
from aggregator.app import Service, open_service
from aggregator.errors import StoreUnavailable
from aggregator.events.detection.model import LearnedHistory
from aggregator.events.event import ChosenHeadline, EditorAction, Note
from aggregator.events.repository import LEARNING_KEY
from aggregator.http.pages import rendered, report
from aggregator.settings import Settings
from aggregator.store.base import Put
from aggregator.time_units import DAY_MS, HOUR_MS, format_rfc3339, to_datetime
from tests.support.factories import commit_event, event, story
from tests.support.fake_service import Client, serving

pytestmark = pytest.mark.integration

ORIGINAL, OTHER = story(1), story(2)
ITEM = r'class="item" data-item="([^"]+)"'
YEAR_MS = 365 * DAY_MS
EDITED = ORIGINAL.replace(" ", " extra ", 2)


@pytest.fixture(params=[True, False], ids=["texts stored", "texts not stored"])
async def real(request: pytest.FixtureRequest) -> AsyncIterator[Service]:
    """A service in memory."""
    async with open_service(Settings(store_url="memory", store_texts=request.param)) as service:
        yield service


@pytest.fixture
async def client(real: Service) -> AsyncIterator[Client]:
    """A client of it, with an article, a duplicate of it and an unrelated one stored."""
    async with serving(real) as opened:
        for id_, text in (("one", ORIGINAL), ("two", EDITED), ("three", OTHER)):
            body = {"id": id_, "title": f"Title {id_}", "text": text, "source": f"{id_}.example"}
            assert (await opened.post("/v1/articles", json=body)).status in (200, 201)
        yield opened


async def test_a_stored_article_is_looked_up_by_id_or_url(client: Client) -> None:
    """The page shows verdict, original, duplicates and fingerprint."""
    await client.post("/v1/articles", json={"url": "https://four.example/a?utm_source=x", "text": ORIGINAL})
    by_id = await (await client.get("/search", params={"q": "two"})).text()
    by_url = await (await client.get("/search", params={"q": "HTTPS://four.example/a/"})).text()

    assert "The same text, edited." in by_id
    assert by_id.count("Title one") >= 1
    assert by_id.count('<i class="on"></i>') + by_id.count('<i class="off"></i>') == 64
    assert "The same text, word for word." in by_url


async def test_a_look_up_says_whether_a_duplicate_has_news(client: Client) -> None:
    """A copy with a word more has none; the fuller text is kept, in the list of a search as well."""
    fuller = {"id": "four", "title": "Title one", "text": f"{ORIGINAL} {story(7)}", "source": "d.example"}
    assert (await client.post("/v1/articles", json=fuller)).status == 201

    pages = [await (await client.get("/search", params={"q": id_})).text() for id_ in ("one", "two", "four")]
    found = await (await client.get("/search", params={"q": "title one"})).text()

    said = [re.findall(r">(A copy without news|To keep): ", page) for page in pages]
    assert said == [[], ["A copy without news"], ["To keep"]]
    assert "it contains the original and is longer" in pages[2]
    assert found.count("<span>kept</span>") == 1


async def test_an_article_is_looked_up_by_its_url_whatever_its_id_is(client: Client) -> None:
    """In any spelling; of another URL no words are searched. What is pasted redirects to its address."""
    body = {
        "id": "tram-7",
        "url": "https://coast.example/7/tram-runs",
        "title": "Tram runs again",
        "text": story(5),
    }
    assert (await client.post("/v1/articles", json=body)).status == 201

    page = await (await client.get("/search", params={"q": "HTTPS://coast.example/7/tram-runs/#top"})).text()
    pasted = await client.post("/search", data={"q": body["url"]}, allow_redirects=False)
    other = await (await client.get("/search", params={"q": body["url"] + "s"})).text()

    assert "<code>tram-7</code>" in page
    assert pasted.status == 303
    assert "No article is stored under" in other and "Tram runs again" not in other


async def test_a_pasted_text_gets_a_verdict_and_is_not_stored(client: Client) -> None:
    """Duplicate or new; a pasted id redirects to the URL of its look-up."""
    duplicate = await (await client.post("/search", data={"q": EDITED + " More."})).text()
    unrelated = await (await client.post("/search", data={"q": story(9)})).text()
    id_ = await client.post("/search", data={"q": " one "}, allow_redirects=False)

    assert "The same text, edited." in duplicate
    assert "Nothing like it is stored." in unrelated
    assert (id_.status, id_.headers["Location"]) == (303, "/search?q=one")
    assert (await client.get("/v1/articles/content:x")).status == 404


@pytest.mark.parametrize("text", ["!?", "\u200b \n \u200b"])
async def test_a_text_without_words_is_not_an_error(client: Client, text: str) -> None:
    """The page has a message instead of a verdict."""
    response = await client.post("/search", data={"q": text + "\n" + text})

    assert response.status == 200
    assert 'role="alert"' in await response.text() or "verdict" not in await response.text()


async def test_two_stored_articles_are_compared(client: Client, real: Service) -> None:
    """With stored texts the shared wording is marked; without, the page names the setting."""
    page = await (await client.get("/compare?a=one&b=two")).text()

    assert page.count('class="side"') == 2
    assert "Title one" in page
    assert ("<mark" in page) is real.settings.store_texts
    assert ("store_texts" in page) is not real.settings.store_texts


async def test_two_headlines_are_compared_word_by_word(client: Client) -> None:
    """Whether texts are stored or not; the legend names what is marked, and languages are not compared."""
    for id_, title in (
        ("h1", "Ferry to Kareth aground, 40 rescued"),
        ("h2", "Fifty saved as the Kareth ferry runs aground"),
        ("h3", "Der Hafen von Kareth bleibt nach dem Sturm drei Tage lang geschlossen"),
        ("h4", "Mild weather expected"),
    ):
        await client.post("/v1/articles", json={"id": id_, "title": title, "source": f"{id_}.example"})
    shared, languages, nothing = [
        await (await client.get(f"/compare?a=h1&b={other}")).text() for other in ("h2", "h3", "h4")
    ]

    assert re.findall(r"<mark[^>]*>([^<]+)</mark>", shared)[:6] == [
        *("Ferry", "Kareth", "aground,"),
        *("Kareth", "ferry", "aground"),
    ]
    assert "alike" in shared and "<mark>Shared wording</mark>" in shared and ">40<" in shared
    assert "alike" not in languages and "Not compared" in languages and "Shared wording</dt>" not in languages
    assert "Shared wording" not in nothing and "Mild weather expected" in nothing


async def test_pasted_texts_are_compared(client: Client) -> None:
    """This needs no stored texts; an unknown id is reported."""
    page = await (await client.post("/compare", data={"a": ORIGINAL, "b": EDITED})).text()
    unknown = await (await client.get("/compare?a=one&b=nothing")).text()

    assert '<mark data-passage="0"' in page
    assert "No article is stored under" in unknown


async def test_forms_of_other_sites_are_refused(client: Client) -> None:
    """A cross-site form gets 403, a body that is not a form 400."""
    foreign = await client.post("/search", data={"q": "x"}, headers={"Origin": "https://evil.example"})
    no_form = await client.post("/search", data=b"\xff\xfe")

    assert (foreign.status, no_form.status) == (403, 400)


async def test_a_report_folds_copies_under_their_original(client: Client, real: Service) -> None:
    """In order of time, the newest first; the outlets of the copies, the first source, the reason."""
    await commit_event(
        real.events.repository, "fired", event("e1", "Bridge closed", ["one", "two", "three", "gone"]), 1
    )
    page = await (await client.get("/events/e1")).text()
    oldest = await (await client.get("/events/e1?view=oldest")).text()

    assert "and 1 copy in <bdi>two.example</bdi>" in page
    assert "4 items, of which 3 are stored and listed; 1 with the same text or headline folded" in page
    assert "First of those in the event" in page and "16 items within 4 hours, where 0.4 are usual." in page
    assert re.findall(ITEM, page) == ["three", "one"]
    assert re.findall(ITEM, oldest) == ["one", "three"]


async def test_an_old_article_does_not_lead_a_report(client: Client, real: Service) -> None:
    """Its date, and when it arrived; among the newest it is where its date is."""
    now_ms = real.clock()
    body = {"id": "old", "title": "Old", "published_at": format_rfc3339(now_ms - 12 * HOUR_MS)}
    assert (await client.post("/v1/articles", json=body)).status == 201
    old = {"times": (now_ms - HOUR_MS, now_ms), "outlets": (0, 1), "claims": {"old": now_ms - 12 * HOUR_MS}}
    await commit_event(
        real.events.repository, "fired", event("e1", "Bridge closed", ["one", "old"], **old), 1
    )
    page = await (await client.get("/events/e1")).text()

    assert re.findall(ITEM, page) == ["one", "old"]
    assert re.search("dated <time[^>]*>[^<]*</time>, arrived <time", page)


async def test_a_published_event_says_which_toll_grew(client: Client, real: Service) -> None:
    """On report, list and wall, since when but on the wall; without new items none are named."""
    known = ((5, "dead", 11),)
    published = EditorAction("set_work_status", "Ann", 5, "e1", work_status="published", id=1, tolls=known)
    fields = {"tolls": (*known, (6, "dead", 1500)), "actions": (published,), "times": (1,)}
    quake = event("e1", "Quake", ["one"], work_status="published", **fields)
    await commit_event(real.events.repository, "fired", quake, 1)

    for path in ("/events/e1", "/", "/?kiosk=true"):
        page = await (await client.get(path)).text()
        since = "since" if "kiosk" in path else "since it was published"
        assert f'<span class="work since back">2+ outlets: 11 → 1\u202f500 dead {since}</span>' in page, path


@pytest.mark.parametrize(
    ("updates", "newer_ms"), [({}, 5), ({"a": 4}, 5), ({"a": 6}, 0), ({"a": 6, "b": 7}, 7)]
)
async def test_a_headline_is_newer_than_the_chosen_one_by_their_updates(
    client: Client, real: Service, updates: dict[str, int], newer_ms: int
) -> None:
    """An article that was updated in place has a headline of then."""
    now_ms = real.clock()
    chosen = ChosenHeadline("a", "Bridge open", "b", "Bridge closed")
    stored = event("e1", "Bridge open", ["a", "b"], headline_id="a", chosen_headline=chosen,
                   times=(now_ms - 99_000, now_ms - 95_000), last_seen_ms=now_ms,
                   updates={id_: now_ms - 100_000 + 1000 * n for id_, n in updates.items()})  # fmt: skip
    await commit_event(real.events.repository, "fired", stored, 1)

    page = await (await client.get("/")).text()
    assert ("automatic headline, of" in page) is bool(newer_ms)
    if newer_ms:
        newer = f"{to_datetime(now_ms - 100_000 + 1000 * newer_ms):%Y-%m-%dT%H:%M:%SZ}"
        assert f'automatic headline, of <time datetime="{newer}"' in page


async def test_the_history_says_what_was_undone_twice(client: Client, real: Service) -> None:
    """Without quotation marks around those of headlines."""
    ids = ((1, None), (2, 1), (3, 2))
    actions = [EditorAction("undo" if of else "unmute", "Ann", 5, "e1", of=of, id=id_) for id_, of in ids]
    await commit_event(
        real.events.repository, "fired", event("e1", "Bridge", ["one"], actions=tuple(actions)), 1
    )
    page = await (await client.get("/events/e1")).text()

    assert "undid: called it news after all" in page and "restored: called it news after all" in page
    assert "“" not in page.partition('class="audit-trail"')[2].partition("</ol>")[0]


async def test_a_report_says_what_arrived_late(client: Client, real: Service) -> None:
    """Only where an article of the event did, by more than the window of the rule."""
    now_ms, ids = real.clock(), ["one", "two"]
    for name, age_ms in (("late", 5 * HOUR_MS), ("soon", HOUR_MS)):
        times = (now_ms - age_ms, now_ms)
        late = event(name, "Bridge closed", ids, times=times, outlets=(0, 1))
        await commit_event(real.events.repository, "fired", late, 1)
    sentence = "1 article arrived here over 4 h after the time that it states"

    assert sentence in await (await client.get("/events/late")).text()
    assert "arrived here over" not in await (await client.get("/events/soon")).text()


async def test_a_report_by_outlet_folds_nothing(client: Client, real: Service) -> None:
    """Outlets in order of their first article; a copy names the outlet that it copies."""
    await commit_event(
        real.events.repository, "fired", event("e1", "Bridge closed", ["one", "two", "three"]), 1
    )
    page = await (await client.get("/events/e1?view=outlets")).text()

    names = ("one.example", "two.example", "three.example")
    positions = [page.index(f'class="outlet" aria-label="{name}"') for name in names]
    assert positions == sorted(positions)
    assert page.count('class="item"') == 3
    assert "copy of <bdi>one.example</bdi>" in page


async def test_all_articles_of_a_report_can_be_reached(client: Client, real: Service) -> None:
    """In pages of 50, or on one page to print; a number beyond the last page shows the last one."""
    ids = [f"n{n}" for n in range(120)]
    for id_ in ids:
        await client.post("/v1/articles", json={"id": id_, "title": id_, "text": story(1000 + int(id_[1:]))})
    await commit_event(real.events.repository, "fired", event("e1", "Bridge closed", ids), 1)

    listed: list[set[str]] = []
    for number in (1, 2, 3, 9):
        page = await (await client.get(f"/events/e1?view=oldest&page={number}")).text()
        listed.append(set(re.findall(ITEM, page)))
        assert f"Page {min(number, 3)} of 3" in page
    printed = await (await client.get("/events/e1?view=oldest&print=true")).text()

    assert [len(part) for part in listed] == [50, 50, 20, 20]
    assert listed[0] | listed[1] | listed[2] == set(ids) == set(re.findall(ITEM, printed))
    assert (await client.get("/events/e1?page=0")).status == 400


PUBLISHED = "<b>Published by us</b>"


@pytest.fixture(autouse=True)
def no_outlets() -> Iterator[None]:
    """The names of a file do not reach the tests of other modules."""
    yield
    name_outlets(())


def own_outlets_settings(directory: Path, *names: str) -> Settings:
    """Settings with a file of these own outlets."""
    file = directory / "outlets.toml"
    file.write_text("".join(f'[[outlets]]\nname = "{name}"\nown = true\n' for name in names))
    return Settings(store_url="memory", outlets_file=str(file))


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (("Two.example", "other.example"), PUBLISHED),
        (("other.example",), "Not published by us yet"),
        ((), None),
    ],
)
async def test_a_report_says_whether_the_newsroom_published_it(
    tmp_path: Path, own: tuple[str, ...], expected: str | None
) -> None:
    """With headline and time; nothing unless own outlets are named."""
    settings = own_outlets_settings(tmp_path, *own)
    async with open_service(settings) as service, serving(service) as client:
        for id_, text in (("one", ORIGINAL), ("two", OTHER)):
            body = {"id": id_, "title": f"Title {id_}", "text": text, "source": f"{id_}.example"}
            await client.post("/v1/articles", json=body)
        await commit_event(
            service.events.repository, "fired", event("e1", "Bridge closed", ["one", "two"]), 1
        )
        page = await (await client.get("/events/e1")).text()

    said = [text for text in (PUBLISHED, "Not published by us yet") if text in page]
    assert said == ([expected] if expected else [])
    assert expected != PUBLISHED or page.index(PUBLISHED) < page.index("Title two")


async def test_an_event_marked_as_published_is_not_called_unpublished(tmp_path: Path) -> None:
    """In list and report, although no own article is stored yet; the last address of a note is linked."""
    settings = own_outlets_settings(tmp_path, "ours.example")
    texts = "http://old.example/1", "Online: https://ours.example/2?a=1&b=2.", 'javascript:x "call them"'
    notes = tuple(Note(n, "Ann", n, text) for n, text in enumerate(texts, 1))
    bridge = event("e1", "Bridge closed", work_status="published", notes=notes)
    async with open_service(settings) as service, serving(service) as client:
        await commit_event(service.events.repository, "fired", bridge, 1)
        front, report = [await (await client.get(path)).text() for path in ("/", "/events/e1")]

    assert "Not published by us yet" not in report and "our article is not in this event yet" in report
    row = front[front.index('data-key="ee1"') :]
    assert "Marked as published" in row and "Not published by us yet" not in row
    for page in (row, report):
        address = page.partition("Marked as published")[2].partition('href="')[2]
        assert address.startswith('https://ours.example/2?a=1&amp;b=2"')
        assert ">our story</a>" in address[:150]


async def test_the_filter_applies_to_the_list_and_to_its_stream(client: Client, real: Service) -> None:
    """The page receives changes only of events that it lists."""
    await commit_event(real.events.repository, "fired", event("e1", "Bridge closed", ["one"]), 1)
    found = await (await client.get("/?term=bridge&min_size=1")).text()
    nothing = await (await client.get("/?term=volcano")).text()

    assert "/events/e1" in found
    assert 'data-stream="/v1/events/stream?term=bridge&amp;min_size=1"' in found
    assert "No open event matches this filter." in nothing


async def test_pages_say_how_long_the_detector_is_learning(client: Client, real: Service) -> None:
    """Front page and health page; nothing when a week is known, and before the first checkpoint."""

    async def pages() -> list[bool]:
        texts = [await (await client.get(path)).text() for path in ("/", "/health")]
        return ["earning: " in text for text in texts]

    assert await pages() == [False, False]
    await real.background.scheduler.detector.run_once()
    assert "Learning: 0 of 7 days" in await (await client.get("/")).text()
    assert await pages() == [True, True]
    exposed = await (await client.get("/metrics")).text()
    hour = real.clock() // HOUR_MS
    week = LearnedHistory(hour - 200, dict.fromkeys(range(hour - 200, hour + 1), 9))
    await real.store.put([Put(LEARNING_KEY, msgspec.msgpack.encode(week))])
    assert await pages() == [False, False]
    # The service of this fixture does not run its scheduler, so it has no metrics of it.
    assert "aggregator_detector_known_seconds" not in exposed


async def test_a_report_says_that_the_detector_is_learning(client: Client, real: Service) -> None:
    """Its event may be a routine, or several stories."""
    await commit_event(real.events.repository, "fired", event("e1", "Bridge closed"), 1)
    before = await (await client.get("/events/e1?view=oldest")).text()
    await real.background.scheduler.detector.run_once()
    report = await (await client.get("/events/e1")).text()

    assert "Learning: 0 of 7 days. Until then" in report and "Learning: " not in before


async def test_a_version_that_was_replaced_is_no_row(client: Client) -> None:
    """Its record is gone: of the stream's entry only the id is left."""
    update = {"id": "one", "title": "Title one, again", "text": EDITED, "source": "one.example"}
    assert (await client.post("/v1/articles", json=update)).status == 200
    front = await (await client.get("/")).text()

    assert front.count("Title one, again") == 1 and ">one</" not in front


@pytest.mark.parametrize("path", ["/events/e1", "/events/e1/provenance", "/stories/e1"])
async def test_readers_of_an_event_share_its_page(
    client: Client, real: Service, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is rendered once for them, and again after a change of an event or for another time zone."""
    made = list[str]()

    def render(request: web.Request, template: str, **values: object) -> bytes:
        made.append(template)
        return rendered(request, template, **values)

    monkeypatch.setattr(report, "rendered", render)
    monkeypatch.setattr("aggregator.http.pages.MAX_CACHED_MS", YEAR_MS)
    await commit_event(real.events.repository, "fired", storm := event("e1", "Bridge closed"), 1)
    answers = await asyncio.gather(*(client.get(path) for _ in range(20)))

    assert {answer.status for answer in answers} == {200} and len(made) == 1
    await commit_event(real.events.repository, "updated", replace(storm, revision=storm.revision + 1), 2)
    await client.get(path)
    assert len(made) == 2


async def test_health_shows_the_state_of_the_service(
    client: Client, real: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts; also a page when the store is unavailable."""
    page = await (await client.get("/health")).text()
    assert "The service is ready" in page and "Refused articles" not in page

    async def fail(self: object, now_ms: int) -> None:
        raise StoreUnavailable("The store does not answer; try again.")

    monkeypatch.setattr(type(real.articles.index.arrival_counts), "update", fail)
    response = await client.get("/health")
    assert response.status == 200
    assert "The store is unavailable." in await response.text()


async def test_health_names_refused_articles_and_counts_queues(client: Client, real: Service) -> None:
    """Each refused article by outlet, headline and reason, of a batch, too; no dry runs."""
    await client.post("/v1/articles", data=b"{}")
    wrong = {"id": "x", "text": "A <b>", "source": "Pier Post", "title": "Ferry <i>", "category": "sea"}
    await client.post("/v1/articles?dry_run=true", json=wrong)
    await client.post("/v1/articles", json=wrong)
    await client.post("/v1/articles/batch", data="\n".join(map(json.dumps, (wrong, wrong))))
    await real.events.subscriptions.subscribe("https://a.example/", ("",), "standard", 1)
    page = await (await client.get("/health")).text()
    _, admin = await real.edge.api_keys.add("Root", "admin")
    closed = await (await client.get("/health", headers={"Authorization": f"Bearer {admin}"})).text()

    def row(label: str) -> int:
        found = re.search(rf'<th scope="row">{label}</th><td class="number">(\d+)', page)
        assert found is not None, label
        return int(found[1])

    names = ("waiting for event detection", "webhooks and desk targets", "notifications given up")
    assert [row(name) for name in names] == [3, 1, 0]
    refused = page.partition('<h2 id="refused">')[2].partition("</section>")[0]
    assert "Ferry &lt;i&gt;" in refused and "<bdi>Pier Post</bdi></b> <span>3 articles</span>" in refused
    assert "category: unknown field" in refused and "unnamed outlet" in refused
    assert "<b>Articles:</b> 3 articles came in the last hour." in page
    assert "<b>Missing:</b> 4 articles were refused" in page
    assert "detection does not run, or does not respond." in page  # the fixture runs no scheduler
    assert (
        page.index("<b>Events:</b>")
        < page.index("Technical details")
        < page.index("webhooks and desk targets")
    )
    assert "<dt>Stored articles</dt><dd>– <small>counted once a minute" in page
    assert "not required: every caller is admitted" in page and "<td>required</td>" in closed
