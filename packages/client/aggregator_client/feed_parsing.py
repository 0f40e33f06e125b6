"""Readers of RSS, Atom and JSON Feed: bytes of any quality give the items that can be read of them."""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

import feedparser

from aggregator_client.errors import InvalidInput
from aggregator_client.feed_ids import is_address
from aggregator_client.surrogates import whole_text

_MARKUP = re.compile(r"<[a-zA-Z/!][^>]*>")
_ROOT_END = re.compile(rb"</\s*(?:[\w.-]+:)?(?:rss|feed|rdf|channel)\s*>\s*\Z", re.IGNORECASE)
_REFERENCES = re.compile(rb"(?:&#(?:x[0-9a-f]{1,8}|\d{1,9});)+", re.IGNORECASE)
_FEED_TYPES = ("application/rss+xml", "application/atom+xml", "application/feed+json")
_CLOSING_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Item:
    """An item as its feed gives it; what is missing is empty.

    ``url`` is an http or https address, ``title`` plain text, ``body`` text or with ``is_html`` markup,
    ``published`` of any type.
    """

    guid: str = ""
    url: str = ""
    title: str = ""
    body: str = ""
    is_html: bool = False
    published: Any = None


@dataclass(frozen=True, slots=True)
class ParsedFeed:
    """Items of a document; ``website``: address of its page; ``problem``: what is broken, or empty."""

    items: Sequence[Item]
    website: str = ""
    problem: str = ""


def parse_feed(data: bytes, url: str = "", content_type: str = "") -> ParsedFeed:
    """The items of a document. Raises InvalidInput if it is not a feed.

    Args:
        data: The document, not compressed.
        url: Its address; relative links are resolved against it.
        content_type: Header of that name, with the charset.
    """
    if data.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n")[:1] == b"{":  # after a byte order mark
        return _parse_json_feed(data, url)
    return _parse_xml_feed(data, url, content_type)


def strip_markup(text: str) -> str:
    """Text without tags, entities and repeated white space."""
    return " ".join(html.unescape(_MARKUP.sub(" ", text)).split())


def _parse_xml_feed(data: bytes, url: str, content_type: str) -> ParsedFeed:
    read = _read_by_feedparser(_REFERENCES.sub(_valid_references, data), url, content_type)
    if not read.get("version") and not read.entries:
        raise InvalidInput(f"not a feed, but {_name_of(data, read, url)}")
    error = read.get("bozo_exception")
    # Another charset than the declared one, or another media type, is no loss.
    is_broken = error is not None and not isinstance(
        error, feedparser.CharacterEncodingOverride | feedparser.NonXMLContentType
    )
    entries = read.entries
    if is_broken and entries and not _ROOT_END.search(data[-_CLOSING_BYTES:].rstrip()):
        entries = entries[:-1]  # it may be cut
    items = [item for item in map(_item_of_entry, entries) if item.title or item.body]
    problem = ""
    if is_broken:
        reason = " ".join(str(getattr(error, "getMessage", lambda: error)()).split()) or type(error).__name__
        problem = f"the XML is broken ({reason}); {len(items)} items were read"
    return ParsedFeed(items, str(read.feed.get("link") or ""), problem)


def _read_by_feedparser(data: bytes, url: str, content_type: str) -> Any:
    """The result of feedparser. Raises InvalidInput for a document at which it fails."""
    for declared in dict.fromkeys((content_type, "")):
        headers = {"content-location": url} | ({"content-type": declared} if declared else {})
        try:
            # A stream: feedparser would take other arguments for the name of a file or an address to open.
            return feedparser.parse(
                io.BytesIO(data), response_headers=headers, sanitize_html=False, resolve_relative_uris=False
            )
        except Exception as error:  # of many types, such as KeyError for some coordinates
            problem = InvalidInput(f"feedparser fails at this document ({type(error).__name__}: {error})")
    raise problem


def _valid_references(found: re.Match[bytes]) -> bytes:
    """References to characters, without invalid ones; two to the halves of a surrogate pair become one."""
    parts = found[0].lower().replace(b"&#", b"").split(b";")[:-1]
    numbers = [int(part[1:], 16) if part[:1] == b"x" else int(part) for part in parts]
    if all(map(_is_xml_character, numbers)):
        return found[0]
    text = "".join(chr(number) for number in numbers if number < 0x110000)
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    return b"".join(b"&#%d;" % number for number in map(ord, joined) if _is_xml_character(number))


def _is_xml_character(number: int) -> bool:
    return number in (9, 10, 13) or 32 <= number < 0xD800 or 0xE000 <= number < 0x110000


def _name_of(data: bytes, read: Any, url: str) -> str:
    """What a document is that is no feed."""
    links = read.feed.get("links") or ()
    offered = [urljoin(url, link.get("href", "")) for link in links if link.get("type") in _FEED_TYPES]
    if offered:
        return f"a page, which names the feed {offered[0]}"
    if not data.strip():
        return "an empty document"
    is_page = re.search(rb"<(?:!doctype )?html", data[:2048], re.IGNORECASE)
    return "an HTML page" if is_page else "something else"


def _item_of_entry(entry: Any) -> Item:
    bodies = [(part.get("value") or "", part.get("type", "")) for part in entry.get("content", ())]
    summary = entry.get("summary_detail") or {}
    bodies.append((summary.get("value") or "", summary.get("type", "")))
    body, body_type = max(bodies, key=lambda part: len(part[0]))
    link = str(entry.get("link") or "")
    guid = str(entry.get("id") or "")
    # Of `dict`: feedparser's own `get` warns where it takes an empty `published` for `updated`.
    dates = [dict.get(entry, name) for name in ("published", "updated", "created")]
    return _make_item(
        guid=guid,
        url=link if is_address(link) else guid,
        title=str(entry.get("title") or ""),
        body=body,
        is_html=body_type != "text/plain",
        published=next(filter(None, dates), None),
    )


def _parse_json_feed(data: bytes, url: str) -> ParsedFeed:
    try:
        document = json.loads(data.decode(json.detect_encoding(data), "replace"))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"not a feed: the JSON is broken ({error})") from None
    items = document.get("items") if isinstance(document, dict) else None
    if not isinstance(items, list):
        raise InvalidInput("not a feed, but JSON without `items`")
    read = [_item_of_json(item, url) for item in items if isinstance(item, dict)]
    named = [item for item in read if item.title or item.body]
    return ParsedFeed(named, _text(document.get("home_page_url")))


def _item_of_json(item: dict[str, Any], feed_url: str) -> Item:
    guid = _text(item.get("id"))
    link = urljoin(feed_url, _text(item.get("url")) or _text(item.get("external_url")))
    content = _text(item.get("content_html"))
    return _make_item(
        guid=guid,
        url=link if is_address(link) and link != feed_url else guid,
        title=_text(item.get("title")),
        body=content or _text(item.get("content_text")) or _text(item.get("summary")),
        is_html=bool(content),
        published=item.get("date_published") or item.get("date_modified"),
    )


def _make_item(*, guid: str, url: str, title: str, body: str, is_html: bool, published: Any) -> Item:
    """An item with plain title; a body without tags, or with nothing but tags, is no HTML."""
    plain = strip_markup(body) if is_html else body.strip()
    has_markup = bool(is_html and plain and _MARKUP.search(body))
    return Item(
        guid=guid.strip(),
        url=whole_text(url.strip()) if is_address(url.strip()) else "",
        title=whole_text(strip_markup(title)),
        body=whole_text(body if has_markup else plain),
        is_html=has_markup,
        published=published,
    )


def _text(value: Any) -> str:
    """A JSON value as text: numbers are ids in some feeds, anything else than text is not."""
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
