"""How much is in a space, and how is it spread? Cheap: marks, and a sample of buckets.

The number of articles is estimated from the marks of each segment (``store/marks.py``); where those are
too few, from the first block's buckets.
"""

from __future__ import annotations

from dataclasses import dataclass

from aggregator.domain import arrival_ms_of
from aggregator.index import keys
from aggregator.index.base import IndexBase
from aggregator.index.codec.postings import NUMBER_BYTES
from aggregator.index.segment_sampling import decode_samples

MIN_SAMPLES = 16
KEYS_PER_READ = 1024
SAMPLED_BUCKETS_PER_BLOCK = 4096  # of a block


@dataclass(frozen=True, slots=True)
class SegmentStatistics:
    """One live segment; times in ms. ``articles`` is an estimate, ``oldest_ms`` None while there are no marks."""

    number: int
    articles: int
    sealed_ms: int | None
    oldest_ms: int | None


@dataclass(frozen=True, slots=True)
class SpaceStatistics:
    """One space. Of the sampled buckets: ``largest`` in entries; ``candidates`` that a look-up at 7 bits reads."""

    space: str
    segments: tuple[SegmentStatistics, ...]
    largest_bucket_entries: int = 0
    mean_candidates: float = 0.0

    @property
    def articles(self) -> int:
        """In all live segments, roughly."""
        return sum(segment.articles for segment in self.segments)


async def count_segments(index: IndexBase, space: str) -> SpaceStatistics:
    """The segments only: one small read, for metrics."""
    layers = await index.segments.refresh(space)
    wanted = [key for tag in layers.tags for key in (keys.sealed(tag), keys.sampled_numbers(tag))]
    values = await index.store.read(wanted)
    segments = []
    for i, number in enumerate(range(layers.first, layers.last + 1)):
        closed, marks = values[2 * i], values[2 * i + 1]
        numbers, weights = decode_samples(marks)
        oldest_ms = arrival_ms_of(int(numbers.min())) if len(numbers) else None
        segments.append(
            SegmentStatistics(number, int(weights.sum()), int(closed) if closed else None, oldest_ms)
        )
    return SpaceStatistics(space, tuple(segments))


async def sample_buckets(index: IndexBase, space: str) -> SpaceStatistics:
    """The segments, and how full the first block's buckets are, for doctor: a second at most.

    Where a segment has few marks, all of the first block is counted instead.
    """
    counted = await count_segments(index, space)
    plan = index.plan(space)
    values = 1 << plan.widths[0]
    probes = len(plan.probes(0, 7))
    segments, largest, mean = [], 0, 0.0
    for segment in counted.segments:
        tag = keys.tag(space, segment.number)
        numbers, _ = decode_samples((await index.store.read([keys.sampled_numbers(tag)]))[0])
        step = max(1, values // SAMPLED_BUCKETS_PER_BLOCK) if len(numbers) >= MIN_SAMPLES else 1
        sizes = await _bucket_sizes(
            index, [keys.block_bucket(tag, 0, value) for value in range(0, values, step)]
        )
        sizes = [size // (plan.remainder_bytes + NUMBER_BYTES) for size in sizes]
        largest, mean = max(largest, *sizes), mean + sum(sizes) / len(sizes)
        articles = sum(sizes) if step == 1 else segment.articles
        segments.append(SegmentStatistics(segment.number, articles, segment.sealed_ms, segment.oldest_ms))
    return SpaceStatistics(space, tuple(segments), largest, mean * probes)


async def _bucket_sizes(index: IndexBase, bucket_keys: list[bytes]) -> list[int]:
    found: list[int] = []
    for i in range(0, len(bucket_keys), KEYS_PER_READ):
        read = await index.store.read(bucket_keys[i : i + KEYS_PER_READ])
        found += [len(value or b"") for value in read]
    return found
