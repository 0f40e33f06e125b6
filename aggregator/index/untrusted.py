"""Untrusted sources: their articles get verdicts and are not stored.

So they are nobody's original, in no event, and teach nothing. The list, keys of names and sites, is one value
under ``KEY``, which is read with every look-up.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from aggregator.analysis.source import site_of
from aggregator.analysis.text.normalization import source_key
from aggregator.domain import Article, ArticleRecord, StreamItem
from aggregator.store.optimistic import ValueFormat

KEY = b"{untrusted}sources"
FORMAT = ValueFormat(msgspec.msgpack.Decoder(frozenset[str]), "The list of untrusted sources", frozenset[str])
decode = lru_cache(maxsize=8)(FORMAT.decode)  # of the value of ``KEY``


def is_of(article: Article | ArticleRecord | StreamItem, sources: frozenset[str]) -> bool:
    """Whether an article is of one of these sources, by its name or by the site of its address."""
    return not sources.isdisjoint((source_key(article.source), site_of(article.url)))
