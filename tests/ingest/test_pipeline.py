"""Groups of one list overlap; the answers are those of settling them one after another."""

import asyncio

import pytest

from aggregator.domain import Answer, Article
from aggregator.errors import StoreUnavailable
from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore
from tests.support.factories import Core, core, edited, story

STORIES = [story(seed, sentences=30) for seed in range(6)]


def wire() -> list[Article]:
    """Forty lines: strangers, near-copies and exact copies in other groups, one id again and changed."""
    texts = [edited(STORIES[i % 6], i) if i > 5 else STORIES[i] for i in range(36)]
    lines = [Article(id=f"n{i}", text=text, lang="en") for i, text in enumerate(texts)]
    again = [Article(id="n3", text=texts[3], lang="en"), Article(id="n4", text=story(9), lang="en")]
    return [*lines, *again, *(Article(id=f"x{i}", text=STORIES[i], lang="en") for i in range(2))]


async def told(of: Core, articles: list[Article]) -> list[tuple[object, ...]]:
    """What each was answered, without numbers that depend on chance."""
    answers = await of.ingest.submit_many(articles)
    assert all(isinstance(answer, Answer) for answer in answers)
    return [
        (a.id, a.outcome.verdict, a.outcome.match.canonical_id if a.outcome.match else None, a.stored)
        for a in answers
        if isinstance(a, Answer)
    ]


@pytest.mark.parametrize("chunk", [1, 3, 7])
async def test_overlapping_groups_answer_as_one_by_one(store: Store, chunk: int) -> None:
    """On every store; nobody else wrote, so at most the update had to be decided again: it reads its group itself."""
    alone = core(MemoryStore())
    expected = [(await told(alone, [article]))[0] for article in wire()]
    overlapping = core(store, chunk=chunk)

    assert await told(overlapping, wire()) == expected
    assert overlapping.ingest.commit_retries <= 1


async def test_two_lists_of_the_same_stories_at_once(store: Store) -> None:
    """Through two instances: per story one is new, whoever was first."""
    desks = core(store, chunk=2), core(store, chunk=3)
    lists = [[Article(id=f"{d}{i}", text=STORIES[i], lang="en") for i in range(6)] for d in "ab"]

    answers = await asyncio.gather(*(told(desk, lines) for desk, lines in zip(desks, lists, strict=True)))

    for pair in zip(*answers, strict=True):
        assert sorted(str(verdict) for _, verdict, _, _ in pair) == ["duplicate", "new"]


class Failing(MemoryStore):
    """Its n-th commit is not answered."""

    def __init__(self, fails_at: int) -> None:
        super().__init__()
        self.left = fails_at

    async def commit_many(self, transactions):  # type: ignore[no-untyped-def]
        """Applied all the same."""
        await asyncio.sleep(0)
        done = await super().commit_many(transactions)
        self.left -= 1
        if self.left == 0:
            raise StoreUnavailable("The answer was lost.")
        return done


@pytest.mark.parametrize("fails_at", [1, 2, 5])
async def test_a_failure_ends_the_list_and_a_retry_answers_it(fails_at: int) -> None:
    """What was under way is given up; sent again, all are answered as if nothing had happened."""
    expected = [row[:3] for row in await told(core(MemoryStore(), chunk=3), wire()[:36])]
    failing = core(Failing(fails_at), chunk=3)

    with pytest.raises(StoreUnavailable):
        await failing.ingest.submit_many(wire()[:36])

    assert [row[:3] for row in await told(failing, wire()[:36])] == expected
    assert asyncio.all_tasks() == {asyncio.current_task()}
