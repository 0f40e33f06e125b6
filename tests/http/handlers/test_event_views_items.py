"""Articles of an event: loading, the cache per revision, export."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from aggregator.domain import Article, article_number_at
from aggregator.http.handlers import event_views as event_items
from aggregator.http.handlers.event_views import (
    CSV_COLUMNS,
    EventItem,
    EventItemsCache,
    load_event_items,
    to_csv,
)
from tests.support.factories import event
from tests.support.fake_service import START_MS, Client, FakeService

HOUR_MS = 3_600_000


@pytest.fixture
async def service() -> FakeService:
    """A service with five articles; the second is published before the others, the third has a false date."""
    found = FakeService()
    dates = (None, START_MS - HOUR_MS, START_MS + 9 * HOUR_MS, None, None)
    for n, at_ms in enumerate(dates):
        await found.submit(Article(id=f"a{n}", title=f"Title {n}", text=f"Text {n}.", published_at_ms=at_ms))
    return found


def read_ids(service: FakeService, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The ids of all reads of articles from now on."""
    reads: list[Sequence[str]] = []
    original = service.get_many

    async def get_many(ids: Sequence[str]) -> dict[str, Any]:
        reads.append(ids)
        return await original(ids)

    monkeypatch.setattr(service, "get_many", get_many)
    return reads


async def test_articles_are_in_order_of_time(service: FakeService) -> None:
    """As the event counts them, whatever their dates say."""
    storm = event("e1", "Storm", ["a0", "a1", "gone", "a2"], times=(5, 3, 4, 9), outlets=(0,) * 4)
    found = await load_event_items(service, storm)  # type: ignore[arg-type]

    assert [(item.id, item.at_ms) for item in found.items] == [("a1", 3), ("a0", 5), ("a2", 9)]


async def test_the_basis_of_a_time_is_that_of_the_event(service: FakeService) -> None:
    """Equal times of publication and arrival are of publication; a claim is known by the event."""
    storm = event("e1", "Storm", ["a0", "a1", "a2"], claims={"a0": 0, "a2": 7})
    found = await load_event_items(service, storm)  # type: ignore[arg-type]

    assert {i.id: i.basis for i in found.items} == {"a0": "arrived", "a1": "published", "a2": "claimed"}
    assert [row["basis"] for row in rows(to_csv(found.items))] == [i.basis for i in found.items]


async def test_what_is_doubtful_is_decided_by_the_event(service: FakeService) -> None:
    """Its rows count the same articles."""
    found = await load_event_items(service, event("e1", "Storm", ["a0", "a1"], doubtful=("a1",)))  # type: ignore[arg-type]

    assert [item.doubtful for item in found.items] == [False, True]
    assert [item.id for item in found.alternatives] == ["a0"]


async def test_what_an_updated_article_says_is_of_its_last_version(service: FakeService) -> None:
    """Its headline and figures are not of the time at which its first version was published."""
    headlines = ("9 dead in fire", "17 dead in fire", "9 dead in blaze")
    for n, title in enumerate(headlines):
        await service.submit(Article(id=f"f{n}", title=title, text=f"Fire {n}.", source=f"Quay {n}"))
    first, number = service.stored["f0"], article_number_at(START_MS + 3 * HOUR_MS)
    update = replace(first.record, title="17 dead in fire", number=number)
    service.stored["f0"] = replace(first, record=replace(update, published_at_ms=START_MS + 2 * HOUR_MS))
    times = (START_MS - 3 * HOUR_MS, START_MS - HOUR_MS, START_MS - 2 * HOUR_MS)
    found = await load_event_items(service, event("e1", "Fire", ["f0", "f1", "f2"], times=times))  # type: ignore[arg-type]

    assert [(i.id, i.at_ms - START_MS, i.updated_ms > 0) for i in found.items] == [
        ("f0", -3 * HOUR_MS, True), ("f2", -2 * HOUR_MS, False), ("f1", -HOUR_MS, False),
    ]  # fmt: skip
    assert found.figures["dead"] == [(9, times[2], "Quay 2", 1), (17, times[1], "Quay 1", 2)]


async def test_the_first_of_a_text_is_the_original_of_an_event(service: FakeService) -> None:
    """By the times of the event, whatever arrived first; what is copied by all may be in no event."""
    for n in range(3):
        await service.submit(
            Article(id=f"c{n}", title="The same", text="The same words.", source=f"Quay {n}")
        )
    late = event("e1", "Storm", ["c0", "c1", "c2"], times=(5, 3, 9))
    found = await load_event_items(service, late)  # type: ignore[arg-type]
    others = await load_event_items(service, event("e2", "Storm", ["c2", "c1"], times=(9, 5)))  # type: ignore[arg-type]

    assert [(i.id, i.copy_of) for i in found.items] == [("c1", ""), ("c0", "c1"), ("c2", "c1")]
    assert [(i.id, i.copy_of) for i in others.items] == [("c1", "c0"), ("c2", "c0")]


async def test_an_event_is_read_once_per_revision(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred readers of one report cost one read; a new version, or a minute, another one."""
    reads = read_ids(service, monkeypatch)
    cache, storm = EventItemsCache(), event("e1", "Storm", ["a0", "a1"], revision=1)
    for _ in range(3):
        await cache.load(service, storm)  # type: ignore[arg-type]
    await cache.load(service, replace(storm, revision=2))  # type: ignore[arg-type]
    monkeypatch.setattr(service, "clock", lambda: START_MS + event_items.MAX_AGE_MS)
    await cache.load(service, replace(storm, revision=2))  # type: ignore[arg-type]

    assert len(reads) == 3


async def test_the_cache_is_limited(service: FakeService, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event that was read first is dropped."""
    monkeypatch.setattr(event_items, "MAX_KEPT_ARTICLES", 3)
    reads = read_ids(service, monkeypatch)
    cache = EventItemsCache()
    storm, wind = event("e1", "Storm", ["a0", "a1"]), event("e2", "Wind", ["a2", "a3"])
    for read in (storm, wind, wind, storm):
        await cache.load(service, read)  # type: ignore[arg-type]

    assert len(reads) == 3


def rows(text: str) -> list[dict[str, str]]:
    """The lines of a CSV file as a spreadsheet reads them."""
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))


def item(title: str) -> EventItem:
    """An article with this headline."""
    return EventItem("a", title, "https://a.example/", "Quay", "en", None, 1_000, 1_000, doubtful=True)


@pytest.mark.parametrize(
    "title",
    ['=HYPERLINK("http://evil.example")', "+1", "-2+3", "@SUM(A1)", "\t=1", " =1", "|cmd", "\uff1d1"],
)
def test_no_cell_is_a_formula(title: str) -> None:
    """A spreadsheet shows the text behind an apostrophe."""
    (row,) = rows(to_csv([item(title)]))

    assert row["title"] == "'" + title


@pytest.mark.parametrize(
    "title", ["Storm - the facts", 'He said "no", then left', "台风\n逼近", "2 + 2 = 4", ""]
)
def test_other_cells_are_unchanged(title: str) -> None:
    """Also with quotation marks, commas and line breaks."""
    (row,) = rows(to_csv([item(title)]))

    assert row["title"] == title
    assert tuple(row) == CSV_COLUMNS
    assert (row["time"], row["published_at"], row["doubtful"]) == ("1970-01-01T00:00:01Z", "", "yes")


@pytest.mark.integration
async def test_all_articles_are_exported(client: Client, service: FakeService) -> None:
    """As JSON and as a file; a copy names what it copies; deleted articles are left out."""
    for id_, text in (("a", "One text."), ("b", "Another text."), ("c", "One text.")):
        await client.post("/v1/articles", json={"id": id_, "title": f"Title {id_}", "text": text})
    service.fake_events.stored = [event("e1", "Bridge closed", ("a", "b", "gone", "c"))]
    listed = await (await client.get("/v1/events/e1/items")).json()
    file = await client.get("/v1/events/e1/items.csv")

    assert [(i["id"], i["copy_of"]) for i in listed["items"]] == [("a", None), ("b", None), ("c", "a")]
    assert [i["doubtful"] for i in listed["items"]] == [False] * 3
    assert (listed["event_id"], listed["title"]) == ("e1", "Bridge closed")
    assert [row["id"] for row in rows(await file.text())] == ["a", "b", "c"]
    assert file.content_type == "text/csv"
    assert file.headers["Content-Disposition"] == 'attachment; filename="event-e1.csv"'
    assert (await client.get("/v1/events/none/items")).status == 404
    assert (await client.get("/v1/events/none/items.csv")).status == 404
