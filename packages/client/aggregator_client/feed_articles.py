"""Articles for the service from the items of a feed: ids, source and dates."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

from aggregator_client.dates import parse_feed_date
from aggregator_client.feed_ids import global_id, host_of
from aggregator_client.feed_parsing import Item
from aggregator_client.wire import MAX_TITLE_CHARS, MAX_URL_CHARS

Article = dict[str, Any]


def make_articles(items: Sequence[Item], feed_host: str) -> list[Article]:
    """One article per item, in order.

    ``source`` is the host of the item's address, else ``feed_host``. The id is the guid (``feed_ids``). The
    address identifies an item whose guid is missing, is this address, has no letter (then it may count the
    items of each feed) or occurs more than once; its content does if the address is missing or shared, too.
    """
    guids = Counter(item.guid for item in items)
    urls = Counter(item.url for item in items)
    return [_make_article(item, feed_host, guids[item.guid] == 1, urls[item.url] == 1) for item in items]


def _make_article(item: Item, feed_host: str, guid_is_unique: bool, url_is_unique: bool) -> Article:
    url = item.url if len(item.url) <= MAX_URL_CHARS else ""
    published = parse_feed_date(item.published)
    article = {
        "id": _id_of(item, url if url_is_unique else "", feed_host, guid_is_unique),
        "url": url,
        "title": item.title[:MAX_TITLE_CHARS],
        "html" if item.is_html else "text": item.body,
        "source": host_of(url) or feed_host,
        "published_at": published,
    }
    return {name: value for name, value in article.items() if value}


def _id_of(item: Item, own_url: str, feed_host: str, guid_is_unique: bool) -> str:
    """The id; empty: the service takes the one of the address."""
    is_number = not any(map(str.isalpha, item.guid))
    if item.guid and guid_is_unique and item.guid != item.url and not (is_number and own_url):
        return global_id(item.guid, feed_host)
    if own_url:
        return ""
    content = "\n".join((item.title, item.body)).encode("utf-8", "replace")
    return global_id(hashlib.sha256(content).hexdigest(), feed_host)
