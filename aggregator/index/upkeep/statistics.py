"""Size of a space by the sampled article numbers of its segments: cheap enough for metrics."""

from __future__ import annotations

from dataclasses import dataclass

from aggregator.domain import arrival_ms_of
from aggregator.index import Index, keys
from aggregator.index.segments import decode_samples
from aggregator.index.snapshot import SketchWidth, decode_sketch_width


@dataclass(frozen=True, slots=True)
class SegmentStatistics:
    """One live segment; ``articles`` is estimated from samples, ``oldest_ms`` is None without any."""

    articles: int
    oldest_ms: int | None
    sketch_width: SketchWidth


@dataclass(frozen=True, slots=True)
class SpaceStatistics:
    """The live segments of one space."""

    segments: tuple[SegmentStatistics, ...]

    @property
    def articles(self) -> int:
        """Estimated number of articles in all live segments."""
        return sum(segment.articles for segment in self.segments)


async def count_segments(index: Index, space: str) -> SpaceStatistics:
    """Statistics of a space: one small read."""
    stack = await index.segments.refresh(space)
    values = await index.store.read(
        [tag + suffix for tag in stack.tags for suffix in (keys.SAMPLES, keys.WIDTH)]
    )
    segments = []
    for samples, width in zip(values[::2], values[1::2], strict=True):
        numbers, weights = decode_samples(samples)
        oldest_ms = arrival_ms_of(int(numbers.min())) if len(numbers) else None
        segments.append(SegmentStatistics(int(weights.sum()), oldest_ms, decode_sketch_width(width)))
    return SpaceStatistics(tuple(segments))
