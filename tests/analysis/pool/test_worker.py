"""One worker process behind its client."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.analysis.pool.fork_server import ForkServer
from aggregator.analysis.pool.worker import AnalysisWorker, WorkerDied
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError
from tests.support.factories import story

ARTICLES = [Article("a1", text=story(1, 3)), Article("a2"), Article("a3", title="Ferry", text=story(2, 3))]


@pytest.fixture
async def worker() -> AsyncIterator[AnalysisWorker]:
    """A worker of a separate fork server; neither has started."""
    server = ForkServer(Analyzer({"xx": HashedModel()}), memory_bytes=1 << 30)
    opened = AnalysisWorker(server)
    yield opened
    opened.kill()
    server.close()


async def test_results_are_in_order_and_errors_among_them(worker: AnalysisWorker) -> None:
    """Requests to the same process follow each other; the texts are those of the articles."""
    for _ in range(2):
        first, second, third = await worker.run(ARTICLES, timeout_s=60)

        assert isinstance(first, Analysis)
        assert isinstance(second, AggregatorError)
        assert isinstance(third, Analysis)
        assert (first.text, third.title, third.text) == (
            ARTICLES[0].text, "Ferry", ARTICLES[2].text,
        )  # fmt: skip
    assert await worker.run([], timeout_s=60) == []


async def test_a_process_that_ends_is_reported(worker: AnalysisWorker) -> None:
    """The caller then starts another worker."""
    await worker.run(ARTICLES, timeout_s=60)
    os.kill(worker._pid, signal.SIGKILL)

    with pytest.raises(WorkerDied):
        await worker.run(ARTICLES, timeout_s=60)


async def test_a_process_that_does_not_answer_in_time_is_reported(worker: AnalysisWorker) -> None:
    """It may be stopped, or busy with a hostile page; killing it twice is harmless."""
    await worker.run(ARTICLES, timeout_s=60)
    os.kill(worker._pid, signal.SIGSTOP)

    with pytest.raises(WorkerDied) as caught:
        await worker.run(ARTICLES, timeout_s=0.05)
    assert isinstance(caught.value.__cause__, TimeoutError)
    worker.kill()
    worker.kill()


def test_a_worker_that_never_ran_can_be_killed() -> None:
    """No process was started for it."""
    AnalysisWorker(ForkServer(Analyzer({"xx": HashedModel()}), memory_bytes=1 << 30)).kill()
