"""One worker process behind its client."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.analysis.pool import worker as worker_module
from aggregator.analysis.pool.fork_server_main import length_prefixed, serve_spawned
from aggregator.analysis.pool.worker import (
    AnalysisWorker,
    CpuLimitExceeded,
    ForkServer,
    WorkerCrashed,
    WorkerDied,
)
from aggregator.analysis.simhash import FloatArray, feature_hash
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError
from tests.support.factories import story
from tests.support.hang_limit import HANG_LIMIT_S

ARTICLES = [Article("a1", text=story(1, 3)), Article("a2"), Article("a3", title="Ferry", text=story(2, 3))]


BURNED_S = 0.1


class HostileModel(HashedModel):
    """A model for which three words use processor time (``BURNED_S``, forever) or end the process."""

    def project_rows(self, rows: npt.NDArray[np.uint64], tf_idf: FloatArray) -> Any:
        """As ``HashedModel``, except for three words."""
        terms = [word for word in ("qspinq", "qburnq", "qdeadq") if feature_hash(word) in rows]
        end_s = time.process_time() + BURNED_S
        while "qspinq" in terms or ("qburnq" in terms and time.process_time() < end_s):
            pass
        if "qdeadq" in terms:
            os._exit(7)
        return super().project_rows(rows, tf_idf)


@pytest.fixture
async def worker() -> AsyncIterator[AnalysisWorker]:
    """A worker of a separate fork server; neither has started."""
    server = ForkServer(Analyzer({"xx": HostileModel()}), memory_bytes=1 << 30)
    opened = AnalysisWorker(server)
    yield opened
    opened.kill()
    server.close()


@pytest.mark.integration
async def test_results_are_in_order_and_errors_among_them(worker: AnalysisWorker) -> None:
    """Requests to the same process follow each other; the texts are those of the articles."""
    for _ in range(2):
        first, second, third = await worker.run(ARTICLES, cpu_limit_s=60)

        assert isinstance(first, Analysis)
        assert isinstance(second, AggregatorError)
        assert isinstance(third, Analysis)
        assert (first.text, third.title, third.text) == (
            ARTICLES[0].text, "Ferry", ARTICLES[2].text,
        )  # fmt: skip
    assert await worker.run([], cpu_limit_s=60) == []


@pytest.mark.integration
async def test_a_process_that_is_killed_from_outside_is_reported(worker: AnalysisWorker) -> None:
    """The articles are not to blame: the caller may try them again."""
    await worker.run(ARTICLES, cpu_limit_s=60)
    os.kill(worker._pid, signal.SIGKILL)

    with pytest.raises(WorkerDied, match=r"from outside \(signal 9\)") as caught:
        await worker.run(ARTICLES, cpu_limit_s=60)
    assert caught.type is WorkerDied


@pytest.mark.integration
async def test_articles_that_crash_the_process_are_reported(worker: AnalysisWorker) -> None:
    """They would crash the next one too."""
    with pytest.raises(WorkerCrashed, match="exit code 7"):
        await worker.run([Article("a1", text="qdeadq")], cpu_limit_s=60)


@pytest.mark.integration
async def test_the_processor_time_of_a_request_is_limited(worker: AnalysisWorker) -> None:
    """Each request has its own limit; the time of earlier ones does not count."""
    for _ in range(3):
        await worker.run([Article("a1", text="qburnq")], cpu_limit_s=2 * BURNED_S)

    with pytest.raises(CpuLimitExceeded):
        await worker.run([Article("a1", text="qspinq")], cpu_limit_s=0.05)


@pytest.mark.integration
async def test_a_process_without_processor_time_is_waited_for(
    worker: AnalysisWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stopped for many times the limit of its processor time."""
    await worker.run(ARTICLES, cpu_limit_s=60)
    checked = asyncio.Event()
    checks: list[float | None] = []

    def count_checks(pid: int) -> float | None:
        checks.append(cpu_time_s(pid))
        if len(checks) == 50:
            checked.set()
        return checks[-1]

    cpu_time_s = worker_module._cpu_time_s
    monkeypatch.setattr(worker_module, "_cpu_time_s", count_checks)
    monkeypatch.setattr(worker_module, "STALL_CHECK_INTERVAL_S", 0.01)
    monkeypatch.setattr(worker_module, "STALL_CHECKS", 10**6)
    os.kill(worker._pid, signal.SIGSTOP)
    running = asyncio.create_task(worker.run(ARTICLES, cpu_limit_s=0.1))
    await checked.wait()
    assert not running.done()
    os.kill(worker._pid, signal.SIGCONT)

    assert isinstance((await running)[0], Analysis)
    assert None not in checks


@pytest.mark.integration
async def test_a_process_that_never_uses_its_processor_is_given_up(
    worker: AnalysisWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as an article that costs too much; killing it twice is harmless."""
    await worker.run(ARTICLES, cpu_limit_s=60)
    monkeypatch.setattr(worker_module, "STALL_CHECK_INTERVAL_S", 0.01)
    os.kill(worker._pid, signal.SIGSTOP)

    with pytest.raises(WorkerDied, match="got no processor time") as caught:
        await worker.run(ARTICLES, cpu_limit_s=60)
    assert caught.type is WorkerDied
    worker.kill()
    worker.kill()


def test_a_worker_that_never_ran_can_be_killed() -> None:
    """No process was started for it."""
    AnalysisWorker(ForkServer(Analyzer({"xx": HashedModel()}), memory_bytes=1 << 30)).kill()


def test_a_fork_server_whose_parent_is_killed_during_its_start_ends_without_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The pickled analyzer ends early: no traceback, and exit code 0."""
    context = multiprocessing.get_context("spawn")
    control, remote = socket.socketpair()
    process = context.Process(target=serve_spawned, args=(remote, 1 << 30))
    with control, remote:
        process.start()
        control.sendall(length_prefixed(b"analyzer")[:-1])
    process.join(HANG_LIMIT_S)

    assert process.exitcode == 0 and capfd.readouterr().err == ""


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux: forks are not safe elsewhere")
ROOT = Path(__file__).parents[3]

# In a separate process: this one has an event loop and threads.
PROGRAM = """
import asyncio, json, os, signal, socket
from pathlib import Path

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.pool.pool import AnalysisPool
from aggregator.domain import Article
from tests.support.factories import story
from tests.support.processes import children, is_alive, niceness

BATCH = [Article(str(i), text=story(i, 3)) for i in range(4)]


def memory_kb(pid, field):
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


async def analyze():
    return [analysis.fingerprint for analysis in await pool.analyze_many(BATCH)]


async def restart(server):
    first = await analyze()
    private_kb, resident_kb = memory_kb(server, "Private_Dirty"), memory_kb(server, "Rss")
    workers = children(server)
    os.kill(server, signal.SIGKILL)
    while any(map(is_alive, workers)):  # they end with it
        await asyncio.sleep(0.001)
    again = await analyze()
    return {"equal": first == again, "restarts": pool.restarts, "shared": 1 - private_kb / resident_kb}


async def files(server):
    await analyze()  # an answer: the fork server has closed what it inherited
    names = [os.readlink(f"/proc/{server}/fd/{fd}") for fd in os.listdir(f"/proc/{server}/fd")]
    niceness_added = niceness(server) - niceness(os.getpid())
    pool.close()
    return {
        "files": names,
        "held": f"socket:[{os.fstat(held.fileno()).st_ino}]",
        "niceness": niceness_added,
        "left": children(os.getpid()),
    }


async def main(server):
    try:
        return await (restart if os.environ["MODE"] == "restart" else files)(server)
    finally:
        pool.close()


held = socket.socket()
pool = AnalysisPool(Analyzer(load_models()), processes=1)
pool.fork_now()
(server,) = children(os.getpid())
print(json.dumps(asyncio.run(main(server))))
"""


def run(mode: str) -> dict[str, object]:
    """The report of a process that forks its fork server."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={"MODE": mode, "PATH": "", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, object] = json.loads(done.stdout)
    return report


@pytest.mark.integration
def test_what_is_loaded_is_in_memory_once_and_a_killed_fork_server_is_started_again() -> None:
    """The one that is started again is spawned, with the same results."""
    report = run("restart")

    assert report["equal"] and report["restarts"] == 1
    assert isinstance(report["shared"], float) and report["shared"] > 0.8


@pytest.mark.integration
def test_inherited_files_are_closed_and_the_process_ends_with_the_pool() -> None:
    """A socket of the parent must close when the parent closes it."""
    report = run("files")

    files = report["files"]
    assert isinstance(files, list) and report["held"] not in files
    assert sum(name.startswith("socket:") for name in files) == 1
    assert report["niceness"] == 5 and report["left"] == []
