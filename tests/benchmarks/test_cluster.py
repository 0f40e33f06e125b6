"""``scripts/bench cluster`` in its shortest form, on one node."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aggregator.store.embedded import EmbeddedServer
from tests.benchmarks import bench_cluster

pytestmark = pytest.mark.integration


async def test_ten_segments_on_one_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedServer(tmp_path) as server:
        await bench_cluster.on_one(server, 300)
    figures = json.loads(capsys.readouterr().out)
    assert figures["nodes"] == 1
    assert figures["roll-overs"] > 0
    assert figures["ceiling articles/s"] > 0
