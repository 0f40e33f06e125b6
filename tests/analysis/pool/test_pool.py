"""Analysis pool: workers give the results of this process, and hostile pages cost only themselves."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.analysis.pool import pool as analysis_pool
from aggregator.analysis.pool import worker as worker_module
from aggregator.analysis.pool.pool import (
    MAX_ARTICLES_PER_TASK,
    MAX_ASCII_CHARS_HERE,
    MAX_NEW_STRINGS_HERE,
    WORKER_MEMORY_BYTES,
    AnalysisPool,
)
from aggregator.analysis.pool.worker import ForkServer
from aggregator.analysis.simhash import FloatArray, feature_hash
from aggregator.concurrency import current_caller
from aggregator.contract.problems import to_problem
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError, AnalysisLimitExceeded, NoText, Overloaded
from tests.support.factories import story
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.processes import descendants, is_alive
from tests.support.starved_workers import stop_most_of_the_time

pytestmark = pytest.mark.integration

ANALYZER = Analyzer({"xx": HashedModel()})


class HostileModel(HashedModel):
    """A model for which three words loop forever, allocate 3 GiB, or end the process."""

    def project_rows(self, rows: npt.NDArray[np.uint64], tf_idf: FloatArray) -> Any:
        """As ``HashedModel``, except for three words."""
        words = [word for word in ("qspinq", "qgreedq", "qdeadq") if feature_hash(word) in rows]
        while "qspinq" in words:
            pass
        if "qgreedq" in words:
            return bytearray(3 << 30)
        if "qdeadq" in words:
            os._exit(1)
        return super().project_rows(rows, tf_idf)


OpenPool = Callable[..., AnalysisPool]


@pytest.fixture(scope="module")
def fork_server() -> Iterator[ForkServer]:
    """A fork server for tests that neither kill nor limit it: each start takes 2 s of processor time."""
    server = ForkServer(Analyzer({"xx": HostileModel()}), WORKER_MEMORY_BYTES)
    yield server
    server.close()


@pytest.fixture
async def open_pool(fork_server: ForkServer) -> AsyncIterator[OpenPool]:
    """Opens pools whose workers come from ``fork_server``, and closes them without it."""
    fork_server._lock = asyncio.Lock()  # each test has its own event loop
    pools: list[AnalysisPool] = []

    def open_pool(analyzer: Analyzer, processes: int = 1) -> AnalysisPool:
        pool = AnalysisPool(analyzer, processes)
        pool._fork_server = fork_server
        pools.append(pool)
        return pool

    yield open_pool
    for pool in pools:
        pool._fork_server = ForkServer(pool.analyzer, WORKER_MEMORY_BYTES)
        pool.close()


def comparable(results: Sequence[Analysis | AggregatorError]) -> list[tuple[int, bytes] | str]:
    """Return what can be compared of analyses and errors."""
    return [(r.fingerprint, r.text_hash) if isinstance(r, Analysis) else str(r) for r in results]


async def test_workers_keep_the_order_of_batches_and_heavy_articles(open_pool: OpenPool) -> None:
    """A batch over two processes, with HTML and long texts among plain ones, keeps its order."""
    html = (
        "<html><body><article>"
        + "".join(f"<p>{story(9, 4)}</p>" for _ in range(3))
        + "</article></body></html>"
    )
    articles = [Article(id=str(i), text=story(i, 3)) for i in range(3 * MAX_ARTICLES_PER_TASK)]
    articles[5] = Article(id="nothing")
    articles[7] = Article(id="html", html=html)
    articles[9] = Article(id="long", text="harbour " * (MAX_ASCII_CHARS_HERE // 8 + 1))
    expected = comparable(ANALYZER.analyze_many(articles))

    pool = open_pool(ANALYZER, processes=2)
    assert comparable(await pool.analyze_many(articles)) == expected
    assert comparable(await pool.analyze_many(articles[:10])) == expected[:10]
    broken = (await pool.analyze_many([Article(id="x", html="<html></html>")]))[0]
    assert isinstance(broken, NoText)


def page(word: str) -> Article:
    """Return an HTML page that contains ``word``."""
    return Article(
        id=word, html=f"<html><body><article><p>{story(3, 5)} {word} {word}</p></article></body></html>"
    )


async def test_an_exceeded_limit_fails_only_its_own_article(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time, memory, a dead process: each gives an error, while the other articles are analyzed."""
    monkeypatch.setattr(analysis_pool, "FAST_LANE_CPU_S", 0.1)
    monkeypatch.setattr(analysis_pool, "SLOW_LANE_CPU_S", 0.5)
    pool = AnalysisPool(Analyzer({"xx": HostileModel()}), processes=2, memory_bytes=256 << 20)
    words = ["harmless", "qspinq", "peaceful", "qgreedq"]
    batch = [Article(id=str(i), text=story(i, 3)) for i in range(2 * MAX_ARTICLES_PER_TASK)]
    batch[3] = page("qdeadq")
    try:
        single = await asyncio.gather(*(pool.analyze_many([page(word)]) for word in words))
        together = await pool.analyze_many(batch)
    finally:
        pool.close()

    reasons = {word: str(result) for word, (result,) in zip(words, single, strict=True)}
    assert "more than 0.5 s of processor time" in reasons["qspinq"]
    assert "more than 256 MiB of memory" in reasons["qgreedq"]
    for word, (result,) in zip(words, single, strict=True):
        assert isinstance(result, AnalysisLimitExceeded if word in ("qspinq", "qgreedq") else Analysis), word
    assert [i for i, result in enumerate(together) if not isinstance(result, Analysis)] == [3]


async def test_small_batches_are_offloaded_and_single_articles_are_not(
    monkeypatch: pytest.MonkeyPatch, open_pool: OpenPool
) -> None:
    """Every batch goes to the workers; a single article is analyzed in this process."""
    pool = open_pool(Analyzer({"xx": HashedModel()}))
    analyzed_here: list[str] = []
    analyze_many = Analyzer.analyze_many

    def record_ids(
        self: Analyzer, articles: Sequence[Article], **limits: int
    ) -> list[Analysis | AggregatorError]:
        analyzed_here.extend(article.id for article in articles)
        return analyze_many(self, articles, **limits)

    monkeypatch.setattr(Analyzer, "analyze_many", record_ids)
    batch = [Article(id=str(i), text=story(i, 3)) for i in range(3)]
    together = await pool.analyze_many(batch)
    alone = [(await pool.analyze_many([article]))[0] for article in batch]

    assert comparable(together) == comparable(alone)
    assert analyzed_here == ["0", "1", "2"]


@pytest.mark.parametrize(
    "text",
    [
        "\ufdfa" * 49_900,  # 18 letters each after NFKC
        "\ufdfa " * 600,
        "".join(chr(0x4E00 + i * 7919 % 20_000) for i in range(2_400)),  # all characters and words unknown
        " ".join(f"w{i:x}q" for i in range(5_000)),  # distinct words
        "a" + "\u0301\u0327" * 20_000,  # marks in the wrong order
    ],
    ids=["expanding", "expanding-words", "ideographs", "distinct-words", "marks"],
)
async def test_expensive_single_articles_are_analyzed_by_a_worker(
    text: str, monkeypatch: pytest.MonkeyPatch, open_pool: OpenPool
) -> None:
    """Their number of characters is below the limit, their work is not; the result is the same."""
    expected = comparable(ANALYZER.analyze_many([Article(id="x", text=text)]))
    fresh = Analyzer({"xx": HashedModel()})
    finished_here = 0
    analyze = Analyzer.analyze_with_words

    def count(self: Analyzer, article: Article, **limits: int) -> tuple[Analysis, list[str]]:
        nonlocal finished_here
        analysis = analyze(self, article, **limits)
        finished_here += 1
        return analysis

    monkeypatch.setattr(Analyzer, "analyze_with_words", count)
    pool = open_pool(fresh)
    assert comparable(await pool.analyze_many([Article(id="x", text=text)])) == expected
    assert finished_here == 0


async def test_an_article_of_common_words_is_analyzed_here_soon(
    monkeypatch: pytest.MonkeyPatch, open_pool: OpenPool
) -> None:
    """A process that has just started knows no words: each attempt adds some, and the next one succeeds."""
    pool = open_pool(Analyzer({"xx": HashedModel()}))
    article = Article(id="x", text=" ".join(f"w{i:x}q" for i in range(2 * MAX_NEW_STRINGS_HERE)))
    moved = 0
    run_in_worker = AnalysisPool._run_in_worker

    async def count(self: AnalysisPool, articles: list[Article]) -> list[Analysis | AggregatorError]:
        nonlocal moved
        moved += 1
        return await run_in_worker(self, articles)

    monkeypatch.setattr(AnalysisPool, "_run_in_worker", count)
    for _ in range(10):
        assert isinstance((await pool.analyze_many([article]))[0], Analysis)
    assert 1 <= moved <= 4


async def test_an_article_whose_workers_get_no_processor_can_be_sent_again(
    monkeypatch: pytest.MonkeyPatch, open_pool: OpenPool
) -> None:
    """It is answered as an overload, never as an article that costs too much."""
    monkeypatch.setattr(worker_module, "STALL_CHECK_INTERVAL_S", 0.01)
    monkeypatch.setattr(worker_module, "_cpu_time_s", lambda pid: 0.0)
    pool = open_pool(Analyzer({"xx": HostileModel()}))
    (result,) = await pool.analyze_many([page("qspinq")])

    assert isinstance(result, Overloaded)
    assert (to_problem(result).status, result.retry_after_s) == (503, analysis_pool.RETRY_AFTER_S)
    assert "no processor time" in str(result)


async def test_a_batch_survives_a_worker_that_gets_hardly_any_processor_time(
    monkeypatch: pytest.MonkeyPatch, open_pool: OpenPool
) -> None:
    """Its worker is stopped most of the time; no article is refused, and the results are the same."""
    articles = [Article(id=str(i), text=story(i, 3)) for i in range(8 * MAX_ARTICLES_PER_TASK)]
    expected = comparable(ANALYZER.analyze_many(articles))
    checks = stop_most_of_the_time(monkeypatch)
    pool = open_pool(ANALYZER)
    assert comparable(await pool.analyze_many(articles)) == expected
    assert checks() > 0


async def test_an_article_whose_worker_is_killed_is_tried_again(
    open_pool: OpenPool, caplog: pytest.LogCaptureFixture
) -> None:
    """Its worker is killed from outside, as by the operating system when memory is short: one warning."""
    pool = open_pool(Analyzer({"xx": HostileModel()}))
    assert isinstance(await as_caller("fair", pool, "harmless"), Analysis)
    (worker,) = pool._idle_workers
    os.kill(worker._pid, signal.SIGKILL)
    assert isinstance(await as_caller("fair", pool, "peaceful"), Analysis)
    assert caplog.messages == [
        "analysis is tried again: an analysis worker was ended from outside (signal 9)"
    ]


@pytest.mark.integration
def test_a_worker_that_cannot_lower_its_priority_still_works() -> None:
    """Some sandboxes forbid setting the nice value (systemd: SystemCallFilter=~@resources)."""
    program = """
import os

def nice(by):
    raise PermissionError(1, "Operation not permitted")

os.nice = nice

from aggregator.analysis.pool import fork_server_main

fork_server_main.lower_priority(fork_server_main.BASE_NICE_INCREMENT)
"""
    completed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG_LIMIT_S, check=False
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
    monkeypatch.setattr(analysis_pool, "FAST_LANE_CPU_S", 0.1)
    monkeypatch.setattr(analysis_pool, "SLOW_LANE_CPU_S", 60.0)
    pool = AnalysisPool(Analyzer({"xx": HostileModel()}), processes=1)
    try:
        assert isinstance(await as_caller("fair", pool, "harmless"), Analysis)
        hostile = [asyncio.create_task(as_caller("hostile", pool, "qspinq")) for _ in range(5)]
        fair = asyncio.create_task(as_caller("fair", pool, "peaceful"))
        first, _ = await asyncio.wait([fair, *hostile], return_when=asyncio.FIRST_COMPLETED)
        again = await as_caller("fair", pool, "harmless")
        workers = descendants(os.getpid())
        waiting = [task for task in hostile if not task.done()]
        for task in hostile:
            task.cancel()
        await asyncio.gather(*hostile, return_exceptions=True)
    finally:
        pool.close()

    assert first == {fair}
    assert isinstance(fair.result(), Analysis) and isinstance(again, Analysis)
    assert waiting == hostile, "nothing is refused before it got its processor time"
    ended = set(workers) - set(descendants(os.getpid()))
    assert len(ended) >= 2, "a worker of each lane or the fork server"
    async with asyncio.timeout(HANG_LIMIT_S):
        while any(map(is_alive, ended)):  # noqa: ASYNC110 (a process end has no event)
            await asyncio.sleep(0.01)


async def test_a_long_page_is_answered_by_the_slow_lane(
    monkeypatch: pytest.MonkeyPatch, open_pool: OpenPool
) -> None:
    """A page that exceeds the limit of the fast lane is retried in the slow lane, with its higher limit."""
    monkeypatch.setattr(analysis_pool, "FAST_LANE_CPU_S", 1e-6)
    pool = open_pool(Analyzer({"xx": HostileModel()}))
    assert isinstance(await as_caller("fair", pool, "harmless"), Analysis)


def pool_processes(pool: AnalysisPool) -> set[int]:
    """Process ids of the fork server of a pool and of its workers."""
    process = pool._fork_server._process
    if process is None or process.pid is None or not is_alive(process.pid):
        return set()
    return {process.pid, *descendants(process.pid)}


def kill(pids: set[int]) -> None:
    """SIGKILL; a process may have ended meanwhile."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


async def test_workers_are_restarted_after_the_fork_server_dies(caplog: pytest.LogCaptureFixture) -> None:
    """After the fork server is killed between two pages, the next page is still answered; the log says it."""
    pool = AnalysisPool(ANALYZER, processes=1)
    try:
        assert isinstance(await as_caller("fair", pool, "harmless"), Analysis)
        kill(pool_processes(pool))
        assert isinstance(await as_caller("fair", pool, "peaceful"), Analysis)
    finally:
        pool.close()
        pool.close()
    ended = "the fork server of the analysis workers had ended (signal 9)"
    assert [message for message in caplog.messages if "signal" in message] == [ended]


class LargeModel(HashedModel):
    """A model that takes 4 MB when it is sent to another process, far more than a pipe holds."""

    def __reduce__(self) -> tuple[Any, ...]:
        return drop_padding, (bytes(4 << 20),)


def drop_padding(padding: bytes) -> LargeModel:
    """The model that was sent."""
    return LargeModel()


async def test_a_fork_server_that_dies_during_its_start_is_replaced() -> None:
    """Killed before it has read its models: nothing waits for it."""
    pool = AnalysisPool(Analyzer({"xx": LargeModel()}), processes=1)
    answer = asyncio.create_task(as_caller("fair", pool, "harmless"))
    try:
        async with asyncio.timeout(HANG_LIMIT_S):
            while not (starting := pool_processes(pool)):  # noqa: ASYNC110  another process
                await asyncio.sleep(0.005)
        kill(starting)

        assert isinstance(await answer, Analysis)
    finally:
        answer.cancel()
        pool.close()


async def test_workers_end_with_their_fork_server() -> None:
    """Even one that is busy with a hostile page, which nobody else could kill."""
    pool = AnalysisPool(Analyzer({"xx": HostileModel()}), processes=1)
    assert isinstance(await as_caller("fair", pool, "harmless"), Analysis)
    fork_server = min(pool_processes(pool))
    hostile = asyncio.create_task(as_caller("hostile", pool, "qspinq"))
    try:
        workers = pool_processes(pool) - {fork_server}
        kill({fork_server})
        async with asyncio.timeout(HANG_LIMIT_S):
            while any(map(is_alive, workers)):  # noqa: ASYNC110  another process
                await asyncio.sleep(0.01)
    finally:
        hostile.cancel()
        pool.close()
    assert workers


@pytest.mark.parametrize(("killed", "times", "pause_s"), [("all", 6, 1.0), ("workers", 40, 0.1)])
async def test_killed_processes_fail_no_article(killed: str, times: int, pause_s: float) -> None:
    """SIGKILL at random moments during pages and batches: an answer, or "send it again later"."""
    moments = random.Random(killed)
    pool = AnalysisPool(Analyzer({"xx": HashedModel()}), processes=1)
    stop, results = asyncio.Event(), list[Analysis | AggregatorError]()

    async def post(first: int) -> None:
        for number in count(first, 1000):
            if stop.is_set():
                return
            page = Article(
                id="", html=f"<html><body><article><p>{story(number, 5)}</p></article></body></html>"
            )
            results.extend(await pool.analyze_many([page]))
            results.extend(
                await pool.analyze_many([Article(id="", text=story(number + i, 3)) for i in range(20)])
            )

    clients = [asyncio.create_task(post(first)) for first in range(2)]
    try:
        async with asyncio.timeout(HANG_LIMIT_S):
            while times:
                await asyncio.sleep(pause_s * moments.random())
                found = pool_processes(pool)
                if killed == "workers":
                    found = {pid for parent in found for pid in descendants(parent)}
                times -= bool(found)
                kill(found)
        stop.set()
        await asyncio.gather(*clients)
    finally:
        pool.close()

    assert results
    assert [result for result in results if not isinstance(result, Analysis | Overloaded)] == []
