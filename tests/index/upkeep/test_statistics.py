"""Statistics of a space: estimated from sampled article numbers and sampled buckets."""

from aggregator.domain import article_number_at
from aggregator.index import keys
from aggregator.index.blocks import PLANS
from aggregator.index.segments import sample_entry
from aggregator.index.snapshot import SketchWidth
from aggregator.index.upkeep.statistics import count_segments, sample_buckets
from aggregator.store.base import Put, Store
from aggregator.store.memory import MemoryStore
from tests.support.factories import core, story
from tests.support.index_layout import bucket_probes, encode_posting


async def test_a_small_index_is_counted_by_its_buckets(store: Store) -> None:
    """Two segments, one of them sealed; every text counts once."""
    newsroom = core(store)
    for i in range(5):
        await newsroom.post(f"a{i}", story(i))
    (space,) = newsroom.index.spaces
    await newsroom.index.segments.seal(space, 0, 1_000)
    await newsroom.post("b", story(9))

    found = await sample_buckets(newsroom.index, space)

    assert [(s.number, s.articles, s.sealed_ms) for s in found.segments] == [(0, 5, 1_000), (1, 1, None)]
    assert found.articles == 6
    assert 1 <= found.largest_bucket_entries <= 5
    assert 0 < found.mean_candidates < 1


async def test_a_large_index_is_counted_by_its_samples() -> None:
    """2,000 samples represent 2**11 articles each; bucket sizes come from a sample of the buckets."""
    newsroom = core(MemoryStore())
    (space,) = newsroom.index.spaces
    tag = keys.tag(space, 0)
    samples = b"".join(sample_entry(article_number_at(1_000_000 + i), 11) for i in range(2_000))
    full = b"".join(encode_posting(7, n, 6) for n in range(30))
    await newsroom.index.store.put(
        [
            Put(tag + keys.SAMPLES, samples),
            *(Put(keys.block_bucket(tag, 0, v), full) for v in range(1 << 16)),
        ]
    )

    found = await sample_buckets(newsroom.index, space)

    assert found.segments[0].articles == 2_000 << 11
    assert found.segments[0].oldest_ms == 1_000_000
    assert (found.largest_bucket_entries, round(found.mean_candidates)) == (
        30,
        30 * len(bucket_probes(PLANS["4x16"], 0, 7)),
    )
    assert (await count_segments(newsroom.index, space)).articles == 2_000 << 11


async def test_the_width_of_sketch_buckets_is_that_of_the_segment() -> None:
    """Also while a rehash runs."""
    newsroom = core(MemoryStore())
    (space,) = newsroom.index.spaces
    await newsroom.index.store.put([Put(keys.tag(space, 0) + keys.WIDTH, b"19>20")])

    found = await count_segments(newsroom.index, space)

    assert found.segments[0].sketch_width == SketchWidth(20, 19)
