"""The check of input files before a run."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from aggregator.cli import main
from aggregator.errors import InvalidInput
from aggregator_archive.cli.options import ARTICLE_COLUMNS
from aggregator_archive.input_check import check_inputs
from aggregator_archive.rows import ARTICLE_FIELDS, parse_article, read_rows
from tests.support.archive_data import write_lines

ROWS: list[dict[str, str]] = [
    {"id": "1", "title": "Café", "text": "A bakery, 40 € a week"},
    {"id": "2", "title": "B", "text": "C"},
]


def write_csv(path: Path, separator: str = ",", encoding: str = "utf-8") -> str:
    """``ROWS`` as a CSV file."""
    lines = [list(ROWS[0]), *(list(row.values()) for row in ROWS)]
    text = "".join(separator.join(f'"{value}"' for value in line) + "\r\n" for line in lines)
    data = text.encode(encoding)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


def problem(*files: str, **columns: str) -> str:
    """What the check says about the files."""
    with pytest.raises(InvalidInput) as error:
        check_inputs(files, columns)
    return str(error.value)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
@pytest.mark.parametrize("name", ["a.csv", "A.CSV.gz"])
def test_csv_files_of_spreadsheets(separator: str, encoding: str, name: str, tmp_path: Path) -> None:
    """Semicolons, tabs, bars, UTF-16 and Windows-1252 are read; only the last could be wrong, and is said."""
    file = write_csv(tmp_path / name.replace("CSV.gz", "csv.gz"), separator, encoding)

    remarks = check_inputs([file], {})
    assert remarks == (
        [f"{file} is not UTF-8; its other letters are read as windows-1252."] * (encoding == "cp1252")
    )
    assert list(read_rows([file])) == ROWS


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1251", "Совет одобрил ремонт бассейна, и работы начнутся в марте: «Это важно», сказал мэр."),
        ("koi8-r", "Совет одобрил ремонт бассейна, и работы начнутся в марте."),
        ("cp1253", "Το συμβούλιο ενέκρινε την επισκευή της πισίνας με έντεκα ψήφους."),
        *((name, "市议会周一批准了游泳馆的维修计划。") for name in ("gbk", "gb18030")),
        ("big5", "市議會週一批准了游泳館的維修計劃,工程將於三月開始。"),
        *((name, "市議会はプールの修繕計画を承認した。") for name in ("shift_jis", "euc_jp")),
        *((name, "시의회는 월요일 수영장 보수 계획을 승인했다.") for name in ("euc_kr", "cp949")),
        ("euc_kr", "여객선 운항 재개"),
    ],
)
def test_other_alphabets_must_be_utf_8(encoding: str, text: str, tmp_path: Path) -> None:
    """They would be read as Western letters, and duplicates be found of what no reader can read."""
    path = tmp_path / "a.csv"
    path.write_text(
        f"id,url,text\n1,https://gazette.example/news/2026/01/05/pool,{text}\n", encoding=encoding
    )

    assert problem(str(path)) == f"{path} is not windows-1252 or UTF-8; save it as UTF-8."
    assert main(["dedupe", str(path), "--out", str(tmp_path / "out")]) == 2
    path.write_text(f"id,{text[:9]}\n1,{text}\n", encoding=encoding)
    assert "save it as UTF-8" in str(problem(str(path)))  # not that its columns are such letters
    path.write_bytes(f"id,text\n1,{text}\n2,".encode() + b"caf\xe9\n")
    assert "read as windows-1252" in check_inputs([str(path)], {})[0]  # one letter of a file in UTF-8


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "« Été », dit l’élu : la piscine, créée à côté de la mairie…"),
        ("cp1252", "„Größere Straßen“, süßes Öl"),
        ("cp1252", "«Été» à Créteil"),
        ("cp1252", "Año"),
        ("cp1250", "Główny wójt źle ogłosił, że wyższe opłaty też wzrosną"),
    ],
)
def test_languages_in_latin_letters_are_read(encoding: str, text: str, tmp_path: Path) -> None:
    """Their other letters are among ASCII ones; those of Polish become Western ones, as the remark says."""
    path = tmp_path / "a.csv"
    path.write_text(f'id,text\n1,"{text}"\n', encoding=encoding)

    assert "its other letters are read as windows-1252" in check_inputs([str(path)], {})[0]
    assert [row["text"] for row in read_rows([str(path)])] == [text.encode(encoding).decode("cp1252")]


@pytest.mark.parametrize("before", ["sep=,\r\n", "\ufeffsep=,\n", "\n  \n"])
def test_the_header_follows_lines_of_spreadsheets(before: str, tmp_path: Path) -> None:
    """They name the separator, or are empty."""
    path = tmp_path / "a.csv"
    path.write_text(f'{before}id,title,text\n007,A,"one,\n\ntwo"\n', encoding="utf-8", newline="")

    assert check_inputs([str(path)], {}) == []
    assert list(read_rows([str(path)])) == [{"id": "007", "title": "A", "text": "one,\n\ntwo"}]


def test_spaces_after_separators(tmp_path: Path) -> None:
    """Quotation marks follow them; other values keep theirs."""
    path = tmp_path / "a.csv"
    path.write_text('id, text\n007, "one, two"\n')
    assert list(read_rows([str(path)])) == [{"id": "007", "text": "one, two"}]
    path.write_text("id,text\n007, one\n")
    assert list(read_rows([str(path)])) == [{"id": "007", "text": " one"}]


def test_a_repeated_header_is_no_article(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files were joined."""
    path = tmp_path / "a.csv"
    path.write_text("id,text\n1,one\nid,text\n2,two\n")

    assert [row["id"] for row in read_rows([str(path)])] == ["1", "2"]
    assert "a.csv, row 2: The row repeats the header." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "ids", "lines"),
    [
        ('1,"The ferry\n2,The bridge\n3,The tram\n', [], 3),  # to the end of the file
        ('1,The ferry\n2,"The bridge\n3,"The tram"\n4,The pool', ["1", "4"], 2),  # to the next quote
        ('1,"The ferry', [], 1),
        ('1,"A text, of\ntwo ""lines"""\n\n2,He said "no"\n', ["1", "2"], 0),
        ('1,"A ""sloppy"" text\nsays "no" here"\n2,The tram\n', ["1", "2"], 0),
    ],
)
def test_a_quote_that_is_not_closed(
    content: str, ids: list[str], lines: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rows after it became part of its row, silently."""
    path = tmp_path / "a.csv"
    path.write_text("id,text\n0,The pool\n" + content)
    found = [row["id"] for row in read_rows([str(path)])]

    assert found == ["0", *ids]
    assert (f"so {lines} lines became a row; close it" in capsys.readouterr().err) == bool(lines)


def test_nan_is_none(tmp_path: Path) -> None:
    """Python writes it for an empty cell."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": NaN, "title": "A", "text": NaN}\n')
    (row,) = read_rows([str(path)])

    assert row == {"id": None, "title": "A", "text": None} and parse_article(row, {}).title == "A"


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_named_column_that_does_not_exist(kind: str, tmp_path: Path) -> None:
    """In no file; of lines of JSON a column of any row exists."""
    file = str(tmp_path / f"a.{kind}")
    if kind == "csv":
        write_csv(Path(file))
    elif kind == "jsonl":
        write_lines(Path(file), [*ROWS, {"id": "3", "title": "C", "text": "D", "url": "E"}])
        check_inputs([file], {"html": "url"})
    else:
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(ROWS), file)

    assert check_inputs([file], {"text": "title", "title": "text"}) == []
    found = problem(file, text="boddy")
    assert found.startswith(f"column: {file}: no column 'boddy' for text; the columns are id, title, text")


def test_columns_that_are_not_used_are_named_once(tmp_path: Path) -> None:
    """Those of a language or a spelling that no list has: the headline would be missed silently."""
    files = [str(tmp_path / name) for name in ("a.csv", "b.csv", "c.jsonl")]
    for file in files[:2]:
        Path(file).write_text("id,Titel,text,url\n1,Fähre fährt,Die Fähre fährt wieder.,\n", encoding="utf-8")
    write_lines(Path(files[2]), [{"id": "1", "text": "A", "source": "B"}, {"text": "C", "Datum": "D"}])

    assert check_inputs(files, {}) == [
        f"{files[0]}: no column is title, published_at; unused: Titel; "
        "map them, e.g. with --column title=NAME",
        f"{files[2]}: no column is title, published_at; unused: Datum; "
        "map them, e.g. with --column title=NAME",
    ]
    assert len(check_inputs(files, {"title": "Titel", "published_at": "Datum"})) == 0
    Path(files[0]).write_text("id,text\n1,A\n")
    assert check_inputs(files[:1], {}) == []  # nothing could be mapped


def test_a_header_in_other_case(tmp_path: Path) -> None:
    """The options to copy; none for the columns that are mapped already."""
    path = tmp_path / "a.csv"
    path.write_text("ID,Title, Text\n1,A,B\n")
    options = "--column id=ID --column title=Title --column 'text= Text'"

    assert problem(str(path)) == (
        f"{path}: its columns are ID, Title,  Text; map them to id, title, text, html, url, source, "
        f"published_at, lang with {options}."
    )
    assert problem(str(path), id="ID", title="Title").endswith("lang with --column 'text= Text'.")
    assert check_inputs([str(path)], {"id": "ID", "title": "Title", "text": " Text"}) == []


@pytest.mark.parametrize(
    ("name", "separator"), [("a.csv", ","), ("a.csv", ";"), ("a.tsv", "\t"), ("a.csv.gz", ",")]
)
def test_two_columns_of_one_name(name: str, separator: str, tmp_path: Path) -> None:
    """A row would have the last only; empty names are those of spreadsheets."""
    path = tmp_path / name
    lines = [["id", "text", "text", "", ""], ["1", "The ferry is late.", "The bridge is shut.", "", ""]]
    data = "".join(separator.join(line) + "\r\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)

    renamed = data.replace(b"text", b"title", 1)

    assert problem(str(path)) == f"{path}: two columns are named 'text'; rename one in the header."
    with pytest.raises(InvalidInput, match="two columns are named 'text'"):
        list(read_rows([str(path)]))
    path.write_bytes(gzip.compress(renamed) if path.suffix == ".gz" else renamed)
    assert check_inputs([str(path)], {}) == [] and len(list(read_rows([str(path)]))) == 1


def test_a_table_without_a_column_to_compare(tmp_path: Path) -> None:
    """The error shows the form of the option."""
    path = tmp_path / "a.tsv"
    path.write_text("headline\tbody\nDam breaks\tThe dam broke\n")

    assert problem(str(path)) == (
        f"{path}: its columns are headline, body; map them to id, title, text, html, url, source, "
        "published_at, lang with --column FIELD=NAME."
    )


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "a.jsonl",
            b"<rss><channel/></rss>",
            "The file is a feed; post its items by `",
        ),
        ("a.csv", b"<!doctype html><p>Hello", "The file is HTML or XML;"),
        ("a.csv", b'{\n  "id": "1"\n}', "The file is JSON over several lines or an array;"),
        (
            "a.csv",
            b'\xef\xbb\xbf{"id": 1, "text": "The ferry runs again."}\n',
            "It is lines of JSON; name it .jsonl.",
        ),
        ("a.json", b"id,title,text\n1,A,B\n", "The file is CSV;"),
        ("a.json", "id,title\n".encode("utf-16"), "The file is UTF-16"),
        ("a.gz", gzip.compress(b"WARC/1.0\r\n", mtime=0), "The file is a web archive (WARC);"),
        ("a.jsonl.gz", b"not what its name says\n", "It is not gzip, Parquet or lines of JSON;"),
        ("a.zst", bytes(range(160, 200)), "It is not gzip, Parquet or lines of JSON;"),
        ("a.xlsx", b"PK\x03\x04", "The file is a zip archive, tar archive or workbook;"),
    ],
)
def test_a_file_in_another_format(
    name: str, content: bytes, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is refused before anything is written, and by evaluations."""
    path = tmp_path / name
    path.write_bytes(content)

    assert problem(str(path)).startswith(f"{path}: {sentence}")
    assert main(["evaluate", "own", str(path)]) == main(["evaluate", "clusters", str(path)]) == 2
    assert capsys.readouterr().err.count(f"aggregator: {path}: {sentence}") == 2
    assert main(["dedupe", str(path), "--out", str(tmp_path / "out"), "--no-progress"]) == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", gzip.compress(b"id,text\n1,A\n", mtime=0)[:15]])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_what_the_run_reports_itself(name: str, content: bytes, tmp_path: Path) -> None:
    """An empty and a damaged file."""
    path = tmp_path / name
    path.write_bytes(content)
    columns: dict[str, Any] = {"text": "body"}

    assert check_inputs([str(path)], columns) == []


@pytest.mark.parametrize(
    ("invalid", "message"),
    [
        (b"{,", "not JSON"),
        (b"[]", "found list"),
        (b"[" * 100_000, "not JSON"),
        (b"\xff", "not JSON in UTF-8"),
    ],
)
def test_an_invalid_line_costs_no_other(
    tmp_path: Path, invalid: bytes, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """File and line are named; it is an error only if no row is left."""
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"id": "a"}\n' + invalid + b'\n{"id": "b"}\n')

    assert list(read_rows([str(path)])) == [{"id": "a"}, {"id": "b"}]
    err = capsys.readouterr().err
    assert f"1 row left out, the first: {path}, row 2: " in err and message in err
    path.write_bytes(invalid + b"\n")
    with pytest.raises(InvalidInput, match=r"rows\.jsonl, row 1: .*" + message):
        list(read_rows([str(path)]))


def test_a_file_of_one_object_with_all_articles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Mapping its column to a field would not help."""
    path = write_lines(tmp_path / "a.json", [{"status": "ok", "articles": ROWS}])

    for command in (["dedupe", "--out", str(tmp_path / "out")], ["evaluate", "duplicates"]):
        assert main([*command, str(path)]) == 2
        said = capsys.readouterr().err
        assert (
            "title; its 'articles' is a list: give each object as a row (of JSON: `jq -c '.articles[]'`)"
            in said
        )
        assert "--column" not in said


def test_the_fields_of_the_option_are_those_that_rows_are_read_with() -> None:
    """The options name them themselves: rows import numpy, for which ``--help`` need not wait."""
    assert ARTICLE_COLUMNS == ARTICLE_FIELDS


def test_a_table_without_a_header_is_reported_in_one_line(tmp_path: Path) -> None:
    """The first article is not printed whole as the name of a column."""
    path = tmp_path / "a.csv"
    path.write_text(f"7,{'The ferry runs again. ' * 50}\n", encoding="utf-8")

    assert problem(str(path)).startswith(
        f"{path}: its columns are 7, The ferry runs again. The ferry runs aga (no header?); map them to id"
    )
