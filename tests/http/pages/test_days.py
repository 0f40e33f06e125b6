"""Pages and route of days over the real service."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import feedparser  # no stubs
import pytest

from aggregator.app import Service, open_service
from aggregator.events.desks import Desk
from aggregator.events.event import EditorAction, Note
from aggregator.settings import Settings
from aggregator.time_units import DAY_MS, HOUR_MS, to_datetime
from tests.http.handlers.test_search import client, service
from tests.support.factories import commit_event, event
from tests.support.fake_service import Client, serving

__all__ = ["client", "service"]

pytestmark = pytest.mark.integration
MIDNIGHT_MS = 1_793_836_800_000  # 2026-11-05, 00:00 in UTC


async def store(service: Service, id_: str, first_ms: int, last_ms: int, **fields: Any) -> None:
    """An event that was detected with its first item, relative to midnight."""
    times = (MIDNIGHT_MS + first_ms, MIDNIGHT_MS + last_ms)
    fields = {"detected_at_ms": times[0], **fields}
    found = event(
        id_, f"The {id_}", fields.pop("items", ["d1"]),
        first_seen_ms=times[0], last_seen_ms=times[1], times=times, size=2, **fields,
    )  # fmt: skip
    await commit_event(service.events.repository, "fired", found, found.last_seen_ms)


@pytest.fixture
async def week(service: Service) -> None:
    """A flood over midnight, a fire in the morning, a strike at night, and one that was merged."""
    await store(service, "flood", -2 * HOUR_MS, HOUR_MS, developments=((MIDNIGHT_MS + 5, ("toll",)),))
    await store(service, "fire", 8 * HOUR_MS, 9 * HOUR_MS, status="closed")
    await store(service, "strike", 23 * HOUR_MS, 23 * HOUR_MS)
    await store(service, "merged", 8 * HOUR_MS, 9 * HOUR_MS, status="closed", merged_into="fire")


async def get(client: Client, path: str, status: int = 200) -> str:
    """The body of an answer."""
    async with client.get(path) as response:
        assert response.status == status, await response.text()
        return await response.text()


async def days(client: Client, path: str) -> list[str]:
    """Ids of the events of a day, by the route and by the page, in whatever lists."""
    async with client.get(f"/v1{path}") as response:
        found = [each["id"] for each in (await response.json())["events"]]
    text = await get(client, path)
    assert sorted(re.findall(r'headline"><a href="/events/(\w+)"', text)) == sorted(found)
    return found


async def test_a_day_has_the_events_that_were_seen_in_it(client: Client, week: None) -> None:
    """Most items of the day first; a day begins at midnight of the reader or of the desk."""
    assert await days(client, "/days/2026-11-04") == ["flood"]
    assert await days(client, "/days/2026-11-05") == ["strike", "fire", "flood"]
    assert await days(client, "/days/2026-11-05?time_zone=Europe/Berlin") == ["fire", "flood"]
    assert await days(client, "/days/2026-11-06?time_zone=Europe/Berlin") == ["strike"]
    assert await days(client, "/days/2030-01-01") == []


async def test_an_event_is_in_each_day_that_had_its_items(service: Service, client: Client) -> None:
    """Also in that before its detection, under its own heading, and in no day between two items."""
    detected_ms = MIDNIGHT_MS + HOUR_MS
    developed = ((MIDNIGHT_MS + 2 * HOUR_MS, ("toll",)),)
    times = {"detected_at_ms": detected_ms, "developments": developed}
    await store(service, "landslide", -2 * HOUR_MS, 2 * HOUR_MS, **times)
    await store(service, "drought", -3 * DAY_MS, 2 * HOUR_MS)

    assert await days(client, "/days/2026-11-04") == ["landslide"]
    assert set(await days(client, "/days/2026-11-05")) == {"landslide", "drought"}
    assert await days(client, "/days/2026-11-03") == []
    page = await get(client, "/days/2026-11-04")
    assert "The landslide" in page.partition("Detected after that day")[2]
    assert "1 item that day, 2 in all" in page and "development:" not in page


async def test_a_desk_has_its_events_in_its_time_zone(service: Service, client: Client, week: None) -> None:
    """Unless the reader gives another zone; an unknown desk is 404."""
    desk, _ = await service.events.desks.create(
        Desk("", "Floods", 1, terms=("flood", "strike"), time_zone="Asia/Tokyo")
    )

    assert await days(client, f"/days/2026-11-06?watch={desk.id}") == ["strike"]
    assert await days(client, f"/days/2026-11-05?watch={desk.id}") == ["flood"]
    assert await days(client, f"/days/2026-11-05?watch={desk.id}&time_zone=UTC") == ["strike", "flood"]
    await get(client, "/v1/days/2026-11-05?watch=none", 404)
    assert "expected a date" in await get(client, "/v1/days/2026-11-32", 400)
    assert "unknown time zone" in await get(client, "/v1/days/2026-11-05?time_zone=Nowhere", 400)


async def test_the_digest_of_a_desk_is_a_feed(service: Service, client: Client, week: None) -> None:
    """With what its last day had, in the order of the mail; it changes at its hour."""
    now_ms = service.clock()
    desk, _ = await service.events.desks.create(Desk("", "Quakes", 1, terms=("quake", "tremor")))
    yesterday = now_ms - now_ms % DAY_MS - 2 * HOUR_MS - MIDNIGHT_MS
    await store(service, "quake", yesterday - DAY_MS + HOUR_MS, yesterday)
    await store(service, "tremor", yesterday + 4 * HOUR_MS, yesterday + 4 * HOUR_MS)

    feed = feedparser.parse(await get(client, f"/v1/events.atom?watch={desk.id}&digest=true"))
    assert feed.feed.title == "Quakes: digest of the day"
    assert [entry.title for entry in feed.entries] == ["The quake"]
    await get(client, "/v1/events.atom?digest=true", 404)


async def test_a_merge_is_named_until_it_is_undone(service: Service, client: Client) -> None:
    """With its editor, the other event, and who was on that; a handover too."""
    await store(service, "alert", HOUR_MS, HOUR_MS, assignee="Tomas", merged_into="storm")
    at_ms = MIDNIGHT_MS + 3 * HOUR_MS
    undo = EditorAction("undo", "Nora", at_ms, "flood", of=1, id=2)
    for id_, more in (("storm", ()), ("flood", (undo,))):
        merge = EditorAction("merge", "Nora", at_ms, "alert", into=id_, id=1)
        await store(service, id_, HOUR_MS, 2 * HOUR_MS, actions=(merge, *more))
    for path in ("/days/2026-11-05?time_zone=UTC", "/days?since=2026-11-05T00:00Z"):
        page = await get(client, path)
        said = '<b>Nora</b></bdi> merged <a href="/events/alert">“<bdi>The alert</bdi>”</a> into it'
        assert page.count(said) == 1 == page.count(said + " (that event was: On it: <bdi>Tomas</bdi>)")


async def test_each_edit_in_force_has_a_line_with_its_editor(service: Service, client: Client) -> None:
    """On the day and in a handover, also of an event that somebody is on, and that had nothing else."""
    at = service.clock() - 2 * HOUR_MS - MIDNIGHT_MS
    await store(service, "storm", at, at + 1, items=["d1", "d2"], assignee="Tomas")
    for actor, action in (
        ("Ben", {"action": "remove_item", "item": "d2"}),
        ("Anna", {"action": "choose_headline", "item": "d1"}),
    ):
        async with client.post("/v1/events/storm/actions", json=action | {"actor": actor}) as response:
            assert response.status == 200, await response.text()
    lines = ["Ben removed “Dam report 2”", "Anna chose the headline “Dam report 1”"]

    for path in ("/days?time_zone=UTC", "/days?since=1h"):
        page = await get(client, path)
        found = [re.sub("<.*?>", "", line) for line in re.findall("<p class=.facts.>.*?</p>", page)]
        assert "nothing new" not in page and [line.split(" UTC ")[1] for line in found[-2:]] == lines, path


async def test_only_what_broke_that_day_is_new(service: Service, client: Client, week: None) -> None:
    """Not the articles that an editor split off, nor what is muted."""
    await store(service, "quiz", 10 * HOUR_MS, 11 * HOUR_MS)
    await store(service, "storm", 12 * HOUR_MS, 13 * HOUR_MS, items=["d1", "d2"])
    for id_, action in (("quiz", {"action": "mute"}), ("storm", {"action": "move_items", "items": ["d1"]})):
        async with client.post(f"/v1/events/{id_}/actions", json=action | {"actor": "Nora"}) as response:
            done = await response.json()
            assert response.status == 200, done
    split = done["actions"][-1]["into"]

    new, _, rest = (await get(client, "/days/2026-11-05")).partition("Running since before, or split off")
    earlier, _, muted = rest.partition("Muted or no news")
    assert 'Detected that day <span class="count">3<' in new and "/events/storm" in new
    assert f"/events/{split}" in earlier and "The quiz" in muted
    history = await get(client, "/events/storm")
    assert re.search(f'split off “<bdi>.+</bdi>” into the new event <a href="/events/{split}">“', history)
    assert re.search('split off “.+” from <a href="/events/storm">', await get(client, f"/events/{split}"))


async def test_a_handover_says_who_called_an_event_no_news(service: Service, client: Client) -> None:
    """In a separate list, unless that was taken back or was before."""
    at = service.clock() - 3 * HOUR_MS - MIDNIGHT_MS
    for id_, actions in (
        ("flood", ["false_alarm"]),
        ("storm", ["mute"]),
        ("fire", ["mute", "unmute"]),
        ("quake", []),
    ):
        await store(service, id_, at, at + HOUR_MS)
        for action in actions:
            body = {"action": action, "actor": "Nora"}
            async with client.post(f"/v1/events/{id_}/actions", json=body) as response:
                assert response.status == 200, await response.text()

    rest, _, muted = (await get(client, "/days?since=1h")).partition('id="list-muted"')
    assert set(re.findall(r'"/events/(\w+)" dir', muted)) == {"flood", "storm"}
    lines = re.sub("<.*?>", "", muted)
    assert "Nora called it a false alarm" in lines and "Nora muted the story" in lines
    assert "Nora called it news after all" in re.sub("<.*?>", "", rest)


async def test_the_page_tells_new_from_earlier_events_and_links_the_days_around(
    client: Client, week: None
) -> None:
    """With developments of the day; the zone stays in the links."""
    text = await get(client, "/days/2026-11-05?time_zone=Europe/London")

    new, _, earlier = text.partition("Running since before")
    assert "The fire" in new and "The flood" in earlier and "development: <bdi>toll</bdi>" in earlier
    assert "1 item that day, 2 in all" in earlier
    assert 'rel="prev" href="/days/2026-11-04?time_zone=Europe%2FLondon"' in text
    assert "No event had articles on this day." in await get(client, "/days/2026-11-01")


@pytest.mark.parametrize("hours", [0.05, 2])
async def test_a_night_has_two_dates(hours: float) -> None:
    """The page of today also has what else was seen within 24 hours; the route has the day."""
    now_ms = MIDNIGHT_MS + round(hours * HOUR_MS)
    async with (
        open_service(Settings(store_url="memory"), clock=lambda: now_ms) as service,
        serving(service) as client,
    ):
        await store(service, "quake", -5 * HOUR_MS, -HOUR_MS)
        await store(service, "old", -30 * HOUR_MS, -25 * HOUR_MS)
        if hours > 1:
            await store(service, "vote", HOUR_MS, HOUR_MS)
        text = await get(client, "/days/2026-11-05")
        tokyo = await get(client, "/days/2026-11-05?time_zone=Asia/Tokyo")
        async with client.get("/v1/days/2026-11-05") as response:
            of_day = [found["id"] for found in (await response.json())["events"]]

    today, _, before = text.partition("Before midnight, within the last 24 hours")
    assert of_day == (["vote"] if hours > 1 else []) == re.findall(r'"/events/(\w+)" dir', today)
    assert re.findall(r'"/events/(\w+)" dir', before) == ["quake"] and "2 items" in before
    assert '<a href="/days/2026-11-04">All events of Wednesday, 4 November</a>' in before
    assert ("No event has had an article since midnight (UTC)." in today) is (hours < 1)
    assert "The quake" in tokyo and "Before midnight" not in tokyo


async def test_since_you_left(service: Service, client: Client) -> None:
    """What happened since a time; without one, and with a date, it leads to a day."""
    now_ms = service.clock()
    await store(service, "quake", now_ms - MIDNIGHT_MS - HOUR_MS, now_ms - MIDNIGHT_MS)
    await store(service, "storm", now_ms - MIDNIGHT_MS - 9 * HOUR_MS, now_ms - MIDNIGHT_MS - 3 * HOUR_MS)
    await store(service, "ferry", now_ms - MIDNIGHT_MS - 9 * HOUR_MS, now_ms - MIDNIGHT_MS, assignee="Ada")
    since = to_datetime(now_ms - 2 * HOUR_MS).strftime("%Y-%m-%dT%H:%M:%SZ")

    text = await get(client, f"/days?since={since}")
    new, _, unhandled = text.partition("Open, nobody is on it")
    assert "The quake" in new and "The storm" in unhandled and "The storm" not in new
    new, _, developed = new.partition("Changed: new or updated items")
    assert "The ferry" in developed and "The ferry" not in new and ">1 new item since <time" in developed
    assert ">2 items<" in unhandled and "since <time" not in unhandled
    assert "/v1/days/" not in text  # which has no handover
    later = to_datetime(now_ms + DAY_MS).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert "since: this time has not come yet" in await get(client, f"/days?since={later}", 400)
    for path, target in (
        ("?date=2026-11-05&time_zone=Europe/Rome", "2026-11-05?time_zone=Europe/Rome"),
        ("", None),
    ):
        async with client.get(f"/days{path}", allow_redirects=False) as response:
            today = to_datetime(service.clock()).date().isoformat()
            assert (response.status, response.headers["Location"]) == (303, f"/days/{target or today}")


async def test_a_shift_begins_at_a_time_of_the_reader(service: Service, client: Client) -> None:
    """As the field of the form sends it, without an offset; the field keeps it."""
    at_ms = service.clock() - 3 * HOUR_MS
    await store(service, "quake", at_ms - MIDNIGHT_MS, at_ms - MIDNIGHT_MS)
    for zone, hours in (("Asia/Tokyo", 9), ("UTC", 0)):
        for before, heading in ((1, "Detected since"), (-1, "Open, nobody is on it")):
            since = f"{to_datetime(at_ms + (hours - before) * HOUR_MS):%Y-%m-%dT%H:%M}"
            text = await get(client, f"/days?since={since}&time_zone={zone}")
            assert heading in text and f'type="datetime-local" value="{since}"' in text
            assert f'name="time_zone" value="{zone}"' in text
    assert "Detected since" in await get(client, "/days?since=4h")
    assert "since: expected a time such as" in await get(client, "/days?since=noon", 400)


async def test_a_handover_says_how_figures_moved(service: Service, client: Client) -> None:
    """Since its time, whoever is on an event; what arrived then counts, though it is dated before."""
    now_ms = service.clock()
    first_ms, at_ms = now_ms - 9 * HOUR_MS, now_ms - HOUR_MS
    tolls = ((first_ms, "dead", 34), (first_ms, "missing", 5), (at_ms, "dead", 113))
    first, last = first_ms - MIDNIGHT_MS, at_ms - MIDNIGHT_MS
    dated = {"items": ["d1", "d2"], "claims": {"d2": first_ms + HOUR_MS}, "outlets": (0, 0)}
    dated["cosines"] = (1.0, 1.0)
    await store(service, "ferry", first, last, assignee="Ada", tolls=tolls, updates={"d1": at_ms}, **dated)
    since = f"{to_datetime(now_ms - 2 * HOUR_MS):%Y-%m-%dT%H:%M}"

    text = (await get(client, f"/days?since={since}&time_zone=UTC")).partition("Changed: new")[2]
    said = "2+ outlets: 34 → 113 dead, 1 new item, 1 item updated in place since <time"
    assert f">{said}" in text and "missing" not in text


async def test_a_handover_names_a_toll_corrected_since_we_published(service: Service, client: Client) -> None:
    """Though one outlet said so before the handover began; what is of its period alone says since when."""
    now_ms = service.clock()
    first_ms, published_ms, corrected_ms = now_ms - 9 * HOUR_MS, now_ms - 4 * HOUR_MS, now_ms - 3 * HOUR_MS
    known = ((first_ms, "dead", 62),)
    status = EditorAction(
        "set_work_status", "Ann", published_ms, "bus", work_status="published", id=1, tolls=known
    )
    fields: dict[str, Any] = {"tolls": (*known, (corrected_ms, "dead", 61)), "actions": (status,)}
    first, last = first_ms - MIDNIGHT_MS, now_ms - HOUR_MS - MIDNIGHT_MS
    await store(service, "bus", first, last, work_status="published", items=["d1", "d2"], **fields)
    await store(service, "ferry", first, last, tolls=known)

    for hours, said in ((2, ["1 new item since <"]), (10, ["2+ outlets: 62 dead, arrived since <"])):
        text = await get(client, f"/days?since={hours}h")
        ours, rest = re.findall("<li>.*?</li>", text, re.DOTALL)
        assert re.search(r"2\+ outlets: 62 → 61 dead(, . new items?)? since it was published", ours)
        assert re.findall('work since">(.*?<)', rest) == said
    day = await get(client, f"/days/{to_datetime(now_ms - HOUR_MS).date()}?time_zone=UTC")
    assert "2+ outlets: 62 → 61 dead, 1 new item since it was published<" in day


async def test_each_event_has_its_newest_headlines(service: Service, client: Client) -> None:
    """Those of two outlets that are newer than its own; of an update that of the update."""
    at, hour = service.clock() - 4 * HOUR_MS - MIDNIGHT_MS, HOUR_MS
    ids, times = ["d0", "d1", "d2", "d3"], [service.clock() - n * HOUR_MS for n in (4, 3, 2, 1)]
    rows: dict[str, Any] = {"outlets": (0, 1, 0, 1), "cosines": (1.0,) * 4, "claims": {}}
    for id_, title, more in (
        ("dam", 0, {}),
        ("old", 3, {}),
        ("updated", 3, {"updates": {"d2": times[3] + 5}, "work_status": "published"}),
    ):
        fields = {"items": ids, "headline_id": f"d{title}", **rows, **more}
        await store(service, id_, at, at + 3 * hour, **fields)
        found = (await service.events.repository.get_many([id_]))[id_]
        stored = replace(found, title=f"Dam report {title}", times=tuple(times), size=4)
        await commit_event(service.events.repository, "fired", stored, stored.last_seen_ms)

    for path in ("/days?since=2h", f"/days/{to_datetime(times[3]).date()}?time_zone=UTC"):
        rows_of = re.findall("<li>.*?</li>", await get(client, path), re.DOTALL)
        said = {
            re.findall(r'"/events/(\w+)" dir', row)[0]: re.findall("<p class=.sources.>(.*?)</p>", row)
            for row in rows_of
        }
        lines = {id_: [re.sub("<.*?>|, .*UTC", "", line) for line in found] for id_, found in said.items()}
        assert lines == {
            "dam": [f"later headline: Dam report {n}" for n in ("3 (Estmark Radio)", "2 (Coastline News)")],
            "old": [],
            "updated": ["later headline: Dam report 2 (Coastline News)"],
        }
        assert ", updated <time" in said["updated"][0] and ", updated" not in said["dam"][0]


async def test_a_handover_says_how_many_more_were_detected(service: Service, client: Client) -> None:
    """Those that are published, dropped or back are in other lists."""
    at = service.clock() - HOUR_MS - MIDNIGHT_MS
    await store(service, "quake", at, at)
    assert "more detected since" not in await get(client, "/days?since=2h")
    status = EditorAction("set_work_status", "Ann", service.clock(), "fire", work_status="published")
    await store(service, "fire", at, at, work_status="published", actions=(status,))

    text = await get(client, "/days?since=2h")
    assert 'Detected since <span class="count">1<' in text
    assert "1 more detected since then is in the other lists" in text
    await store(service, "storm", at, at, muted="story", actions=(replace(status, action="mute"),))
    await store(service, "flood", at, at)
    assert "2 more detected since then are in the other lists" in await get(client, "/days?since=2h")


async def test_a_handover_shows_the_notes_of_its_period(service: Service, client: Client) -> None:
    """Whole up to 200 characters, with their authors; without any the last one."""
    at, now_ms = service.clock() - HOUR_MS - MIDNIGHT_MS, service.clock()
    notes = (
        Note(1, "Ada", now_ms - 3 * HOUR_MS, "Ask the mayor"),
        Note(2, "Ann", now_ms - 9, "Called the port"),
        Note(3, "Ben", now_ms - 8, "<b>" + "o" * 300),
    )
    await store(service, "quake", at, at, notes=notes)
    await store(service, "fire", at, at, notes=notes[:1])
    quake, fire = re.findall("<li>.*?</li>", await get(client, "/days?since=2h"), re.DOTALL)
    quake, fire = (quake, fire) if "The quake" in quake else (fire, quake)

    assert '/events/quake#newsroom">One of 3 notes</a> by <bdi>Ben</bdi>, <time' in quake
    assert "&lt;b&gt;ooo" in quake and "o" * 200 not in quake and "mayor" not in quake
    assert "<bdi>Called the port</bdi>" in quake
    assert '#newsroom">Note</a> by <bdi>Ada</bdi>' in fire and "<bdi>Ask the mayor</bdi>" in fire


async def test_a_handover_says_who_put_whom_on_an_event(service: Service, client: Client) -> None:
    """And who was on it before; of one that was seen and muted both."""
    at = service.clock() - HOUR_MS - MIDNIGHT_MS
    for id_, actions in (
        ("quake", [{"assignee": "Ben"}, {"actor": "Cleo", "assignee": "Cleo"}]),
        ("fire", [{"assignee": "Ben"}]),
        ("storm", [{"work_status": "seen"}, {"action": "mute"}]),
    ):
        await store(service, id_, at, at)
        for action in actions:
            body = {"action": "set_work_status", "actor": "Ada", "work_status": "on_it"} | action
            body = body if body["action"] != "mute" else {"action": "mute", "actor": "Ada"}
            async with client.post(f"/v1/events/{id_}/actions", json=body) as response:
                assert response.status == 200, await response.text()

    rows = re.findall("<li>.*?</li>", await get(client, "/days?since=2h"), re.DOTALL)
    said = {re.findall(r"/events/(\w+)", row)[0]: re.sub("<.*?>", "", row) for row in rows}
    assert re.search("On it: Cleo, .* UTC, before: Ben\\s", said["quake"])
    assert re.search("On it: Ben, .* UTC, put on it by Ada\\s", said["fire"])
    assert "Muted" in said["storm"] and "Seen by Ada" in said["storm"]


async def test_today_is_a_day_of_the_zone_that_the_browser_noted(client: Client) -> None:
    """Unless the address names a zone, a desk or a time."""
    for path, target in (("", "?time_zone=Asia/Tokyo"), ("&time_zone=Europe/Rome", "?time_zone=Europe/Rome")):
        headers = {"Cookie": "aggregator_zone=Asia/Tokyo"}
        url = f"/days?date=2026-11-05{path}"
        async with client.get(url, headers=headers, allow_redirects=False) as response:
            assert unquote(response.headers["Location"]) == f"/days/2026-11-05{target}"
        async with client.get("/days/2026-11-05?watch=", headers=headers) as response:
            text = await response.text()
            assert response.url.query["time_zone"] == "Asia/Tokyo"  # in the address that is copied
            assert "(Asia/Tokyo)</h1>" in text and "/days/2026-11-05?time_zone=Asia%2FTokyo" in text


@pytest.mark.parametrize(
    ("date", "said"),
    [
        ("2026-01-03", "No event is known of this day: the first one begins <time"),
        ("2026-11-06", "No event had articles on this day."),
        ("2999-01-01", "This day has not begun."),
    ],
)
async def test_a_day_without_events_says_why(client: Client, week: None, date: str, said: str) -> None:
    """Before the first event, none of the day, or in the future."""
    text = await get(client, f"/days/{date}")

    assert said in text
    assert ('rel="prev"' in text) is (date != "2026-01-03")


async def test_a_day_lists_first_what_nobody_is_on(service: Service, client: Client, week: None) -> None:
    """The replacement sees them first; the others follow by their articles of the day."""
    await store(service, "tremor", HOUR_MS, 2 * HOUR_MS)
    taken = {"action": "set_work_status", "actor": "Nora", "work_status": "on_it", "assignee": "Tomas"}
    for id_ in ("fire", "strike"):
        async with client.post(f"/v1/events/{id_}/actions", json=taken) as response:
            assert response.status == 200

    new = (await get(client, "/days/2026-11-05")).partition('id="list-new"')[2].partition("</section>")[0]

    assert re.findall(r'"/events/(\w+)" dir', new) == ["tremor", "strike", "fire"]
    assert new.count("Not handled") == 1 and new.count("On it: <bdi>Tomas</bdi>") == 2


async def test_a_day_names_who_published_an_event(client: Client, week: None) -> None:
    """Not the colleague to whom it was assigned before."""
    for fields in ({"work_status": "on_it", "assignee": "Tomas"}, {"work_status": "published"}):
        action = {"action": "set_work_status", "actor": "Nora", **fields}
        async with client.post("/v1/events/strike/actions", json=action) as response:
            assert response.status == 200, await response.text()

    text = await get(client, "/days/2026-11-05")

    assert "Marked as published by <bdi>Nora</bdi>" in text
    assert "Tomas" not in text
