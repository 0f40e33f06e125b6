"""Statistics of a space: its articles are counted up to 2,000, beyond that estimated from a sample."""

from collections.abc import Sequence

import pytest

from aggregator.background.tasks import measure_space
from aggregator.domain import Article, article_number_at
from aggregator.index import Index, keys
from aggregator.index.blocks import PLAN
from aggregator.index.codec.postings import NUMBER_BYTES
from aggregator.index.snapshot import SketchWidth
from aggregator.index.upkeep.spaces import PROBED_RECORDS
from aggregator.store.base import Put, Store
from aggregator.store.memory import MemoryStore
from tests.support.factories import core, story


async def test_articles_are_counted_exactly_and_deletions_do_not_add(store: Store) -> None:
    """A new version replaces the former one; a deletion and the entry that it leaves count nothing."""
    newsroom = core(store)
    for n in (*range(12), 3, 4):
        text = story(n, 12) + " Again." * n
        await newsroom.ingest.submit(Article(id=f"a{n}", text=text, lang="eo"))
    for n in range(5):
        await newsroom.ingest.delete(f"a{n}")
    await newsroom.ingest.submit(Article(id="a7", text=story(70, 12), lang="eo"))

    found = await measure_space(newsroom.index, newsroom.index.spaces[0])

    assert (found.articles, found.segments) == (7, 1)
    assert found.oldest_ms is not None


async def fill(index: Index, count: int, *, with_record: int) -> None:
    """Buckets with ``count`` articles, of which each ``with_record``-th has a record."""
    (space,) = index.spaces
    tag = keys.tag(space, 0)
    writes = [Put(tag + keys.VERSION, b"1")]
    for n in range(count):
        number = article_number_at(1_000_000 + n)
        entry = bytes(PLAN.remainder_bytes) + number.to_bytes(NUMBER_BYTES, "little")
        writes.append(Put(keys.block_bucket(tag, 0, n % 65_536), entry))
        if n % with_record == 0:
            writes.append(Put(keys.record(space, number), b"record"))
    await index.store.put(writes)


@pytest.mark.parametrize(("count", "with_record"), [(2_000, 1), (1_999, 3), (20_000, 3)])
async def test_counts_are_exact_on_small_stores(store: Store, count: int, with_record: int) -> None:
    """Above, the sample is within 10 %."""
    newsroom = core(store)
    await fill(newsroom.index, count, with_record=with_record)
    stored = -(-count // with_record)

    found = await measure_space(newsroom.index, newsroom.index.spaces[0])

    assert abs(found.articles - stored) <= (0 if count <= PROBED_RECORDS else stored // 10)
    assert found.oldest_ms == 1_000_000


class CountingStore(MemoryStore):
    """Counts the keys that are read."""

    keys_read = 0

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """As of the memory store."""
        self.keys_read += len(keys)
        return await super().read(keys)


async def test_an_empty_space_is_not_read_bucket_by_bucket() -> None:
    """Most languages have no articles; their buckets would be 65,536 reads each minute."""
    store = CountingStore()
    newsroom = core(store)

    found = await measure_space(newsroom.index, newsroom.index.spaces[0])

    assert (found.articles, found.oldest_ms) == (0, None)
    assert store.keys_read < 100


async def test_the_width_of_sketch_buckets_is_that_of_the_segment(store: Store) -> None:
    """Also while a rehash runs."""
    newsroom = core(store)
    (space,) = newsroom.index.spaces
    await newsroom.index.store.put([Put(keys.tag(space, 0) + keys.WIDTH, b"19>20")])

    found = await measure_space(newsroom.index, space)

    assert found.sketch_width == SketchWidth(20, 19)
