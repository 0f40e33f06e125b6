"""Saved filters: ids, limit, and shared storage."""

from __future__ import annotations

import pytest

from aggregator.errors import Conflict, NotFound
from aggregator.events.saved_filters import MAX_SAVED_FILTERS, SavedFilter, SavedFilters
from aggregator.store.base import Store


async def test_every_replica_reads_a_saved_filter(store: Store) -> None:
    """Two filters of one name have different ids and are listed in the order of saving."""
    filters = SavedFilters(store)

    first, _ = await filters.save("Bridges", "term=bridge&min_size=20", 5)
    second, _ = await filters.save("Bridges", "term=ferry", 4)

    assert first == SavedFilter(first.id, "Bridges", "term=bridge&min_size=20", 5)
    assert first.id != second.id
    assert await SavedFilters(store).values() == [first, second]


async def test_a_removed_filter_is_not_found(store: Store) -> None:
    """The message names the public term, "watch", and the id."""
    filters = SavedFilters(store)
    saved, _ = await filters.save("Bridges", "term=bridge", 5)

    await filters.remove(saved.id)

    with pytest.raises(NotFound, match=f"no watch '{saved.id}'"):
        await filters.get(saved.id)


async def test_no_more_than_the_limit_is_saved(store: Store) -> None:
    """The last one fits; after a refusal all saved ones remain."""
    filters = SavedFilters(store)
    existing = {
        f"w{i}": SavedFilter(f"w{i}", "Bridges", "term=bridge", i) for i in range(MAX_SAVED_FILTERS - 1)
    }
    await filters.mutate(lambda known: known.update(existing))

    last, _ = await filters.save("Ferries", "term=ferry", 1)
    with pytest.raises(Conflict, match=f"{MAX_SAVED_FILTERS} of the kind watch"):
        await filters.save("Storms", "term=storm", 2)

    assert await filters.all() == {**existing, last.id: last}
