"""Share of edited copies that the service finds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.analysis.shingles import sketch_from_hashes
from aggregator.dedup.policy import Policy
from aggregator.domain import Analysis, Article
from aggregator.errors import InvalidInput
from aggregator_lab.evaluation.duplicate_stream import DuplicateStream
from aggregator_lab.evaluation.edit_recall import EditResult, evaluate, format_table, plant_copies
from aggregator_lab.evaluation.edits import EDITS
from aggregator_lab.evaluation.false_neighbors import neighbor_pairs
from tests.cli.helpers import run, write_jsonl
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
    results = [EditResult("de", name, 10, 9, 1, 2, ["x"]) for name in EDITS]
    results[-1] = EditResult("de", "lead")

    row = format_table(results).splitlines()[-1]

    assert row.split() == ["de", "10", *["90.0%!"] * 5, "-", "5", "20.0%"]
    assert results[0].as_json()["missed"] == ["x"]
    assert results[-1].as_json()["share"] is None


SENTENCES = (
    "市长周一宣布，城北的游泳馆经过两年维修后将于周六重新开放。",
    "屋顶曾在一场暴风雨后漏水，现在已经全部更换。",
    "水由隔壁溜冰场的余热加热，可以节省三分之一的燃气。",
    "成人票价七元，儿童四元，学校上午可以免费使用。",
)


def chinese(number: int) -> str:
    """A Chinese text of over 80 words, of its own."""
    return "".join(
        f"第{number}号通知第{part}部分：{SENTENCES[part % 4]}" for part in range(number, number + 12)
    )


def test_copies_are_planted() -> None:
    """Two originals and a copy per edit; the rest is background; two calls agree."""
    articles = [Article(id=f"zh{i}", title=f"标题{i}", text=chinese(i), lang="zh") for i in range(12)]
    gold, background = plant_copies(articles, 2)

    assert len([item for item in gold if item.original]) == 2
    assert len(gold) == 2 * (1 + len(EDITS))
    assert len(background) == 10
    assert plant_copies(articles, 2) == (gold, background)


def test_short_articles_are_no_originals() -> None:
    """The error names the least length."""
    with pytest.raises(InvalidInput, match="at least 80 words"):
        plant_copies([Article(id=str(i), text="too short") for i in range(20)], 2)


def test_planted_copies_are_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command makes the labels; pages cannot be edited."""
    rows = [{"id": f"zh{i}", "title": f"标题{i}", "text": chinese(i), "lang": "zh"} for i in range(10)]
    file = write_jsonl(tmp_path / "zh", *rows)

    assert run("evaluate", "near-duplicates", "--plant", "2", "--json", file) == 0
    verified = next(r for r in json.loads(capsys.readouterr().out) if r["policy"] == "verified")
    assert verified["orders"][0]["true_positive"] >= 8
    assert run("evaluate", "near-duplicates", "--plant", "2", "--html", "x", file) == 2
    assert "leave out --html" in capsys.readouterr().err


def analysis(fingerprint: int, wording: int) -> Analysis:
    """An analysis with these bits and with a sketch of its own wording."""
    hashes = np.arange(wording * 1_000, wording * 1_000 + 50, dtype=np.uint64) << np.uint64(40)
    return Analysis(
        lang="zh", space="zh", fingerprint=fingerprint, text_hash=bytes([wording]), short=False,
        sketch=sketch_from_hashes(hashes, hashes[:0]), terms=(), figures=(), title="", text="",
    )  # fmt: skip


def test_false_neighbors() -> None:
    """A copy and two false neighbors within 3 bits, three more within 7."""
    analyses = [analysis(0, 1), analysis(0b1, 1), analysis(0b11 << 20, 2), analysis(0b11111 << 50, 3)]
    fingerprints = np.array([one.fingerprint for one in analyses], np.uint64)

    assert neighbor_pairs(analyses, fingerprints) == ((3, 6), (2, 5))
