"""Where analyses run: in this process, or in others when that keeps the event loop free.

One plain article takes under a millisecond, and who posts it waits for it: no trip to another process. HTML
extraction and very long texts take up to seconds; they, and what came together when ``processes`` > 0, go to workers
that load the models once: this process has all the rest of the work of a batch.

A page may be made to explode in the extractor. Each worker has one piece of work at a time, so its time counts
from when it begins, and the worker that is killed for it takes nobody else's work along.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aggregator.analyse import Analyser
from aggregator.analysis_worker import AnalysisWorker, WorkerGone, too_much
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError

LONG_CHARACTERS = 50_000
BATCH = 16  # at most so many are one piece of work
# An article of the largest size allowed takes a few seconds; whatever takes longer was made to.
ARTICLE_TIMEOUT_S = 20.0
# What a worker may take beyond what it has once the models are there.
MEMORY_BYTES = 1 << 30


class AnalysisPool:
    """Runs ``Analyser.analyse_many``, with worker processes started when first needed."""

    def __init__(self, analyser: Analyser, processes: int = 0, *, memory_bytes: int = MEMORY_BYTES) -> None:
        self.analyser = analyser
        self._takes_batches = processes > 0
        self._processes = max(1, processes)
        self._memory_bytes = memory_bytes
        self._free: list[AnalysisWorker] = []
        self._places = asyncio.Semaphore(self._processes)

    async def analyse_many(self, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        """One result per article, in order; an unusable article gives its error."""
        if self._takes_batches and len(articles) > 1:
            parts = [list(articles[i : i + BATCH]) for i in range(0, len(articles), BATCH)]
            done = await asyncio.gather(*(self._elsewhere(part) for part in parts))
            return [result for part in done for result in part]
        heavy = [i for i, a in enumerate(articles) if _is_heavy(a)]
        elsewhere = await asyncio.gather(*(self._elsewhere([articles[i]]) for i in heavy))
        results = dict(zip(heavy, (r[0] for r in elsewhere), strict=True))
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

    async def _elsewhere(self, articles: list[Article]) -> list[Analysis | AggregatorError]:
        done = await self._attempt(articles)
        if done is not None:
            return done
        if len(articles) == 1:
            return [too_much()]
        # One of them was too much; the others are not to blame.
        return [(await self._attempt([article]) or [too_much()])[0] for article in articles]

    async def _attempt(self, articles: list[Article]) -> list[Analysis | AggregatorError] | None:
        """None when it took too much, and the worker's life."""
        async with self._places:
            worker = self._free.pop() if self._free else AnalysisWorker(self.analyser, self._memory_bytes)
            try:
                done = await worker.run(articles, ARTICLE_TIMEOUT_S)
            except WorkerGone:
                worker.kill()
                return None
            except BaseException:  # cancelled: whatever it does is nobody's work any more
                worker.kill()
                raise
            self._free.append(worker)
            return done


def _is_heavy(article: Article) -> bool:
    return bool(article.html and not article.text) or len(article.text) > LONG_CHARACTERS
