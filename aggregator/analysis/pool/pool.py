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

from aggregator.analysis.analyzer import Analyser
from aggregator.analysis.pool.codec import Result
from aggregator.analysis.pool.fork_server import AnalysisForks, too_much
from aggregator.analysis.pool.worker import AnalysisWorker, WorkerGone
from aggregator.concurrency.fair_semaphore import CALLER, Places
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError, OverLimit

LONG_CHARACTERS = 50_000
BATCH = 16  # at most so many are one piece of work
# Nearly every page takes under a tenth of this. To begin anew is to lose this much of a page that only is long.
QUICK_S = 1.0
# An article of the largest size allowed takes a few seconds; whatever takes longer was made to.
ARTICLE_TIMEOUT_S = 20.0
LONG_NICER = 10
# So many pages of one caller may wait for the one process for long ones: a minute's worth at worst.
LONG_WAITING = 3
# What a worker may take beyond what it has once the models are there.
MEMORY_BYTES = 1 << 30

log = logging.getLogger(__name__)


class AnalysisPool:
    """Runs ``Analyser.analyse_many``, with worker processes started when first needed."""

    def __init__(self, analyser: Analyser, processes: int = 0, *, memory_bytes: int = MEMORY_BYTES) -> None:
        self.analyser = analyser
        self._takes_batches = processes > 0
        self._forks = AnalysisForks(analyser, memory_bytes)
        self._free: list[AnalysisWorker] = []
        self._quick = Places(max(1, processes))
        self._long = Places(1)

    async def analyse_many(self, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        """One result per article, in order; an unusable article gives its error."""
        elsewhere = list(self._pieces(articles))
        done = await asyncio.gather(*(self._elsewhere([articles[i] for i in piece]) for piece in elsewhere))
        results: dict[int, Result] = {}
        for piece, found in zip(elsewhere, done, strict=True):
            results.update(zip(piece, found, strict=True))
        for i, article in enumerate(articles):
            if i not in results:
                results[i] = self.analyser.analyse_many([article])[0]
                if len(articles) > 1:  # a batch gives way to single articles after each of its own
                    await asyncio.sleep(0)
        return [results[i] for i in range(len(articles))]

    def close(self) -> None:
        """Stop the worker processes. Idempotent."""
        while self._free:
            self._free.pop().kill()
        self._forks.close()

    def _pieces(self, articles: Sequence[Article]) -> Iterator[list[int]]:
        """What goes to other processes. What may take long goes alone, so that only itself is to blame."""
        heavy = [i for i, article in enumerate(articles) if _is_heavy(article)]
        yield from ([i] for i in heavy)
        if self._takes_batches and len(articles) > 1:
            plain = sorted(set(range(len(articles))).difference(heavy))
            yield from (plain[i : i + BATCH] for i in range(0, len(plain), BATCH))

    async def _elsewhere(self, articles: list[Article]) -> list[Result]:
        try:
            return await self._quickly(articles)
        except WorkerGone:
            if len(articles) == 1:
                return [await self._at_length(articles[0])]
        # One of them was too much; the others are not to blame.
        return [(await self._elsewhere([article]))[0] for article in articles]

    async def _quickly(self, articles: list[Article]) -> list[Result]:
        async with self._quick.place():
            worker = self._free.pop() if self._free else AnalysisWorker(self._forks)
            try:
                done = await worker.run(articles, QUICK_S)
            except BaseException:  # gone, or cancelled: whatever it does is nobody's work any more
                worker.kill()
                raise
            self._free.append(worker)
            return done

    async def _at_length(self, article: Article) -> Result:
        if self._long.waiting(CALLER.get()) >= LONG_WAITING:
            return _too_many()
        async with self._long.place():
            worker = AnalysisWorker(self._forks, nicer=LONG_NICER)
            try:
                return (await worker.run([article], ARTICLE_TIMEOUT_S))[0]
            except WorkerGone:
                return _given_up(article)
            finally:
                worker.kill()


def _given_up(article: Article) -> AggregatorError:
    log.warning(
        "An article took too much time or memory and was cut off: id=%r caller=%r", article.id, CALLER.get()
    )
    return too_much()


def _is_heavy(article: Article) -> bool:
    return bool(article.html and not article.text) or len(article.text) > LONG_CHARACTERS


def _too_many() -> OverLimit:
    error = OverLimit(
        f"{LONG_WAITING} articles of yours that take long to analyse wait already; send this one again later, or its "
        "plain text."
    )
    error.retry_after_s = round(ARTICLE_TIMEOUT_S)
    return error
