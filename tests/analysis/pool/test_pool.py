"""Analyses in other processes say what they say in this one."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.analysis.pool import pool as analysis_pool
from aggregator.analysis.pool.pool import HEAVY_TEXT_CHARS, MAX_ARTICLES_PER_TASK, AnalysisPool
from aggregator.concurrency.fair_semaphore import current_caller
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError, AnalysisLimitExceeded, NoText, RateLimited
from tests.support.factories import story
from tests.support.processes import below, is_alive

ANALYSER = Analyzer({"xx": HashedModel()})


def told(results: list) -> list:
    """What can be compared of analyses and errors."""
    return [(r.fingerprint, r.text_hash) if isinstance(r, Analysis) else str(r) for r in results]


async def test_batches_and_heavy_articles_elsewhere() -> None:
    """A batch over two processes, and HTML or long texts beside plain ones, keep their order."""
    html = (
        "<html><body><article>"
        + "".join(f"<p>{story(9, 4)}</p>" for _ in range(3))
        + "</article></body></html>"
    )
    articles = [Article(id=str(i), text=story(i, 3)) for i in range(3 * MAX_ARTICLES_PER_TASK)]
    articles[5] = Article(id="nothing")
    articles[7] = Article(id="html", html=html)
    articles[9] = Article(id="long", text="harbour " * (HEAVY_TEXT_CHARS // 8 + 1))
    expected = told(ANALYSER.analyze_many(articles))

    pool = AnalysisPool(ANALYSER, processes=2)
    try:
        assert told(await pool.analyze_many(articles)) == expected
        assert told(await pool.analyze_many(articles[:10])) == expected[:10]
        broken = (await pool.analyze_many([Article(id="x", html="<html></html>")]))[0]
        assert isinstance(broken, NoText)
    finally:
        pool.close()
        pool.close()


class Traps(HashedModel):
    """A model that some articles explode in: by their time, their memory, or their process."""

    def project(self, tokens):  # type: ignore[no-untyped-def]
        """As ``HashedModel``, but for three words."""
        words = " ".join(tokens)
        while "qspinq" in words:
            pass
        if "qgreedq" in words:
            return bytearray(3 << 30)
        if "qdeadq" in words:
            os._exit(1)
        return super().project(tokens)


def page(word: str) -> Article:
    """A page about something, and ``word``."""
    return Article(
        id=word, html=f"<html><body><article><p>{story(3, 5)} {word} {word}</p></article></body></html>"
    )


async def test_what_explodes_costs_its_own_answer_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time, memory, a dead process: 400 each, while its neighbours in pool and batch are answered."""
    monkeypatch.setattr(analysis_pool, "SLOW_LANE_TIMEOUT_S", 4.0)
    pool = AnalysisPool(Analyzer({"xx": Traps()}), processes=2, memory_bytes=256 << 20)
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


async def test_the_last_few_lines_of_a_batch_are_analysed_elsewhere_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What came together never takes this process's time; what came alone is not sent around."""
    here = Analyzer({"xx": HashedModel()})
    pool = AnalysisPool(here, processes=1)
    seen: list[str] = []
    analyse_many = Analyzer.analyze_many
    monkeypatch.setattr(
        Analyzer,
        "analyze_many",
        lambda self, some: seen.extend(a.id for a in some) or analyse_many(self, some),
    )
    few = [Article(id=str(i), text=story(i, 3)) for i in range(3)]
    try:
        together = await pool.analyze_many(few)
        alone = [(await pool.analyze_many([one]))[0] for one in few]
    finally:
        pool.close()

    assert told(together) == told(alone)
    assert seen == ["0", "1", "2"]


def test_a_worker_that_may_not_step_back_works_all_the_same() -> None:
    """Some hardening forbids it to lower its own priority (systemd: SystemCallFilter=~@resources)."""
    program = """
import os

def nice(by):
    raise PermissionError(1, "Operation not permitted")

os.nice = nice

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.analysis.pool import fork_server_main

fork_server_main._warm_up(Analyzer({"xx": HashedModel()}))
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)

    assert (ended.returncode, ended.stderr) == (0, "")


async def as_caller(caller: str, pool: AnalysisPool, word: str) -> Analysis | AggregatorError:
    """The result of one page that this caller sends."""
    current_caller.set(caller)
    return (await pool.analyze_many([page(word)]))[0]


async def test_pages_that_explode_do_not_keep_the_pages_of_others_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One worker: whoever else sends a page has its answer while the exploding ones, sent before, still have time."""
    monkeypatch.setattr(
        analysis_pool, "FAST_LANE_TIMEOUT_S", 2.0
    )  # a plain page takes some ms; this machine may be busy
    monkeypatch.setattr(analysis_pool, "SLOW_LANE_QUEUE_PER_CALLER", 1)
    pool = AnalysisPool(Analyzer({"xx": Traps()}), processes=1)
    try:
        assert isinstance(await as_caller("fair", pool, "harmless"), Analysis)
        exploding = [asyncio.create_task(as_caller("foul", pool, "qspinq")) for _ in range(3)]
        fair = asyncio.create_task(as_caller("fair", pool, "peaceful"))
        first, _ = await asyncio.wait([fair, *exploding], return_when=asyncio.FIRST_COMPLETED)
        refused, _ = await asyncio.wait(exploding, return_when=asyncio.FIRST_COMPLETED)
        again = await as_caller("fair", pool, "harmless")
        workers = below(os.getpid())
        for task in exploding:
            task.cancel()
        await asyncio.gather(*exploding, return_exceptions=True)
    finally:
        pool.close()

    assert first == {fair}
    assert isinstance(fair.result(), Analysis) and isinstance(again, Analysis)
    assert [type(one.result()) for one in refused] == [RateLimited], (
        "more than may wait are sent back, not kept"
    )
    ended = set(workers) - set(below(os.getpid()))
    assert len(ended) >= 2, "two workers, and what they were forked from"
    async with asyncio.timeout(30):
        while any(map(is_alive, ended)):  # noqa: ASYNC110 (it tells nobody)
            await asyncio.sleep(0.01)


async def test_a_page_that_only_is_long_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not end at once begins anew beside the workers, and has all the time of a page there."""
    monkeypatch.setattr(analysis_pool, "FAST_LANE_TIMEOUT_S", 0.0)
    pool = AnalysisPool(Analyzer({"xx": Traps()}), processes=1)
    try:
        assert isinstance(await as_caller("fair", pool, "harmless"), Analysis)
    finally:
        pool.close()


async def test_workers_come_back_when_what_they_are_forked_from_is_gone() -> None:
    """Killed between two pages, by the kernel for instance: the next page is answered all the same."""
    pool = AnalysisPool(ANALYSER, processes=1)
    before = set(below(os.getpid()))
    try:
        assert isinstance(await as_caller("fair", pool, "harmless"), Analysis)
        for pid in set(below(os.getpid())) - before:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert isinstance(await as_caller("fair", pool, "peaceful"), Analysis)
    finally:
        pool.close()
