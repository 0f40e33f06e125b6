"""Articles of input files: formats, invalid rows, repeated ids."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from aggregator.errors import InvalidInput
from aggregator_lab.evaluation.article_files import read_articles


def test_every_format_is_read(tmp_path: Path) -> None:
    """Rows that are no articles and repeated ids are left out and counted."""
    lines = tmp_path / "a.jsonl"
    lines.write_text(
        '{"id": 1, "text": "x", "cluster": "c"}\nbroken\n{"id": 1, "text": "y"}\n{"title": "t"}\n'
    )
    table = tmp_path / "b.csv"
    with open(table, "w", newline="") as out:
        csv.writer(out).writerows([["id", "text"], ["2", "z"]])

    read = read_articles([str(lines), str(table)])

    assert [article.text or article.title for article in read.articles] == ["x", "t", "z"]
    assert (read.invalid, read.repeated_id) == (1, 1)
    assert read.first_invalid.startswith(f"{lines}:2: ")
    assert len(read_articles([str(lines), str(table)], 1).articles) == 1


def test_files_without_articles_are_an_error(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")

    with pytest.raises(InvalidInput, match="no articles found"):
        read_articles([str(empty)])
