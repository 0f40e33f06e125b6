"""``aggregator evaluate duplicates``: tables, JSON, and what is reported about the input."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.cli.helpers import EDITED, ORIGINAL, OTHER, article_body, run, write_jsonl
from tests.support.factories import story

NOUNS = ["ferry", "bridge", "harbour", "council", "museum", "teacher", "farmer", "storm", "river", "school"]
VERBS = ["reached", "closed", "painted", "measured", "visited", "repaired", "watched", "crossed", "praised"]


def english(seed: int) -> str:
    """Fifteen English sentences of eight words."""
    rng = random.Random(seed)
    return " ".join(
        f"The {' and the '.join(rng.sample(NOUNS, 2))} {rng.choice(VERBS)} the {rng.choice(NOUNS)}."
        for _ in range(15)
    )


@pytest.fixture
def articles(tmp_path: Path) -> str:
    """A file with two articles, a copy of the first, a repeated id and a broken line."""
    rows = [article_body(row) for row in (ORIGINAL, OTHER, EDITED, OTHER)]
    return write_jsonl(tmp_path / "articles.jsonl", *rows, "broken")


def test_duplicates_are_counted(articles: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("evaluate", "duplicates", "--json", articles) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert result["method"] == "policy verified"
    assert result["total"] | {"lang": ""} == {
        "source": "all", "lang": "", "articles": 3, "duplicates": 1, "dropped": 1, "wrong": 0,
        "wrong_share": 0.0,
    }  # fmt: skip
    assert "1 row left out, the first" in captured.err
    assert "1 row left out whose id or text occurred before" in captured.err

    assert run("evaluate", "duplicates", "--max", "2", "--policy", "hamming", articles) == 0
    assert "duplicates by policy hamming" in capsys.readouterr().out


def test_dates_that_cannot_be_read_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With an example and the forms that are read; the rule compares times."""
    dates = ["05.01.2026 03:02", "2026-01-05", None]
    rows = [
        article_body(row) | {"published_at": date}
        for row, date in zip((ORIGINAL, OTHER, EDITED), dates, strict=True)
    ]

    assert run("evaluate", "duplicates", write_jsonl(tmp_path / "a.jsonl", *rows)) == 0
    assert "1 of 2 dates could not be read, e.g. '05.01.2026 03:02'; write them as 2026-01-05T03:02:00Z" in (
        capsys.readouterr().err
    )


def test_edited_copies_and_shingling(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both are printed below the table, and are part of the JSON."""
    rows = [{"id": str(i), "title": f"Headline {i}", "text": english(i), "lang": "en"} for i in range(12)]
    file = write_jsonl(tmp_path / "articles.jsonl", *rows)
    options = ("--edits", "2", "--compare", "shingling", "--overlap", "0.2,0.4")

    assert run("evaluate", "duplicates", "--json", *options, file) == 0
    result = json.loads(capsys.readouterr().out)
    assert [other["method"][-5:] for other in result["compared"]] == ["r=0.2", "r=0.4"]
    assert {row["edit"]: row["copies"] for row in result["edits"]}["lead"] == 2
    assert run("evaluate", "duplicates", *options, file) == 0
    table = capsys.readouterr().out
    assert "duplicates by shingling n=3" in table
    assert "edited copies found" in table
    assert run("evaluate", "duplicates", "--compare", "shingling", "--overlap", "2", file) == 2
    assert "above 0" in capsys.readouterr().err


def test_the_published_shingling_rule_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A report per number of collisions; impossible numbers are refused."""
    rows = [
        {"id": f"{i}{copy}", "title": "", "text": english(i), "lang": "en"} for i in range(4) for copy in "ab"
    ]
    file = write_jsonl(tmp_path / "articles.jsonl", *rows)
    options = ("--compare", "published", "--collisions")

    assert run("evaluate", "duplicates", "--json", *options, "0,31", file) == 0
    compared = json.loads(capsys.readouterr().out)["compared"]
    assert [other["method"].partition(" t=")[2] for other in compared] == ["0 f=1", "31 f=1"]
    assert [other["total"]["duplicates"] for other in compared] == [7, 4]  # of one vocabulary; equal texts
    assert run("evaluate", "duplicates", *options, "32", file) == 2
    assert "from 0 to 31" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (("--collisions", "7"), "published"),
        (("--overlap", "0.3"), "shingling"),
        (("--compare", "published", "--overlap", "0.3"), "shingling"),
    ],
)
def test_an_option_of_a_rule_that_is_not_compared_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], rule: str
) -> None:
    """It would have no effect, and the user would not see that."""
    file = write_jsonl(
        tmp_path / "articles.jsonl", {"id": "1", "title": "", "text": english(1), "lang": "en"}
    )

    assert run("evaluate", "duplicates", *options, file) == 2
    assert f"{options[-2]} belongs to --compare {rule}" in capsys.readouterr().err


@pytest.mark.integration
def test_duplicates_are_judged_by_hand(
    articles: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page shows the pairs; its judgments are reported."""
    page, judged = tmp_path / "page.html", tmp_path / "judgments.json"

    assert run("evaluate", "duplicates", articles, "--page", str(page)) == 0
    assert f'data-a="{EDITED["id"]}"' in page.read_text()
    assert f"pairs to judge in a browser: {page}" in capsys.readouterr().err
    judged.write_text(json.dumps([{"a": EDITED["id"], "b": ORIGINAL["id"], "verdict": "wrong"}]))
    capsys.readouterr()
    given = ("evaluate", "duplicates", articles, "--judged", str(judged))
    assert run(*given) == 0
    assert "100.0% of 1 judged pairs" in capsys.readouterr().out
    assert run(*given, "--json") == 0
    assert json.loads(capsys.readouterr().out)["judged"]["dropped"] == {"wrong": 1}


def test_a_page_needs_a_duplicate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_jsonl(tmp_path / "one.jsonl", article_body(OTHER))

    assert run("evaluate", "duplicates", file, "--page", str(tmp_path / "page.html")) == 2
    assert "no duplicate was found" in capsys.readouterr().err


def test_dropped_duplicates_are_printed(articles: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("evaluate", "duplicates", articles, "--show", "60") == 0
    assert f"  {EDITED['id']} (" in capsys.readouterr().out


def test_streams_are_built_of_the_articles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": str(i), "title": f"Headline {i}", "text": story(i, 16), "lang": "de"} for i in range(30)]
    file = write_jsonl(tmp_path / "articles.jsonl", *rows)
    options = ("--built", "2", "--kinds", "its half")

    assert run("evaluate", "duplicates", file, *options) == 0
    assert "whole, then its half" in capsys.readouterr().out
    assert run("evaluate", "duplicates", file, *options, "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)["kinds"]
    assert (row["cases"], row["needless"]) == (2, 0)
