"""Fork server that is forked from its client: shared memory, closed files, restart."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.hang_limit import HANG_LIMIT_S

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


def test_what_is_loaded_is_in_memory_once_and_a_killed_fork_server_is_started_again() -> None:
    """The one that is started again is spawned, with the same results."""
    report = run("restart")

    assert report["equal"] and report["restarts"] == 1
    assert isinstance(report["shared"], float) and report["shared"] > 0.8


def test_inherited_files_are_closed_and_the_process_ends_with_the_pool() -> None:
    """A socket of the parent must close when the parent closes it."""
    report = run("files")

    files = report["files"]
    assert isinstance(files, list) and report["held"] not in files
    assert sum(name.startswith("socket:") for name in files) == 1
    assert report["niceness"] == 5 and report["left"] == []
