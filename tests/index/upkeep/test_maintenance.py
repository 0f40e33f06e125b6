"""The keys of expired articles are removed without times to live, and nothing else is."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aggregator.domain import Article, article_number_at
from aggregator.errors import Expired, NotFound
from aggregator.index import keys
from aggregator.index.upkeep.maintenance import ExpirySweep, SegmentMaintenance
from aggregator.store.base import Put, Store
from aggregator.store.memory import MemoryStore
from aggregator.time_units import DAY_MS, format_minute
from tests.index.helpers import seal
from tests.support.factories import START_MS, Clock, core, edited, story
from tests.support.store_steps import scan

PERIOD_MS = 80 * DAY_MS
EVENT_PREFIX = b"{events}n:"


async def run_all(job: ExpirySweep | SegmentMaintenance, trusted_ms: int) -> None:
    """All steps."""
    async for _ in job.steps(trusted_ms):
        pass


async def test_no_key_of_an_article_has_a_time_to_live() -> None:
    """Not after posts, updates, copies, deletes: a store whose clock leaps by ten years keeps all of them."""
    clock = Clock()
    store = MemoryStore(clock)
    newsroom = core(store, retention_ms=PERIOD_MS, clock=clock)
    for id_, seed in (("a", 1), ("b", 1), ("a", 2), ("c", 3), ("d", 3), ("e", 4)):
        await newsroom.post(id_, story(seed))
    await newsroom.ingest.delete("c")
    before = await scan(store, b"")

    clock.now_ms += 3650 * DAY_MS
    assert await scan(store, b"") == before


async def test_records_and_texts_of_expired_articles_are_deleted(store: Store) -> None:
    """One grace period after the floor has passed them, in all spaces; younger ones stay."""
    newsroom = core(store, retention_ms=PERIOD_MS)
    await newsroom.post("old", story(1))
    newsroom.clock.now_ms += 50 * DAY_MS
    await newsroom.post("young", story(2))
    foreign = keys.record("de.1234", article_number_at(START_MS))
    await store.put([Put(foreign, b"of a model that is not served")])
    swept = ExpirySweep(newsroom.index)

    await run_all(swept, START_MS + PERIOD_MS + DAY_MS)
    assert await store.read([foreign]) != [None]
    await run_all(swept, START_MS + PERIOD_MS + 2 * DAY_MS + 10)

    assert await store.read([foreign]) == [None]
    young = (await newsroom.index.articles.get("young")).record
    assert await scan(store, keys.RECORD_PREFIX) == [keys.record(young.space, young.number)]
    assert len(await scan(store, keys.TEXT_PREFIX)) == 1


async def test_bindings_and_states_of_frozen_segments_are_deleted(store: Store) -> None:
    """Those of the writable segment stay; it spans a period at most."""
    newsroom = core(store, retention_ms=PERIOD_MS)
    await newsroom.post("old", story(1))
    await newsroom.post("copy", story(1).upper())
    await newsroom.post("young", story(2))
    (space,) = newsroom.index.spaces
    frozen = keys.tag(space, 0)
    await seal(newsroom)
    await newsroom.post("other", story(3))

    await run_all(ExpirySweep(newsroom.index), START_MS + PERIOD_MS + 3 * DAY_MS)

    assert [key for key in await scan(store, frozen) if keys.kind_of(key) in (b"i", b"p")] == []
    writable = await scan(store, keys.tag(space, 1))
    assert [key for key in writable if keys.kind_of(key) == b"i"] == [
        keys.tag(space, 1) + keys.binding("other")
    ]


async def test_keys_of_other_packages_have_their_own_retention(store: Store) -> None:
    """Also where articles are kept indefinitely."""
    newsroom = core(store)
    await newsroom.post("a", story(1))
    old, young = (EVENT_PREFIX + b"%016x" % article_number_at(START_MS + age) for age in (0, 2))
    await store.put([Put(old, b"e1"), Put(young, b"e2")])

    await run_all(ExpirySweep(newsroom.index, {EVENT_PREFIX: DAY_MS}), START_MS + DAY_MS + 1)

    assert await scan(store, EVENT_PREFIX) == [young]
    assert (await newsroom.index.articles.get("a")).record.id == "a"


async def test_it_runs_once_per_grace_period() -> None:
    """A scan of the whole store each time, as part of maintenance."""
    store = MemoryStore(Clock())
    maintenance = SegmentMaintenance(core(store, retention_ms=PERIOD_MS).index)
    scans: list[bytes] = []
    original = store.scan_batches

    def counted(prefix: bytes) -> object:
        scans.append(prefix)
        return original(prefix)

    store.scan_batches = counted  # type: ignore[method-assign,assignment]
    for hours in (0, 1, 23, 24, 25):
        await run_all(maintenance, START_MS + hours * DAY_MS // 24)

    assert scans == [b"", b""]


async def test_a_long_compaction_delays_neither_expiry_nor_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """The floors of all spaces rise first, and again meanwhile; the sweep goes on beside it."""
    store = MemoryStore(Clock())
    newsroom = core(store, retention_ms=8 * DAY_MS)
    await newsroom.post("a", story(1))
    maintenance = SegmentMaintenance(newsroom.index)

    async def endless(space: str, trusted_ms: int) -> AsyncIterator[None]:
        while True:
            yield

    monkeypatch.setattr(maintenance.compactor, "steps", endless)
    steps, swept = maintenance.steps(START_MS + 12 * DAY_MS), 0
    while await scan(store, keys.RECORD_PREFIX):
        await anext(steps)
        swept += 1
        assert swept < 100
    with pytest.raises(Expired):
        await newsroom.index.articles.get("a")
    newsroom.clock.now_ms += 12 * DAY_MS
    await newsroom.post("b", story(2))
    await maintenance.expire(START_MS + 30 * DAY_MS)
    with pytest.raises(Expired):
        await newsroom.index.articles.get("b")


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
    await run_all(maintenance, newsroom.clock())

    tag = keys.tag(space, 0)
    assert await scan(store, tag) == [tag + keys.SEALED]
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
    await run_all(SegmentMaintenance(newsroom.index), newsroom.clock())
    with pytest.raises(Expired, match="expired"):
        await newsroom.index.articles.get("a")

    without_retention = core(store, clock=newsroom.clock)
    probe = Article(id="p", text=edited(story(1), 2), lang="en")
    assert (await without_retention.ingest.submit(probe)).outcome.verdict == "new"


async def test_a_shortened_retention_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Once, from the oldest article on; a first start, a young store, empty indexes and time say nothing."""
    store = MemoryStore()
    newsroom = core(store, retention_ms=40 * DAY_MS)
    await newsroom.post("a", story(1))
    since = format_minute(newsroom.clock())
    for _ in range(3):
        await run_all(SegmentMaintenance(newsroom.index), newsroom.clock())
        newsroom.clock.now_ms += DAY_MS // 2

    for days_later, retention_days in ((0, 2), (13, 10)):
        newsroom.clock.now_ms += days_later * DAY_MS
        assert caplog.messages == []
        shortened = core(store, retention_ms=retention_days * DAY_MS, clock=newsroom.clock)
        for _ in range(2):
            await run_all(SegmentMaintenance(shortened.index), newsroom.clock())
    (message,) = caplog.messages
    assert f"what arrived from {since} to " in message and message.endswith("expires; retention_days is 10")


async def test_the_articles_of_a_day_that_expire_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Although the floor rises more often than once a day."""
    caplog.set_level("INFO")
    newsroom = core(MemoryStore(), retention_ms=10 * DAY_MS)
    await newsroom.post("a", story(1))
    (space,) = newsroom.index.spaces
    for _ in range(8):  # of 6 hours
        await run_all(SegmentMaintenance(newsroom.index), newsroom.clock())
        newsroom.clock.now_ms += DAY_MS // 4

    said = [message for message in caplog.messages if message.endswith(" has expired")]
    assert len(said) == 2
    assert said[0].startswith(f"{space}: what arrived before ")


async def test_a_segment_that_spans_the_retention_period_is_sealed() -> None:
    """It is sealed although it is not full, so that it can be dropped as a whole."""
    newsroom = core(MemoryStore(), retention_ms=8 * DAY_MS, segment_max_articles=100)
    await newsroom.post("a", story(1))
    (space,) = newsroom.index.spaces
    await run_all(SegmentMaintenance(newsroom.index), newsroom.clock())
    assert (await newsroom.index.segments.stack(space)).last == 0

    newsroom.clock.now_ms += 8 * DAY_MS
    await run_all(SegmentMaintenance(newsroom.index), newsroom.clock())
    assert (await newsroom.index.segments.stack(space)).last == 1


async def test_an_expired_original_that_is_posted_again_is_canonical() -> None:
    """Its duplicates still point to it; posted again it is new, and they are its duplicates."""
    newsroom = core(MemoryStore(Clock()), retention_ms=80 * DAY_MS)
    await newsroom.post("a", story(1))
    newsroom.clock.now_ms += 60 * DAY_MS
    await newsroom.post("b", edited(story(1), 2))
    newsroom.clock.now_ms += 25 * DAY_MS
    await run_all(SegmentMaintenance(newsroom.index), newsroom.clock())
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
        await run_all(SegmentMaintenance(newsroom.index), newsroom.clock())

        assert (await newsroom.post("c", story(1))).outcome.match is not None


async def test_stream_entries_are_kept_for_eight_days(store: Store) -> None:
    """Their age is measured by the clock of the store."""
    newsroom = core(store)
    for i in range(3):
        await newsroom.post(f"a{i}", story(i))
    (space,) = newsroom.index.spaces
    (((first, _), *_),) = await store.stream_read([keys.tag(space, 0) + keys.STREAM], [b""], 3)
    began_ms = int(first.split(b"-")[0])

    await run_all(SegmentMaintenance(newsroom.index), began_ms + 8 * DAY_MS)
    assert len((await newsroom.index.stream.read({}, 10))[0]) == 3
    await run_all(SegmentMaintenance(newsroom.index), began_ms + 9 * DAY_MS)
    assert (await newsroom.index.stream.read({}, 10))[0] == []
