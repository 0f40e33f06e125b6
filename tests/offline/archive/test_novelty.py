"""An archive is told apart by the rules of the service: flashes, frames of figures, stories behind their teasers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.shingles import OverlapEstimate
from aggregator.cli import main
from aggregator.dedup.templates import figures_changed, is_teaser_of, same_template_other_figures
from aggregator.dedup.verdict import Policy
from aggregator.offline.archive.columns import columns_from_signatures
from aggregator.offline.archive.encode import Signature
from aggregator.offline.archive.novelty import have_different_figures, is_teaser_row
from aggregator.offline.archive.pairs import pack_pairs
from aggregator.offline.archive.verify import PairOverlaps
from tests.support.archive_data import read_lines, write_lines
from tests.support.factories import story

FIGURES = st.lists(st.integers(0, 12), max_size=8, unique=True)
RESULT = (
    "The company said revenue for the quarter ended in June was {} million crowns, up from {} million a year before, and "
    "that profit rose to {} million. It sold {} pumps in the period, {} of them abroad, and expects about {} by December. "
    "The order book stood at {} million at the end of the quarter. Results of all divisions are told at the meeting."
)


def signature(figures: list[int], words: int = 50, size: int = 48, *, lettered: bool = False) -> Signature:
    """Only figures and lengths matter here."""
    one = np.ones(1, np.uint32)
    return Signature("", "", "en.0000", 0, 0, 0, words, size, one, lettered, tuple(figures))


@given(
    st.lists(FIGURES, min_size=2, max_size=5),
    st.sampled_from([39, 40]),
    st.sampled_from([0.79, 0.8, 1.0]),
    st.sampled_from([0.8, 0.849, 0.85]),
    st.booleans(),
)
def test_figures_tell_pairs_apart_as_one_at_a_time(
    figures: list[list[int]], words: int, ratio: float, containment: float, keep: bool
) -> None:
    """For every pair of a batch what the rules of the service say of the two."""
    columns = columns_from_signatures([signature(one, words) for one in figures])
    a, b = np.triu_indices(len(figures), 1)
    found = PairOverlaps(*(np.full(len(a), value) for value in (containment, 0.5, 40.0, ratio, 0.0)))
    told = have_different_figures(columns, pack_pairs(a, b), found, Policy(updates_are_new=keep))

    one = OverlapEstimate(containment, 0.5, 40.0, ratio)
    assert told.tolist() == [
        same_template_other_figures(one, figures[i], figures[j])
        or ((keep or words < 40) and figures_changed(figures[i], figures[j]))
        for i, j in zip(a.tolist(), b.tolist(), strict=True)
    ]


def test_letters_are_measured_in_letters() -> None:
    """Runs are five times as many as words, and the same change leaves more of them."""
    columns = columns_from_signatures(
        [signature([n, n + 1, n + 2, n + 3], 90, 450, lettered=True) for n in (0, 9)]
    )
    pair = pack_pairs(np.array([0]), np.array([1]))
    whole = [PairOverlaps(*(np.array([v]) for v in (c, 0.5, 400.0, 1.0, 0.0))) for c in (0.9, 0.92)]

    assert [bool(have_different_figures(columns, pair, one, Policy())[0]) for one in whole] == [True, False]
    for size in (195, 200, 205, 2_000):
        both = columns_from_signatures(
            [signature([], 40, size, lettered=True), signature([], 400, 500, lettered=True)]
        )
        assert is_teaser_row(both, 0, 1) is is_teaser_of(size / 5, 100)


def archive(tmp_path: Path, *texts: str, shingles: str = "letters") -> list[str]:
    """The ids that stay of texts told one day after the other."""
    rows: list[dict[str, Any]] = [
        {"id": str(n), "text": text, "published_at": f"2026-03-0{n + 1}T08:00:00Z", "lang": "en"}
        for n, text in enumerate(texts)
    ]
    source = write_lines(tmp_path / "a.jsonl", rows)
    out = tmp_path / "out"
    options = ["--out", str(out), "--processes", "1", "--no-progress", "--shingles", shingles]
    assert main(["dedupe", str(source), *options]) == 0
    assert json.loads((out / "summary.json").read_text(encoding="utf-8"))["articles"] == len(texts)
    return [row["id"] for row in read_lines(out / "deduplicated.jsonl")]


@pytest.mark.parametrize("shingles", ["letters", "words"])
def test_a_story_does_not_leave_for_its_teaser(tmp_path: Path, shingles: str) -> None:
    """Nor for a longer one; a teaser after its story does, and so does a copy of the story."""
    told = story(5)
    teaser = " ".join(told.split()[:45])

    assert archive(tmp_path, teaser, told, f"{told} And one more word.", shingles=shingles) == ["0", "1"]


@pytest.mark.parametrize("shingles", ["letters", "words"])
def test_a_teaser_leaves_for_its_story(tmp_path: Path, shingles: str) -> None:
    """Who has the story has its teaser."""
    told = story(5)

    assert archive(tmp_path, told, " ".join(told.split()[:45]), shingles=shingles) == ["0"]


@pytest.mark.parametrize("shingles", ["letters", "words"])
def test_other_figures_are_other_news(tmp_path: Path, shingles: str) -> None:
    """Two flashes of one rate, two results in one frame; a copy of the first of each leaves."""
    flash = "The central bank of the islands raised its key rate to {} percent on Thursday, it said in a statement in the capital."
    quarters = [RESULT.format(*range(start, start + 7)) for start in (110, 110, 240)]

    texts = [flash.format("4.25"), flash.format("4.50"), flash.format("4.25") + " More soon.", *quarters]
    assert archive(tmp_path, *texts, shingles=shingles) == ["0", "1", "3", "5"]
