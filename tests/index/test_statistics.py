"""How many articles there are and how they are spread, from marks and samples."""

from aggregator.domain import number_of
from aggregator.index import keys
from aggregator.index.article_numbers import Numbers
from aggregator.index.blocks import PLANS
from aggregator.index.codec.postings import pack
from aggregator.index.segment_sampling import mark_of, rate_of, tally
from aggregator.index.statistics import count, survey
from aggregator.store.base import Put, Store
from aggregator.store.memory import MemoryStore
from tests.support.factories import core, story


async def test_a_small_index_is_counted_by_its_buckets(store: Store) -> None:
    """Two segments, of which one is sealed; every text counts once."""
    newsroom = core(store)
    for i in range(5):
        await newsroom.post(f"a{i}", story(i))
    (space,) = newsroom.index.spaces
    await newsroom.index.segments.seal(space, 0, 1_000)
    await newsroom.post("b", story(9))

    found = await survey(newsroom.index, space)

    assert [(s.number, s.articles, s.sealed_ms) for s in found.segments] == [(0, 5, 1_000), (1, 1, None)]
    assert found.articles == 6
    assert 1 <= found.largest <= 5
    assert 0 < found.candidates < 1


async def test_a_large_index_is_counted_by_its_marks() -> None:
    """Two thousand marks of which each stands for 2**11 articles; a sample of the buckets tells their size."""
    newsroom = core(MemoryStore())
    (space,) = newsroom.index.spaces
    tag = keys.tag(space, 0)
    marks = b"".join(mark_of(number_of(1_000_000 + i), 11) for i in range(2_000))
    full = b"".join(pack(7, n, 6) for n in range(30))
    await newsroom.index.store.put(
        [Put(keys.marks(tag), marks), *(Put(keys.bucket(tag, 0, v), full) for v in range(1 << 16))]
    )

    found = await survey(newsroom.index, space)

    assert found.segments[0].articles == 2_000 << 11
    assert found.segments[0].oldest_ms == 1_000_000
    assert (found.largest, round(found.candidates)) == (30, 30 * len(PLANS["4x16"].probes(0, 7)))
    assert (await count(newsroom.index, space)).articles == 2_000 << 11


def test_one_number_in_two_to_the_k_leaves_a_mark() -> None:
    """And says so; the mean over real numbers is right, and a full segment has some thousands."""
    numbers, rate = Numbers(), 4
    marks = b"".join(mark_of(numbers.next(1_000), rate) for _ in range(64_000))
    marked, weights = tally(marks)

    assert set(weights) == {16}
    assert 0.9 < weights.sum() / 64_000 < 1.1
    assert int(marked.min()) >= number_of(1_000)
    assert tally(None)[1].sum() == 0
    assert rate_of(10_000_000) == 11
    assert rate_of(100) == 0
