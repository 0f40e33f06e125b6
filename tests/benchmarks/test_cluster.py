"""``scripts/bench cluster`` in its shortest form, on one node."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aggregator.domain import Analysis
from aggregator.index import keys
from aggregator.store.embedded import EmbeddedServer
from tests.benchmarks import bench_cluster
from tests.benchmarks.bench_cluster import Load, articles
from tests.benchmarks.indexing.layouts import SPACE

pytestmark = pytest.mark.integration


async def test_ten_segments_on_one_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedServer(tmp_path) as server:
        await bench_cluster.on_one(server, 300)
    figures = json.loads(capsys.readouterr().out)
    assert figures["nodes"] == 1
    assert figures["acknowledged"] == 400
    assert figures["lost"] == figures["changed"] == 0
    assert figures["ceiling articles/s"] > 0


async def test_what_is_missing_or_changed_is_counted(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as server:
        analyses: dict[str, Analysis] = {}
        load = Load(server.url, analyses, 10**6)
        await load.insert(articles("a", 20, 5, analyses))
        assert sorted(load.acknowledged.values()) == ["duplicate"] * 2 + ["new"] * 18
        await load.store.delete([keys.tag(SPACE, 0) + keys.binding("a3")])
        load.acknowledged["a4"] = "related"
        assert await load.missing() == {"acknowledged": 20, "lost": 1, "changed": 1}
        await load.store.close()
