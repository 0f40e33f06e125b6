"""The source of an article: the one answer to "who published it?".

It is the name that the crawler sends, by its ``source_key``; else the account or the host of the URL.

    >>> site_of("https://www.gazette.example/pool"), site_of("https://t.me/s/Gazette/7")
    ('gazette.example', 't.me/gazette')

An **outlet** is what is counted and shown: the sources of one name in the file of outlets (setting
``outlets_file``, which a process reads once, when it starts), else one source, a host without its "www.".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cache, lru_cache

import msgspec

from aggregator.analysis.article_id import canonical_url
from aggregator.analysis.text.lexicon import table
from aggregator.analysis.text.normalization import source_key
from aggregator.domain import Article
from aggregator.errors import InvalidInput

_ACCOUNT_HOSTS, _SHARED_HOSTS = table("account_host", ""), table("shared_host", "")
_MARKERS, _NO_ACCOUNT = table("account_marker", ""), table("no_account", "")
_SPARE_LABEL = re.compile(r"^(?:(?:origin-)?www\d?|m|mobile|amp)\.(?=\S+\.\S+$)", re.IGNORECASE)


def with_source(article: Article) -> Article:
    """The article with its source, if it was sent without one."""
    return article if article.source else replace(article, source=site_of(article.url))


def as_sent(article: Article) -> Article:
    """The article without a source that its URL tells."""
    return replace(article, source="") if article.source == site_of(article.url) else article


def site_of(url: str) -> str:
    """The account or else the host of an address, in lower case; "" if it tells neither."""
    try:
        host, *path = re.split(r"[?#]", canonical_url(url), maxsplit=1)[0].lower().split("/")
    except InvalidInput:
        return ""
    host = _SPARE_LABEL.sub("", host)
    if path and path[0].startswith("@"):
        return f"{host}/{path[0]}"
    if host not in _ACCOUNT_HOSTS:
        return "" if host in _SHARED_HOSTS else host
    account = next((segment for segment in path if segment not in _MARKERS), "")
    return "" if account in _NO_ACCOUNT or account.endswith(".php") or not path[1:] else f"{host}/{account}"


def site_group(name: str) -> str:
    """What the sources of one site share: its registered domain; "" for an account of a shared host.

    >>> site_group("www.dw.de"), site_group("news.gazette.co.uk"), site_group("t.me/gazette")
    ('dw.de', 'gazette.co.uk', '')
    """
    from courlan import extract_domain  # the public suffix list

    host, _, account = name.partition("/")
    if account or host in _ACCOUNT_HOSTS | _SHARED_HOSTS or host.endswith(tuple(table("account_suffix", ""))):
        return ""
    return extract_domain(f"http://{host}") or ".".join(host.split(".")[-2:])


def spelled_as(name: str, sources: Iterable[str]) -> str | None:
    """The one of ``sources`` that ``name`` is a spelling of; None if it is none of them."""
    return next((source for source in sources if source_key(source) == source_key(name)), None)


class Outlet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of the file: ``sources`` are it, ``group``: such as its owner, ``own``: the newsroom's."""

    name: str
    sources: tuple[str, ...] = ()
    group: str = ""
    own: bool = False


_by_source: dict[str, Outlet] = {}


def name_outlets(outlets: Iterable[Outlet]) -> None:
    """Replace the names of the file, for this process."""
    _by_source.clear()
    _by_source.update((_bare_key(s), outlet) for outlet in outlets for s in (outlet.name, *outlet.sources))
    outlet_name.cache_clear()
    outlet_key.cache_clear()
    own_outlets.cache_clear()


@lru_cache(maxsize=4096)
def outlet_name(source: str) -> str:
    """The name of the outlet that a source is.

    >>> outlet_name("origin-www.gazette.example"), outlet_name("The Harbour Times")
    ('gazette.example', 'The Harbour Times')
    """
    named = _by_source.get(_bare_key(source))
    return named.name if named else _SPARE_LABEL.sub("", source)


@lru_cache(maxsize=4096)
def outlet_key(source: str) -> str:
    """The same for all sources that are one outlet."""
    return source_key(outlet_name(source))


def _bare_key(source: str) -> str:
    return source_key(_SPARE_LABEL.sub("", source))


@cache
def own_outlets() -> frozenset[str]:
    """The keys of the newsroom's outlets in the file."""
    return frozenset(outlet_key(outlet.name) for outlet in _by_source.values() if outlet.own)


def is_own(source: str) -> bool:
    """Whether a source is an outlet of the newsroom."""
    return outlet_key(source) in own_outlets()


def outlet_groups(among: Collection[str]) -> list[tuple[str, ...]]:
    """The names of those outlets that are of one group of the file, by group."""
    wanted, groups = set(map(outlet_key, among)), dict[str, list[str]]()
    for outlet in dict.fromkeys(_by_source.values()):
        if outlet.group and source_key(outlet.name) in wanted:
            groups.setdefault(outlet.group, []).append(outlet.name)
    return [tuple(names) for names in groups.values() if len(names) > 1]
