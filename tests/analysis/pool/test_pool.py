"""Analysis pool: workers give the results of this process, and hostile pages cost only themselves."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel, IndexTerms
from aggregator.analysis.pool import pool as analysis_pool
from aggregator.analysis.pool.pool import HEAVY_TEXT_CHARS, MAX_ARTICLES_PER_TASK, AnalysisPool
from aggregator.concurrency.fair_semaphore import current_caller
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError, AnalysisLimitExceeded, NoText, RateLimited
from tests.support.factories import story
from tests.support.processes import descendants, is_alive

ANALYZER = Analyzer({"xx": HashedModel()})


def comparable(results: Sequence[Analysis | AggregatorError]) -> list[tuple[int, bytes] | str]:
    """Return what can be compared of analyses and errors."""
    return [(r.fingerprint, r.text_hash) if isinstance(r, Analysis) else str(r) for r in results]


async def test_workers_keep_the_order_of_batches_and_heavy_articles() -> None:
    """A batch over two processes, with HTML and long texts among plain ones, keeps its order."""
    html = (
        "<html><body><article>"
        + "".join(f"<p>{story(9, 4)}</p>" for _ in range(3))
        + "</article></body></html>"
    )
    articles = [Article(id=str(i), text=story(i, 3)) for i in range(3 * MAX_ARTICLES_PER_TASK)]
    articles[5] = Article(id="nothing")
    articles[7] = Article(id="html", html=html)
    articles[9] = Article(id="long", text="harbour " * (HEAVY_TEXT_CHARS // 8 + 1))
    expected = comparable(ANALYZER.analyze_many(articles))

    pool = AnalysisPool(ANALYZER, processes=2)
    try:
        assert comparable(await pool.analyze_many(articles)) == expected
        assert comparable(await pool.analyze_many(articles[:10])) == expected[:10]
        broken = (await pool.analyze_many([Article(id="x", html="<html></html>")]))[0]
        assert isinstance(broken, NoText)
    finally:
        pool.close()
        pool.close()


class HostileModel(HashedModel):
    """A model for which three words loop forever, allocate 3 GiB, or end the process."""

    def project(self, terms: IndexTerms) -> Any:
        """As ``HashedModel``, except for three words."""
        words = " ".join(terms)
        while "qspinq" in words:
            pass
        if "qgreedq" in words:
            return bytearray(3 << 30)
        if "qdeadq" in words:
            os._exit(1)
        return super().project(terms)


def page(word: str) -> Article:
    """Return an HTML page that contains ``word``."""
    return Article(
        id=word, html=f"<html><body><article><p>{story(3, 5)} {word} {word}</p></article></body></html>"
    )


async def test_an_exceeded_limit_fails_only_its_own_article(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time, memory, a dead process: each gives an error, while the other articles are analyzed."""
    monkeypatch.setattr(analysis_pool, "SLOW_LANE_TIMEOUT_S", 4.0)
    pool = AnalysisPool(Analyzer({"xx": HostileModel()}), processes=2, memory_bytes=256 << 20)
    words = ["harmless", "qspinq", "peaceful", "qgreedq"]
    batch = [Article(id=str(i), text=story(i, 3)) for i in range(2 * MAX_ARTICLES_PER_TASK)]
    batch[3] = page("qdeadq")
    try:
        single = await asyncio.gather(*(pool.analyze_many([page(word)]) for word in words))
        together = await pool.analyze_many(batch)
    finally:
        pool.close()

    for word, (result,) in zip(words, single, strict=True):
        assert isinstance(result, AnalysisLimitExceeded if word in ("qspinq", "qgreedq") else Analysis), word
    assert [i for i, result in enumerate(together) if not isinstance(result, Analysis)] == [3]


async def test_small_batches_are_offloaded_and_single_articles_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every batch goes to the workers; a single article is analyzed in this process."""
    pool = AnalysisPool(Analyzer({"xx": HashedModel()}), processes=1)
    analyzed_here: list[str] = []
    analyze_many = Analyzer.analyze_many

    def record_ids(self: Analyzer, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        analyzed_here.extend(article.id for article in articles)
        return analyze_many(self, articles)

    monkeypatch.setattr(Analyzer, "analyze_many", record_ids)
    batch = [Article(id=str(i), text=story(i, 3)) for i in range(3)]
    try:
        together = await pool.analyze_many(batch)
        alone = [(await pool.analyze_many([article]))[0] for article in batch]
    finally:
        pool.close()

    assert comparable(together) == comparable(alone)
    assert analyzed_here == ["0", "1", "2"]


def test_a_worker_that_cannot_lower_its_priority_still_works() -> None:
    """Some sandboxes forbid setting the nice value (systemd: SystemCallFilter=~@resources)."""
    program = """
import os

def nice(by):
    raise PermissionError(1, "Operation not permitted")

os.nice = nice

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel, IndexTerms
from aggregator.analysis.pool import fork_server_main

fork_server_main._warm_up(Analyzer({"xx": HashedModel()}))
"""
    completed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )

    assert (completed.returncode, completed.stderr) == (0, "")


async def as_caller(caller: str, pool: AnalysisPool, word: str) -> Analysis | AggregatorError:
    """Return the result of one page sent by ``caller``."""
    current_caller.set(caller)
    return (await pool.analyze_many([page(word)]))[0]


async def test_hostile_pages_do_not_block_pages_of_other_callers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With one worker, a page of another caller is answered while earlier hostile pages still run."""
    # A plain page takes a few ms; the margin is for a busy machine.
    monkeypatch.setattr(analysis_pool, "FAST_LANE_TIMEOUT_S", 2.0)
    monkeypatch.setattr(analysis_pool, "SLOW_LANE_QUEUE_PER_CALLER", 1)
    pool = AnalysisPool(Analyzer({"xx": HostileModel()}), processes=1)
    try:
        assert isinstance(await as_caller("fair", pool, "harmless"), Analysis)
        hostile = [asyncio.create_task(as_caller("hostile", pool, "qspinq")) for _ in range(3)]
        fair = asyncio.create_task(as_caller("fair", pool, "peaceful"))
        first, _ = await asyncio.wait([fair, *hostile], return_when=asyncio.FIRST_COMPLETED)
        refused, _ = await asyncio.wait(hostile, return_when=asyncio.FIRST_COMPLETED)
        again = await as_caller("fair", pool, "harmless")
        workers = descendants(os.getpid())
        for task in hostile:
            task.cancel()
        await asyncio.gather(*hostile, return_exceptions=True)
    finally:
        pool.close()

    assert first == {fair}
    assert isinstance(fair.result(), Analysis) and isinstance(again, Analysis)
    assert [type(task.result()) for task in refused] == [RateLimited], "the queue of the slow lane is limited"
    ended = set(workers) - set(descendants(os.getpid()))
    assert len(ended) >= 2, "a worker of each lane or the fork server"
    async with asyncio.timeout(30):
        while any(map(is_alive, ended)):  # noqa: ASYNC110 (a process end has no event)
            await asyncio.sleep(0.01)


async def test_a_long_page_is_answered_by_the_slow_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that exceeds the fast lane timeout is retried in the slow lane, with its longer timeout."""
    monkeypatch.setattr(analysis_pool, "FAST_LANE_TIMEOUT_S", 0.0)
    pool = AnalysisPool(Analyzer({"xx": HostileModel()}), processes=1)
    try:
        assert isinstance(await as_caller("fair", pool, "harmless"), Analysis)
    finally:
        pool.close()


async def test_workers_are_restarted_after_the_fork_server_dies() -> None:
    """After the fork server is killed between two pages, the next page is still answered."""
    pool = AnalysisPool(ANALYZER, processes=1)
    before = set(descendants(os.getpid()))
    try:
        assert isinstance(await as_caller("fair", pool, "harmless"), Analysis)
        for pid in set(descendants(os.getpid())) - before:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert isinstance(await as_caller("fair", pool, "peaceful"), Analysis)
    finally:
        pool.close()
