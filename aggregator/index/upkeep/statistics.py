"""Size and balance of a space, from samples: cheap enough for metrics and ``aggregator doctor``.

The number of articles is estimated from the sampled article numbers of each segment
(``index/segments.py``) or, where these are too few, from the buckets of the first block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from aggregator.domain import arrival_ms_of
from aggregator.index import Index, keys
from aggregator.index.codec.postings import NUMBER_BYTES
from aggregator.index.lookup import RADIUS_BITS
from aggregator.index.segments import decode_samples, scan_block
from aggregator.index.snapshot import SketchWidth, decode_sketch_width

MIN_SAMPLES = 16
SAMPLED_BUCKETS_PER_SEGMENT = 4096


@dataclass(frozen=True, slots=True)
class SegmentStatistics:
    """One live segment; ``articles`` is estimated from samples, ``oldest_ms`` is None without any."""

    number: int
    articles: int
    sealed_ms: int | None
    oldest_ms: int | None
    samples: int
    sketch_width: SketchWidth


@dataclass(frozen=True, slots=True)
class SpaceStatistics:
    """One space. From the sampled buckets: entries of the largest, and mean entries per lookup at 7 bits."""

    space: str
    segments: tuple[SegmentStatistics, ...]
    largest_bucket_entries: int = 0
    mean_candidates: float = 0.0

    @property
    def articles(self) -> int:
        """Estimated number of articles in all live segments."""
        return sum(segment.articles for segment in self.segments)


async def count_segments(index: Index, space: str) -> SpaceStatistics:
    """Statistics of the segments alone: one small read, for metrics."""
    stack = await index.segments.refresh(space)
    suffixes = (keys.SEALED, keys.SAMPLES, keys.WIDTH)
    values = await index.store.read([tag + suffix for tag in stack.tags for suffix in suffixes])
    segments = []
    for number in range(stack.first, stack.last + 1):
        sealed, samples, width = values[: len(suffixes)]
        del values[: len(suffixes)]
        numbers, weights = decode_samples(samples)
        segments.append(
            SegmentStatistics(
                number=number,
                articles=int(weights.sum()),
                sealed_ms=int(sealed) if sealed else None,
                oldest_ms=arrival_ms_of(int(numbers.min())) if len(numbers) else None,
                samples=len(numbers),
                sketch_width=decode_sketch_width(width),
            )
        )
    return SpaceStatistics(space, tuple(segments))


async def sample_buckets(index: Index, space: str) -> SpaceStatistics:
    """Statistics of segments and of the first block's buckets; segments with few samples are counted."""
    counted = await count_segments(index, space)
    plan = index.plans[space]
    width, entry_bytes = plan.widths[0], plan.remainder_bytes + NUMBER_BYTES
    probes = len(plan.probe_plan(0, RADIUS_BITS).flipped_bits)
    segments, largest, mean = [], 0, 0.0
    for segment in counted.segments:
        has_samples = segment.samples >= MIN_SAMPLES
        step = max(1, (1 << width) // SAMPLED_BUCKETS_PER_SEGMENT) if has_samples else 1
        buckets = scan_block(index.store, keys.tag(space, segment.number), 0, width, step)
        sizes = [len(bucket) // entry_bytes async for _, bucket in buckets]
        largest, mean = max(largest, *sizes), mean + sum(sizes) / len(sizes)
        segments.append(replace(segment, articles=sum(sizes)) if step == 1 else segment)
    return SpaceStatistics(space, tuple(segments), largest, mean * probes)
