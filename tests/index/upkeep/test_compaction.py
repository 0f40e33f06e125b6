"""Compaction removes the entries of versions that left, and no lookup notices."""

import numpy as np
import pytest

from aggregator.domain import Article
from aggregator.index import keys
from aggregator.index.codec.postings import (
    SKETCH_REMAINDER_BYTES,
    compact_bucket,
    decode_numbers,
)
from aggregator.index.upkeep.compaction import Compactor
from aggregator.store.base import Store
from tests.index.helpers import seal
from tests.support.factories import core, edited, story
from tests.support.index_layout import encode_posting
from tests.support.store_steps import scan


async def entries(store: Store, tag: bytes) -> set[int]:
    """All article numbers in the buckets of a segment."""
    found: set[int] = set()
    for kind, remainder_bytes in ((b"b", 6), (b"s", SKETCH_REMAINDER_BYTES)):
        values = await store.read(await scan(store, tag + kind))
        found.update(*(decode_numbers(value or b"", remainder_bytes).tolist() for value in values))
    return found


async def run(compactor: Compactor, space: str, now_ms: int) -> None:
    """All steps in one space."""
    async for _ in compactor.steps(space, now_ms):
        pass


@pytest.mark.integration
async def test_compaction_removes_dead_versions_and_keeps_live_ones(store: Store) -> None:
    """Versions deleted or updated before and after the seal are removed; all others are still found."""
    newsroom = core(store)
    for i in range(6):
        await newsroom.post(f"a{i}", story(i))
    await newsroom.ingest.delete("a0")
    await newsroom.post("a1", story(11))
    await seal(newsroom)
    await newsroom.ingest.delete("a2")
    await newsroom.post("a3", story(13))
    (space,) = newsroom.index.spaces
    tag = keys.tag(space, 0)
    live = {(await newsroom.index.articles.get(id_)).record.number for id_ in ("a1", "a4", "a5")}
    assert len(await entries(store, tag)) == 7

    compactor = Compactor(newsroom.index)
    await run(compactor, space, newsroom.clock())

    assert await entries(store, tag) == live
    assert not await scan(store, tag + keys.DEAD_NUMBERS)
    assert compactor.entries_removed > 4 * 7
    for id_, text in (("a1", 11), ("a3", 13), ("a4", 4), ("a5", 5)):
        match = await newsroom.ingest.submit(Article(id="p", text=story(text), lang="en"), dry_run=True)
        assert match.outcome.match is not None
        assert match.outcome.match.id == id_
    for text in (0, 1, 2, 3):
        probe = Article(id="p", text=edited(story(text), 5), lang="en")
        assert (await newsroom.ingest.submit(probe, dry_run=True)).outcome.match is None


@pytest.mark.integration
async def test_compaction_resumes_in_another_process(store: Store) -> None:
    """It resumes where the first process stopped, and a finished run is not repeated on the same day."""
    newsroom = core(store)
    await newsroom.post("a", story(1))
    await seal(newsroom)
    (space,) = newsroom.index.spaces
    first = Compactor(newsroom.index, keys_per_chunk=10_000)
    steps = first.steps(space, newsroom.clock())
    for _ in range(20):
        await anext(steps)
    await steps.aclose()  # type: ignore[attr-defined]

    other = Compactor(core(store).index, keys_per_chunk=10_000)
    await run(other, space, newsroom.clock())
    assert other.buckets_rewritten > 0
    assert first.buckets_rewritten + other.buckets_rewritten <= 4 + 8 + 12

    idle = Compactor(core(store).index)
    await run(idle, space, newsroom.clock())
    assert idle.buckets_rewritten == 0


def test_compact_bucket() -> None:
    """Entries below the floor and of dead numbers are removed; an unaffected bucket is returned as it is."""
    bucket = b"".join(encode_posting(7, n, 6) for n in (3, 5, 9, 11, 5))
    none, dead = np.array([], np.uint64), np.array([5, 5, 10], np.uint64)

    assert compact_bucket(bucket, 6, 0, none) is bucket
    assert compact_bucket(bucket, 6, 4, dead) == encode_posting(7, 9, 6) + encode_posting(7, 11, 6)
    assert compact_bucket(bucket, 6, 12, none) == b""
    assert compact_bucket(b"", 6, 0, dead) == b""
