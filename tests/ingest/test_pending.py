"""Pending articles: batches of one request, and micro-batches of those that arrive meanwhile."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.concurrency import current_caller
from aggregator.domain import Article
from aggregator.errors import StoreUnavailable
from aggregator.ingest.pending import MicroBatcher, PendingArticle, split_batches
from tests.support.factories import story

ARTICLE = Article("ferry", text=story(1), lang="eo")
ANALYSIS = Analyzer({"xx": HashedModel()}).analyze(ARTICLE)
MAX_ARTICLES = 64


def pending(id_: str = "ferry", position: int = 0) -> PendingArticle:
    """A pending article with an assigned number."""
    return PendingArticle(position, replace(ARTICLE, id=id_), ANALYSIS, number=9, first_version=7)


@given(st.lists(st.sampled_from("abcdef"), max_size=20), st.integers(1, 5))
def test_batches_have_every_article_in_order_and_no_id_twice(ids: list[str], size: int) -> None:
    """No batch is empty, and one ends early only before a repeated id."""
    posted = [pending(id_, i) for i, id_ in enumerate(ids)]

    batches = list(split_batches(posted, size))

    assert [item for batch in batches for item in batch] == posted
    for i, batch in enumerate(batches):
        in_batch = [item.article.id for item in batch]
        assert 0 < len(batch) == len(set(in_batch)) <= size
        following = [item.article.id for rest in batches[i + 1 :] for item in rest]
        assert not following or len(batch) == size or following[0] in in_batch


class BatchRecorder:
    """Records the ids of each batch; a batch takes until ``finish`` is set."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.finish = asyncio.Event()
        self.fails = False
        self.finished = 0
        self.batcher = MicroBatcher(self.process, MAX_ARTICLES)

    async def process(self, batch: list[PendingArticle]) -> None:
        """Record the ids and wait."""
        self.batches.append([item.article.id for item in batch])
        await self.finish.wait()
        self.finished += 1
        if self.fails:
            self.fails = False
            raise StoreUnavailable("The store is unavailable.")

    def submit(self, id_: str, caller: str = "") -> asyncio.Task[None]:
        """Submit an article in a separate task."""

        async def run() -> None:
            current_caller.set(caller)
            await self.batcher.submit(pending(id_))

        return asyncio.create_task(run())

    async def started(self) -> None:
        """Wait until the first batch is being processed."""
        while not self.batches:  # noqa: ASYNC110 (one event loop step per iteration)
            await asyncio.sleep(0)


async def test_the_first_article_starts_immediately_and_the_rest_form_batches() -> None:
    """In order of arrival, at most MAX_ARTICLES and no id twice per batch."""
    recorder = BatchRecorder()
    tasks = [recorder.submit("first")]
    await recorder.started()
    ids = ["a", "b", "a", *map(str, range(MAX_ARTICLES))]
    tasks += [recorder.submit(id_) for id_ in ids]
    await asyncio.sleep(0)
    recorder.finish.set()
    await asyncio.gather(*tasks)

    assert recorder.batches == [["first"], ["a", "b"], ["a", *ids[3 : MAX_ARTICLES + 2]], [ids[-1]]]


async def test_a_failure_is_raised_to_the_callers_of_that_batch_only() -> None:
    """The next batch is processed."""
    recorder = BatchRecorder()
    recorder.fails = True
    first = recorder.submit("first")
    await recorder.started()
    second = recorder.submit("second")
    recorder.finish.set()

    with pytest.raises(StoreUnavailable):
        await first
    await second


async def test_a_cancelled_caller_interrupts_no_batch() -> None:
    """Its article is dropped from a batch that has not started; the others get their answers."""
    recorder = BatchRecorder()
    tasks = [recorder.submit("a")]
    await recorder.started()
    tasks += [recorder.submit(id_) for id_ in "bcd"]
    await asyncio.sleep(0)
    tasks[0].cancel()  # its batch runs
    tasks[2].cancel()  # waits for the next batch
    await asyncio.wait([tasks[0], tasks[2]])
    recorder.finish.set()
    await asyncio.gather(tasks[1], tasks[3])

    assert tasks[0].cancelled() and tasks[2].cancelled()
    assert (recorder.batches, recorder.finished) == ([["a"], ["b", "d"]], 2)


async def test_waiting_callers_take_turns() -> None:
    """A caller with many articles delays another one by one batch; each keeps its order."""
    recorder = BatchRecorder()
    tasks = [recorder.submit("first")]
    await recorder.started()
    tasks += [recorder.submit(f"flood-{i}", caller="flood") for i in range(3 * MAX_ARTICLES)]
    tasks += [recorder.submit(f"other-{i}", caller="other") for i in range(2)]
    await asyncio.sleep(0)
    recorder.finish.set()
    await asyncio.gather(*tasks)

    assert recorder.batches[1][:5] == ["flood-0", "other-0", "flood-1", "other-1", "flood-2"]
    assert [id_ for batch in recorder.batches for id_ in batch if id_.startswith("flood")] == [
        f"flood-{i}" for i in range(3 * MAX_ARTICLES)
    ]
