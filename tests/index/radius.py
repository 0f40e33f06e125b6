"""Look-up by fingerprint alone, as the lookups of articles do it among other things."""

from aggregator.index import Index, keys
from aggregator.index.blocks import PLAN
from aggregator.index.codec.postings import ArticleNumbers, Distances, numbers_within


async def find_within_radius(
    index: Index, space: str, fingerprint: int, radius: int
) -> tuple[ArticleNumbers, Distances]:
    """Article numbers within ``radius`` bits, deleted ones included, and their distances; both (n,)."""
    probe_plan = PLAN.probe_plan(fingerprint, radius)
    block_buckets = keys.block_buckets(b"", [probe_plan])
    snapshot = await index.segments.read({space: block_buckets})
    buckets = snapshot.values_in_all_segments(space, block_buckets)
    return numbers_within(buckets, probe_plan, radius, snapshot.stacks[space].floor)
