"""``scripts/bench steady`` in its shortest form."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aggregator.index.upkeep.compaction import Compactor
from tests.benchmarks import bench_steady

pytestmark = pytest.mark.integration


def test_the_slope_of_a_level_line_is_zero_within_its_error() -> None:
    change, error = bench_steady.slope([100, 102, 98, 101, 99])
    assert abs(change) < error < 0.02
    change, error = bench_steady.slope([100, 110, 120, 130])
    assert change == pytest.approx(10 / 115)
    assert error == pytest.approx(0, abs=1e-9)


async def test_articles_of_earlier_periods_leave_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three periods in miniature; compaction, whose cost is that of all possible buckets, does not run."""
    monkeypatch.setattr(Compactor, "steps", _nothing)
    found = await bench_steady.run(articles=60, periods=4, runs=4)
    assert [figures["debt"] > 0 for figures in found] == [False, True, True, True]
    assert found[3]["segments"] < 4
    assert found[3]["keys"] < 1.5 * found[2]["keys"]
    assert sum(figures["changes"] for figures in found) >= 3


async def _nothing(*_: object) -> AsyncIterator[None]:
    return
    yield
