"""Share of edited copies that the service finds."""

from __future__ import annotations

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.dedup.policy import Policy
from aggregator.domain import Article
from aggregator_lab.evaluation.duplicate_stream import DuplicateStream
from aggregator_lab.evaluation.edit_recall import EditResult, evaluate, format_table
from aggregator_lab.evaluation.edits import EDITS
from tests.support.factories import story


async def stream() -> DuplicateStream:
    """Twelve long articles in German, and short ones in Spanish, which are not edited."""
    opened = DuplicateStream(Analyzer({"xx": HashedModel()}), Policy())
    await opened.send([Article(f"d{i}", text=story(i, 30), lang="de") for i in range(12)])
    await opened.send([Article(f"s{i}", text=story(50 + i, 3), lang="es") for i in range(12)])
    return opened


async def test_copies_are_found() -> None:
    results = await evaluate(await stream(), 5)

    assert [(result.lang, result.edit) for result in results] == [("de", name) for name in EDITS]
    shares = {result.edit: result.share for result in results}
    assert shares["headline"] is None
    assert [shares[name] for name in ("cut", "padded", "lead")] == [1.0, 1.0, 1.0]
    assert results == await evaluate(await stream(), 5)


def test_the_table_marks_shares_below_the_target() -> None:
    results = [EditResult("de", name, 10, 9, 1, ["x"]) for name in EDITS]
    results[-1] = EditResult("de", "lead")

    row = format_table(results).splitlines()[-1]

    assert row.split() == ["de", "10", *["90.0%!"] * 5, "-", "5"]
    assert results[0].as_json()["missed"] == ["x"]
    assert results[-1].as_json()["share"] is None
