"""Rules for similar texts with different news in archives: flashes, templates with figures, teasers."""

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
    "The company said revenue for the quarter ended in June was {} million crowns, up from {} million a year "
    "before, and that profit rose to {} million. It sold {} pumps in the period, {} of them abroad, and "
    "expects about {} by December. The order book reached {} million at the end of the quarter. Results of "
    "all divisions are presented at the meeting."
)


def signature(
    figures: list[int], words: int = 50, size: int = 48, *, uses_char_ngrams: bool = False
) -> Signature:
    """A signature with these figures and lengths; other values do not matter."""
    sample = np.ones(1, np.uint32)
    return Signature("", "", "en.0000", 0, 0, 0, words, size, sample, uses_char_ngrams, tuple(figures))


@given(
    st.lists(FIGURES, min_size=2, max_size=5),
    st.sampled_from([39, 40]),
    st.sampled_from([0.79, 0.8, 1.0]),
    st.sampled_from([0.8, 0.849, 0.85]),
    st.booleans(),
)
def test_the_batch_rule_on_figures_equals_that_of_the_service(
    figures: list[list[int]], words: int, ratio: float, containment: float, keep: bool
) -> None:
    """Each pair of a batch is compared with the rules for one pair."""
    columns = columns_from_signatures([signature(values, words) for values in figures])
    a, b = np.triu_indices(len(figures), 1)
    found = PairOverlaps(*(np.full(len(a), value) for value in (containment, 0.5, 40.0, ratio, 0.0)))
    different = have_different_figures(columns, pack_pairs(a, b), found, Policy(updates_are_new=keep))

    overlap = OverlapEstimate(containment, 0.5, 40.0, ratio)
    assert different.tolist() == [
        same_template_other_figures(overlap, figures[i], figures[j])
        or ((keep or words < 40) and figures_changed(figures[i], figures[j]))
        for i, j in zip(a.tolist(), b.tolist(), strict=True)
    ]


def test_limits_for_char_ngrams_are_converted() -> None:
    """A text has five n-grams per word shingle, and the same edit leaves more of them."""
    columns = columns_from_signatures(
        [signature([n, n + 1, n + 2, n + 3], 90, 450, uses_char_ngrams=True) for n in (0, 9)]
    )
    pair = pack_pairs(np.array([0]), np.array([1]))
    overlaps = [
        PairOverlaps(*(np.array([value]) for value in (containment, 0.5, 400.0, 1.0, 0.0)))
        for containment in (0.9, 0.92)
    ]

    different = [bool(have_different_figures(columns, pair, overlap, Policy())[0]) for overlap in overlaps]
    assert different == [True, False]
    for size in (195, 200, 205, 2_000):
        both = columns_from_signatures(
            [signature([], 40, size, uses_char_ngrams=True), signature([], 400, 500, uses_char_ngrams=True)]
        )
        assert is_teaser_row(both, 0, 1) is is_teaser_of(size / 5, 100)


def kept_ids(tmp_path: Path, *texts: str, shingles: str = "letters") -> list[str]:
    """The ids kept by ``dedupe`` for texts published on consecutive days."""
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
def test_a_story_is_not_removed_for_its_teaser(tmp_path: Path, shingles: str) -> None:
    """The teaser and the story are kept; a copy of the story is removed."""
    text = story(5)
    teaser = " ".join(text.split()[:45])

    assert kept_ids(tmp_path, teaser, text, f"{text} And one more word.", shingles=shingles) == ["0", "1"]


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
