"""Judgments of a person: reading, Wilson interval, agreement."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.dedup.policy import Policy
from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator_lab.evaluation.duplicate_stream import (
    DuplicatePair,
    DuplicateStream,
    StreamArticle,
    judge_pair,
)
from aggregator_lab.evaluation.judgments import (
    Judgment,
    evaluate,
    format_table,
    read_judgments,
    render_page,
    sample,
    wilson_interval,
)
from tests.support.factories import story
from tests.support.server_fixture import ROOT

ARTICLES = [
    Article("a", "Mayor opens bridge", story(1, 20), lang="de", published_at_ms=0, source="a.example"),
    Article("b", "Mayor opens the bridge", story(1, 19), lang="de"),
    Article("c", "Ferry runs aground", html=f"<html><body><p>{story(3, 20)}</p></body></html>", lang="de"),
]


async def stored() -> dict[str, StreamArticle]:
    """The articles through the service."""
    stream = DuplicateStream(Analyzer({"xx": HashedModel()}), Policy())
    await stream.send(ARTICLES)
    return stream.stored


async def test_judgments_are_counted() -> None:
    """Pairs without their articles are left out; HTML is compared as extracted."""
    given = [
        Judgment("b", "a", "right"),
        Judgment("c", "a", "wrong"),
        Judgment("c", "b", "unsure"),
        Judgment("gone", "a", "wrong"),
    ]

    report = evaluate(given, await stored())

    assert report.as_json() == {
        "right": 1, "wrong": 1, "unsure": 1, "missing": 1, "wrong_share": 0.5,
        "wrong_share_95": [0.0945, 0.9055], "counted_wrong_of_wrong": 1, "counted_wrong_of_right": 0,
        "grouped": {"right": 1, "wrong": 0, "unsure": 0}, "dropped": {"right": 1, "wrong": 0, "unsure": 0},
        "against": [],
    }  # fmt: skip
    table = format_table(report)
    assert "50.0% of 2 judged pairs, whatever the present rule says of them, 95 % interval 9.5% to" in table
    assert "headline, opening and wording all differ: in 1 of the 1 wrong, in 0 of the 1 right" in table


async def test_judgments_against_the_service_are_listed() -> None:
    """A right pair in two groups, and a wrong one of which the later article is dropped."""
    given = [Judgment("c", "a", "right"), Judgment("a", "b", "wrong")]

    report = evaluate(given, await stored())

    assert report.against == given
    assert "judged wrong: 1 of 1 in one group, 1 dropped" in format_table(report)
    assert "  judged wrong: a b" in format_table(report)


def test_a_directory_has_a_file_per_input(tmp_path: Path) -> None:
    (tmp_path / "wire.json").write_text('[{"a": "1", "b": "2", "verdict": "right"}]')

    assert read_judgments(str(tmp_path), ["data/wire.jsonl.gz"]) == [Judgment("1", "2", "right")]
    with pytest.raises(InvalidInput, match=r"other\.json cannot be read"):
        read_judgments(str(tmp_path), ["other.jsonl"])


def test_no_judgment_is_no_share() -> None:
    report = evaluate([], {})

    assert report.as_json()["wrong_share"] is None
    assert format_table(report) == "0 right, 0 wrong, 0 unsure"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not a file of judgments"),
        ('[{"a": "x", "b": "y", "verdict": "maybe"}]', "is not a file of judgments"),
        ('[{"a": "x"}]', "is not a file of judgments"),
        (None, "cannot be read"),
    ],
)
def test_invalid_files_are_one_sentence(tmp_path: Path, content: str | None, message: str) -> None:
    file = tmp_path / "judgments.json"
    if content is not None:
        file.write_text(content)

    with pytest.raises(InvalidInput, match=message):
        read_judgments(str(file))


@given(st.integers(0, 500), st.integers(1, 500))
def test_the_interval_contains_the_share(count: int, more: int) -> None:
    """It lies within 0..1, and is narrower for the same share of ten times as many."""
    total = count + more
    low, high = wilson_interval(count, total)
    wide_low, wide_high = low, high
    low, high = wilson_interval(10 * count, 10 * total)

    assert 0 <= wide_low <= low <= count / total <= high <= wide_high <= 1
    assert wilson_interval(0, 0) == (0.0, 1.0)


def test_known_interval() -> None:
    """10 of 50: 11.2 % to 33.0 % (Wilson 1927, without continuity correction)."""
    assert wilson_interval(10, 50) == pytest.approx((0.1124, 0.3304), abs=1e-4)


@pytest.mark.parametrize("name", ["duplicate_judgments.json", "former_duplicate_judgments.json"])
def test_the_judgments_of_the_benchmarks_are_readable(name: str) -> None:
    """No pair is judged twice."""
    judged = read_judgments(str(ROOT / "tests" / "benchmarks" / name))

    assert judged
    assert len({(item.a, item.b) for item in judged}) == len(judged)


def pair(id_: str, text: str, lang: str = "de", days: float | None = None) -> DuplicatePair:
    a = Article(
        id_, "<b>Brücke</b>", f"{text} 12", published_at_ms=None if days is None else int(days * 864e5)
    )
    b = Article(f"{id_} of", "", f"{text} 15", source="b.example", published_at_ms=0)
    return DuplicatePair(a, b, lang, judge_pair(a, b, lang))


def test_the_sample_is_seeded() -> None:
    pairs = [pair(str(i), story(i, 3)) for i in range(20)]

    assert sample(pairs, 5) == sample(pairs, 5) != sample(pairs, 5, seed=1)
    assert len(sample(pairs, 50)) == 20


def test_pairs_are_shown_side_by_side() -> None:
    """Shared wording and differing figures are marked; markup of a headline is text."""
    page = render_page([pair("a", story(1, 5), days=40), pair("b", "桥" * 30, "zh", days=0.2)], 7, "policy x")

    assert "2 of 7 duplicates by policy x" in page
    assert page.count('data-judgment="') == 3  # in the style sheet: no pair is judged
    assert "&lt;b&gt;Brücke&lt;/b&gt;" in page
    assert "No headline" in page
    assert page.count("<mark") >= 4
    assert '<b class="figure">15</b>' in page
    assert "40 days apart" in page
    assert "5 h apart" in page
    assert "33 characters" in page
    assert not re.search(r'(?:src|href)="(?!data:)', page)
