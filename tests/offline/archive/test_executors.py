"""A Dask cluster as executor: worker processes, one of them killed, and still the same result."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from aggregator.cli import main
from aggregator.offline.archive import pipeline
from aggregator.offline.archive import rows as corpus_rows
from tests.support.archive_data import archive_rows, write_lines

TABLES = ("pairs", "clusters", "representatives", "deduplicated")


@pytest.fixture
def cluster() -> Iterator[object]:
    """Three worker processes of one thread each, on this machine."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=3,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        memory_limit=None,
        host="127.0.0.1",
    ) as found:
        yield found


@pytest.mark.services
@pytest.mark.filterwarnings("default")
def test_a_killed_worker_changes_nothing(
    tmp_path: Path, cluster: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One dies while blocks are being encoded, one when the join has begun."""
    import distributed

    monkeypatch.setattr(corpus_rows, "MAX_BLOCK_ROWS", 4)
    source = write_lines(tmp_path / "a.jsonl", archive_rows())
    args = ["dedupe", str(source), "--no-progress", "--out"]
    assert main([*args, str(tmp_path / "one"), "--processes", "1"]) == 0
    address = cluster.scheduler_address  # type: ignore[attr-defined]
    killed: list[int] = []

    def kill_one() -> None:
        with distributed.Client(address, set_as_default=False) as client:
            pids = client.run(os.getpid)
        killed.append(next(pid for pid in pids.values() if pid not in killed))
        os.kill(killed[-1], signal.SIGKILL)

    blocks = corpus_rows.read_blocks

    def watched_blocks(*given: object) -> Iterator[corpus_rows.Block]:
        for block in blocks(*given):  # type: ignore[arg-type]
            if block.number == 5 and not killed:
                kill_one()
            yield block

    real_partitions = pipeline.partitions

    def watched_partitions(*given: object, **named: object) -> object:
        kill_one()
        return real_partitions(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(corpus_rows, "read_blocks", watched_blocks)
    monkeypatch.setattr(pipeline, "partitions", watched_partitions)

    assert main([*args, str(tmp_path / "dask"), "--dask", address]) == 0
    assert len(killed) == 2
    for name in TABLES:
        one, other = (tmp_path / where / f"{name}.jsonl" for where in ("one", "dask"))
        assert one.read_bytes() == other.read_bytes()
