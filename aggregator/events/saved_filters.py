"""Saved filters ("watches"): named query strings of /v1/events.

The event list, the stream, feeds and webhooks accept their ids.
"""

from __future__ import annotations

import secrets

import msgspec

from aggregator.store.base import Store
from aggregator.store.versioned_map import VersionedMap

SAVED_FILTERS_KEY = b"{events}watches"
MAX_SAVED_FILTERS = 1000


class SavedFilter(msgspec.Struct, frozen=True):
    """One watch. ``query``: for example ``"term=bridge&min_size=20"``, validated when it was saved."""

    id: str
    name: str
    query: str
    created_ms: int


class SavedFilters(VersionedMap[SavedFilter]):
    """The watches of a store, at most 1000."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, SAVED_FILTERS_KEY, SavedFilter, "watch", MAX_SAVED_FILTERS)

    async def save(self, name: str, query: str, now_ms: int) -> SavedFilter:
        """Save a validated query under a new id. Raises Conflict above 1000, StoreUnavailable."""
        saved = SavedFilter(secrets.token_hex(6), name, query, now_ms)
        await self.add(saved.id, saved)
        return saved
