"""The stream of lessons, and the leader that takes them."""

from __future__ import annotations

import pytest

from aggregator.events.detection import BurstRule, Lesson
from aggregator.events.detection.series import Burst
from aggregator.events.lessons import ENTRIES_PER_CALL, LESSON_RETENTION_MS, LESSONS_KEY, Lessons
from aggregator.events.repository import EventRepository
from aggregator.store.base import Store, StreamAdd, Transaction
from aggregator.store.memory import MemoryStore
from aggregator.time_units import DAY_MS, HOUR_MS
from tests.events.test_consumer import START_MS, FakeIndex, at, detector_over

HOUR = START_MS // HOUR_MS
LESSON = Lesson(
    [(HOUR - ago, 3, {"": 3, f"word{ago}": 3}) for ago in range(48, 4, -1)],
    [Burst(1, START_MS - 30 * DAY_MS, 20, ["retail", "sale"])],
)


async def read_all(lessons: Lessons) -> list[tuple[bytes, Lesson]]:
    """All entries, a few at a time."""
    entries: list[tuple[bytes, Lesson]] = []
    while read := await lessons.read(entries[-1][0] if entries else b""):
        assert len(read) <= ENTRIES_PER_CALL
        entries += read
    return entries


async def test_a_lesson_is_read_in_parts(store: Store) -> None:
    """In order, after a position; an empty lesson adds nothing."""
    lessons = Lessons(store)
    await lessons.add(Lesson([], []))
    assert (await lessons.read(b""), await lessons.last_position()) == ([], b"")

    await lessons.add(LESSON)
    read = await read_all(lessons)

    assert [part for _, part in read] == list(LESSON.parts())
    assert read[-1][0] == await lessons.last_position()
    assert await lessons.read(read[-2][0]) == read[-1:]


async def test_a_damaged_lesson_is_skipped(store: Store) -> None:
    """The detector must not stop at it; it is logged and counted as a damaged value."""
    lessons = Lessons(store)
    for payload in (b"", b"\x09new", b"\x01damaged"):
        await store.commit(Transaction((), (StreamAdd(LESSONS_KEY, payload),)))
    await lessons.add(LESSON)

    read = [lesson for _, lesson in await read_all(lessons)]

    assert read == [Lesson([], [])] * 3 + list(LESSON.parts())


async def test_old_lessons_are_trimmed() -> None:
    """Not before both clocks are past their retention."""
    now_ms = START_MS
    store = MemoryStore(clock=lambda: now_ms)
    lessons = Lessons(store)
    await lessons.add(Lesson([LESSON.hours[0]], []))
    now_ms += LESSON_RETENTION_MS + 1
    await lessons.add(Lesson([LESSON.hours[1]], []))

    await lessons.trim(START_MS)
    assert len(await lessons.read(b"")) == 2
    await lessons.trim(now_ms)
    assert len(await lessons.read(b"")) == 1


async def test_the_leader_takes_a_lesson_once() -> None:
    """It is saved at once, without an article; a restarted leader does not take it again."""
    store, index = MemoryStore(), FakeIndex()
    detector = detector_over(store)
    assert await detector.saved_lessons() == (None, b"")
    await detector.lessons.add(LESSON)

    assert await detector.poll(index, at(0)) == []

    learned = await EventRepository(store).learning(at(0))
    assert learned is not None and 1.8 < learned.known_days < 2.1
    assert await detector.saved_lessons() == ("stories", await detector.lessons.last_position())
    restarted = detector_over(store)
    await restarted.poll(index, at(1))
    assert restarted.learning == learned
    history = await EventRepository(store).learned_history()
    assert history is not None and history.documents_by_hour[HOUR - 48] == 3


@pytest.mark.parametrize("lost", [b"{events}state", b"{events}position"])
async def test_a_lost_state_is_rebuilt_with_its_lessons(lost: bytes) -> None:
    """The stream keeps them as long as the baseline remembers."""
    store, index = MemoryStore(), FakeIndex()
    detector = detector_over(store)
    await detector.lessons.add(LESSON)
    await detector.poll(index, at(0))
    await store.delete([lost])

    rebuilt = detector_over(store)
    await rebuilt.poll(index, at(1))

    assert rebuilt.learning is not None and rebuilt.learning.known_days > 1.8


async def test_the_literal_rule_takes_no_lesson() -> None:
    """It compares with no history; after a change of the rule the lesson is taken."""
    store, index = MemoryStore(), FakeIndex()
    literal = detector_over(store, BurstRule(mode="literal"))
    await literal.lessons.add(LESSON)
    index.add(0)
    await literal.poll(index, at(0))
    assert await literal.saved_lessons() == ("literal", b"")

    stories = detector_over(store)
    await stories.poll(index, at(1))

    assert stories.learning is not None and stories.learning.known_days > 1.8
