"""What outlived its retention goes, frozen segments become compact, and no look-up notices."""

import numpy as np
import pytest

from aggregator.domain import Article
from aggregator.errors import Expired, NotFound
from aggregator.index import keys
from aggregator.index.codec.postings import (
    SKETCH_REMAINDER_BYTES,
    compact_bucket,
    decode_numbers,
    encode_posting,
)
from aggregator.index.compaction import Compactor
from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore
from tests.support.factories import Clock, Core, core, edited, story

DAY_MS = 86_400_000


async def seal(newsroom: Core) -> None:
    """Close the writable segment."""
    (space,) = newsroom.index.spaces
    segments = newsroom.index.segments
    await segments.seal(space, (await segments.stack(space)).last, newsroom.clock())


async def entries(store: Store, tag: bytes) -> set[int]:
    """All numbers in the buckets of a segment."""
    found: set[int] = set()
    for kind, rest_bytes in ((b"b", 6), (b"s", SKETCH_REMAINDER_BYTES)):
        values = await store.read(await store.scan(tag + kind))
        found.update(*(decode_numbers(value or b"", rest_bytes).tolist() for value in values))
    return found


async def test_compaction_removes_what_left_and_keeps_what_is_there(store: Store) -> None:
    """Versions that were deleted or updated, before the seal and after it; everything else is still found."""
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
    live = {(await newsroom.index.get(id_)).record.number for id_ in ("a1", "a4", "a5")}
    assert len(await entries(store, tag)) == 7

    upkeep = Compactor(newsroom.index)
    await upkeep.run(newsroom.clock())

    assert await entries(store, tag) == live
    assert not await store.scan(keys.dead_numbers(tag))
    assert upkeep.counters.entries_removed > 4 * 7
    for id_, text in (("a1", 11), ("a3", 13), ("a4", 4), ("a5", 5)):
        match = await newsroom.ingest.submit(Article(id="p", text=story(text), lang="en"), dry_run=True)
        assert match.outcome.match is not None
        assert match.outcome.match.id == id_
    for text in (0, 1, 2, 3):
        probe = Article(id="p", text=edited(story(text), 5), lang="en")
        assert (await newsroom.ingest.submit(probe, dry_run=True)).outcome.match is None


async def test_compaction_goes_on_where_it_was_left(store: Store) -> None:
    """In another process too; and a finished round is not begun again the same day."""
    newsroom = core(store)
    await newsroom.post("a", story(1))
    await seal(newsroom)
    (space,) = newsroom.index.spaces
    begun = Compactor(newsroom.index, keys_per_chunk=10_000)
    work = begun.steps(space, newsroom.clock())
    for _ in range(20):
        await anext(work)
    await work.aclose()  # type: ignore[attr-defined]

    other = Compactor(core(store).index, keys_per_chunk=10_000)
    await other.run(newsroom.clock())
    assert other.counters.buckets_rewritten > 0
    assert begun.counters.buckets_rewritten + other.counters.buckets_rewritten <= 4 + 8 + 12

    idle = Compactor(core(store).index)
    await idle.run(newsroom.clock())
    assert idle.counters.buckets_rewritten == 0


async def test_a_segment_below_the_floor_is_dropped_as_a_whole(store: Store) -> None:
    """Its keys go, what came later stays; a stream reader that was away goes on behind it."""
    newsroom = core(store, retention_ms=80 * DAY_MS)
    await newsroom.post("a", story(1))
    _, away = await newsroom.index.read_stream({}, 10)
    await newsroom.post("b", story(2))
    await seal(newsroom)
    newsroom.clock.now_ms += 50 * DAY_MS
    await newsroom.post("c", story(3))
    newsroom.clock.now_ms += 35 * DAY_MS
    (space,) = newsroom.index.spaces
    other = core(store, retention_ms=80 * DAY_MS, clock=newsroom.clock)
    await other.index.segments.stack(space)

    upkeep = Compactor(newsroom.index)
    await upkeep.run(newsroom.clock())

    tag = keys.tag(space, 0)
    assert await store.scan(tag) == [keys.sealed(tag)]
    assert upkeep.counters.segments_dropped == 1
    assert (await newsroom.index.segments.stack(space)).tags == (keys.tag(space, 1),)
    assert (await other.index.get("c")).outcome.verdict == "new"
    with pytest.raises(NotFound):
        await other.index.get("a")
    items, _ = await newsroom.index.read_stream(away, 10)
    assert [item.id for item in items] == ["c"]


async def test_the_floor_never_sinks() -> None:
    """Who raises the retention later does not get back half of what was forgotten."""
    store = MemoryStore()
    newsroom = core(store, retention_ms=8 * DAY_MS)
    await newsroom.post("a", story(1))
    newsroom.clock.now_ms += 10 * DAY_MS
    await Compactor(newsroom.index).run(newsroom.clock())
    with pytest.raises(Expired, match="expired"):
        await newsroom.index.get("a")

    kept_for_ever = core(store, clock=newsroom.clock)
    probe = Article(id="p", text=edited(story(1), 2), lang="en")
    assert (await kept_for_ever.ingest.submit(probe)).outcome.verdict == "new"


async def test_a_segment_is_sealed_when_it_spans_a_period_of_retention() -> None:
    """Full or not, so that it can be dropped as a whole."""
    newsroom = core(MemoryStore(), retention_ms=8 * DAY_MS, segment_max_articles=100)
    await newsroom.post("a", story(1))
    (space,) = newsroom.index.spaces
    await Compactor(newsroom.index).run(newsroom.clock())
    assert (await newsroom.index.segments.stack(space)).last == 0

    newsroom.clock.now_ms += 8 * DAY_MS
    await Compactor(newsroom.index).run(newsroom.clock())
    assert (await newsroom.index.segments.stack(space)).last == 1


async def test_an_expired_original_comes_back_and_leads_its_copies() -> None:
    """Its copies still name it; posted again it is new, not a copy of itself, and they are its copies."""
    newsroom = core(MemoryStore(Clock()), retention_ms=80 * DAY_MS)
    await newsroom.post("a", story(1))
    newsroom.clock.now_ms += 60 * DAY_MS
    await newsroom.post("b", edited(story(1), 2))
    newsroom.clock.now_ms += 25 * DAY_MS
    await Compactor(newsroom.index).run(newsroom.clock())
    with pytest.raises(NotFound):
        await newsroom.index.get("a")

    third = (await newsroom.post("c", edited(story(1), 3))).outcome.match
    assert third is not None
    assert (third.id, third.canonical_id) == ("b", "a")
    again = await newsroom.post("a", story(1))
    assert (again.outcome.verdict, again.stored) == ("new", True)
    assert [r.id for r in await newsroom.index.group_members("c")] == ["a", "b", "c"]
    await newsroom.ingest.delete("a")
    assert [r.id for r in await newsroom.index.group_members("c")] == ["b", "c"]


async def test_an_exact_copy_is_found_as_long_as_it_is_kept() -> None:
    """It outlives the entries it leans on by nothing: it has its own, or they stay for as long."""
    for gap_days in (1, 40):
        newsroom = core(MemoryStore(), retention_ms=80 * DAY_MS)
        await newsroom.post("a", story(1))
        newsroom.clock.now_ms += gap_days * DAY_MS - 10
        await newsroom.post("b", story(1).upper())
        newsroom.clock.now_ms += 80 * DAY_MS - 10
        await Compactor(newsroom.index).run(newsroom.clock())

        assert (await newsroom.post("c", story(1))).outcome.match is not None


async def test_the_stream_keeps_what_the_detector_looks_back_to(store: Store) -> None:
    """Entries have the store's own time; nothing that is younger than eight days goes."""
    newsroom = core(store)
    for i in range(3):
        await newsroom.post(f"a{i}", story(i))
    (space,) = newsroom.index.spaces
    (((first, _), *_),) = await store.stream_read([keys.stream(keys.tag(space, 0))], [b""], 3)
    began_ms = int(first.split(b"-")[0])

    await Compactor(newsroom.index).run(began_ms + 8 * DAY_MS)
    assert len((await newsroom.index.read_stream({}, 10))[0]) == 3
    await Compactor(newsroom.index).run(began_ms + 9 * DAY_MS)
    assert (await newsroom.index.read_stream({}, 10))[0] == []


def test_what_is_kept_of_a_bucket() -> None:
    """Neither below the floor nor dead; untouched when nothing goes."""
    bucket = b"".join(encode_posting(7, n, 6) for n in (3, 5, 9, 11, 5))
    none, dead = np.array([], np.uint64), np.array([5, 5, 10], np.uint64)

    assert compact_bucket(bucket, 6, 0, none) is bucket
    assert compact_bucket(bucket, 6, 4, dead) == encode_posting(7, 9, 6) + encode_posting(7, 11, 6)
    assert compact_bucket(bucket, 6, 12, none) == b""
    assert compact_bucket(b"", 6, 0, dead) == b""
