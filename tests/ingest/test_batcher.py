"""Micro-batching: articles that arrive while a batch is processed form the next one."""

import asyncio

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.domain import Article
from aggregator.errors import StoreUnavailable
from aggregator.ingest.batcher import MicroBatcher
from aggregator.ingest.pending import PendingArticle
from tests.support.factories import story

MAX_ARTICLES = 64
ANALYSIS = Analyzer({"xx": HashedModel()}).analyze(Article(id="", text=story(1), lang="eo"))


def pending(id_: str) -> PendingArticle:
    """A pending article with this id."""
    return PendingArticle(0, Article(id=id_, text=""), ANALYSIS)


class BatchRecorder:
    """Records the ids of each batch; a batch takes until ``finish`` is set."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.finish = asyncio.Event()
        self.fails = False
        self.batcher = MicroBatcher(self.process, MAX_ARTICLES)

    async def process(self, batch: list[PendingArticle]) -> None:
        """Record the ids and wait."""
        self.batches.append([item.article.id for item in batch])
        await self.finish.wait()
        if self.fails:
            self.fails = False
            raise StoreUnavailable("The store is unavailable.")

    def submit(self, id_: str) -> asyncio.Task[None]:
        """Submit an article in a separate task."""
        return asyncio.create_task(self.batcher.submit(pending(id_)))

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


async def test_a_cancelled_caller_does_not_cancel_the_others() -> None:
    """The article of a cancelled waiter stays in its batch; the others get their answers."""
    recorder = BatchRecorder()
    tasks = [recorder.submit(id_) for id_ in "abcd"]
    await recorder.started()
    await asyncio.sleep(0)
    tasks[0].cancel()  # processes its own article
    tasks[2].cancel()  # waits for the next batch
    recorder.finish.set()
    await asyncio.gather(tasks[1], tasks[3])

    assert tasks[0].cancelled() and tasks[2].cancelled()
    assert recorder.batches == [["a"], ["b", "c", "d"]]
