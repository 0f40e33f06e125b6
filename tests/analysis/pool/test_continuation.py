"""Analyses that outlast their request."""

from __future__ import annotations

import asyncio
import logging

import pytest

from aggregator.analysis.pool import pool as module
from aggregator.analysis.pool.fork_server_main import AnalysisResult
from aggregator.analysis.pool.pool import Continuation
from aggregator.concurrency import current_caller
from aggregator.domain import Article
from aggregator.errors import NoText, Overloaded

ARTICLE = Article("a", html="<p>The ferry runs again.</p>")


class Analyses:
    """Analyses that end when they are released."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.started = 0
        self.cancelled = 0
        self.result: AnalysisResult | Exception = NoText("none")

    async def analyze(self, article: Article) -> AnalysisResult:
        """Wait for the release."""
        self.started += 1
        try:
            await self.released.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(self.result, NoText | Overloaded) or not isinstance(self.result, Exception):
            return self.result
        raise self.result


async def abandoned(continuation: Continuation, article: Article, caller: str = "") -> None:
    """A request that is cancelled while its article is analyzed."""

    async def request() -> None:
        current_caller.set(caller)
        await continuation.run(article)

    task = asyncio.create_task(request())
    await settle()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await settle()


async def settle() -> None:
    """Run everything that is ready."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_repetition_gets_the_result_of_the_running_or_finished_analysis() -> None:
    """However often the request is cancelled, the article is analyzed once."""
    analyses = Analyses()
    continuation = Continuation(analyses.analyze)
    await abandoned(continuation, ARTICLE)
    await abandoned(continuation, Article("another id", html=ARTICLE.html))
    waiting = asyncio.create_task(continuation.run(ARTICLE))
    await settle()
    analyses.released.set()

    assert await waiting is analyses.result
    assert analyses.started == 1

    analyses.released.clear()
    other = Article("b", html="<p>Another page.</p>")
    await abandoned(continuation, other)
    analyses.released.set()
    await settle()
    assert await continuation.run(other) is analyses.result
    assert analyses.started == 2


@pytest.mark.parametrize("caller", ["one", "two"])
async def test_callers_share_no_analysis(caller: str) -> None:
    """Equal pages of two callers are two analyses: one would wait in the queue of the other."""
    analyses = Analyses()
    continuation = Continuation(analyses.analyze)
    await abandoned(continuation, ARTICLE, "one")
    await abandoned(continuation, ARTICLE, caller)
    assert analyses.started == len({"one", caller})
    continuation.close()


async def test_analyses_without_requests_are_limited_per_caller_and_in_all() -> None:
    """The newest ends, so that those before are finished for their repetitions."""
    analyses = Analyses()
    continuation = Continuation(analyses.analyze)
    for caller in range(10):
        for number in range(module.MAX_CONTINUED_PER_CALLER + 2):
            await abandoned(continuation, Article("a", text=f"{number}"), str(caller))
        if caller == 0:
            assert analyses.cancelled == 2
    assert analyses.started - analyses.cancelled == module.MAX_CONTINUED

    continuation.close()
    await settle()
    assert analyses.cancelled == analyses.started


async def test_kept_results_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest is dropped and analyzed again."""
    monkeypatch.setattr(module, "MAX_KEPT_RESULTS", 2)
    analyses = Analyses()
    continuation = Continuation(analyses.analyze)
    articles = [Article("a", text=f"{number}") for number in range(3)]
    for article in articles:
        analyses.released.clear()
        await abandoned(continuation, article)
        analyses.released.set()
        await settle()
    for article in reversed(articles):
        await continuation.run(article)
    assert analyses.started == 4


async def test_results_that_say_nothing_about_the_article_are_not_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A repetition after an overload or an unexpected error analyzes the article again."""
    analyses = Analyses()
    continuation = Continuation(analyses.analyze)
    for result in (Overloaded("no processor"), ValueError("a defect")):
        analyses.released.clear()
        analyses.result = result
        await abandoned(continuation, ARTICLE)
        analyses.released.set()
        await settle()
    analyses.result = NoText("none")

    assert await continuation.run(ARTICLE) is analyses.result
    assert analyses.started == 3
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
