"""Retention: articles expire, segments are sealed and dropped, and streams are trimmed."""

import pytest

from aggregator.domain import Article
from aggregator.errors import Expired, NotFound
from aggregator.index import keys
from aggregator.index.upkeep.maintenance import SegmentMaintenance
from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore
from aggregator.time_units import DAY_MS
from tests.index.helpers import seal
from tests.support.factories import Clock, core, edited, story


async def test_a_segment_below_the_floor_is_dropped_as_a_whole(store: Store) -> None:
    """Its keys are deleted and later articles stay; a stream reader that was away continues after it."""
    newsroom = core(store, retention_ms=80 * DAY_MS)
    await newsroom.post("a", story(1))
    _, away = await newsroom.index.stream.read({}, 10)
    await newsroom.post("b", story(2))
    await seal(newsroom)
    newsroom.clock.now_ms += 50 * DAY_MS
    await newsroom.post("c", story(3))
    newsroom.clock.now_ms += 35 * DAY_MS
    (space,) = newsroom.index.spaces
    other = core(store, retention_ms=80 * DAY_MS, clock=newsroom.clock)
    await other.index.segments.stack(space)

    maintenance = SegmentMaintenance(newsroom.index)
    await maintenance.run(newsroom.clock())

    tag = keys.tag(space, 0)
    assert await store.scan(tag) == [keys.sealed(tag)]
    assert maintenance.retention.segments_dropped == 1
    assert (await newsroom.index.segments.stack(space)).tags == (keys.tag(space, 1),)
    assert (await other.index.articles.get("c")).outcome.verdict == "new"
    with pytest.raises(NotFound):
        await other.index.articles.get("a")
    items, _ = await newsroom.index.stream.read(away, 10)
    assert [item.id for item in items] == ["c"]


async def test_the_floor_never_falls() -> None:
    """Articles that expired stay expired when the retention period is extended later."""
    store = MemoryStore()
    newsroom = core(store, retention_ms=8 * DAY_MS)
    await newsroom.post("a", story(1))
    newsroom.clock.now_ms += 10 * DAY_MS
    await SegmentMaintenance(newsroom.index).run(newsroom.clock())
    with pytest.raises(Expired, match="expired"):
        await newsroom.index.articles.get("a")

    without_retention = core(store, clock=newsroom.clock)
    probe = Article(id="p", text=edited(story(1), 2), lang="en")
    assert (await without_retention.ingest.submit(probe)).outcome.verdict == "new"


async def test_a_segment_that_spans_the_retention_period_is_sealed() -> None:
    """It is sealed although it is not full, so that it can be dropped as a whole."""
    newsroom = core(MemoryStore(), retention_ms=8 * DAY_MS, segment_max_articles=100)
    await newsroom.post("a", story(1))
    (space,) = newsroom.index.spaces
    await SegmentMaintenance(newsroom.index).run(newsroom.clock())
    assert (await newsroom.index.segments.stack(space)).last == 0

    newsroom.clock.now_ms += 8 * DAY_MS
    await SegmentMaintenance(newsroom.index).run(newsroom.clock())
    assert (await newsroom.index.segments.stack(space)).last == 1


async def test_an_expired_original_that_is_posted_again_is_canonical() -> None:
    """Its duplicates still point to it; posted again it is new, and they are its duplicates."""
    newsroom = core(MemoryStore(Clock()), retention_ms=80 * DAY_MS)
    await newsroom.post("a", story(1))
    newsroom.clock.now_ms += 60 * DAY_MS
    await newsroom.post("b", edited(story(1), 2))
    newsroom.clock.now_ms += 25 * DAY_MS
    await SegmentMaintenance(newsroom.index).run(newsroom.clock())
    with pytest.raises(NotFound):
        await newsroom.index.articles.get("a")

    third = (await newsroom.post("c", edited(story(1), 3))).outcome.match
    assert third is not None
    assert (third.id, third.canonical_id) == ("b", "a")
    again = await newsroom.post("a", story(1))
    assert (again.outcome.verdict, again.stored) == ("new", True)
    assert [r.id for r in await newsroom.index.articles.group_members("c")] == ["a", "b", "c"]
    await newsroom.ingest.delete("a")
    assert [r.id for r in await newsroom.index.articles.group_members("c")] == ["b", "c"]


async def test_an_exact_copy_is_found_until_it_expires() -> None:
    """Its own index entries, or those it shares, are kept as long."""
    for gap_days in (1, 40):
        newsroom = core(MemoryStore(), retention_ms=80 * DAY_MS)
        await newsroom.post("a", story(1))
        newsroom.clock.now_ms += gap_days * DAY_MS - 10
        await newsroom.post("b", story(1).upper())
        newsroom.clock.now_ms += 80 * DAY_MS - 10
        await SegmentMaintenance(newsroom.index).run(newsroom.clock())

        assert (await newsroom.post("c", story(1))).outcome.match is not None


async def test_stream_entries_are_kept_for_eight_days(store: Store) -> None:
    """Their age is measured by the clock of the store."""
    newsroom = core(store)
    for i in range(3):
        await newsroom.post(f"a{i}", story(i))
    (space,) = newsroom.index.spaces
    (((first, _), *_),) = await store.stream_read([keys.stream(keys.tag(space, 0))], [b""], 3)
    began_ms = int(first.split(b"-")[0])

    await SegmentMaintenance(newsroom.index).run(began_ms + 8 * DAY_MS)
    assert len((await newsroom.index.stream.read({}, 10))[0]) == 3
    await SegmentMaintenance(newsroom.index).run(began_ms + 9 * DAY_MS)
    assert (await newsroom.index.stream.read({}, 10))[0] == []
