"""Rules for similar texts with different news in archives: flashes, templates with figures, teasers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from aggregator.cli import main
from aggregator_lab.evaluation.noise import NOISE_LEVELS, add_ocr_noise
from tests.support.archive_data import read_lines, write_lines
from tests.support.factories import story

RESULT = (
    "The company said revenue for the quarter ended in June was {} million crowns, up from {} million a year "
    "before, and that profit rose to {} million. It sold {} pumps in the period, {} of them abroad, and "
    "expects about {} by December. The order book reached {} million at the end of the quarter. Results of "
    "all divisions are presented at the meeting."
)


def kept_ids(
    tmp_path: Path, *texts: str, shingles: str = "letters", title: str = "", options: Sequence[str] = ()
) -> list[str]:
    """The ids kept by ``dedupe`` for texts published on consecutive days."""
    rows: list[dict[str, Any]] = [
        {
            "id": str(n),
            "title": title,
            "text": text,
            "published_at": f"2026-03-0{n + 1}T08:00:00Z",
            "lang": "en",
        }
        for n, text in enumerate(texts)
    ]
    source = write_lines(tmp_path / "a.jsonl", rows)
    out = tmp_path / "out"
    usual = ["--out", str(out), "--processes", "1", "--no-progress", "--shingles", shingles]
    assert main(["dedupe", str(source), *usual, *options]) == 0
    assert json.loads((out / "summary.json").read_text(encoding="utf-8"))["articles"] == len(texts)
    return [row["id"] for row in read_lines(out / "deduplicated.jsonl")]


@pytest.mark.parametrize("shingles", ["letters", "words"])
def test_a_story_is_not_removed_for_its_teaser(tmp_path: Path, shingles: str) -> None:
    """The teaser and the story are kept; a copy of the story is removed."""
    text = story(5)
    teaser = " ".join(text.split()[:45])

    assert kept_ids(tmp_path, teaser, text, f"{text} And one more word.", shingles=shingles) == ["0", "1"]


@pytest.mark.parametrize("shingles", ["letters", "words"])
def test_a_page_with_a_second_report_is_not_removed(tmp_path: Path, shingles: str) -> None:
    """An equally long copy whose second half is new is kept, unless any copy is to be removed."""
    text, other = story(5, 16), story(6, 16)
    page = f"{text[: len(text) // 2]} {other[: len(text) // 2]}"

    assert kept_ids(tmp_path, text, page, shingles=shingles) == ["0", "1"]
    assert kept_ids(tmp_path, text, page, shingles=shingles, options=["--keep-if-adds=1"]) == ["0"]


def test_misread_words_are_no_news(tmp_path: Path) -> None:
    """By letters the second scan of a text is removed."""
    scans = [add_ocr_noise(story(5, 30), NOISE_LEVELS[0], seed) for seed in "ab"]

    assert kept_ids(tmp_path, *scans) == ["0"]


@pytest.mark.parametrize("shingles", ["letters", "words"])
@pytest.mark.parametrize("title", ["", "Ferry to the islands sold"])
@pytest.mark.parametrize("words", [60, 200])
def test_a_fuller_text_is_not_removed_for_its_beginning(
    tmp_path: Path, words: int, title: str, shingles: str
) -> None:
    """Whatever part of a story came first, the whole story has news; its copy has none."""
    texts = " ".join(story(5).split()[:words]), story(5), f"{story(5)} More soon."

    assert kept_ids(tmp_path, *texts, shingles=shingles, title=title) == ["0", "1"]


@pytest.mark.parametrize("shingles", ["letters", "words"])
def test_a_teaser_is_removed_for_its_story(tmp_path: Path, shingles: str) -> None:
    """A teaser after its story is a duplicate."""
    text = story(5)

    assert kept_ids(tmp_path, text, " ".join(text.split()[:45]), shingles=shingles) == ["0"]


@pytest.mark.parametrize("shingles", ["letters", "words"])
def test_other_figures_are_other_news(tmp_path: Path, shingles: str) -> None:
    """Two flashes and two results with different figures are kept; a copy of the first of each is removed."""
    flash = (
        "The central bank of the islands raised its key rate to {} percent on Thursday, it said in a "
        "statement in the capital."
    )
    quarters = [RESULT.format(*range(start, start + 7)) for start in (110, 110, 240)]

    texts = [flash.format("4.25"), flash.format("4.50"), flash.format("4.25") + " More soon.", *quarters]
    assert kept_ids(tmp_path, *texts, shingles=shingles) == ["0", "1", "3", "5"]
