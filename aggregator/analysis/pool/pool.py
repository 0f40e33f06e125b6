"""Where analyses run: in this process, or in others when that keeps the event loop free.

One plain article takes under a millisecond, and who posts it waits for it: no trip to another process. HTML
extraction and very long texts take up to seconds; they, and what came together when ``processes`` > 0, go to workers
that have the models loaded: this process has all the rest of the work of a batch.

A page may be made to explode in the extractor, and others must not wait for that. Workers are given in turn to those
who ask (``places.py``). What has not ended after ``QUICK_S`` loses its worker, and begins anew in one process beside them,
which works on one such page at a time and is given less of the processors; that takes nobody's worker. So an exploding
page costs everybody else ``QUICK_S`` of one worker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.pool.codec import AnalysisResult
from aggregator.analysis.pool.fork_server import ForkServer, resource_limit_error
from aggregator.analysis.pool.worker import AnalysisWorker, WorkerDied
from aggregator.concurrency.fair_semaphore import FairSemaphore, current_caller
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError, RateLimited

HEAVY_TEXT_CHARS = 50_000
MAX_ARTICLES_PER_TASK = 16  # at most so many are one piece of work
# Nearly every page takes under a tenth of this. To begin anew is to lose this much of a page that only is long.
FAST_LANE_TIMEOUT_S = 1.0
# An article of the largest size allowed takes a few seconds; whatever takes longer was made to.
SLOW_LANE_TIMEOUT_S = 20.0
SLOW_LANE_NICE_INCREMENT = 10
# So many pages of one caller may wait for the one process for long ones: a minute's worth at worst.
SLOW_LANE_QUEUE_PER_CALLER = 3
# What a worker may take beyond what it has once the models are there.
WORKER_MEMORY_BYTES = 1 << 30

log = logging.getLogger(__name__)


class AnalysisPool:
    """Runs ``Analyser.analyse_many``, with worker processes started when first needed."""

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
        """One result per article, in order; an unusable article gives its error."""
        elsewhere = list(self._split_into_tasks(articles))
        done = await asyncio.gather(
            *(self._run_in_worker([articles[i] for i in piece]) for piece in elsewhere)
        )
        results: dict[int, AnalysisResult] = {}
        for piece, found in zip(elsewhere, done, strict=True):
            results.update(zip(piece, found, strict=True))
        for i, article in enumerate(articles):
            if i not in results:
                results[i] = self.analyzer.analyze_many([article])[0]
                if len(articles) > 1:  # a batch gives way to single articles after each of its own
                    await asyncio.sleep(0)
        return [results[i] for i in range(len(articles))]

    def close(self) -> None:
        """Stop the worker processes. Idempotent."""
        while self._idle_workers:
            self._idle_workers.pop().kill()
        self._fork_server.close()

    def _split_into_tasks(self, articles: Sequence[Article]) -> Iterator[list[int]]:
        """What goes to other processes. What may take long goes alone, so that only itself is to blame."""
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
        # One of them was too much; the others are not to blame.
        return [(await self._run_in_worker([article]))[0] for article in articles]

    async def _run_in_fast_lane(self, articles: list[Article]) -> list[AnalysisResult]:
        async with self._fast_lane.slot():
            worker = self._idle_workers.pop() if self._idle_workers else AnalysisWorker(self._fork_server)
            try:
                done = await worker.run(articles, FAST_LANE_TIMEOUT_S)
            except BaseException:  # gone, or cancelled: whatever it does is nobody's work any more
                worker.kill()
                raise
            self._idle_workers.append(worker)
            return done

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
        "An article took too much time or memory and was cut off: id=%r caller=%r",
        article.id,
        current_caller.get(),
    )
    return resource_limit_error()


def _is_heavy(article: Article) -> bool:
    return bool(article.html and not article.text) or len(article.text) > HEAVY_TEXT_CHARS


def _slow_lane_full() -> RateLimited:
    error = RateLimited(
        f"{SLOW_LANE_QUEUE_PER_CALLER} articles of yours that take long to analyse wait already; send this one again later, or its "
        "plain text."
    )
    error.retry_after_s = round(SLOW_LANE_TIMEOUT_S)
    return error
