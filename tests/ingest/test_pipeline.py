"""Overlapping batches of one request give the answers of processing the articles one by one."""

import asyncio
from collections.abc import Sequence

import pytest

from aggregator.domain import Answer, Article
from aggregator.errors import StoreUnavailable
from aggregator.store.base import Store, Transaction
from aggregator.store.memory import MemoryStore
from tests.support.factories import Core, core, edited, story

STORIES = [story(seed, sentences=30) for seed in range(6)]


def newswire() -> list[Article]:
    """Forty articles: unrelated ones, near-copies and exact copies in other batches, a repeat, an update."""
    texts = [edited(STORIES[i % 6], i) if i > 5 else STORIES[i] for i in range(36)]
    articles = [Article(id=f"n{i}", text=text, lang="en") for i, text in enumerate(texts)]
    reposted = [Article(id="n3", text=texts[3], lang="en"), Article(id="n4", text=story(9), lang="en")]
    copies = [Article(id=f"x{i}", text=STORIES[i], lang="en") for i in range(2)]
    return [*articles, *reposted, *copies]


async def answers(newsroom: Core, articles: list[Article]) -> list[tuple[object, ...]]:
    """(id, verdict, canonical id, stored) of each answer: what does not depend on chance."""
    results = await newsroom.ingest.submit_many(articles)
    assert all(isinstance(answer, Answer) for answer in results)
    return [
        (a.id, a.outcome.verdict, a.outcome.match.canonical_id if a.outcome.match else None, a.stored)
        for a in results
        if isinstance(a, Answer)
    ]


@pytest.mark.integration
@pytest.mark.parametrize("batch_articles", [1, 3, 7])
async def test_overlapping_batches_answer_as_one_by_one(store: Store, batch_articles: int) -> None:
    """On every store; without other writers only the update may be retried: it reads its group itself."""
    sequential = core(MemoryStore())
    expected = [(await answers(sequential, [article]))[0] for article in newswire()]
    overlapping = core(store, batch_articles=batch_articles)

    assert await answers(overlapping, newswire()) == expected
    assert overlapping.ingest.commit_retries <= 1


async def test_two_processes_that_post_the_same_stories_find_one_new_each(store: Store) -> None:
    """Through two instances on one store: per story one article is new and one a duplicate."""
    newsrooms = core(store, batch_articles=2), core(store, batch_articles=3)
    batches = [[Article(id=f"{d}{i}", text=STORIES[i], lang="en") for i in range(6)] for d in "ab"]

    results = await asyncio.gather(
        *(answers(newsroom, articles) for newsroom, articles in zip(newsrooms, batches, strict=True))
    )

    for pair in zip(*results, strict=True):
        assert sorted(str(verdict) for _, verdict, _, _ in pair) == ["duplicate", "new"]


class LosesAnswer(MemoryStore):
    """Applies its n-th group of commits but loses the answer."""

    def __init__(self, fails_at: int) -> None:
        super().__init__()
        self.commits_before_failure = fails_at

    async def commit_many(self, transactions: Sequence[Transaction]) -> list[tuple[int, ...]]:
        """Applied in any case."""
        await asyncio.sleep(0)
        results = await super().commit_many(transactions)
        self.commits_before_failure -= 1
        if self.commits_before_failure == 0:
            raise StoreUnavailable("The answer was lost.")
        return results


@pytest.mark.integration
@pytest.mark.parametrize("fails_at", [1, 2, 5])
async def test_a_failure_ends_the_request_and_a_retry_completes_it(fails_at: int) -> None:
    """Work in flight is cancelled; the repeated request gets the answers of an undisturbed one."""
    expected = [row[:3] for row in await answers(core(MemoryStore(), batch_articles=3), newswire()[:36])]
    failing = core(LosesAnswer(fails_at), batch_articles=3)

    with pytest.raises(StoreUnavailable):
        await failing.ingest.submit_many(newswire()[:36])

    assert [row[:3] for row in await answers(failing, newswire()[:36])] == expected
    assert asyncio.all_tasks() == {asyncio.current_task()}
