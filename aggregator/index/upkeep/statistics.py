"""Size of a space: lengths of whole article streams, else the sampled numbers; cheap enough for metrics."""

from __future__ import annotations

from dataclasses import dataclass

from aggregator.domain import arrival_ms_of
from aggregator.index import Index, keys
from aggregator.index.article_stream import decode_stream_entry
from aggregator.index.segments import decode_samples
from aggregator.index.snapshot import SketchWidth, decode_sketch_width
from aggregator.time_units import MINUTE_MS


@dataclass(frozen=True, slots=True)
class SegmentStatistics:
    """One live segment; ``articles``: versions; ``oldest_ms``: of the samples, None without any."""

    articles: int
    oldest_ms: int | None
    sketch_width: SketchWidth


@dataclass(frozen=True, slots=True)
class SpaceStatistics:
    """The live segments of one space."""

    segments: tuple[SegmentStatistics, ...]

    @property
    def articles(self) -> int:
        """Number of articles in all live segments, estimated for old ones."""
        return sum(segment.articles for segment in self.segments)


async def count_segments(index: Index, space: str) -> SpaceStatistics:
    """Statistics of a space: three small reads."""
    stack = await index.segments.refresh(space)
    values = await index.store.read(
        [tag + suffix for tag in stack.tags for suffix in (keys.SAMPLES, keys.WIDTH)]
    )
    streams = [tag + keys.STREAM for tag in stack.tags]
    lengths = await index.store.stream_lengths(streams)
    firsts = await index.store.stream_read(streams, [b""] * len(streams), 1)
    segments = []
    for samples, width, length, first in zip(values[::2], values[1::2], lengths, firsts, strict=True):
        numbers, weights = decode_samples(samples)
        oldest_ms = arrival_ms_of(int(numbers.min())) if len(numbers) else None
        articles = length
        started_ms = arrival_ms_of(decode_stream_entry(first[0][1]).number) - MINUTE_MS if first else None
        if oldest_ms is not None and (started_ms is None or oldest_ms < started_ms):
            articles = max(length, int(weights.sum()))
        segments.append(SegmentStatistics(articles, oldest_ms, decode_sketch_width(width)))
    return SpaceStatistics(tuple(segments))
