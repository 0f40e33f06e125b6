"""Executors: killed Dask workers do not change the result, workers end with the run, their memory counts."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest

from aggregator.cli import main
from aggregator_archive import join, pipeline, rows
from aggregator_archive.executors import PeakMemory
from tests.support.archive_data import archive_rows, write_lines
from tests.support.hang_limit import HANG_LIMIT_S

TABLES = ("pairs", "clusters", "representatives", "deduplicated")


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A Dask cluster of three local worker processes with one thread each."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=3,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        memory_limit=None,
        host="127.0.0.1",
    ) as started:
        yield started


@pytest.mark.services
@pytest.mark.filterwarnings("default")
def test_killed_workers_do_not_change_the_result(
    tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One worker is killed while blocks are encoded, one at the start of the join."""
    import distributed

    monkeypatch.setattr(rows, "MAX_BLOCK_ROWS", 4)
    source = write_lines(tmp_path / "a.jsonl", archive_rows())
    args = ["dedupe", str(source), "--no-progress", "--out"]
    assert main([*args, str(tmp_path / "one"), "--processes", "1"]) == 0
    address = cluster.scheduler_address
    killed: list[int] = []

    def kill_one() -> None:
        with distributed.Client(address, set_as_default=False) as client:  # type: ignore[no-untyped-call]
            pids = client.run(os.getpid)
        killed.append(next(pid for pid in pids.values() if pid not in killed))
        os.kill(killed[-1], signal.SIGKILL)

    blocks = rows.read_blocks

    def watched_blocks(*args: Any) -> Iterator[rows.Block]:
        for block in blocks(*args):
            if block.number == 5 and not killed:
                kill_one()
            yield block

    real_partitions = join.partitions

    def watched_partitions(*args: Any, **named: Any) -> Any:
        kill_one()
        return real_partitions(*args, **named)

    monkeypatch.setattr(rows, "read_blocks", watched_blocks)
    monkeypatch.setattr(pipeline, "partitions", watched_partitions)

    assert main([*args, str(tmp_path / "dask"), "--dask", address]) == 0
    assert len(killed) == 2
    for name in TABLES:
        local, distributed_run = (tmp_path / out / f"{name}.jsonl" for out in ("one", "dask"))
        assert local.read_bytes() == distributed_run.read_bytes()


PARENT = """
import os, signal
from aggregator_archive.executors import open_pool

if __name__ == "__main__":
    with open_pool(2) as pool:
        print(next(pool.map(os.getpid, [()] * 2)), flush=True)
        os.kill(os.getpid(), getattr(signal, {signal!r}))
"""


@pytest.mark.integration
@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGKILL"])
def test_workers_end_with_a_killed_run(signal_name: str, tmp_path: Path) -> None:
    """All processes that have its output, the resource tracker included, close it by ending."""
    script = tmp_path / "run.py"
    script.write_text(PARENT.format(signal=signal_name))
    command = [sys.executable, str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, process_group=0) as parent:
        try:
            output, _ = parent.communicate(timeout=HANG_LIMIT_S)
        finally:
            with contextlib.suppress(ProcessLookupError):  # none is left
                os.killpg(parent.pid, signal.SIGKILL)

    assert parent.returncode == -getattr(signal, signal_name) and int(output) != parent.pid


MIB = 1 << 20


def _hold_memory(size: int, held: Event, gate: Event) -> None:
    block = bytearray(b"x" * size)
    held.set()
    gate.wait(60)
    del block


@pytest.mark.integration
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux reports proportional set sizes")
def test_memory_of_workers_counts() -> None:
    """64 MiB in a child process are counted while it lives, and remain in the peak afterwards."""
    context = multiprocessing.get_context("spawn")
    held, gate = context.Event(), context.Event()
    peak = PeakMemory()
    peak.sample()
    before = peak.anonymous_bytes
    child = context.Process(target=_hold_memory, args=(64 * MIB, held, gate))
    child.start()
    assert held.wait(60)
    peak.sample()
    gate.set()
    child.join(60)

    highest = peak.anonymous_bytes
    peak.sample()
    assert highest - before >= 64 * MIB
    assert peak.anonymous_bytes == highest <= peak.total_bytes
