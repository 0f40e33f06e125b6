"""Recorded answers: kept for a day, bounded per owner, first one wins."""

from __future__ import annotations

from aggregator.events.idempotency import (
    MAX_ANSWERS,
    MAX_BYTES,
    RETENTION_MS,
    IdempotentAnswers,
    StoredAnswer,
)
from aggregator.store.memory import MemoryStore


class Clock:
    """A clock that is set by hand."""

    now_ms = 1_790_000_000_000

    def __call__(self) -> int:
        return self.now_ms


def answer(key: str, clock: Clock, body: bytes = b"{}") -> StoredAnswer:
    """An answer made now."""
    return StoredAnswer(key, b"f", clock(), 201, "/v1/watches/w", body)


async def test_an_answer_is_kept_for_a_day() -> None:
    """Not a millisecond longer, although a later one keeps the value alive."""
    clock, store = Clock(), MemoryStore()
    answers = IdempotentAnswers(store, clock)
    await answers.record("o", answer("a", clock))
    clock.now_ms += RETENTION_MS - 1
    await answers.record("o", answer("b", clock))
    kept = await answers.get("o", "a")
    clock.now_ms += 1

    assert kept is not None
    assert await answers.get("o", "a") is None
    assert await answers.get("o", "b") is not None
    assert await answers.get("other", "b") is None


async def test_the_first_answer_wins() -> None:
    """A second one for the same key changes nothing."""
    clock = Clock()
    answers = IdempotentAnswers(MemoryStore(), clock)
    first = answer("a", clock, b"first")

    assert await answers.record("o", first) is first
    assert await answers.record("o", answer("a", clock, b"second")) == first


async def test_the_number_and_size_of_answers_is_bounded() -> None:
    """The oldest are dropped; one answer that exceeds the limit alone is kept."""
    clock = Clock()
    answers = IdempotentAnswers(MemoryStore(), clock)
    for n in range(MAX_ANSWERS + 1):
        await answers.record("o", answer(f"k{n}", clock))
    assert await answers.get("o", "k0") is None
    assert await answers.get("o", "k1") is not None

    await answers.record("o", answer("large", clock, b"x" * (MAX_BYTES - 2)))
    assert await answers.get("o", f"k{MAX_ANSWERS - 1}") is None
    assert await answers.get("o", f"k{MAX_ANSWERS}") is not None
    await answers.record("o", answer("larger", clock, b"x" * (MAX_BYTES + 1)))
    assert await answers.get("o", "larger") is not None
    assert await answers.get("o", "large") is None
