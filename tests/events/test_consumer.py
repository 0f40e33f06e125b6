"""Events over a store: nothing lost, nothing told twice, readable by every replica."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from aggregator.domain import Article, StreamItem, article_number_at
from aggregator.errors import NotFound, StoreUnavailable
from aggregator.events.consumer import STATE_KEY, DetectorRunner
from aggregator.events.detection import BurstDetector, BurstRule, Event
from aggregator.events.repository import CHANGES_KEY, POSITION_KEY
from aggregator.store.base import Put, Store, Transaction
from aggregator.store.memory import MemoryStore
from tests.support import factories

MINUTE_MS = 60_000
START_MS = 20_000 * 86_400_000
RULE = BurstRule()


class FakeIndex:
    """An article stream in memory: one stream, positions are counts."""

    def __init__(self) -> None:
        self.items: list[StreamItem] = []

    def add(self, minute: float, words: str = "harbour bridge collapse", **wanted: object) -> StreamItem:
        count = len(self.items)
        at_ms = START_MS + round(minute * MINUTE_MS)
        item = StreamItem(
            number=article_number_at(at_ms, count),
            first_version=article_number_at(at_ms, count),
            id=f"a{count}",
            verdict="new",
            arrived_ms=at_ms,
            title=f"{words} report{count}",
            source="one.example",
            terms=tuple((w, 0.5) for w in f"{words} own{count} side{count}".split()),
        )
        self.items.append(replace(item, **wanted))  # type: ignore[arg-type]
        return self.items[-1]

    def burst(self, count: int = 16, start: float = 0.0) -> None:
        for i in range(count):
            self.add(start + i)

    async def read_stream(
        self, positions: Mapping[bytes, bytes], count: int
    ) -> tuple[list[StreamItem], dict[bytes, bytes]]:
        start = int(positions.get(b"s", b"0"))
        read = self.items[start : start + count]
        return read, {**positions, b"s": b"%d" % (start + len(read))} if read else dict(positions)


def at(minute: float) -> int:
    return START_MS + round(minute * MINUTE_MS)


@pytest.fixture
def index() -> FakeIndex:
    return FakeIndex()


async def told(events: DetectorRunner) -> list[tuple[str, str]]:
    return [(record.kind, record.event_id) for _, record in await events.changes(count=1000)]


async def test_a_burst_is_seen_by_every_replica(store: Store, index: FakeIndex) -> None:
    """The leader advances; another replica lists, gets, and finds the event of an article."""
    index.burst()
    leader, reader = DetectorRunner(store, RULE), DetectorRunner(store, RULE)

    (change,) = await leader.poll(index, at(16))

    (event,) = await reader.list_events()
    assert event == replace(change.event, revision=1) == await reader.get(event.id)
    assert isinstance(event, Event) and event.size == 16
    first = index.items[0].first_version
    assert await reader.event_ids_of([first, 12345]) == {first: event.id}
    assert await told(reader) == [("fired", event.id)]


async def test_nothing_is_known_of_an_empty_store(store: Store) -> None:
    """No events, no event of a number, and a clear error for an id."""
    events = DetectorRunner(store, RULE)

    assert await events.list_events() == []
    assert await events.event_ids_of([1]) == {} == await events.event_ids_of([])
    with pytest.raises(NotFound, match="no event 'e1'"):
        await events.get("e1")


async def test_lists_are_filtered_and_ordered(store: Store, index: FakeIndex) -> None:
    """By status and time, the most recently seen first, up to a limit."""
    index.burst()
    for i in range(20):
        index.add(300 + i, "election result capital")
    events = DetectorRunner(store, RULE)
    await events.poll(index, at(320))

    newest, oldest = await events.list_events()
    assert newest.last_seen_ms > oldest.last_seen_ms
    assert (newest.status, oldest.status) == ("breaking", "closed")
    assert await events.list_events(status="closed") == [oldest]
    assert await events.list_events(since_ms=at(310)) == [newest]
    assert await events.list_events(limit=1) == [newest]


async def test_a_leader_that_dies_is_followed_without_loss_or_repetition(
    store: Store, index: FakeIndex
) -> None:
    """Each tick by a new process: the same events as one process alone, each told once."""
    alone = DetectorRunner(MemoryStore(), RULE)
    for i in range(40):
        index.add(i)
        await alone.poll(index, at(i + 0.5))
    seen = FakeIndex()
    for i, item in enumerate(index.items):
        seen.items.append(item)
        await DetectorRunner(store, RULE, checkpoint_interval_ms=5 * MINUTE_MS).poll(seen, at(i + 0.5))

    follower = DetectorRunner(store, RULE)
    await follower.poll(seen, at(60))
    await alone.poll(index, at(60))
    assert await follower.list_events() == await alone.list_events()
    assert [kind for kind, _ in await told(follower)].count("fired") == 1


async def test_of_two_leaders_one_loses_its_work_and_nothing_else(store: Store, index: FakeIndex) -> None:
    """A leader stopped past its lease wakes up with an old position: its commit fails, its next tick is right."""
    index.burst(10)
    asleep, awake = DetectorRunner(store, RULE), DetectorRunner(store, RULE)
    await asleep.poll(index, at(10))
    index.burst(10, start=10)
    assert await awake.poll(index, at(20))

    stale = StaleStore(store, asleep)
    assert await stale.advance(index, at(20)) == []
    assert asleep.commit_conflicts == 1
    await asleep.poll(index, at(21))
    index.burst(5, start=22)
    assert [c.kind for c in await asleep.poll(index, at(40))] == ["updated"]

    (event,) = await awake.list_events()
    assert event.size == 25
    assert [kind for kind, _ in await told(awake)].count("fired") == 1


class StaleStore:
    """Lets a leader see the position it knew, as when it was stopped between reading and committing."""

    def __init__(self, store: Store, events: DetectorRunner) -> None:
        self.store, self.events = store, events

    async def advance(self, index: FakeIndex, now_ms: int) -> list[object]:
        lead = self.events._leader
        assert lead is not None
        known = lead.saved_position
        real = self.store.read

        async def read(keys: list[bytes]) -> list[bytes | None]:
            values = await real(keys)
            return [known, *values[1:]] if keys[0] == POSITION_KEY else values

        self.store.read = read  # type: ignore[method-assign, assignment]
        try:
            return list(await self.events.poll(index, now_ms))
        finally:
            del self.store.read


async def test_between_checkpoints_only_what_matters_is_written(index: FakeIndex) -> None:
    """A quiet stream costs one write in ten seconds; an alert is saved at once."""
    store = MemoryStore()
    events = DetectorRunner(store, RULE, checkpoint_interval_ms=10_000)
    saved = []
    for second in range(20):
        index.add(second / 60)
        await events.poll(index, START_MS + second * 1000)
        saved.append((await store.read([POSITION_KEY]))[0])

    assert len(set(saved)) == 3  # at 0 s, at 10 s, and the alert of the 16th item
    assert (await events.list_events())[0].size == 16


async def test_an_orderly_stop_saves_what_is_ahead(index: FakeIndex) -> None:
    """The successor starts where the leader stopped."""
    store = MemoryStore()
    events = DetectorRunner(store, RULE)
    index.burst(3)
    await events.poll(index, at(3))
    index.burst(3, start=3.01)
    await events.poll(index, at(3.05))

    await events.save_checkpoint(at(3.1))

    follower = DetectorRunner(store, RULE)
    await follower.poll(index, at(4))
    assert follower.items_read == 0


async def test_a_failed_commit_is_made_good(index: FakeIndex) -> None:
    """The store goes away in the middle of a tick: the next tick tells everything, once."""

    class Failing(MemoryStore):
        broken = True

        async def commit(self, transaction: Transaction) -> tuple[int, ...]:
            if self.broken:
                raise StoreUnavailable("The store is away; try again.")
            return await super().commit(transaction)

    store = Failing()
    events = DetectorRunner(store, RULE)
    index.burst()
    with pytest.raises(StoreUnavailable):
        await events.poll(index, at(16))
    store.broken = False

    assert [c.kind for c in await events.poll(index, at(17))] == ["fired"]
    assert len(await told(events)) == 1


async def test_a_long_backlog_is_read_in_batches(index: FakeIndex) -> None:
    """A start after a stop of hours reads everything, each item at its own time."""
    store = MemoryStore()
    for i in range(900):
        index.add(i, f"topic{i} place{i} person{i}")
    index.burst(16, start=900)
    events = DetectorRunner(store, RULE, items_per_read=100)

    changes = await events.poll(index, at(3000))

    assert [c.kind for c in changes] == ["fired", "closed"]
    assert changes[0].at_ms == at(915)
    assert events.items_read == 916


async def test_others_have_their_turn_all_the_while(index: FakeIndex) -> None:
    """Reading, the first look of a minute and the checkpoint give way to whatever else waits, piece by piece."""
    for i in range(60):
        index.add(i / 100, ("harbour bridge collapse", "orchard strike vote")[i % 2])
    index.add(3, "harbour bridge collapse")
    turns: list[int] = []
    events = DetectorRunner(MemoryStore(), RULE)
    pieces = 0

    async def other() -> None:
        while True:
            turns.append(events.items_read)
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    await events.poll(index, at(4))
    beside.cancel()
    detector = BurstDetector(RULE)
    for item in index.items:
        pieces += 1 + len(list(detector.observe_steps(item, item.arrived_ms)))
    pieces += len(list(detector.tick_steps(at(4)))) + len(list(detector.dump_chunks()))

    assert len(turns) >= pieces


async def test_a_lost_state_is_built_again_without_new_alerts(store: Store, index: FakeIndex) -> None:
    """Another format or a damaged state: the stream is read again, known events are not told again."""
    index.burst()
    events = DetectorRunner(store, RULE)
    await events.poll(index, at(16))
    await store.put([Put(STATE_KEY, b"damaged")])
    index.burst(5, start=17)

    again = DetectorRunner(store, RULE)
    await again.poll(index, at(30))

    (event,) = await again.list_events()
    assert event.size == 21
    assert [kind for kind, _ in await told(again)].count("fired") == 1


async def test_another_rule_goes_on_from_the_same_place(index: FakeIndex) -> None:
    """New numbers apply from now on; a new mode starts without history, and reads nothing twice."""
    store = MemoryStore()
    index.burst(10)
    await DetectorRunner(store, RULE).poll(index, at(10))
    index.add(11)

    lower = DetectorRunner(store, BurstRule(items=10))
    assert [c.kind for c in await lower.poll(index, at(12))] == ["fired"]
    literal = DetectorRunner(store, BurstRule(mode="neighbours"))
    await literal.poll(index, at(13))
    assert literal.items_read == 0


async def test_an_article_taken_down_leaves_events_at_once(store: Store, index: FakeIndex) -> None:
    """Open or closed: neither its id nor its headline stays."""
    index.burst()
    events = DetectorRunner(store, RULE)
    await events.poll(index, at(16))
    (event,) = await events.list_events()
    index.add(17, kind="deleted", first_version=index.items[0].first_version, id="a0", title="", terms=())
    await events.poll(index, at(17))
    (event,) = await events.list_events()
    assert "a0" not in event.items and event.size == 15
    await events.poll(index, at(600))
    (event,) = await events.list_events()
    assert event.status == "closed"

    victim = event.items[-1]
    first = next(i.first_version for i in index.items if i.id == victim)
    index.add(601, kind="deleted", first_version=first, id=victim, title="", terms=())
    await events.poll(index, at(601))

    (event,) = await events.list_events()
    assert victim not in event.items and event.size == 14
    assert not event.title.endswith(victim.replace("a", "report"))
    assert b"report" not in b"".join(p for p, _ in await _payloads(store))


async def _payloads(store: Store) -> list[tuple[bytes, bytes]]:
    return [(payload, position) for position, payload in await store.stream_tail(CHANGES_KEY, 100)]


async def test_a_merged_event_leads_to_the_one_that_goes_on(store: Store, index: FakeIndex) -> None:
    """Articles of the event that was taken over are answered with its heir."""
    for i in range(20):
        index.add(i)
        index.add(i + 0.5, "ferry passengers rescued")
    for i in range(60):
        index.add(21 + i / 10, "harbour bridge collapse ferry passengers rescued")
    events = DetectorRunner(store, RULE)

    await events.poll(index, at(30))

    lost = next(e for e in await events.list_events() if e.merged_into)
    found = await events.event_ids_of([item.first_version for item in index.items])
    assert set(found.values()) == {lost.merged_into}
    assert len(found) == 100


async def test_closed_events_are_forgotten_in_the_end(index: FakeIndex) -> None:
    """Retention counts from when they were last seen."""
    now_ms = at(16)
    store = MemoryStore(clock=lambda: now_ms)
    events = DetectorRunner(store, RULE, retention_ms=1000 * MINUTE_MS)
    index.burst()
    await events.poll(index, at(16))
    await events.poll(index, at(300))
    assert len(await events.list_events()) == 1

    index.burst(16, start=2000)
    now_ms = at(2016)
    await events.poll(index, now_ms)

    (event,) = await events.list_events()
    assert event.first_seen_ms == at(2000)
    assert await events.event_ids_of([index.items[0].first_version]) == {}


async def test_a_story_that_comes_in_fragments_fires_with_the_tick() -> None:
    """Five stories within seconds, full texts of made-up words: each fires though no minute begins meanwhile."""
    room = factories.core(MemoryStore(), clock=factories.Clock(60_000 * 30_000_000))
    events = DetectorRunner(room.index.store, BurstRule())
    for round_ in range(5):
        subject = " ".join(factories.story(1000 + round_, 1).split()[:4])
        for n in range(20):
            text = f"{subject} {subject}. {factories.story(100 * round_ + n, 3)}"
            await room.ingest.submit(
                Article(id=f"{round_}-{n}", title=f"{subject} {n}", text=text, lang="eo")
            )
        await events.poll(room.index, room.clock())

    assert room.clock.now_ms % 60_000 < 59_000, "a minute has passed; the test shows nothing"
    assert len(await events.list_events()) == 5


def mixed(seed: int) -> list[StreamItem]:
    """Nine hours of two stories among other news: copies, late, early and undated items, a clock that jumps."""
    rng, source = random.Random(seed), FakeIndex()
    for i in range(360):
        minute = i * 1.5 if i < 200 else i * 1.5 + 90
        words = rng.choice(["harbour bridge collapse", "ferry passengers rescued", f"meeting{i} budget{i}"])
        item = source.add(minute, words)
        published = rng.choice(
            [item.arrived_ms, item.arrived_ms - 301 * MINUTE_MS, item.arrived_ms + 9, None]
        )
        changed: dict[str, object] = {"published_at_ms": published}
        if i and not i % 9:
            changed |= {"verdict": "duplicate", "canonical_first": source.items[i - 1].first_version}
        if i and not i % 50:
            gone = source.items[i - 1]
            changed |= {"kind": "deleted", "id": gone.id, "first_version": gone.first_version}
        source.items[-1] = replace(item, **changed)  # type: ignore[arg-type]
    return source.items


@pytest.mark.parametrize("seed", range(3))
async def test_the_same_items_give_the_same_events_live_and_offline(index: FakeIndex, seed: int) -> None:
    """Live in ticks of some minutes, with a new leader at every third; offline in one go."""
    items, store, detector = mixed(seed), MemoryStore(), BurstDetector(RULE)
    offline: dict[str, Event] = {}
    for item in items:
        detector.observe(item, item.arrived_ms)
        offline |= {change.event.id: change.event for change in detector.drain_changes()}
    live = DetectorRunner(store, RULE)
    for tick, now_ms in enumerate(range(START_MS, items[-1].arrived_ms + 7 * MINUTE_MS, 7 * MINUTE_MS)):
        index.items = [item for item in items if item.arrived_ms <= now_ms]
        if tick % 3 == 0:
            await live.save_checkpoint(now_ms)
            live = DetectorRunner(store, RULE)
        await live.poll(index, now_ms)

    assert offline
    for event in offline.values():
        stored = await live.get(event.id)
        assert (stored.detected_at_ms, stored.items, stored.size) == (
            event.detected_at_ms,
            event.items,
            event.size,
        )
    assert {event.id for event in await live.list_events()} == set(offline)
