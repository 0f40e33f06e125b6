"""Read marks of users."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from aggregator.events.user_state import (
    ANSWER_RETENTION_MS,
    MAX_ANSWERS,
    MAX_BYTES,
    MAX_SEEN,
    RESERVATION_MS,
    IdempotentAnswers,
    ReadMark,
    ReadMarks,
    StoredAnswer,
)
from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore
from tests.support.stores import open_patient_store

CHANGES = st.lists(
    st.tuples(st.integers(0, 9), st.lists(st.text("abc", min_size=1, max_size=1), max_size=3)), max_size=5
)


@given(CHANGES, st.randoms(use_true_random=False))
def test_the_order_of_changes_does_not_matter(changes: list[tuple[int, list[str]]], rng: object) -> None:
    """Two browsers of one user agree, also when a request is repeated."""
    mark, other = ReadMark(), ReadMark()
    for looked_ms, seen in changes:
        mark = mark.advanced(looked_ms, seen)
    for looked_ms, seen in [*changes[::-1], *changes]:
        other = other.advanced(looked_ms, seen)

    assert (mark.looked_ms, set(mark.seen)) == (other.looked_ms, set(other.seen))


def test_the_oldest_ids_are_dropped() -> None:
    """A mark stays small."""
    mark = ReadMark().advanced(5, [f"e{n}" for n in range(MAX_SEEN + 3)])

    assert len(mark.seen) == MAX_SEEN
    assert (mark.seen[0], mark.seen[-1]) == ("e3", f"e{MAX_SEEN + 2}")


async def test_simultaneous_changes_are_all_kept(store: Store) -> None:
    """Each user has an own mark."""
    marks = ReadMarks(store)
    await asyncio.gather(*(marks.advance("ada", n, [f"e{n}"]) for n in range(9)))
    await marks.advance("bea", 1, [])
    ada = await marks.get("ada")

    assert ada is not None and ada.looked_ms == 8
    assert set(ada.seen) == {f"e{n}" for n in range(9)}
    assert await marks.get("bea") == ReadMark(1)
    assert await marks.get("cleo") is None


class Clock:
    """A clock that is set by hand."""

    now_ms = 1_790_000_000_000

    def __call__(self) -> int:
        return self.now_ms


def reservation(key: str, clock: Clock, fingerprint: bytes = b"f") -> StoredAnswer:
    """A reservation made now."""
    return StoredAnswer(key, fingerprint, clock())


def answer(key: str, clock: Clock, body: bytes = b"{}") -> StoredAnswer:
    """An answer made now."""
    return StoredAnswer(key, b"f", clock(), 201, "/v1/watches/w", body)


async def get(answers: IdempotentAnswers, key: str, clock: Clock, owner: str = "o") -> StoredAnswer | None:
    """The recorded answer, if there is one; the reservation made for the look-up is released."""
    probe = reservation(key, clock, b"probe")
    found = await answers.reserve(owner, probe)
    if found is None:
        await answers.release(owner, probe)
    return found


async def act_once(answers: IdempotentAnswers, key: str, clock: Clock, acted: list[str]) -> StoredAnswer:
    """What a request does: reserve, act, record."""
    mine = reservation(key, clock)
    earlier = await answers.reserve("o", mine)
    if earlier is not None:
        return earlier
    acted.append(key)
    await asyncio.sleep(0)
    return await answers.record("o", structs.replace(mine, status=201, body=key.encode()))


async def test_one_of_simultaneous_requests_acts(store: Store) -> None:
    """30 requests with 3 keys; the others get the reservation or the answer."""
    clock, acted = Clock(), list[str]()
    answers = IdempotentAnswers(store, clock)
    results = await asyncio.gather(*(act_once(answers, f"k{n % 3}", clock, acted) for n in range(30)))

    assert sorted(acted) == ["k0", "k1", "k2"]
    assert {result.status for result in results} <= {0, 201}
    assert {result.key for result in results if result.status == 201} == {"k0", "k1", "k2"}


async def test_one_of_several_processes_acts(valkey_url: str) -> None:
    """Each with its own connection and lock: the store decides."""
    clock, acted = Clock(), list[str]()
    stores = [open_patient_store(valkey_url) for _ in range(6)]
    await asyncio.gather(*(act_once(IdempotentAnswers(store, clock), "k", clock, acted) for store in stores))
    await asyncio.gather(*(store.close() for store in stores))

    assert acted == ["k"]


async def test_a_reservation_of_a_dead_process_ends(store: Store) -> None:
    """After 60 s another request acts; its answer is the one that counts, even if the first was only slow."""
    clock = Clock()
    answers = IdempotentAnswers(store, clock)
    dead = reservation("a", clock)
    assert await answers.reserve("o", dead) is None
    clock.now_ms += RESERVATION_MS - 1
    assert await answers.reserve("o", reservation("a", clock)) == dead
    clock.now_ms += 1
    second = reservation("a", clock)
    assert await answers.reserve("o", second) is None
    await answers.release("o", dead)
    assert await answers.reserve("o", reservation("a", clock)) == second

    recorded = await answers.record("o", answer("a", clock, b"second"))
    assert await answers.record("o", answer("a", clock, b"first")) == recorded
    assert await get(answers, "a", clock) == recorded


async def test_a_released_key_is_free(store: Store) -> None:
    """The next request with it acts; an answer is not released."""
    clock = Clock()
    answers = IdempotentAnswers(store, clock)
    mine = reservation("a", clock)
    assert await answers.reserve("o", mine) is None
    await answers.release("o", mine)
    assert await answers.reserve("o", reservation("a", clock, b"other")) is None
    await answers.record("o", answer("a", clock))
    await answers.release("o", mine)

    assert await get(answers, "a", clock) is not None


async def test_an_answer_is_kept_for_a_day() -> None:
    """Not a millisecond longer, although a later one keeps the value alive."""
    clock, store = Clock(), MemoryStore()
    answers = IdempotentAnswers(store, clock)
    await answers.record("o", answer("a", clock))
    clock.now_ms += ANSWER_RETENTION_MS - 1
    await answers.record("o", answer("b", clock))
    kept = await get(answers, "a", clock)
    clock.now_ms += 1

    assert kept is not None
    assert await get(answers, "a", clock) is None
    assert await get(answers, "b", clock) is not None
    assert await get(answers, "b", clock, owner="other") is None


@pytest.mark.parametrize("is_reserved", [False, True])
async def test_the_first_answer_wins(is_reserved: bool) -> None:
    """A second one for the same key changes nothing."""
    clock = Clock()
    answers = IdempotentAnswers(MemoryStore(), clock)
    first = answer("a", clock, b"first")
    if is_reserved:
        await answers.reserve("o", reservation("a", clock))

    assert await answers.record("o", first) is first
    assert await answers.record("o", answer("a", clock, b"second")) == first


async def test_the_number_and_size_of_answers_is_bounded() -> None:
    """The oldest are dropped; one answer that exceeds the limit alone is kept."""
    clock = Clock()
    answers = IdempotentAnswers(MemoryStore(), clock)
    for n in range(MAX_ANSWERS + 1):
        await answers.record("o", answer(f"k{n}", clock))
    assert await get(answers, f"k{MAX_ANSWERS}", clock) is not None
    assert await get(answers, "k1", clock) is not None
    assert await get(answers, "k0", clock) is None

    await answers.record("o", answer("large", clock, b"x" * (MAX_BYTES - 2)))
    assert await get(answers, f"k{MAX_ANSWERS}", clock) is not None
    assert await get(answers, f"k{MAX_ANSWERS - 1}", clock) is None
    await answers.record("o", answer("larger", clock, b"x" * (MAX_BYTES + 1)))
    assert await get(answers, "larger", clock) is not None
    assert await get(answers, "large", clock) is None
