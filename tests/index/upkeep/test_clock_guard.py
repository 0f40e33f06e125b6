"""A wrong clock destroys nothing and stores nothing, and everything continues when it is right again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.domain import arrival_ms_of, article_number_at
from aggregator.errors import Expired, ImplausibleClock, NotFound
from aggregator.index import keys
from aggregator.index.upkeep.clock_guard import (
    CATCH_UP_RATE,
    MAX_AHEAD_MS,
    SETTLING_MS,
    TRUSTED_TIME_KEY,
    TrustedTime,
    find_clock_problem,
)
from aggregator.ingest.pipeline import continue_at_once
from aggregator.store.memory import MemoryStore
from aggregator.time_units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from tests.support.factories import START_MS, edited, story
from tests.support.machine import Machine, Service
from tests.support.stores import open_patient_store

PERIOD_MS = 90 * DAY_MS
ARTICLES = 8


async def stored_service(machine: Machine, retention_ms: int | None = PERIOD_MS) -> Service:
    """A service that stored ``ARTICLES`` articles and then ran for an hour.

    Its store has the clock of the machine, as an embedded one has.
    """
    service = Service(MemoryStore(machine.wall_clock), machine, retention_ms)
    for i in range(ARTICLES):
        await service.post(f"a{i}", story(i))
    await service.run(HOUR_MS, 10 * MINUTE_MS)
    await service.stop()
    return service


async def assert_nothing_is_lost(service: Service) -> None:
    """All articles are readable, reposts are not stored again, near-copies are duplicates, new ones stay."""
    for i in range(ARTICLES):
        assert (await service.core.index.articles.get(f"a{i}")).record.id == f"a{i}"
        assert not (await service.post(f"a{i}", story(i))).stored
        copy = await service.post(f"copy-{i}-{service.machine.real_ms}", edited(story(i), i))
        assert (copy.outcome.verdict, copy.outcome.match and copy.outcome.match.canonical_id) == (
            "duplicate",
            f"a{i}",
        )
    fresh = f"fresh-{service.machine.real_ms}"
    assert (await service.post(fresh, story(service.machine.real_ms))).outcome.verdict == "new"
    assert (await service.core.index.articles.get(fresh)).record.id == fresh


async def maintain_both(first: Service, second: Service, minutes: int) -> None:
    """Run the maintenance of two replicas once a minute."""
    for _ in range(minutes):
        for replica in (first, second):
            replica.machine.real_ms += MINUTE_MS
        await first.maintain()
        await second.maintain()


@pytest.mark.integration
@pytest.mark.parametrize(
    ("offset_ms", "retention_ms", "is_refused"),
    [
        (100 * DAY_MS, PERIOD_MS, True),
        (366 * DAY_MS, PERIOD_MS, True),
        (366 * DAY_MS, None, True),
        (-366 * DAY_MS, PERIOD_MS, True),
        (-366 * DAY_MS, None, True),
        (31 * DAY_MS, PERIOD_MS, True),
        (29 * DAY_MS, PERIOD_MS, False),
        (3 * DAY_MS, DAY_MS, False),
        (-2 * HOUR_MS, PERIOD_MS, False),
        (-2 * HOUR_MS, DAY_MS, False),
        (40 * MINUTE_MS, DAY_MS, False),
    ],
    ids=[
        "100 days", "a year", "a year, kept forever", "a year back", "a year back, kept forever", "31 days",
        "29 days",
        "3 days, kept for one", "2 hours back", "2 hours back, kept for a day", "40 minutes, kept for a day",
    ],
)  # fmt: skip
async def test_a_restart_under_a_wrong_clock_loses_nothing(
    offset_ms: int, retention_ms: int | None, is_refused: bool
) -> None:
    """The wrong clock rules for a minute; meanwhile articles are readable, and posts refused or kept."""
    machine = Machine()
    store = (await stored_service(machine, retention_ms)).store

    machine.offset_ms = offset_ms
    wrong = Service(store, machine, retention_ms)
    await wrong.run(MINUTE_MS, 5 * SECOND_MS)
    assert ((await wrong.guard.observe()) is not None) == is_refused
    for i in range(ARTICLES):
        assert (await wrong.core.index.articles.get(f"a{i}")).record.id == f"a{i}"
    if is_refused:
        with pytest.raises(ImplausibleClock, match="set the clock"):
            await wrong.post("during", story(77))
    else:
        await wrong.post("during", story(77))
        assert (await wrong.core.index.articles.get("during")).record.id == "during"
    await wrong.stop()

    machine.offset_ms = 0
    right = Service(store, machine, retention_ms)
    await right.run(MINUTE_MS, 5 * SECOND_MS)
    assert await right.guard.observe() is None
    await assert_nothing_is_lost(right)
    if not is_refused:
        assert not (await right.post("during", story(77))).stored


async def test_a_clock_that_leaps_in_a_running_service_is_noticed_at_the_next_write() -> None:
    """Also between two observations; when it is right again, writes pass without a restart."""
    machine = Machine()
    service = await stored_service(machine)
    await service.guard.observe()

    machine.offset_ms = 100 * DAY_MS
    with pytest.raises(ImplausibleClock, match="Nothing is stored"):
        await service.post("during", story(77))
    with pytest.raises(ImplausibleClock):
        await service.core.ingest.delete("a0")
    machine.offset_ms = 0
    machine.real_ms += SECOND_MS

    await assert_nothing_is_lost(service)


async def test_a_suspended_machine_continues() -> None:
    """The boot clock counts the time: articles that are old enough then expire, and no operator is needed."""
    machine = Machine()
    service = await stored_service(machine)

    machine.real_ms += 70 * DAY_MS
    assert await service.guard.observe() is None
    await service.maintain()
    await assert_nothing_is_lost(service)
    machine.real_ms += 22 * DAY_MS
    await service.maintain()

    with pytest.raises((Expired, NotFound)):  # the sweep may have reached it
        await service.core.index.articles.get("a0")


async def test_a_restored_snapshot_of_20_days_ago_continues() -> None:
    """Nothing ran in between; the trusted time makes up for it within a week."""
    machine = Machine()
    store = (await stored_service(machine)).store
    machine.real_ms += 20 * DAY_MS

    service = Service(store, machine, PERIOD_MS)
    await assert_nothing_is_lost(service)
    await service.run(7 * DAY_MS, HOUR_MS)
    assert 0 <= service.guard.lag_ms < HOUR_MS


@pytest.mark.integration
async def test_a_machine_that_was_off_for_longer_needs_a_confirmation() -> None:
    """Articles stay readable before it, and expire within weeks after it."""
    machine = Machine()
    store = (await stored_service(machine)).store
    machine.real_ms += 100 * DAY_MS

    service = Service(store, machine, PERIOD_MS)
    with pytest.raises(ImplausibleClock, match="confirm the clock with `aggregator doctor --accept-clock`"):
        await service.post("b", story(77))
    await service.guard.accept()
    assert await service.guard.observe() is None
    await assert_nothing_is_lost(service)

    await service.run(24 * DAY_MS, HOUR_MS)
    with pytest.raises(Expired):
        await service.core.index.articles.get("a0")


async def test_a_replica_with_a_wrong_clock_harms_no_other() -> None:
    """It stores nothing, frees the leases, and the others do all the work."""
    machine = Machine()
    right = await stored_service(machine)
    wrong = Service(right.store, Machine(machine.real_ms, 100 * DAY_MS), PERIOD_MS)

    await maintain_both(wrong, right, 20)

    assert (wrong.maintenance.runs, right.maintenance.errors) == (0, 0)
    assert right.maintenance.runs > 20
    assert await wrong.guard.observe() is not None
    await assert_nothing_is_lost(right)


async def test_a_replica_that_is_ahead_by_days_advances_time_for_no_other() -> None:
    """20 days ahead is plausible, and costs three times the duration."""
    machine = Machine()
    right = await stored_service(machine)
    ahead = Service(right.store, Machine(machine.real_ms, 20 * DAY_MS), PERIOD_MS)
    await maintain_both(ahead, right, 60)

    trusted_ms = right.guard.trusted_ms
    assert trusted_ms is not None
    assert trusted_ms - machine.real_ms <= 3 * HOUR_MS
    await assert_nothing_is_lost(right)


async def test_a_floor_that_an_earlier_version_raised_is_lowered_again() -> None:
    """Under a clock 100 days ahead: articles counted as expired, and so did every new one at once."""
    machine = Machine()
    service = await stored_service(machine)
    (space,) = service.core.index.spaces
    await service.store.delete([TRUSTED_TIME_KEY])
    await service.core.index.segments.advance_head(space, floor=article_number_at(START_MS + 9 * DAY_MS))

    service = Service(service.store, machine, PERIOD_MS)
    with pytest.raises(Expired):
        await service.core.index.articles.get("a0")
    with pytest.raises(ImplausibleClock, match=r"count as expired.*aggregator doctor --accept-clock"):
        await service.post("b", story(77))

    await service.guard.accept()
    assert await service.guard.observe() is None
    await assert_nothing_is_lost(service)


async def test_an_article_below_the_floor_is_never_acknowledged() -> None:
    """Even by a process without a clock guard."""
    machine = Machine()
    service = await stored_service(machine)
    (space,) = service.core.index.spaces
    await service.core.index.segments.advance_head(space, floor=article_number_at(machine.real_ms + HOUR_MS))
    service.core.ingest._before_write = continue_at_once

    with pytest.raises(ImplausibleClock, match=r"cannot be stored.*aggregator doctor"):
        await service.post("b", story(77))
    assert await service.store.read([keys.tag(space, 0) + keys.binding("b")]) == [None]


async def test_an_empty_store_accepts_any_clock() -> None:
    """There is nothing to lose; a machine without a battery starts in 1970 and is set later."""
    machine = Machine(offset_ms=-START_MS + DAY_MS)
    service = Service(MemoryStore(), machine, PERIOD_MS)
    await service.maintain()
    assert (await service.guard.observe(), service.guard.trusted_ms) == (None, None)

    machine.offset_ms = 0
    await service.run(MINUTE_MS)
    assert (await service.post("a", story(1))).stored
    await service.maintain()
    assert service.guard.trusted_ms == machine.real_ms


async def test_numbers_follow_the_clock_after_a_leap_back() -> None:
    """The service ran 20 days ahead; what it stores afterwards is numbered by the right time."""
    machine = Machine()
    service = await stored_service(machine)
    machine.offset_ms = 20 * DAY_MS
    await service.post("ahead", story(77))
    machine.offset_ms = 0
    await service.post("after", story(78))

    record = (await service.core.index.articles.get("after")).record
    assert arrival_ms_of(record.number) == machine.real_ms


async def test_detection_waits_after_a_leap_and_continues_when_it_is_undone() -> None:
    """Events end by the clock. A leap that stays for 10 minutes counts as real."""
    machine = Machine()
    service = await stored_service(machine)
    assert await service.guard.pause_reason() is None

    machine.offset_ms = 5 * DAY_MS
    machine.real_ms += MINUTE_MS
    assert "leapt by more than a day" in (await service.guard.pause_reason() or "")
    machine.offset_ms = 0
    machine.real_ms += MINUTE_MS
    assert await service.guard.pause_reason() is None

    machine.offset_ms = 5 * DAY_MS
    for _ in range(SETTLING_MS // MINUTE_MS + 1):
        machine.real_ms += MINUTE_MS
        reason = await service.guard.pause_reason()
    assert reason is None
    machine.offset_ms = 100 * DAY_MS
    assert "last in use" in (await service.guard.pause_reason() or "")


async def test_a_store_with_another_clock_is_refused(valkey_url: str) -> None:
    """The machine of the store is two days ahead of this one."""
    store = open_patient_store(valkey_url)
    real_ms = await store.time_ms()
    assert real_ms is not None
    service = Service(store, Machine(real_ms - 2 * DAY_MS), PERIOD_MS)

    assert "set the one that is wrong" in (await service.guard.observe() or "")
    with pytest.raises(ImplausibleClock):
        await service.post("a", story(1))
    service.machine.offset_ms = 2 * DAY_MS
    service.machine.real_ms += MINUTE_MS
    assert (await service.post("a", story(1))).stored
    await store.close()


NOW_MS = 1_780_000_000_000
STATE = TrustedTime(NOW_MS, NOW_MS)

offsets = st.one_of(
    st.integers(-400 * DAY_MS, 400 * DAY_MS),
    st.integers(-2 * HOUR_MS, 2 * HOUR_MS),
    st.just(0),
)
readings = st.lists(st.tuples(st.integers(0, 3 * DAY_MS), offsets), max_size=40)


@given(readings)
def test_it_passes_real_time_by_no_more_than_the_catch_up(steps: list[tuple[int, int]]) -> None:
    """Each step: real ms that pass, and by how much the clock is wrong then."""
    state, real_ms, allowance_ms = STATE, NOW_MS, 0
    for elapsed_ms, offset_ms in steps:
        real_ms += elapsed_ms
        wall_ms = real_ms + offset_ms
        if find_clock_problem(state, wall_ms, elapsed_ms, floor_ms=0, period_ms=PERIOD_MS) is None:
            before, state = state, state.advance(wall_ms, elapsed_ms)
            assert before.trusted_ms <= state.trusted_ms <= max(before.trusted_ms, wall_ms)
            allowance_ms += (CATCH_UP_RATE - 1) * elapsed_ms if offset_ms > 0 else 0

        assert state.trusted_ms <= real_ms + allowance_ms


@given(readings)
def test_it_never_passes_real_time_under_clocks_that_are_not_ahead(steps: list[tuple[int, int]]) -> None:
    """So no article expires before its period, whatever the clock said in between."""
    state, real_ms = STATE, NOW_MS
    for elapsed_ms, offset_ms in steps:
        real_ms += elapsed_ms
        state = state.advance(real_ms - abs(offset_ms), elapsed_ms)

        assert state.trusted_ms <= real_ms


def test_twenty_seconds_of_a_wrong_clock_cost_a_minute_more() -> None:
    """At 29 days ahead, which is plausible: nothing was off for longer."""
    state = STATE.advance(NOW_MS + 29 * DAY_MS, 20 * SECOND_MS)
    assert state.trusted_ms - NOW_MS == CATCH_UP_RATE * 20 * SECOND_MS

    again = state.advance(NOW_MS + 60 * SECOND_MS, 40 * SECOND_MS)
    assert again.trusted_ms == state.trusted_ms, "it waits for the clock"


def test_a_gap_is_made_up_three_times_as_fast() -> None:
    """After 30 days without power, within 10 days."""
    state, wall_ms, hours = STATE, NOW_MS + 30 * DAY_MS, 0
    while state.trusted_ms < wall_ms:
        hours, wall_ms = hours + 1, wall_ms + HOUR_MS
        state = state.advance(wall_ms, HOUR_MS)

    assert hours == 10 * 24


@pytest.mark.parametrize(
    ("offset_ms", "elapsed_ms", "period_ms", "words"),
    [
        (100 * DAY_MS, 0, PERIOD_MS, "100.0 days after this data was last in use"),
        (366 * DAY_MS, SECOND_MS, None, "after this data was last in use"),
        (-366 * DAY_MS, SECOND_MS, PERIOD_MS, "before the last use"),
        (-13 * HOUR_MS, 0, DAY_MS, "before the last use"),
        (MAX_AHEAD_MS, 0, PERIOD_MS, ""),
        (100 * DAY_MS, 70 * DAY_MS, PERIOD_MS, ""),
        (-2 * HOUR_MS, 0, DAY_MS, ""),
        (-29 * DAY_MS, 0, PERIOD_MS, ""),
        (3 * DAY_MS, 0, DAY_MS, ""),
    ],
    ids=[
        "100 days", "a year", "a year back", "13 hours back, kept for a day", "30 days",
        "suspended for 70 days", "2 hours back", "29 days back", "3 days, kept for a day",
    ],
)  # fmt: skip
def test_which_clocks_are_plausible(
    offset_ms: int, elapsed_ms: int, period_ms: int | None, words: str
) -> None:
    """The sentence names the clock, the difference and the repair."""
    problem = find_clock_problem(STATE, NOW_MS + offset_ms, elapsed_ms, floor_ms=0, period_ms=period_ms)

    assert (problem is None) == (words == "")
    if problem is not None:
        assert words in problem
        assert "aggregator doctor --accept-clock" in problem


def test_a_floor_that_new_articles_would_fall_below_is_reported() -> None:
    """An earlier version raised it under a wrong clock; one before now may be of a shorter retention."""
    for floor_ms, is_problem in ((NOW_MS - PERIOD_MS, False), (NOW_MS - 1, False), (NOW_MS + 1, True)):
        problem = find_clock_problem(STATE, NOW_MS, 0, floor_ms=floor_ms, period_ms=PERIOD_MS)
        assert (problem is not None) == is_problem
        assert problem is None or "count as expired" in problem


async def test_a_retention_that_is_raised_again_is_no_clock_problem() -> None:
    """The floor of the shorter one stays, so what expired under it stays expired; new articles are stored."""
    machine = Machine()
    service = await stored_service(machine)
    (space,) = service.core.index.spaces
    await service.core.index.segments.advance_head(space, floor=article_number_at(machine.real_ms - 1))

    longer = Service(service.store, machine, 4 * PERIOD_MS)
    assert await longer.guard.observe() is None
    await longer.post("b", story(77))
    assert (await longer.core.index.articles.get("b")).record.id == "b"
    with pytest.raises(Expired):
        await longer.core.index.articles.get("a0")
