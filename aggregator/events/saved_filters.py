"""Saved filters ("watches"): named query strings of /v1/events.

The event list, the stream, feeds and webhooks accept their ids.
"""

from __future__ import annotations

import secrets

import msgspec

from aggregator.errors import NotFound
from aggregator.events.desks import Desks, view_filter
from aggregator.events.filter import EventFilter
from aggregator.store.base import Store
from aggregator.store.versioned_map import VersionedMap

SAVED_FILTERS_KEY = b"{events}watches"
MAX_SAVED_FILTERS = 1000


class SavedFilter(msgspec.Struct, frozen=True):
    """One watch. ``query``: for example ``"term=bridge&min_size=20"``, validated when it was saved.

    ``owner``: id of the key that created it, "" where no key is required.
    """

    id: str
    name: str
    query: str
    created_ms: int
    owner: str = ""


class SavedFilters(VersionedMap[SavedFilter]):
    """The watches of a store, at most 1000, of which one key creates at most half."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, SAVED_FILTERS_KEY, SavedFilter, "watch", MAX_SAVED_FILTERS)

    async def filter_of(self, id_: str) -> EventFilter:
        """The filter of a watch, or of the view of the desk with this id. Raises NotFound."""
        watch = (await self.all()).get(id_)
        if watch is not None:
            return EventFilter.parse(watch.query)
        desk = (await Desks(self._store).all()).get(id_)
        if desk is None:
            raise NotFound(f"There is no watch or desk {id_[:200]!r}.")
        return view_filter(desk)

    async def save(self, name: str, query: str, now_ms: int, owner: str = "") -> tuple[SavedFilter, bool]:
        """Save a validated query; returns the watch and whether it is new.

        A watch with this name and query is returned as it is. Raises Conflict above 1000 and above the
        owner's share, StoreUnavailable.
        """
        saved = SavedFilter(secrets.token_hex(6), name, query, now_ms, owner)
        return await self.add_once(saved.id, saved, _is_same, lambda watch: watch.owner)


def _is_same(stored: SavedFilter, new: SavedFilter) -> bool:
    return (stored.name, stored.query) == (new.name, new.query)
