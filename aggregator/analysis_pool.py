"""Where analyses run: in this process, or in others when that keeps the event loop free.

One plain article takes under a millisecond, less than a trip to another process. HTML extraction
and very long texts take up to seconds; they, and whole batches when ``processes`` > 1, go to a pool
whose workers load the models once.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from aggregator.analyse import Analyser
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError, BadInput

LONG_CHARACTERS = 50_000
BATCH = 16
HTML_TIMEOUT_S = 30.0

_analyser: Analyser | None = None


def _load(analyser: Analyser) -> None:
    global _analyser
    _analyser = analyser


def _analyse(articles: list[Article]) -> list[Analysis | AggregatorError]:
    assert _analyser is not None
    return _analyser.analyse_many(articles)


class AnalysisPool:
    """Runs ``Analyser.analyse_many``, with worker processes started when first needed."""

    def __init__(self, analyser: Analyser, processes: int = 1) -> None:
        self.analyser = analyser
        self._processes = processes
        self._executor: ProcessPoolExecutor | None = None

    async def analyse_many(self, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        """One result per article, in order; an unusable article gives its error."""
        if self._processes > 1 and len(articles) >= 2 * BATCH:
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
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
            self._executor = None

    async def _elsewhere(self, articles: list[Article]) -> list[Analysis | AggregatorError]:
        loop = asyncio.get_running_loop()
        try:
            work = loop.run_in_executor(self._pool(), _analyse, articles)
            return await asyncio.wait_for(work, HTML_TIMEOUT_S * len(articles))
        except (BrokenProcessPool, TimeoutError):
            self._replace()
            error = BadInput(
                "Analysing this article took too much time or memory; send its plain text instead."
            )
            return [error for _ in articles]

    def _pool(self) -> ProcessPoolExecutor:
        if self._executor is None:
            # "spawn": a forked child would inherit the event loop's sockets and threads' locks.
            self._executor = ProcessPoolExecutor(
                max(1, self._processes),
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_load,
                initargs=(self.analyser,),
            )
        return self._executor

    def _replace(self) -> None:
        if self._executor is not None:
            for process in list((self._executor._processes or {}).values()):
                process.kill()
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None


def _is_heavy(article: Article) -> bool:
    return bool(article.html and not article.text) or len(article.text) > LONG_CHARACTERS
