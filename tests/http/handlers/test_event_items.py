"""Export of the articles of an event."""

from __future__ import annotations

import csv
import io

import pytest

from aggregator.http.event_items import EventItem
from aggregator.http.handlers.event_items import CSV_COLUMNS, to_csv
from tests.support.factories import event
from tests.support.fake_service import Client, FakeService


def rows(text: str) -> list[dict[str, str]]:
    """The lines of a CSV file as a spreadsheet reads them."""
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))


def item(title: str) -> EventItem:
    """An article with this headline."""
    return EventItem("a", title, "https://a.example/", "Quay", "en", None, 1_000, 1_000, 0.5)


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
    assert (row["time"], row["published_at"], row["similarity"]) == ("1970-01-01T00:00:01Z", "", "0.500")


async def test_all_articles_are_exported(client: Client, service: FakeService) -> None:
    """As JSON and as a file; a copy names what it copies; deleted articles are left out."""
    for id_, text in (("a", "One text."), ("b", "Another text."), ("c", "One text.")):
        await client.post("/v1/articles", json={"id": id_, "title": f"Title {id_}", "text": text})
    service.events.stored = [event("e1", "Bridge closed", ("a", "b", "gone", "c"))]
    listed = await (await client.get("/v1/events/e1/items")).json()
    file = await client.get("/v1/events/e1/items.csv")

    assert [(i["id"], i["copy_of"]) for i in listed["items"]] == [("a", None), ("b", None), ("c", "a")]
    assert (listed["event_id"], listed["title"]) == ("e1", "Bridge closed")
    assert [row["id"] for row in rows(await file.text())] == ["a", "b", "c"]
    assert file.content_type == "text/csv"
    assert file.headers["Content-Disposition"] == 'attachment; filename="event-e1.csv"'
    assert (await client.get("/v1/events/none/items")).status == 404
    assert (await client.get("/v1/events/none/items.csv")).status == 404
