"""Analysis pool: runs the analyzer in this process or in worker processes.

A plain article takes under 1 ms and its client is waiting, so it is analyzed in this process. HTML extraction
and very long texts take up to seconds; they, and all batches when ``processes`` > 0, go to worker processes
that have the models loaded. That keeps the event loop free.

Hostile pages can make the extractor run for very long. Two lanes bound the damage:

* fast lane: ``processes`` workers, given to callers round-robin (``fair_semaphore.py``). A task that exceeds
  ``FAST_LANE_TIMEOUT_S`` loses its worker and is retried in the slow lane.
* slow lane: one worker of low priority that takes one article at a time, up to ``SLOW_LANE_TIMEOUT_S``.

So a hostile page costs other callers at most ``FAST_LANE_TIMEOUT_S`` of one worker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.pool.codec import AnalysisResult
from aggregator.analysis.pool.fork_server import ForkServer
from aggregator.analysis.pool.fork_server_main import resource_limit_error
from aggregator.analysis.pool.worker import AnalysisWorker, WorkerDied
from aggregator.concurrency.fair_semaphore import FairSemaphore, current_caller
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError, RateLimited

HEAVY_TEXT_CHARS = 50_000
MAX_ARTICLES_PER_TASK = 16
# Nearly every page takes under 1/10 of this. A page that is merely long loses this much work to the retry.
FAST_LANE_TIMEOUT_S = 1.0
# An article of the largest size allowed takes a few seconds; longer times indicate a hostile page.
SLOW_LANE_TIMEOUT_S = 20.0
SLOW_LANE_NICE_INCREMENT = 10
# Articles of one caller that may wait for the slow lane: at most one minute of work.
SLOW_LANE_QUEUE_PER_CALLER = 3
# Memory that a worker may allocate beyond what it shares with the fork server.
WORKER_MEMORY_BYTES = 1 << 30

log = logging.getLogger(__name__)


class AnalysisPool:
    """Runs ``Analyzer.analyze_many`` in this process or in workers, which are started when first needed.

    ``processes``: workers of the fast lane; 0 keeps batches of plain articles in this process (one worker
    still takes heavy articles). ``memory_bytes``: memory limit per worker.
    """

    def __init__(
        self, analyzer: Analyzer, processes: int = 0, *, memory_bytes: int = WORKER_MEMORY_BYTES
    ) -> None:
        self.analyzer = analyzer
        self._offloads_batches = processes > 0
        self._fork_server = ForkServer(analyzer, memory_bytes)
        self._idle_workers: list[AnalysisWorker] = []
        self._fast_lane = FairSemaphore(max(1, processes))
        self._slow_lane = FairSemaphore(1)

    async def analyze_many(self, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        """Return one result per article, in order; an unusable article gives its error."""
        tasks = list(self._split_into_tasks(articles))
        task_results = await asyncio.gather(
            *(self._run_in_worker([articles[i] for i in task]) for task in tasks)
        )
        results: dict[int, AnalysisResult] = {}
        for task, result_list in zip(tasks, task_results, strict=True):
            results.update(zip(task, result_list, strict=True))
        for i, article in enumerate(articles):
            if i not in results:
                results[i] = self.analyzer.analyze_many([article])[0]
                if len(articles) > 1:  # let single posts run between the articles of a batch
                    await asyncio.sleep(0)
        return [results[i] for i in range(len(articles))]

    def close(self) -> None:
        """Stop the worker processes. Idempotent."""
        while self._idle_workers:
            self._idle_workers.pop().kill()
        self._fork_server.close()

    def _split_into_tasks(self, articles: Sequence[Article]) -> Iterator[list[int]]:
        """Yield the positions of the articles of each worker task; each heavy article is a separate task."""
        heavy = [i for i, article in enumerate(articles) if _is_heavy(article)]
        yield from ([i] for i in heavy)
        if self._offloads_batches and len(articles) > 1:
            plain = sorted(set(range(len(articles))).difference(heavy))
            yield from (
                plain[i : i + MAX_ARTICLES_PER_TASK] for i in range(0, len(plain), MAX_ARTICLES_PER_TASK)
            )

    async def _run_in_worker(self, articles: list[Article]) -> list[AnalysisResult]:
        try:
            return await self._run_in_fast_lane(articles)
        except WorkerDied:
            if len(articles) == 1:
                return [await self._run_in_slow_lane(articles[0])]
        # One article exceeded the limits: run each alone, so that the others get their results.
        return [(await self._run_in_worker([article]))[0] for article in articles]

    async def _run_in_fast_lane(self, articles: list[Article]) -> list[AnalysisResult]:
        async with self._fast_lane.slot():
            worker = self._idle_workers.pop() if self._idle_workers else AnalysisWorker(self._fork_server)
            try:
                results = await worker.run(articles, FAST_LANE_TIMEOUT_S)
            except BaseException:  # dead, or cancelled in the middle of a request
                worker.kill()
                raise
            self._idle_workers.append(worker)
            return results

    async def _run_in_slow_lane(self, article: Article) -> AnalysisResult:
        if self._slow_lane.queued(current_caller.get()) >= SLOW_LANE_QUEUE_PER_CALLER:
            return _slow_lane_full()
        async with self._slow_lane.slot():
            worker = AnalysisWorker(self._fork_server, nice_increment=SLOW_LANE_NICE_INCREMENT)
            try:
                return (await worker.run([article], SLOW_LANE_TIMEOUT_S))[0]
            except WorkerDied:
                return _resource_limit_exceeded(article)
            finally:
                worker.kill()


def _resource_limit_exceeded(article: Article) -> AggregatorError:
    log.warning(
        "Analysis of an article exceeded the time or memory limit and was killed: id=%r caller=%r",
        article.id,
        current_caller.get(),
    )
    return resource_limit_error()


def _is_heavy(article: Article) -> bool:
    return bool(article.html and not article.text) or len(article.text) > HEAVY_TEXT_CHARS


def _slow_lane_full() -> RateLimited:
    error = RateLimited(
        f"{SLOW_LANE_QUEUE_PER_CALLER} of your articles that take long to analyze are already waiting; "
        "send this one again later, or send its plain text."
    )
    error.retry_after_s = round(SLOW_LANE_TIMEOUT_S)
    return error
