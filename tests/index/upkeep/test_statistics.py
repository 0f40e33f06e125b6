"""Statistics of a space: its articles are counted, or estimated from sampled article numbers."""

import pytest

from aggregator.domain import Outcome, article_number_at
from aggregator.index import keys
from aggregator.index.article_stream import encode_stream_entry
from aggregator.index.bindings import Binding
from aggregator.index.segments import sample_entry
from aggregator.index.snapshot import SketchWidth
from aggregator.index.upkeep.statistics import count_segments
from aggregator.store.base import Put, StreamAdd, Transaction
from aggregator.store.memory import MemoryStore
from tests.support.factories import core


async def test_an_index_is_counted_by_its_samples() -> None:
    """2,000 samples represent 2**11 articles each."""
    newsroom = core(MemoryStore())
    (space,) = newsroom.index.spaces
    samples = b"".join(sample_entry(article_number_at(1_000_000 + i), 11) for i in range(2_000))
    await newsroom.index.store.put([Put(keys.tag(space, 0) + keys.SAMPLES, samples)])

    found = await count_segments(newsroom.index, space)

    assert (found.articles, found.segments[0].oldest_ms) == (2_000 << 11, 1_000_000)


@pytest.mark.parametrize(("first_ms", "expected"), [(1_000_000, 2), (9_000_000, 4_096)])
async def test_a_whole_stream_is_counted(first_ms: int, expected: int) -> None:
    """Two samples represent 2,048 articles each: used where the stream has lost its beginning."""
    newsroom = core(MemoryStore())
    (space,) = newsroom.index.spaces
    tag = keys.tag(space, 0)
    bindings = [Binding(article_number_at(first_ms + n), 1, b"", "a", Outcome("new")) for n in range(2)]
    entries = [StreamAdd(tag + keys.STREAM, encode_stream_entry("article", binding)) for binding in bindings]
    samples = b"".join(sample_entry(article_number_at(1_000_000 + n), 11) for n in range(2))
    await newsroom.index.store.put([Put(tag + keys.SAMPLES, samples)])
    await newsroom.index.store.commit(Transaction((), tuple(entries)))

    assert (await count_segments(newsroom.index, space)).articles == expected


async def test_the_width_of_sketch_buckets_is_that_of_the_segment() -> None:
    """Also while a rehash runs."""
    newsroom = core(MemoryStore())
    (space,) = newsroom.index.spaces
    await newsroom.index.store.put([Put(keys.tag(space, 0) + keys.WIDTH, b"19>20")])

    found = await count_segments(newsroom.index, space)

    assert found.segments[0].sketch_width == SketchWidth(20, 19)
