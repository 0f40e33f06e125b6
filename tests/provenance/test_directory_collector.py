"""The background task that keeps the report on outlets current, and its readers."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from aggregator.domain import Problem
from aggregator.errors import NotFound, StoreUnavailable
from aggregator.provenance import directory as collector_module
from aggregator.provenance.directory import SOURCES_KEY, SourceCollector, SourceDirectory
from aggregator.provenance.extraction import PROBLEM_NAMES
from aggregator.store.base import Put, Store
from aggregator.store.memory import MemoryStore
from aggregator.time_units import DAY_MS
from tests.support.factories import Core, core, edited, story

TEXT = story(1)


class Monotonic:
    """Seconds that advance by ``step_s`` per reading."""

    def __init__(self) -> None:
        self.now_s = self.step_s = 0.0

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


async def post_pair(newsroom: Core) -> None:
    """An original and a copy that arrives first."""
    now_ms = newsroom.clock.now_ms
    await newsroom.post("b", edited(TEXT, 1), source="B", published_at_ms=now_ms - 1000)
    await newsroom.post("a", TEXT, source="A", published_at_ms=now_ms - 61_000)


async def test_the_report_follows_the_articles(store: Store) -> None:
    """Posts, a deletion, and a run without news; readers see each report."""
    newsroom = core(store)
    directory = SourceDirectory(store)
    assert (await directory.report()).computed_ms == 0
    collector = SourceCollector(newsroom.index, newsroom.clock, monotonic=Monotonic())
    await post_pair(newsroom)
    await collector.run_once()
    copy, family = await directory.get("B")

    assert (copy.copies, copy.median_lag_ms, family) == (1, 60_000, None)
    assert (await directory.get("A"))[0].copied == 1

    await newsroom.ingest.delete("b")
    await collector.run_once()
    with pytest.raises(NotFound, match="No statistics are known of the source 'B'"):
        await directory.get("B")
    assert (await directory.get("A"))[0].copied == 0

    before = await directory.report()
    await collector.run_once()
    assert await directory.report() is before
    assert (collector.runs, collector.errors) == (3, 0)


async def test_sources_whose_extraction_fails_are_counted_by_problem(store: Store) -> None:
    """From the answers' problems, which a repeated post has as well."""
    newsroom = core(store)
    collector = SourceCollector(newsroom.index, newsroom.clock, monotonic=Monotonic())
    for n in range(10):
        whole = f"Ferry {n} of Estmark runs again on Monday, and the pier has been repaired."
        cut = f"{whole} The captain of the ferry said that he would not"
        first = await newsroom.post(f"a{n}", cut, source="A")
        again = await newsroom.post(f"a{n}", cut, source="A")
        assert first.problems == Problem.cut | Problem.undated and Problem.cut in again.problems
        await newsroom.post(f"b{n}", whole, source="B", published_at_ms=newsroom.clock.now_ms)
    await collector.run_once()

    assert collector.failing == {"cut": 1}
    assert (await collector.directory.get("A"))[0].extraction.shares["undated"] == 1.0
    assert (await collector.directory.get("B"))[0].extraction.counts == (0,) * len(PROBLEM_NAMES)


async def test_one_replica_counts_and_another_one_takes_over(store: Store) -> None:
    """The new leader reads the window from the stream again."""
    first_room, second_room = core(store), core(store)
    first = SourceCollector(first_room.index, first_room.clock)
    second = SourceCollector(second_room.index, second_room.clock)
    await post_pair(first_room)
    await first.run_once()
    await second.run_once()
    assert (second.runs, second.skipped) == (0, 1)

    await first.close()
    await second_room.post("c", TEXT, source="C")
    await second.run_once()

    assert {source.name for source in (await second.directory.report()).sources} == {"A", "B", "C"}
    assert (await first.directory.report()).articles == 3


async def test_articles_outside_the_window_do_not_count(store: Store) -> None:
    """By arrival."""
    newsroom = core(store)
    collector = SourceCollector(newsroom.index, newsroom.clock, window_ms=DAY_MS, monotonic=Monotonic())
    await post_pair(newsroom)
    await collector.run_once()
    newsroom.clock.now_ms += 2 * DAY_MS
    await newsroom.post("c", story(2), source="C")
    await collector.run_once()

    assert [source.name for source in (await collector.directory.report()).sources] == ["C"]


async def test_long_streams_are_read_in_parts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lease is renewed in between; a replica that lost it stops and forgets its window."""
    monkeypatch.setattr(collector_module, "ITEMS_PER_READ", 2)
    monkeypatch.setattr(collector_module, "READS_PER_LEASE", 1)
    newsroom = core(store)
    for n in range(7):
        await newsroom.post(f"a{n}", story(n), source=f"S{n}")
    collector = SourceCollector(newsroom.index, newsroom.clock)
    await collector.run_once()

    assert (await collector.directory.report()).articles == 7


async def test_counting_pauses_after_a_long_count() -> None:
    """A count of 2 s is followed by 100 s without one, so it takes at most 2 % of the time."""
    newsroom, seconds = core(MemoryStore()), Monotonic()
    collector = SourceCollector(newsroom.index, newsroom.clock, monotonic=seconds)
    await post_pair(newsroom)
    seconds.step_s = 1
    await collector.run_once()
    seconds.step_s = 0
    ended_s = seconds.now_s
    await newsroom.post("c", story(2), source="C")

    for after_s, articles in ((90, 2), (101, 3)):
        seconds.now_s = ended_s + after_s
        await collector.run_once()
        assert (await collector.directory.report()).articles == articles


async def test_a_failing_run_is_logged_once_and_retried(caplog: pytest.LogCaptureFixture) -> None:
    """The window is read again, since articles may have been missed."""

    class FailingStore(MemoryStore):
        fails = False

        async def stream_read(
            self, keys: Sequence[bytes], after: Sequence[bytes], count: int
        ) -> list[list[tuple[bytes, bytes]]]:
            if self.fails:
                raise StoreUnavailable("The store is unavailable.")
            return await super().stream_read(keys, after, count)

    store = FailingStore()
    newsroom = core(store)
    await post_pair(newsroom)
    collector = SourceCollector(newsroom.index, newsroom.clock)
    store.fails = True
    with caplog.at_level(logging.WARNING):
        await collector.run_once()
        await collector.run_once()
    store.fails = False
    await collector.run_once()

    assert (collector.errors, len(caplog.records)) == (2, 1)
    assert (await collector.directory.report()).articles == 2


@pytest.mark.parametrize("damaged", [b"", b"\x02", b"\x01damaged", b"\x01" + b"x\x9cK\x04\x00\x00b\x00b"])
async def test_a_damaged_report_is_an_empty_one(damaged: bytes) -> None:
    """It is derived: the next run replaces it."""
    newsroom = core(MemoryStore())
    await post_pair(newsroom)
    collector = SourceCollector(newsroom.index, newsroom.clock)
    await collector.run_once()
    await newsroom.index.store.put([Put(SOURCES_KEY, damaged)])

    assert (await SourceDirectory(newsroom.index.store).report()).computed_ms == 0
