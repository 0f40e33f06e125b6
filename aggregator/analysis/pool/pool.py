"""Analysis pool: runs the analyzer in this process or in worker processes.

An ordinary article takes 1 ms and its client is waiting, so it is analyzed here. HTML extraction, very long
texts and texts of many unknown words take 20 ms to seconds; they, and all batches when ``processes`` > 0, go
to worker processes that have the models loaded (docs/decisions/0040-fork-server.md).

A task that exceeds ``FAST_LANE_CPU_S`` loses its worker and is retried in the slow lane, one worker of low
priority, up to ``SLOW_LANE_CPU_S``. All limits count processor time: what waits for a processor is neither
killed nor refused. An analysis outlasts its request: a repetition continues it (``Continuation``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.pool.fork_server_main import AnalysisResult
from aggregator.analysis.pool.worker import (
    AnalysisWorker,
    CpuLimitExceeded,
    ForkServer,
    WorkerCrashed,
    WorkerDied,
)
from aggregator.analysis.text.normalization import expanding_characters
from aggregator.analysis.vocabulary import TooManyNewStrings
from aggregator.concurrency import FairSemaphore, current_caller
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError, AnalysisLimitExceeded, Overloaded, RateLimited

# Characters of a text that this process analyzes, at most: 10 to 20 ms. Other scripts than ASCII take longer.
MAX_ASCII_CHARS_HERE = 50_000
MAX_CHARS_HERE = 10_000
MAX_EXPANDING_HERE = 250  # characters that normalization replaces by many
MIN_HEAVY_CHARS = 1_000  # shorter articles are not looked at
MAX_NEW_STRINGS_HERE = 150  # unknown words of an article that this process analyzes; 10 to 75 us each
MAX_ARTICLES_PER_TASK = 16
FAST_LANE_CPU_S = 1.0  # nearly every page takes under 1/10 of this
# The most expensive text and page within the limits of size take 6 to 9 s on a machine of 2024.
SLOW_LANE_CPU_S = 30.0
SLOW_LANE_NICE_INCREMENT = 10
# Attempts of an article whose worker was ended from outside, before it is refused as retryable.
WORKER_ATTEMPTS = 3
RETRY_AFTER_S = 5
WORKER_MEMORY_BYTES = 1 << 30  # memory that a worker may allocate beyond what it shares with the fork server
# Analyses without a waiting request; each holds its article. Beyond that the analysis ends with its request.
MAX_CONTINUED = 16
MAX_CONTINUED_PER_CALLER = 4
# Results kept for repetitions: the newest, with this many characters in all, and always one.
MAX_KEPT_RESULTS = 64
MAX_KEPT_CHARS = 4_000_000

log = logging.getLogger(__name__)


class AnalysisPool:
    """Runs ``Analyzer.analyze_many`` in this process or in workers, which are started when first needed.

    ``processes``: workers of the fast lane; 0: one, for heavy articles only. ``memory_bytes``: per worker.
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
        self._continuation = Continuation(self._run_alone)

    @property
    def restarts(self) -> int:
        """How often the fork server of the workers was started again."""
        return self._fork_server.restarts

    def fork_now(self) -> None:
        """``ForkServer.fork_now``, unless batches are analyzed in this process."""
        if self._offloads_batches:
            self._fork_server.fork_now()

    async def start(self) -> None:
        """Start a worker before the first batch needs one, unless batches are analyzed in this process."""
        if self._offloads_batches:
            await self._run_in_worker([Article(id="", text="The ferry runs again.")])

    async def analyze_many(self, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        """One result per article, in order; an unusable article gives its error."""
        if len(articles) == 1 and not _is_heavy(articles[0]):
            limit = MAX_NEW_STRINGS_HERE if self._offloads_batches else None
            try:
                return self.analyzer.analyze_many(articles, max_new_strings=limit)
            except TooManyNewStrings:  # it turns out expensive
                return [await self._continuation.run(articles[0])]
        results: dict[int, AnalysisResult] = {}

        async def run(task: list[int]) -> None:
            if len(task) == 1:
                results[task[0]] = await self._continuation.run(articles[task[0]])
            else:
                found = await self._run_in_worker([articles[i] for i in task])
                results.update(zip(task, found, strict=True))

        await asyncio.gather(*map(run, self._split_into_tasks(articles)))
        for i, article in enumerate(articles):
            if i not in results:
                results[i] = self.analyzer.analyze_many([article])[0]
                await asyncio.sleep(0)  # let single posts run between the articles of a batch
        return [results[i] for i in range(len(articles))]

    def close(self) -> None:
        """Stop the worker processes. Idempotent."""
        self._continuation.close()
        while self._idle_workers:
            self._idle_workers.pop().kill()
        self._fork_server.close()

    def _split_into_tasks(self, articles: Sequence[Article]) -> Iterator[list[int]]:
        """Yield the positions of the articles of each worker task; each heavy article is a separate task."""
        heavy = [i for i, article in enumerate(articles) if _is_heavy(article)]
        yield from ([i] for i in heavy)
        if self._offloads_batches and len(articles) > 1:
            plain = sorted(set(range(len(articles))).difference(heavy))
            for i in range(0, len(plain), MAX_ARTICLES_PER_TASK):
                yield plain[i : i + MAX_ARTICLES_PER_TASK]

    async def _run_alone(self, article: Article) -> AnalysisResult:
        return (await self._run_in_worker([article]))[0]

    async def _run_in_worker(self, articles: list[Article]) -> list[AnalysisResult]:
        try:
            async with self._fast_lane.slot():
                worker = self._idle_workers.pop() if self._idle_workers else AnalysisWorker(self._fork_server)
                try:
                    results = await worker.run(articles, FAST_LANE_CPU_S)
                except BaseException:  # dead, or cancelled in the middle of a request
                    worker.kill()
                    raise
                self._idle_workers.append(worker)
                return results
        except WorkerDied as error:
            if not isinstance(error, CpuLimitExceeded):
                log.warning("analysis is tried again: %s", error)
            if len(articles) == 1:
                return [await self._run_in_slow_lane(articles[0])]
        # One article exceeded the limits: run each alone, so that the others get their results.
        return [await self._run_alone(article) for article in articles]

    async def _run_in_slow_lane(self, article: Article) -> AnalysisResult:
        reason = ""
        for _ in range(WORKER_ATTEMPTS):
            async with self._slow_lane.slot():
                worker = AnalysisWorker(self._fork_server, nice_increment=SLOW_LANE_NICE_INCREMENT)
                try:
                    return (await worker.run([article], SLOW_LANE_CPU_S))[0]
                except CpuLimitExceeded:
                    what = f"takes more than {SLOW_LANE_CPU_S:g} s of processor time"
                    return _limit_exceeded(article, what)
                except WorkerCrashed as error:
                    return _limit_exceeded(article, f"ends the process that analyzes it ({error})")
                except WorkerDied as error:
                    reason = str(error)
                    log.warning("analysis of an article is tried again: %s", reason)
                finally:
                    worker.kill()
        refusal = Overloaded(f"The article was not analyzed: {reason}; send it again later.")
        refusal.retry_after_s = RETRY_AFTER_S
        return refusal


@dataclass(slots=True, eq=False)
class _Running:
    task: asyncio.Task[AnalysisResult]
    caller: str
    waiting: int = 0  # requests


class Continuation:
    """Runs analyses that survive the cancellation of their requests, which are compared by their content.

    ``analyze`` is called in the context of the first request, so it counts for the caller of that one.
    """

    def __init__(self, analyze: Callable[[Article], Coroutine[Any, Any, AnalysisResult]]) -> None:
        self._analyze = analyze
        self._running: dict[bytes, _Running] = {}
        self._kept: dict[bytes, AnalysisResult] = {}  # the newest is last

    async def run(self, article: Article) -> AnalysisResult:
        """Return the result of ``analyze``, which runs once for concurrent and repeated requests."""
        caller = current_caller.get()
        key = _content_key(caller, article)
        if (kept := self._kept.get(key)) is not None:
            return kept
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = _Running(asyncio.create_task(self._analyze(article)), caller)
            running.task.add_done_callback(lambda _: self._on_done(key, running))
        running.waiting += 1
        try:
            return await asyncio.shield(running.task)
        finally:
            running.waiting -= 1
            if not running.waiting and not running.task.done() and not self._may_continue(caller):
                del self._running[key]
                running.task.cancel()

    def close(self) -> None:
        """Cancel what is running. Idempotent."""
        for running in self._running.values():
            running.task.cancel()

    def _may_continue(self, caller: str) -> bool:
        continued = [running.caller for running in self._running.values() if not running.waiting]
        return len(continued) <= MAX_CONTINUED and continued.count(caller) <= MAX_CONTINUED_PER_CALLER

    def _on_done(self, key: bytes, running: _Running) -> None:
        if self._running.get(key) is running:
            del self._running[key]
        if running.task.cancelled() or running.waiting:
            return
        if (error := running.task.exception()) is not None:
            log.error("an analysis that had outlasted its request failed", exc_info=error)
        elif not isinstance(result := running.task.result(), RateLimited):  # else no answer about the article
            self._kept[key] = result
            while len(self._kept) > MAX_KEPT_RESULTS or (
                len(self._kept) > 1
                and sum(len(r.title) + len(r.text) for r in self._kept.values() if isinstance(r, Analysis))
                > MAX_KEPT_CHARS
            ):
                del self._kept[next(iter(self._kept))]


def _content_key(caller: str, article: Article) -> bytes:
    """A digest of what an analysis depends on, and of the caller, so that no caller waits for another's."""
    parts = (caller, article.title, article.text, article.html, article.lang or "")
    joined = "".join((*(f"{len(part)} " for part in parts), *parts))
    return blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _limit_exceeded(article: Article, what: str) -> AnalysisLimitExceeded:
    log.warning(
        "article rejected, since its analysis %s: id=%r caller=%r", what, article.id, current_caller.get()
    )
    return AnalysisLimitExceeded(f"Analyzing this article {what}; send its plain text, or split it.")


def _is_heavy(article: Article) -> bool:
    title, text = article.title, article.text
    if article.html and not text:
        return True
    length = len(title) + len(text)
    if length <= MIN_HEAVY_CHARS:
        return False
    if title.isascii() and text.isascii():
        return length > MAX_ASCII_CHARS_HERE
    expanding = expanding_characters(title) + expanding_characters(text)
    return length > MAX_CHARS_HERE or expanding > MAX_EXPANDING_HERE
