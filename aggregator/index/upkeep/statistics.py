"""Size and age of a space, cheap enough for metrics."""

from __future__ import annotations

from dataclasses import dataclass

from aggregator.index import Index
from aggregator.index.snapshot import SketchWidth
from aggregator.index.upkeep.spaces import StoredSpace, count_articles


@dataclass(frozen=True, slots=True)
class SpaceStatistics:
    """A space: ``articles`` of ``count_articles``, live ``segments``, ``sketch_width`` of the writable."""

    articles: int
    oldest_ms: int | None
    segments: int
    sketch_width: SketchWidth


async def measure_space(index: Index, space: str) -> SpaceStatistics:
    """Statistics of a space as it is stored now. Raises StoreUnavailable."""
    await index.segments.refresh(space)
    stack = (await index.segments.read({space: ()})).stacks[space]
    found = await count_articles(index.store, space, StoredSpace())
    return SpaceStatistics(found.articles, found.oldest_ms or None, len(stack.tags), stack.sketch_widths[-1])
