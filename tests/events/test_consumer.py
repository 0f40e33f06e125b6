"""Event detection over a store: nothing is lost, nothing is published twice, every replica can read it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from aggregator.domain import Article, StreamItem, article_number_at
from aggregator.errors import StoreUnavailable
from aggregator.events.consumer import CHECKPOINT_INTERVAL_MS, STATE_KEY, DetectorRunner
from aggregator.events.detection.detector import BurstDetector
from aggregator.events.detection.items import MAX_PER_MINUTE
from aggregator.events.detection.model import BurstRule, DetectedEvent, LearningStatus
from aggregator.events.detection.numbers import items_of
from aggregator.events.detection.top_stories import TopStory
from aggregator.events.event import Event
from aggregator.events.repository import CHANGES_KEY, EVENT_RETENTION_MS, POSITION_KEY, EventRepository
from aggregator.events.selection import EventFilter
from aggregator.index.article_stream import ArticleStream
from aggregator.store.base import Put, Store, Transaction
from aggregator.store.memory import MemoryStore
from tests.support import factories

MINUTE_MS = 60_000
START_MS = 20_000 * 86_400_000
RULE = BurstRule()


class FakeIndex(ArticleStream):
    """An article stream in memory: one stream, positions are counts."""

    def __init__(self) -> None:
        self.items: list[StreamItem] = []

    def add(self, minute: float, words: str = "harbour bridge collapse", **fields: object) -> StreamItem:
        count = len(self.items)
        at_ms = START_MS + round(minute * MINUTE_MS)
        item = StreamItem(
            number=article_number_at(at_ms, count),
            first_version=article_number_at(at_ms, count),
            id=f"a{count}",
            verdict="new",
            arrived_ms=at_ms,
            title=f"{words} report{count}",
            source=f"outlet{count % 3}.example",
            terms=tuple((w, 0.5) for w in f"{words} own{count} side{count}".split()),
        )
        self.items.append(replace(item, **fields))  # type: ignore[arg-type]  # fields of StreamItem
        return self.items[-1]

    def burst(self, count: int = 16, start: float = 0.0, sources: int = 3) -> None:
        for i in range(count):
            self.add(start + i, source=f"outlet{i % sources}.example")

    async def read(
        self, positions: Mapping[bytes, bytes], count: int, *, with_story_terms: bool = True
    ) -> tuple[list[StreamItem], dict[bytes, bytes]]:
        start = int(positions.get(b"s", b"0"))
        read = self.items[start : start + count]
        return read, {**positions, b"s": b"%d" % (start + len(read))} if read else dict(positions)


def at(minute: float) -> int:
    return START_MS + round(minute * MINUTE_MS)


def detector_over(
    store: Store,
    rule: BurstRule = RULE,
    *,
    checkpoint_interval_ms: int = CHECKPOINT_INTERVAL_MS,
    retention_ms: int = EVENT_RETENTION_MS,
) -> DetectorRunner:
    return DetectorRunner(
        EventRepository(store, retention_ms=retention_ms),
        rule,
        checkpoint_interval_ms=checkpoint_interval_ms,
    )


@pytest.fixture
def index() -> FakeIndex:
    return FakeIndex()


@pytest.fixture
def repository(store: Store) -> EventRepository:
    """What any replica reads."""
    return EventRepository(store)


async def published(repository: EventRepository) -> list[tuple[str, str]]:
    """(kind, event id) of the whole change stream."""
    return [(record.kind, record.event_id) for _, record in await repository.changes(count=1000)]


async def test_a_burst_is_seen_by_every_replica(
    store: Store, repository: EventRepository, index: FakeIndex
) -> None:
    """The leader polls; another replica lists events, gets one, and finds the event of an article."""
    index.burst()

    (change,) = await detector_over(store).poll(index, at(16))

    (event,) = await repository.list_events()
    assert event == replace(Event.of(change.event), revision=1) == await repository.get(event.id)
    assert isinstance(event, Event) and event.size == 16
    first = index.items[0].first_version
    assert await repository.event_ids_of([first, 12345]) == {first: event.id}
    assert await published(repository) == [("fired", event.id)]


async def test_lists_are_filtered_and_ordered(
    store: Store, repository: EventRepository, index: FakeIndex
) -> None:
    """By status and time, the most recently seen first, up to a limit."""
    index.burst()
    for i in range(20):
        index.add(300 + i, "election result capital")
    await detector_over(store).poll(index, at(320))

    newest, oldest = await repository.list_events()
    assert newest.last_seen_ms > oldest.last_seen_ms
    assert (newest.status, oldest.status) == ("breaking", "closed")
    assert await repository.list_events(status="closed") == [oldest]
    assert await repository.list_events(since_ms=at(310)) == [newest]
    assert await repository.list_events(limit=1) == [newest]


async def test_a_crashed_leader_is_replaced_without_loss_or_repetition(
    store: Store, repository: EventRepository, index: FakeIndex
) -> None:
    """A new process at each tick finds the same events as a single process, and publishes each once."""
    single = detector_over(MemoryStore())
    for i in range(40):
        index.add(i)
        await single.poll(index, at(i + 0.5))
    growing = FakeIndex()
    for i, item in enumerate(index.items):
        growing.items.append(item)
        await detector_over(store, checkpoint_interval_ms=5 * MINUTE_MS).poll(growing, at(i + 0.5))

    await detector_over(store).poll(growing, at(60))
    await single.poll(index, at(60))
    assert await repository.list_events() == await single.repository.list_events()
    assert [kind for kind, _ in await published(repository)].count("fired") == 1


async def test_of_two_leaders_only_one_commits(
    store: Store, repository: EventRepository, index: FakeIndex
) -> None:
    """A leader paused past its lease has an old position: its commit fails, its next tick is right."""
    index.burst(10)
    paused, active = detector_over(store), detector_over(store)
    await paused.poll(index, at(10))
    index.burst(10, start=10)
    assert await active.poll(index, at(20))

    assert await poll_with_old_position(store, paused, index, at(20)) == []
    await paused.poll(index, at(21))
    index.burst(5, start=22)
    assert [c.kind for c in await paused.poll(index, at(40))] == ["updated"]

    (event,) = await repository.list_events()
    assert event.size == 25
    assert [kind for kind, _ in await published(repository)].count("fired") == 1


async def poll_with_old_position(
    store: Store, detector: DetectorRunner, index: FakeIndex, now_ms: int
) -> list[object]:
    """Poll as if the process had been stopped between reading the position and committing."""
    leader = detector._leader
    assert leader is not None
    known = leader.saved_position
    real_read = store.read

    async def read(keys: list[bytes]) -> list[bytes | None]:
        values = await real_read(keys)
        return [known, *values[1:]] if keys[0] == POSITION_KEY else values

    store.read = read  # type: ignore[method-assign, assignment]
    try:
        return list(await detector.poll(index, now_ms))
    finally:
        del store.read


async def test_between_checkpoints_only_alerts_are_written(index: FakeIndex) -> None:
    """A quiet stream costs one write in 10 s; an alert is saved immediately."""
    store = MemoryStore()
    detector = detector_over(store, checkpoint_interval_ms=10_000)
    saved = []
    for second in range(20):
        index.add(second / 60)
        await detector.poll(index, START_MS + second * 1000)
        saved.append((await store.read([POSITION_KEY]))[0])

    assert len(set(saved)) == 3  # at 0 s, at 10 s, and the alert of the 16th item
    assert (await detector.repository.list_events())[0].size == 16


async def test_the_learning_status_is_stored_with_each_checkpoint(index: FakeIndex) -> None:
    """So it survives a restart, and does not grow by waiting."""
    store = MemoryStore()
    detector = detector_over(store)
    assert await detector.repository.learning(at(0)) is None
    for hour in range(30):
        index.add(60 * hour, f"word{hour} more{hour}")
        await detector.poll(index, at(60 * hour))
    learned = await EventRepository(store).learning(at(60 * 29))
    assert learned is not None and learned.known_days == pytest.approx(30 / 24)
    assert detector.learning == learned

    restarted = detector_over(store)
    await restarted.poll(index, at(60 * 29))
    after_a_week = await restarted.repository.learning(at(60 * 24 * 9))

    assert restarted.learning == learned and after_a_week == LearningStatus(0.0)


async def test_an_orderly_stop_saves_a_checkpoint(index: FakeIndex) -> None:
    """The next leader resumes where this one stopped."""
    store = MemoryStore()
    detector = detector_over(store)
    index.burst(3)
    await detector.poll(index, at(3))
    index.burst(3, start=3.01)
    await detector.poll(index, at(3.05))

    await detector.save_checkpoint(at(3.1))

    follower = detector_over(store)
    await follower.poll(index, at(4))
    assert follower.items_read == 0


async def test_a_failed_commit_is_repeated_by_the_next_tick(index: FakeIndex) -> None:
    """The store becomes unavailable during a tick: the next tick publishes everything, once."""

    class Failing(MemoryStore):
        broken = True

        async def commit(self, transaction: Transaction) -> tuple[int, ...]:
            if self.broken:
                raise StoreUnavailable("The store is unavailable; try again.")
            return await super().commit(transaction)

    store = Failing()
    detector = detector_over(store)
    index.burst()
    with pytest.raises(StoreUnavailable):
        await detector.poll(index, at(16))
    store.broken = False

    assert [c.kind for c in await detector.poll(index, at(17))] == ["fired"]
    assert len(await published(detector.repository)) == 1


async def test_a_long_backlog_is_read_in_batches(index: FakeIndex) -> None:
    """A start after hours of downtime reads everything, each item at its own time."""
    for i in range(900):
        index.add(i, f"topic{i} place{i} person{i}")
    index.burst(16, start=900)
    detector = detector_over(MemoryStore())

    changes = await detector.poll(index, at(3000))

    assert [c.kind for c in changes] == ["fired", "closed"]
    assert changes[0].at_ms == at(915)
    assert detector.items_read == 916


async def test_polling_yields_to_other_tasks(index: FakeIndex) -> None:
    """Reading, the first work of a minute and the checkpoint yield to the event loop after each piece."""
    for i in range(60):
        index.add(i / 100, ("harbour bridge collapse", "orchard strike vote")[i % 2])
    index.add(3, "harbour bridge collapse")
    turns: list[int] = []
    runner = detector_over(MemoryStore())
    pieces = 0

    async def record_turns() -> None:
        while True:
            turns.append(runner.items_read)
            await asyncio.sleep(0)

    other = asyncio.create_task(record_turns())
    await runner.poll(index, at(4))
    other.cancel()
    detector = BurstDetector(RULE)
    for item in index.items:
        pieces += 1 + len(list(detector.advance_clock_steps(item.arrived_ms)))
        detector.observe(item, item.arrived_ms)
    pieces += len(list(detector.tick(at(4)))) + len(list(detector.dump_chunks()))

    assert len(turns) >= pieces


async def test_a_lost_state_is_rebuilt_without_new_alerts(
    store: Store, repository: EventRepository, index: FakeIndex
) -> None:
    """With a damaged state the stream is read again; known events are not published again."""
    index.burst()
    await detector_over(store).poll(index, at(16))
    await store.put([Put(STATE_KEY, b"damaged")])
    index.burst(5, start=17)

    await detector_over(store).poll(index, at(30))

    (event,) = await repository.list_events()
    assert event.size == 21
    assert [kind for kind, _ in await published(repository)].count("fired") == 1


async def test_another_rule_continues_at_the_same_position(index: FakeIndex) -> None:
    """New numbers apply from now on."""
    store = MemoryStore()
    index.burst(10)
    await detector_over(store).poll(index, at(10))
    index.add(11)

    lower = detector_over(store, BurstRule(items=10))
    assert [c.kind for c in await lower.poll(index, at(12))] == ["fired"]
    assert lower.items_read == 1


async def test_a_later_event_of_the_topic_joins_its_storyline_after_a_restart(
    store: Store, repository: EventRepository, index: FakeIndex
) -> None:
    """The entries are part of the checkpoint; another topic has its own storyline."""
    index.burst()
    await detector_over(store).poll(index, at(16))
    for i in range(16):
        index.add(14_700 + i)
        index.add(14_700 + i, "election result capital")
    await detector_over(store).poll(index, at(14_720))

    events = sorted(await repository.list_events(), key=lambda e: (e.detected_at_ms, e.id))

    assert len(events) == 3
    again = next(e for e in events[1:] if "harbour" in e.terms)
    other = next(e for e in events[1:] if "capital" in e.terms)
    assert events[0].story_id == events[0].id == again.story_id
    assert other.story_id == other.id
    assert [e.id for e in await repository.story_events(events[0].id)] == [events[0].id, again.id]


async def test_a_deleted_article_is_removed_from_its_event(
    store: Store, repository: EventRepository, index: FakeIndex
) -> None:
    """Neither its id nor its headline stays, whether the event is open or closed."""
    index.burst()
    detector = detector_over(store)
    await detector.poll(index, at(16))
    (event,) = await repository.list_events()
    index.add(17, kind="deleted", first_version=index.items[0].first_version, id="a0", title="", terms=())
    await detector.poll(index, at(17))
    (event,) = await repository.list_events()
    assert "a0" not in event.items and event.size == 15
    await detector.poll(index, at(600))
    (event,) = await repository.list_events()
    assert event.status == "closed"

    victim = event.items[-1]
    first = next(i.first_version for i in index.items if i.id == victim)
    index.add(601, kind="deleted", first_version=first, id=victim, title="", terms=())
    await detector.poll(index, at(601))

    (event,) = await repository.list_events()
    assert victim not in event.items and event.size == 14
    assert not event.title.endswith(victim.replace("a", "report"))
    change_payloads = [payload for _, payload in await store.stream_tail(CHANGES_KEY, 100)]
    assert b"report" not in b"".join(change_payloads)


@pytest.mark.parametrize("polls_between", [0, 1])
async def test_another_article_under_the_id_of_a_deleted_one_joins_the_event(
    store: Store, repository: EventRepository, index: FakeIndex, polls_between: int
) -> None:
    """A reused id is a deletion and an article, in one checkpoint or two."""
    index.burst(18)
    detector = detector_over(store)
    await detector.poll(index, at(18))
    index.add(19, kind="deleted", first_version=index.items[0].first_version, id="a0", title="", terms=())
    for _ in range(polls_between):
        await detector.poll(index, at(19))
    number = index.add(20, id="a0").number
    for minute in (20, 40):
        await detector.poll(index, at(minute))
        (event,) = await repository.list_events()
        assert items_of(event)["a0"].number == number and event.size == 18 and event.removed == ()


async def test_articles_of_a_merged_event_lead_to_the_surviving_one(
    store: Store, repository: EventRepository, index: FakeIndex
) -> None:
    """The lookup by article number follows the merge."""
    for i in range(20):
        index.add(i)
        index.add(i + 0.5, "ferry passengers rescued")
    for i in range(60):
        index.add(21 + i / 10, "harbour bridge collapse ferry passengers rescued")

    await detector_over(store).poll(index, at(30))

    absorbed = next(e for e in await repository.list_events() if e.merged_into)
    found = await repository.event_ids_of([item.first_version for item in index.items])
    assert set(found.values()) == {absorbed.merged_into}
    assert len(found) == 100


async def test_closed_events_expire(index: FakeIndex) -> None:
    """Retention counts from when they were last seen."""
    now_ms = at(16)
    store = MemoryStore(clock=lambda: now_ms)
    detector = detector_over(store, retention_ms=1000 * MINUTE_MS)
    index.burst()
    await detector.poll(index, at(16))
    await detector.poll(index, at(300))
    assert len(await detector.repository.list_events()) == 1

    index.burst(16, start=2000, sources=16)
    now_ms = at(2016)
    await detector.poll(index, now_ms)

    (event,) = await detector.repository.list_events()
    assert event.first_seen_ms == at(2000)
    assert await detector.repository.event_ids_of([index.items[0].first_version]) == {}


async def test_a_story_in_fragments_fires_with_the_tick() -> None:
    """Five stories within seconds, full texts of made-up words: each fires by the next minute."""
    room = factories.core(MemoryStore(), clock=factories.Clock(60_000 * 30_000_000))
    detector = detector_over(room.index.store, BurstRule())
    for round_ in range(5):
        subject = " ".join(factories.story(1000 + round_, 1).split()[:4])
        for n in range(20):
            text = f"{subject} {subject}. {factories.story(100 * round_ + n, 3)}"
            await room.ingest.submit(
                Article(
                    id=f"{round_}-{n}",
                    title=f"{subject} {n}",
                    text=text,
                    lang="eo",
                    source=f"outlet{n}.example",
                )
            )
        await detector.poll(room.index.stream, room.clock())

    assert room.clock.now_ms % 60_000 < 59_000, "a minute has passed; the test shows nothing"
    room.clock.now_ms += 60_000
    await detector.poll(room.index.stream, room.clock())
    assert len(await detector.repository.list_events()) == 5


def mixed_items(seed: int) -> list[StreamItem]:
    """Nine hours of two stories among other news; copies, late, early and undated items, clock jumps."""
    rng, source = random.Random(seed), FakeIndex()
    for i in range(360):
        minute = i * 1.5 if i < 200 else i * 1.5 + 90
        words = rng.choice(["harbour bridge collapse", "ferry passengers rescued", f"meeting{i} budget{i}"])
        item = source.add(minute, words)
        published_at_ms = rng.choice([item.arrived_ms, item.arrived_ms + 9, None])
        if not i % 11:
            published_at_ms = item.arrived_ms - 301 * MINUTE_MS
        changed: dict[str, object] = {"published_at_ms": published_at_ms}
        if i and not i % 9:
            original = source.items[i - 1]
            changed |= {"verdict": "duplicate", "canonical_first": original.first_version}
            changed |= {"source": original.source}
        if i and not i % 50:
            deleted = source.items[i - 1]
            changed |= {"kind": "deleted", "id": deleted.id, "first_version": deleted.first_version}
        source.items[-1] = replace(item, **changed)  # type: ignore[arg-type]  # fields of StreamItem
    return source.items


@pytest.mark.integration
@pytest.mark.parametrize("seed", range(3))
async def test_the_same_items_give_the_same_events_live_and_offline(index: FakeIndex, seed: int) -> None:
    """Live in ticks of some minutes, with a new leader at every third tick; offline in one run."""
    items, store, detector = mixed_items(seed), MemoryStore(), BurstDetector(RULE)
    offline: dict[str, DetectedEvent] = {}
    for item in items:
        detector.observe(item, item.arrived_ms)
        offline |= {change.event.id: change.event for change in detector.drain_changes()}
    live = detector_over(store)
    for tick, now_ms in enumerate(range(START_MS, items[-1].arrived_ms + 7 * MINUTE_MS, 7 * MINUTE_MS)):
        index.items = [item for item in items if item.arrived_ms <= now_ms]
        if tick % 3 == 0:
            await live.save_checkpoint(now_ms)
            live = detector_over(store)
        await live.poll(index, now_ms)

    assert offline
    for event in offline.values():
        stored = await live.repository.get(event.id)
        assert (stored.detected_at_ms, stored.items, stored.size) == (
            event.detected_at_ms,
            event.items,
            event.size,
        )
    assert {event.id for event in await live.repository.list_events()} == set(offline)


async def test_a_bulk_load_without_dates_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Its articles are ignored, in whichever call they are read."""
    index, runner = FakeIndex(), detector_over(MemoryStore())
    for i in range(MAX_PER_MINUTE + 2000):
        index.add(i / 10_000, f"topic{i} place{i}", published_at_ms=None)

    while True:
        await runner.poll(index, at(1))
        if not runner.has_backlog:
            break

    assert [record.levelname for record in caplog.records if "bulk load" in record.message] == ["WARNING"]


async def test_top_stories_are_published_once_a_minute_with_their_storylines() -> None:
    """Every replica reads them; without new articles nothing is written."""
    store, index = MemoryStore(), FakeIndex()
    runner, repository = detector_over(store), EventRepository(store)

    async def stored() -> list[TopStory]:
        return [ranked.story for ranked in await repository.top_stories(EventFilter(), 0)]

    index.burst(17)
    index.burst(5, start=10)
    for n in range(5):
        index.add(11 + n, "ferry strike quay")
    assert await stored() == []

    await runner.poll(index, at(20))
    stories = await stored()
    index.add(20, "ferry strike quay")
    await runner.poll(index, at(20.5))
    same = await stored()
    await runner.poll(index, at(21))
    later = await stored()

    assert [(s.event.size, s.is_event, s.story_id) for s in stories] == [
        (22, True, stories[0].event.id),
        (5, False, ""),
    ]
    assert same == stories
    assert [s.event.size for s in later] == [22, 6]
