"""Articles from the items of a feed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from aggregator.analysis.article_id import derive_id
from aggregator.contract.decoding import decode_article
from aggregator_client.decision import encode_article
from aggregator_client.feed_articles import make_articles
from aggregator_client.feed_parsing import Item
from aggregator_client.wire import MAX_URL_CHARS

HOST = "gazette.example"


def ids(*items: Item) -> list[str]:
    """The ids that the service gives them."""
    return [decode_article(encode_article(article)).id for article in make_articles(items, HOST)]


def test_all_fields() -> None:
    """The source is the host of the item, as a feed may list other outlets; the date is a time in UTC."""
    date = "Fri, 27 Nov 2026 10:00:00 +0100"
    (article,) = make_articles(
        [Item("a-7", "https://www.Herald.example/7", "Ferry", "<p>Text", True, date)], HOST
    )

    assert article == {
        "id": "gazette.example:a-7",
        "url": "https://www.Herald.example/7",
        "title": "Ferry",
        "html": "<p>Text",
        "source": "herald.example",
        "published_at": datetime(2026, 11, 27, 9, tzinfo=UTC),
    }


def test_what_cannot_be_used_is_left_out() -> None:
    """An unreadable date, and an address longer than the service accepts, do not cost the article."""
    url = "https://gazette.example/" + "a" * MAX_URL_CHARS
    (article,) = make_articles([Item("7", url, "Ferry", "Text", published="soon")], HOST)

    assert article == {"id": "gazette.example:7", "title": "Ferry", "text": "Text", "source": HOST}


def test_one_guid_of_two_feeds_is_two_ids() -> None:
    """Each blog numbers its posts from 1."""
    item = Item("1042", "", "Ferry", "Text")
    assert make_articles([item], "a.example")[0]["id"] != make_articles([item], "b.example")[0]["id"]


def test_the_address_identifies_an_item_whose_guid_is_a_number() -> None:
    """Feeds of one host count from 0 each; one with a letter stays, and one that nothing else identifies."""
    urls = [f"https://gazette.example/{section}/0" for section in ("sport", "culture")]
    assert [ids(Item("0", url, "Ferry")) for url in urls] == [[derive_id(None, url, "", "")] for url in urls]
    assert ids(Item("a0", urls[0], "Ferry")) == ["gazette.example:a0"]
    assert ids(Item("0", "", "Ferry")) == ["gazette.example:0"]


def test_the_address_identifies_an_item_whose_guid_is_its_address() -> None:
    """So a crawler that posts the page without an id has the same article."""
    url = "https://gazette.example/7?utm_source=rss"
    other = "https://gazette.example/?p=8"
    given: list[Any] = [
        Item(url, url, "A"),
        Item("", "https://gazette.example/9", "B"),
        Item(other, url + "8", "C"),
    ]

    assert ids(*given) == [
        derive_id(None, url, "", ""),
        "gazette.example/9",
        other,
    ]


def test_a_guid_that_occurs_twice_is_no_id() -> None:
    """The address is used, or the content if that is shared, too; the ids stay the same in later polls."""
    addressed = [Item("1", f"https://gazette.example/{n}", f"Title {n}", f"Text {n}") for n in range(3)]
    bare = [Item("1", "https://gazette.example/", f"Title {n}", f"Text {n}") for n in range(3)]

    assert ids(*addressed) == [f"gazette.example/{n}" for n in range(3)]
    assert len(set(ids(*bare))) == 3
    assert ids(*bare)[1:] == ids(*bare[1:])
    assert all(id_.startswith("gazette.example:") for id_ in ids(*bare))
