"""RSS, Atom and JSON Feed of any quality."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator_client.decision import encode_article
from aggregator_client.errors import InvalidInput
from aggregator_client.feed_articles import make_articles
from aggregator_client.feed_parsing import Item, parse_feed
from tests.client.feed_server import DATE, atom, json_feed, rss, rss_item

BODY = "The ferry between Brackwater and Estmark runs again."


def test_an_rss_item() -> None:
    """Markup stays for the extractor of the service; a body without tags is text."""
    plain = rss_item("7", "Ferry & bus", BODY + " Fish &amp; chips.", link="https://a.example/7")
    parsed = parse_feed(rss([plain, rss_item("8", "B", f"<p>{BODY}</p>")]), "https://a.example/rss")

    assert parsed.problem == ""
    first, second = parsed.items
    text = BODY + " Fish & chips."
    assert first == Item("7", "https://a.example/7", "Ferry & bus", text, False, DATE)
    assert second == Item("8", "", "B", f"<p>{BODY}</p>", True, DATE)


def test_content_encoded_is_preferred_to_a_summary() -> None:
    """The longer of them."""
    item = (
        f"<item><title>A</title><description>Short.</description>"
        f'<c:encoded xmlns:c="http://purl.org/rss/1.0/modules/content/"><![CDATA[<p>{BODY}</p>]]></c:encoded></item>'
    )
    assert parse_feed(rss([item])).items[0].body == f"<p>{BODY}</p>"


def test_an_empty_date() -> None:
    """Another date is taken; feedparser warns of nothing."""
    item = rss_item("1", "A", BODY).replace(DATE, "")
    other = item.replace(
        "</item>", f'<a:updated xmlns:a="http://www.w3.org/2005/Atom">{DATE}</a:updated></item>'
    )

    assert [read.published for read in parse_feed(rss([item, other])).items] == [None, DATE]


def test_an_atom_entry() -> None:
    """Title with markup, relative address, ``updated`` as the date."""
    feed = (
        '<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:7</id>'
        '<title type="html">Ferry &amp;lt;b&amp;gt; &lt;em>runs&lt;/em></title>'
        f'<link href="/7"/><updated>2026-11-27T10:00:00Z</updated><summary>{BODY}</summary></entry></feed>'
    )
    (item,) = parse_feed(feed.encode(), "https://a.example/atom").items

    assert item == Item("urn:7", "https://a.example/7", "Ferry <b> runs", BODY, False, "2026-11-27T10:00:00Z")


def test_a_json_feed_item() -> None:
    """Numbers as ids, relative addresses, HTML, and half of a surrogate pair."""
    items = [
        {"id": 7, "url": "/7", "title": "A", "content_html": f"<p>{BODY}</p>", "date_published": DATE},
        {"id": None, "external_url": "https://b.example/8", "content_text": "words \ud83d words"},
        {"title": ""},
        "no item",
    ]
    data = json.dumps({"version": "https://jsonfeed.org/version/1", "items": items})
    first, second = parse_feed(b"\xef\xbb\xbf " + data.encode(), "https://a.example/feed.json").items

    assert first == Item("7", "https://a.example/7", "A", f"<p>{BODY}</p>", True, DATE)
    assert second == Item("", "https://b.example/8", "", "words \ufffd words", False, None)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
def test_charsets(encoding: str) -> None:
    """Whatever the document declares."""
    text = "Café à Ömer"
    document = rss([rss_item("1", text, BODY)]).decode().encode(encoding)
    assert parse_feed(document).items[0].title == text
    assert parse_feed(document, content_type="text/xml; charset=us-ascii").items[0].title == text
    if encoding != "latin-1":
        assert parse_feed(json_feed([("1", text, BODY)]).decode().encode(encoding)).items[0].title == text


def test_a_truncated_document_gives_its_whole_items() -> None:
    """The last one may be cut, so it waits for the next poll."""
    document = rss([rss_item(str(n), f"Title {n}", f"<p>{n} {BODY}</p>") for n in range(4)])
    parsed = parse_feed(document[:-80])

    assert [item.guid for item in parsed.items] == ["0", "1", "2"]
    assert parsed.problem == "the XML is broken (no element found); 3 items were read"


def test_damage_in_the_middle_loses_no_item() -> None:
    """An ampersand, a control character and an unknown entity."""
    items = [rss_item("1", "A", "Fish"), rss_item("2", "B", "Chips"), rss_item("3", "C", "Peas")]
    items[1] = items[1].replace("Chips", "Chips & \x08 &nosuch; peas")
    parsed = parse_feed(rss(items))

    assert [item.guid for item in parsed.items] == ["1", "2", "3"]
    assert "the XML is broken (" in parsed.problem and "; 3 items were read" in parsed.problem


def test_invalid_character_references_cost_nothing() -> None:
    """Some feeds write an emoji as the two halves of a surrogate pair, others control characters."""
    pairs = "A &#55357;&#56832;&#xD83D;&#xde00; &#233;&#0;&#x1F600;&#xD800; &#99999999; &#65;&#56832;B"
    parsed = parse_feed(rss([rss_item("1", "X", BODY).replace("X", pairs)]))

    assert parsed.problem == ""
    assert parsed.items[0].title == "A 😀😀 é😀 AB"


def test_a_document_at_which_the_parser_fails() -> None:
    """It costs this poll of this feed only; a charset that fails is tried without."""
    place = '<g:pos xmlns:g="http://www.opengis.net/gml">1 2</g:pos>'
    with pytest.raises(InvalidInput, match=r"^feedparser fails at this document \(KeyError: 'where'\)$"):
        parse_feed(rss([rss_item("1", "A", BODY).replace("</item>", f"{place}</item>")]))
    named = parse_feed(rss([rss_item("1", "Café", BODY)]), content_type="text/xml; charset=idna")
    assert named.items[0].title == "Café"


SEEDS = [
    rss([rss_item(str(n), f"Title {n}", f"<p>{BODY}</p>", link="https://a.example/") for n in range(3)]),
    atom([("1", "A", BODY)]),
    json_feed([("1", "A", BODY)]),
]
PIECES = [
    b"<![CDATA[", b"]]>", b"&#xd800;", b"&#99999999;", b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"\0", b"\xff",
    b"</item>", b"<item>", b"<![if", b"<?", b"<!--", b"<link href='http://['/>", b" xml:base='http://['",
    b"\\ud800", b"NaN", b"1e999", b"null", b"[" * 2000, b" encoding='idna'", b"<category/>",
]  # fmt: skip


@given(
    st.sampled_from(SEEDS), st.lists(st.tuples(st.sampled_from(PIECES), st.floats(0, 1), st.integers(0, 30)))
)
def test_any_document_gives_items_or_a_sentence(seed: bytes, edits: list[tuple[bytes, float, int]]) -> None:
    """Each piece replaces some bytes; every item can be sent."""
    document = seed
    for piece, share, removed in edits:
        at = int(share * len(document))
        document = document[:at] + piece + document[at + removed :]
    try:
        parsed = parse_feed(document, "https://a.example/rss")
    except InvalidInput:
        return
    for article in make_articles(parsed.items, "a.example"):
        encode_article(article)


def test_a_body_of_nothing_but_markup_is_empty() -> None:
    """The headline is compared; an item without it is no item."""
    image = '<img src="https://a.example/1.jpg"/>'
    (item,) = parse_feed(rss([rss_item("1", "Ferry", image), rss_item("2", "", image)])).items

    assert item == Item("1", "", "Ferry", "", False, DATE)


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (b"", "not a feed, but an empty document"),
        (b"Hello there", "not a feed, but something else"),
        (b"<html><body><p>Hello</p></body></html>", "not a feed, but an HTML page"),
        (
            b'<html><head><link rel="alternate" type="application/atom+xml" href="/atom"></head></html>',
            "not a feed, but a page, which names the feed https://a.example/atom",
        ),
        (b'{"items": [', "not a feed: the JSON is broken (Expecting value"),
        (b'{"version": 1}', "not a feed, but JSON without `items`"),
        (b"\x89PNG\r\n\x1a\n\0\0", "not a feed, but something else"),
    ],
)
def test_what_is_no_feed_is_named(document: bytes, sentence: str) -> None:
    """In one sentence."""
    with pytest.raises(InvalidInput) as error:
        parse_feed(document, "https://a.example/")
    assert str(error.value).startswith(sentence)


def test_a_feed_without_items_is_a_feed() -> None:
    """A new outlet has none."""
    assert parse_feed(rss([])).items == parse_feed(atom([])).items == parse_feed(json_feed([])).items == []


def test_entities_of_a_document_are_not_expanded() -> None:
    """A document of 1 kB does not become one of gigabytes."""
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 20}">' for n in range(1, 12))
    head = f'<!DOCTYPE rss [<!ENTITY e0 "ha">{levels}]>'
    parsed = parse_feed(
        head.encode() + rss([rss_item("1", "X", BODY).replace("X", "Title &e11;")]).split(b"?>")[1]
    )

    assert sum(len(item.title) for item in parsed.items) < 1000
