"""Untrusted sources: their articles get verdicts and are not stored.

So they are nobody's original, in no event, and teach nothing.

{untrusted}sources   the keys of their names and sites, one value, which is read with every look-up
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from aggregator.analysis.source import site_of
from aggregator.analysis.text.normalization import source_key
from aggregator.domain import Article, ArticleRecord, StreamItem
from aggregator.errors import InvalidInput
from aggregator.store.base import Store
from aggregator.store.optimistic import StoredValue, ValueFormat

KEY = b"{untrusted}sources"
MAX_SOURCES = 1_000
_FORMAT = ValueFormat[tuple[str, ...]](
    msgspec.msgpack.Decoder(tuple[str, ...]), "The list of untrusted sources", tuple
)


@lru_cache(maxsize=8)
def _decode(raw: bytes) -> frozenset[str]:
    return frozenset(_FORMAT.decode(raw))


def is_of(article: Article | ArticleRecord | StreamItem, sources: frozenset[str]) -> bool:
    """Whether an article is of one of these sources, by its name or by the site of its address."""
    return not sources.isdisjoint((source_key(article.source), site_of(article.url)))


def is_untrusted(article: Article, raw: bytes | None) -> bool:
    """Whether its source is on the stored list; ``raw``: the value of ``KEY``."""
    return raw is not None and is_of(article, _decode(raw))


class UntrustedSources:
    """The list in one store. Methods raise StoreUnavailable."""

    def __init__(self, store: Store) -> None:
        self._list = StoredValue(store, KEY, _FORMAT)

    async def all(self) -> tuple[str, ...]:
        """Their keys, in order."""
        return await self._list.read()

    async def change(self, name: str, *, untrusted: bool) -> None:
        """Add or remove a source. Idempotent. Raises InvalidInput if the list is full."""

        def edit(listed: tuple[str, ...]) -> tuple[str, ...]:
            changed = set(listed) | {source_key(name)} if untrusted else set(listed) - {source_key(name)}
            if len(changed) > MAX_SOURCES:
                raise InvalidInput(f"source: {MAX_SOURCES} sources are untrusted, the limit.", field="source")
            return tuple(sorted(changed))

        await self._list.edit(edit)
