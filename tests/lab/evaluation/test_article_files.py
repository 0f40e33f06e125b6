"""Articles of input files: formats, invalid rows, repeated ids."""

from __future__ import annotations

import csv
import io
import tarfile
from pathlib import Path

import pytest

from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator_lab.evaluation.article_files import read_articles, with_page_html


def test_every_format_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows that are no articles and repeated ids are left out and counted."""
    lines = tmp_path / "a.jsonl"
    lines.write_text(
        '{"id": 1, "text": "x", "cluster": "c"}\nbroken\n{"id": 1, "text": "y"}\n{"title": "t"}\n'
    )
    table = tmp_path / "b.csv"
    with open(table, "w", newline="") as out:
        csv.writer(out).writerows([["id", "text"], ["2", "z"]])

    assert [a.text or a.title for a in read_articles([str(lines), str(table)])] == ["x", "t", "z"]
    invalid, repeated = capsys.readouterr().err.splitlines()
    assert invalid.startswith(f"1 row left out, the first: {lines}, row 2: The row is not JSON")
    assert repeated == "1 row left out whose id or text occurred before"
    assert len(read_articles([str(lines), str(table)], limit=2)) == 2
    assert "1 row left out, the first" in capsys.readouterr().err


def test_files_without_articles_are_an_error(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")

    with pytest.raises(InvalidInput, match="no articles found"):
        read_articles([str(empty)])


JAPANESE = '<meta charset="shift_jis"><p>船</p>'
PAGES = {
    "a/1.htm": "<p>Fähre</p>".encode("latin-1"),
    "a/2.htm": "<p>Bär</p>".encode(),
    "a/3.htm": JAPANESE.encode("shift_jis"),
    "a/4.htm": '<meta charset="nonsense"><p>Bär</p>'.encode(),
}
ARTICLES = [Article(id=id_, text="as given") for id_ in PAGES]


def test_directory_and_archive_agree(tmp_path: Path) -> None:
    """A page is found by its article's id and decoded by its declared charset or its bytes."""
    (tmp_path / "pages" / "a").mkdir(parents=True)
    with tarfile.open(tmp_path / "pages.tar.xz", "w:xz") as archive:
        for name, page in PAGES.items():
            (tmp_path / "pages" / name).write_bytes(page)
            member = tarfile.TarInfo(name)
            member.size = len(page)
            archive.addfile(member, io.BytesIO(page))

    for path in (tmp_path / "pages", tmp_path / "pages.tar.xz"):
        articles = with_page_html(ARTICLES, path)
        assert [(a.text, a.html) for a in articles] == [
            ("", "<p>Fähre</p>"),
            ("", "<p>Bär</p>"),
            ("", JAPANESE),
            ("", '<meta charset="nonsense"><p>Bär</p>'),
        ]


def test_missing_pages_and_unusable_files_are_refused(tmp_path: Path) -> None:
    """A file outside of the directory is never read."""
    (tmp_path / "pages").mkdir()
    (tmp_path / "secret").write_text("x")
    with pytest.raises(InvalidInput, match=r"no page 'a/1\.htm'"):
        with_page_html(ARTICLES, tmp_path / "pages")
    with pytest.raises(InvalidInput, match="no page"):
        with_page_html([Article(id="../secret")], tmp_path / "pages")
    with pytest.raises(InvalidInput, match="not an archive"):
        with_page_html(ARTICLES, tmp_path / "secret")
