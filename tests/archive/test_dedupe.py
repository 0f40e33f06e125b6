"""``aggregator dedupe``: groups, invalid rows, resumed runs, formats and methods."""

import csv
import gzip
import io
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas
import pytest

from aggregator.cli import main
from aggregator_archive import job, output, pipeline, rows
from aggregator_archive.cli.options import ARTICLE_COLUMNS
from tests.support.archive_data import archive_rows, read_lines, write_lines

pytestmark = pytest.mark.integration

TABLES = ("pairs", "clusters", "representatives", "deduplicated")


def run(out: Path, *args: object) -> int:
    """Run the command without worker processes; returns the exit code."""
    return main(["dedupe", *map(str, args), "--out", str(out), "--processes", "1", "--no-progress"])


def groups(out: Path) -> set[frozenset[str]]:
    """The ids of each cluster."""
    found: dict[int, set[str]] = {}
    for row in read_lines(out / "clusters.jsonl"):
        found.setdefault(row["cluster"], set()).add(row["id"])
    return {frozenset(ids) for ids in found.values()}


EXPECTED = {frozenset(f"g{g}-{kind}" for kind in ("original", "edited", "cut", "equal")) for g in range(5)}


def test_groups_representatives_and_the_deduplicated_copy(tmp_path: Path) -> None:
    """The earliest article of each of five groups is kept; kept rows are copied byte for byte."""
    source = write_lines(tmp_path / "a.jsonl", archive_rows())

    assert run(tmp_path / "out", source) == 0
    assert groups(tmp_path / "out") == EXPECTED
    kept = (tmp_path / "out" / "deduplicated.jsonl").read_bytes().splitlines()
    lines = source.read_bytes().splitlines()
    assert kept == [line for line in lines if json.loads(line)["id"].endswith("original") or b"alone" in line]
    chosen = {row["id"] for row in read_lines(tmp_path / "out" / "representatives.jsonl")}
    assert chosen == {f"g{g}-original" for g in range(5)}
    review, report = (
        (tmp_path / "out" / f"{name}.html").read_text(encoding="utf-8") for name in ("review", "report")
    )
    for page in (review, report):  # what happened to each row shown
        shown = dict(re.findall(r'class="meta">(\S+) .*?<strong>(.*?)</strong>', page))
        assert shown and all(
            fate == ("kept" if id_.endswith("original") else f"removed: a copy of {id_[:3]}original")
            for id_, fate in shown.items()
        )
    assert "g0-cut" in review and 'class="bar"' in report
    assert not (tmp_path / "out" / "work").exists()


def test_repeated_ids_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Results name rows by id, so a reader has to know that two rows have the same one."""
    rows = archive_rows()
    others = [row | {"text": "The swing bridge is shut."} for row in rows[:2]]
    source = write_lines(tmp_path / "a.jsonl", [*rows, *others])

    assert run(tmp_path / "out", source) == 0
    assert json.loads((tmp_path / "out" / "summary.json").read_bytes())["repeated_ids"] == 2
    assert "earlier row: 2; results name rows by id, file and row\n" in capsys.readouterr().err


def test_rows_of_clusters_are_named_by_file_and_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As bad rows are, whatever their ids; invalid rows and those of other files and blocks count."""
    monkeypatch.setattr(rows, "MAX_BLOCK_ROWS", 7)
    given = [row | {"id": "1"} for row in archive_rows()]
    files = [
        write_lines(tmp_path / "a.jsonl", [{"id": "1", "text": " "}, *given[:47]]),
        write_lines(tmp_path / "b.jsonl", given[47:]),
    ]

    assert run(tmp_path / "out", *files) == 1
    lines = {str(file): read_lines(file) for file in files}

    def titles(table: str) -> list[str]:
        named = read_lines(tmp_path / "out" / f"{table}.jsonl")
        return sorted(lines[row["file"]][row["row"] - 1]["title"] for row in named)

    pairs = read_lines(tmp_path / "out" / "pairs.jsonl")
    for side in "12":
        assert all(lines[pair[f"file{side}"]][pair[f"row{side}"] - 1]["title"] for pair in pairs)
    originals = {
        (row["copy_of_file"], row["copy_of_row"]) for row in read_lines(tmp_path / "out/clusters.jsonl")
    }
    assert {lines[file][row - 1]["title"] for file, row in originals - {(None, None)}} == {
        f"g{n}-original" for n in range(5)
    }
    assert titles("clusters") == sorted(id_ for group in EXPECTED for id_ in group)
    assert titles("representatives") == [f"g{n}-original" for n in range(5)]


def test_the_distribution_of_lengths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Articles, clustered and removed ones per range of words, printed and in the report; sums are known."""
    short = {"id": "short", "text": "Ferries late again", "lang": "en"}
    source = write_lines(tmp_path / "a.jsonl", [*archive_rows(), short])

    assert run(tmp_path / "out", source) == 0
    summary = json.loads((tmp_path / "out" / "summary.json").read_bytes())
    rows_ = summary["lengths"]
    assert rows_[0] == {"words": "0-10", "articles": 1, "in_clusters": 0, "removed": 0}
    assert sum(row["articles"] for row in rows_) == summary["articles"]
    assert sum(row["in_clusters"] for row in rows_) == summary["articles_in_clusters"]
    assert sum(row["removed"] for row in rows_) == summary["removed"]
    assert "words   articles  clustered    removed" in capsys.readouterr().out
    assert "<td>0-10</td>" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_invalid_rows_are_listed_with_their_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other rows are used, undated if their date cannot be read; the exit code is 1."""
    source = write_lines(tmp_path / "a.jsonl", archive_rows())
    with open(source, "ab") as file:
        file.write(
            b'{"id": "broken"\n{"id": "empty", "text": " "}\n'
            b'{"id": "when", "text": "words", "published_at": "soon"}\n'
            b'{"id": "rss", "text": "more", "published_at": "Fri, 27 Nov 2026 10:00:00 EST", "score": NaN}\n'
            b'{"id": "emoji", "text": "half of an emoji \\ud83d was cut", "a": "\\ud83d\\ude00"}\n'
        )

    assert run(tmp_path / "out", source) == 1
    bad = read_lines(tmp_path / "out" / "bad_rows.jsonl")
    assert [row["row"] for row in bad] == [61, 62]
    for row, reason in zip(bad, ("is not JSON", "neither text"), strict=True):
        assert reason in row["reason"]
    assert groups(tmp_path / "out") == EXPECTED
    errors = capsys.readouterr().err
    assert (
        "2 rows left out" in errors and "1 of 62 dates could not be read, e.g. 'soon'; write them" in errors
    )
    assert "2 of 63 rows are undated\n" in errors  # without --within nothing depends on it
    kept = (tmp_path / "out" / "deduplicated.jsonl").read_bytes()
    assert b'"when"' in kept and b'"score": NaN' in kept
    assert run(tmp_path / "table", source, "--format", "parquet") == 1  # a table holds NaN, too


UNRELATED = [
    {"id": "and", "text": "And of the, or not."},
    {
        "id": "ferry",
        "text": "The ferry between Brackwater and Estmark runs again from Monday, every hour until ten.",
    },
    {
        "id": "violin",
        "text": "A library in Corvane lends instruments; violins are asked for most, then accordions.",
    },
]


@pytest.mark.parametrize("count", range(4))
def test_an_archive_without_duplicates_is_unchanged(
    tmp_path: Path, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tables are empty and all rows are kept, also for an archive without articles, which is said."""
    source = write_lines(tmp_path / "a.jsonl", UNRELATED[:count])

    assert run(tmp_path / "out", source) == 0
    assert read_lines(tmp_path / "out" / "clusters.jsonl") == []
    assert read_lines(tmp_path / "out" / "pairs.jsonl") == []
    assert read_lines(tmp_path / "out" / "deduplicated.jsonl") == UNRELATED[:count]
    assert ("the input has no rows" in capsys.readouterr().err) == (count == 0)


def test_an_archive_without_known_columns_gets_a_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is refused with its columns and --column, as a table is; an empty text gets no such hint."""
    source = write_lines(tmp_path / "a.jsonl", [{"headline": "Dam breaks", "body": "The dam broke"}])
    empty = write_lines(tmp_path / "b.jsonl", [{"id": "e", "text": " "}])

    assert (run(tmp_path / "other", source), run(tmp_path / "json", empty)) == (2, 1)
    assert capsys.readouterr().err.startswith(
        f"aggregator: {source}, row 1: The row has neither text, html nor title: the columns are headline, "
        "body; map one with --column text=NAME.\n"
    )
    assert not (tmp_path / "other").exists()
    (blank,) = read_lines(tmp_path / "json" / "bad_rows.jsonl")
    assert blank["reason"] == "The row has neither text, html nor title."
    late = write_lines(tmp_path / "c.jsonl", [{"id": f"{at}"} for at in range(200)] + UNRELATED[:1])
    assert run(tmp_path / "late", late) == 1  # one row is of use
    assert len(read_lines(tmp_path / "late" / "deduplicated.jsonl")) == 1


def test_an_interrupted_run_resumes_with_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted in every stage, a run ends with the files of an uninterrupted one, and repeats no task."""
    monkeypatch.setattr(rows, "MAX_BLOCK_ROWS", 7)
    source = write_lines(tmp_path / "a.jsonl", archive_rows())
    assert run(tmp_path / "once", source) == 0

    last = (output, "choose_representatives")
    for at in (
        (pipeline, "gather_columns"),
        (pipeline, "merge_pairs"),
        (pipeline, "cluster"),
        last,
    ):
        interrupted_run(tmp_path / "out", source, monkeypatch, at=at)
    checkpoints = sorted((tmp_path / "out" / "work").rglob("*.npz"))
    before = {file: file.stat().st_mtime_ns for file in checkpoints}
    checkpoints[0].unlink()
    interrupted_run(tmp_path / "out", source, monkeypatch, at=last)
    assert {file: file.stat().st_mtime_ns for file in checkpoints[1:]} == {
        file: before[file] for file in checkpoints[1:]
    }

    assert run(tmp_path / "out", source) == 0
    for name in TABLES:
        assert (tmp_path / "out" / f"{name}.jsonl").read_bytes() == (
            tmp_path / "once" / f"{name}.jsonl"
        ).read_bytes()


def interrupted_run(
    out: Path, source: Path, monkeypatch: pytest.MonkeyPatch, at: tuple[ModuleType, str]
) -> None:
    """A run that is interrupted (SIGINT) when it calls this function of a module."""

    def interrupt(*args: Any, **named: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(*at, interrupt)
        assert run(out, source) == 130


def test_work_of_other_settings_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names --fresh, which discards the work."""
    source = write_lines(tmp_path / "a.jsonl", archive_rows())
    interrupted_run(tmp_path / "out", source, monkeypatch, at=(pipeline, "cluster"))

    assert run(tmp_path / "out", source, "--cap", "7") == 2
    assert "--fresh" in capsys.readouterr().err
    assert run(tmp_path / "out", source, "--cap", "7", "--fresh") == 0


def test_work_of_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its files may have another format; --fresh discards them."""
    source = write_lines(tmp_path / "a.jsonl", archive_rows())
    with monkeypatch.context() as patch:
        patch.setattr(job, "WORK_FORMAT_VERSION", 1)
        interrupted_run(tmp_path / "out", source, monkeypatch, at=(pipeline, "cluster"))

    assert run(tmp_path / "out", source) == 2
    assert "version" in capsys.readouterr().err
    assert run(tmp_path / "out", source, "--fresh") == 0


def test_within_links_only_articles_close_in_time(tmp_path: Path) -> None:
    """The equal copy of 19 days later is not in the group; undated articles are always linked."""
    articles = archive_rows()
    articles[-4]["published_at"] = articles[-1]["published_at"] = None
    source = write_lines(tmp_path / "a.jsonl", articles)

    assert run(tmp_path / "out", source, "--within", "7d") == 0
    assert groups(tmp_path / "out") == {
        group - {f"g{g}-equal"} if g != 4 else group
        for g in range(5)
        for group in EXPECTED
        if f"g{g}-cut" in group
    }
    summary = json.loads((tmp_path / "out" / "summary.json").read_bytes())
    assert summary["within"]["pairs_with"] < summary["within"]["pairs_without"]


def test_within_needs_a_date_that_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Refused before the work otherwise, with an example and the forms that are read; some are enough."""
    dated = [row | {"published_at": f"{n % 28 + 1:02}.01.2026 03:02"} for n, row in enumerate(archive_rows())]
    undated = [{"id": row["id"], "text": row["text"]} for row in archive_rows()]
    message = "write them as 2026-01-05T03:02:00Z or 2026-01-05, or leave out --within."
    for rows_, part in (
        (dated, f"60 of 60 dates could not be read, e.g. '01.01.2026 03:02'; {message}"),
        (
            undated,
            "no row has a date in the column 'published_at'; name another with --column published_at=NAME",
        ),
    ):
        source = write_lines(tmp_path / "a.jsonl", rows_)
        assert run(tmp_path / "out", source, "--within", "7d") == 2
        assert part in capsys.readouterr().err and not (tmp_path / "out").exists()
    source = write_lines(tmp_path / "a.jsonl", [*dated[1:], archive_rows()[0]])
    assert run(tmp_path / "out", source, "--within", "7d") == 0
    assert "59 of 60 rows are undated: --within does not hold for them" in capsys.readouterr().err


def test_two_processes_give_the_same_files(tmp_path: Path) -> None:
    """Results do not depend on the number of worker processes."""
    source = write_lines(tmp_path / "a.jsonl", archive_rows())
    run(tmp_path / "one", source)
    args = ["dedupe", str(source), "--out", str(tmp_path / "two"), "--processes", "2"]

    assert main(args) == 0
    for name in TABLES:
        assert (tmp_path / "one" / f"{name}.jsonl").read_bytes() == (
            tmp_path / "two" / f"{name}.jsonl"
        ).read_bytes()


def test_csv_and_gzip_give_the_same_groups(tmp_path: Path) -> None:
    """Compressed JSON Lines, and CSV with line breaks in the texts."""
    articles = archive_rows()
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(b"".join(json.dumps(row).encode() + b"\n" for row in articles)))
    with open(tmp_path / "a.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*articles[0]])
        writer.writeheader()
        writer.writerows(row | {"text": row["text"].replace(". ", ".\n\n")} for row in articles)

    assert run(tmp_path / "gz", packed) == 0
    assert run(tmp_path / "csv", tmp_path / "a.csv") == 0
    assert groups(tmp_path / "gz") == groups(tmp_path / "csv") == EXPECTED


@pytest.mark.parametrize("name", ["rows.csv.gz", "rows.jsonl.gz"])
def test_a_truncated_file_is_an_error(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its readable rows are used; the end is reported, and the exit code is not 0."""
    given = archive_rows()
    if name.endswith(".jsonl.gz"):
        content = "".join(json.dumps(row) + "\n" for row in given)
    else:
        out = io.StringIO()
        writer = csv.DictWriter(out, [*given[0]])
        writer.writeheader()
        writer.writerows(given)
        content = out.getvalue()
    data = gzip.compress(content.encode())
    (tmp_path / name).write_bytes(data[: len(data) * 3 // 4])

    assert run(tmp_path / "out", tmp_path / name) == 1
    bad = read_lines(tmp_path / "out" / "bad_rows.jsonl")
    assert "gzip data is damaged or truncated from here on" in bad[-1]["reason"]
    assert f"{rows.counted(len(bad), 'row')} left out" in capsys.readouterr().err


def test_parquet_in_and_out(tmp_path: Path) -> None:
    """Input and output tables can be Parquet."""
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    parquet.write_table(pyarrow.Table.from_pylist(archive_rows()), tmp_path / "a.parquet")

    assert run(tmp_path / "out", tmp_path / "a.parquet", "--format", "parquet") == 0
    kept = parquet.read_table(tmp_path / "out" / "deduplicated.parquet").to_pylist()
    assert [row["id"] for row in kept] == [f"alone{n}" for n in range(40)] + [
        f"g{g}-original" for g in range(5)
    ]
    assert parquet.read_table(tmp_path / "out" / "clusters.parquet").num_rows == 20
    assert len(pandas.read_parquet(tmp_path / "out" / "clusters.parquet")) == 20


def test_a_run_replaces_the_tables_of_an_earlier_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the same names; what would remain beside the new tables, or is an input, is named."""
    source, out = write_lines(tmp_path / "a.jsonl", archive_rows()), tmp_path / "out"
    assert run(out, source, "--format", "parquet") == run(out, source, "--format", "parquet") == 0
    assert run(out, source) == 2
    said = (
        f"out: {out / 'pairs.parquet'} is not a result that this run replaces; repeat --format parquet, move"
    )
    assert said in capsys.readouterr().err
    for table in TABLES:
        (out / f"{table}.parquet").unlink()
    assert run(out, source) == 0
    before = {path: path.read_bytes() for path in out.iterdir()}
    assert run(out, out / "deduplicated.jsonl") == 2
    assert f"the input {out / 'deduplicated.jsonl'} has the name" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in out.iterdir()} == before


@pytest.mark.parametrize(
    "name", ["pairs.parquet", "clusters.jsonl", "report.html", "summary.json", "work/my"]
)
def test_files_that_no_run_wrote_are_kept(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the directory of the results, which may be that of the input; an unfinished run continues."""
    source, out = write_lines(tmp_path / "a.jsonl", archive_rows()), tmp_path
    foreign = out / name
    foreign.parent.mkdir(exist_ok=True)
    foreign.write_text("{}")

    assert run(out, source) == run(out, source, "--fresh") == 2
    assert f"{foreign} is not a result that this run replaces; move" in capsys.readouterr().err
    assert foreign.read_text() == "{}" and len(list(out.iterdir())) == 2
    foreign.unlink()
    interrupted_run(out, source, monkeypatch, at=(output, "write_clusters"))
    assert run(out, source) == 0


def test_a_run_that_fails_publishes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of an earlier run remain whole; a retry, in another format too, leaves none of its files."""
    source, out = write_lines(tmp_path / "a.jsonl", archive_rows()), tmp_path / "out"
    given: list[list[str]] = [["--format", "parquet"], []]
    for options, at in zip(given, ("write_copy_and_collect", "summarize"), strict=True):
        with monkeypatch.context() as patch:
            patch.setattr(output, at, lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                run(out, source, *options)
        assert [path.name for path in out.iterdir()] == ["work"]

    assert run(out, source) == 0
    assert {path.suffix for path in out.iterdir()} == {".jsonl", ".html", ".json"}
    before = {path: path.read_bytes() for path in out.iterdir()}
    interrupted_run(out, source, monkeypatch, at=(output, "summarize"))
    assert {path: path.read_bytes() for path in out.iterdir() if path.is_file()} == before


@pytest.mark.parametrize(("sentences", "removed"), [(2, 1), (1, 0)])
def test_a_text_of_one_outlet_under_another_headline(sentences: int, removed: int, tmp_path: Path) -> None:
    """It is removed days later, too; of a shorter text the headline may say what it is about."""
    text = (
        "After two hours of debate the members approved the repair of the old swimming hall by 11 to 6. "
        "Work begins in March with the roof and should last a year, and until then the schools of both "
        "valleys travel to the neighbouring town by bus. "
    )
    text = text if sentences == 2 else text[: text.index(". ") + 1]
    headlines = ["Council votes four million for the pool", "Swimmers look forward to new roof"]
    rows = [
        {
            "id": str(n),
            "title": title,
            "text": text,
            "source": "Gazette",
            "published_at": f"2026-01-0{5 + 2 * n}",
        }
        for n, title in enumerate(headlines)
    ]

    assert run(tmp_path / "out", write_lines(tmp_path / "a.jsonl", rows)) == 0
    assert read_lines(tmp_path / "out" / "deduplicated.jsonl") == rows[: 2 - removed]


def test_other_column_names(tmp_path: Path) -> None:
    """--column maps fields to columns; an unknown field is refused."""
    renamed = [{"guid": row["id"], "body": row["text"]} for row in archive_rows()]
    source = write_lines(tmp_path / "a.jsonl", renamed)

    assert run(tmp_path / "out", source, "--column", "id=guid", "--column", "text=body") == 0
    assert groups(tmp_path / "out") == EXPECTED
    with pytest.raises(SystemExit, match="2"):
        run(tmp_path / "out", source, "--column", "body=text")
    assert ARTICLE_COLUMNS == rows.ARTICLE_FIELDS


def test_headlines_alone_remove_nothing_unless_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mapping that was forgotten must not cost articles; the groups are written all the same."""
    headlines = ["Ferry to Estmark runs again after repair of its pier", "Library of Corvane lends violins"]
    given = [{"id": str(n), "title": headlines[n % 2], "body": f"Text {n}"} for n in range(4)]
    source = write_lines(tmp_path / "a.jsonl", given)

    assert run(tmp_path / "out", source) == 0
    assert read_lines(tmp_path / "out" / "deduplicated.jsonl") == given
    assert groups(tmp_path / "out") == {frozenset("02"), frozenset("13")}
    said = capsys.readouterr().err
    assert f"{source}: no column is text, source, published_at; unused: body; map them" in said
    assert "rows without a text or html: 4; removed only with --by-headline" in said
    assert run(tmp_path / "asked", source, "--by-headline") == 0
    assert "rows without a text" not in capsys.readouterr().err
    assert read_lines(tmp_path / "asked" / "deduplicated.jsonl") == given[:2]


def two_tables(tmp_path: Path) -> list[Path]:
    """A table of one article, and another of different articles under one headline, with another column."""
    texts = ["The swing bridge is shut.", "A bakery burned down.", "Schools lend violins."]
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text("id,title,text\n1,Evening report,The ferry runs again from Monday.\n")
    second.write_text("id,title,body\n" + "".join(f"b{n},Evening report,{t}\n" for n, t in enumerate(texts)))
    return [first, second]


def test_rows_without_a_text_stay_beside_files_that_have_texts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file whose text column was not mapped is named; asked for, headlines decide."""
    first, second = two_tables(tmp_path)

    assert run(tmp_path / "out", first, second) == 0
    assert [row["id"] for row in read_lines(tmp_path / "out" / "deduplicated.jsonl")] == [
        "1",
        "b0",
        "b1",
        "b2",
    ]
    said = capsys.readouterr().err
    assert f"{second}: no column is text, source, published_at; unused: body; map them" in said
    assert f"{first}: " not in said and "rows without a text or html: 3; removed only" in said
    assert run(tmp_path / "asked", first, second, "--by-headline") == 0
    assert len(read_lines(tmp_path / "asked" / "deduplicated.jsonl")) == 2


@pytest.mark.parametrize(
    "command", [("dedupe", "--out", "out"), ("evaluate", "own"), ("fit", "--group", "en", "--out", "m")]
)
def test_a_field_has_one_column(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """The last one won silently."""
    with pytest.raises(SystemExit, match="2"):
        main([*command, "a.csv", "--column", "title=x", "--column", "text=t", "--column", "title=y"])
    assert "argument --column: title is mapped to 'x' and 'y'; name one" in capsys.readouterr().err


def test_a_column_is_used_in_the_files_that_have_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the others the field has the column of its own name; what no file has is refused."""
    first, second = two_tables(tmp_path)

    assert run(tmp_path / "out", first, second, "--column", "text=body") == 0
    assert len(read_lines(tmp_path / "out" / "deduplicated.jsonl")) == 4
    assert "no column is text" not in capsys.readouterr().err
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["rows_with_text"] == 4
    assert run(tmp_path / "other", first, second, "--column", "text=boddy") == 2
    assert "no column 'boddy' for text; the columns are id, title, text, body." in capsys.readouterr().err


def test_a_damaged_parquet_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In one line, before anything is written."""
    pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "a.parquet"
    file.write_bytes(b"PAR1" + bytes(40))

    assert run(tmp_path / "out", file) == 2
    said = capsys.readouterr().err
    assert f"{file}: the Parquet file is damaged (" in said and said.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("prefer", ["longest", "medoid"])
def test_other_representatives(tmp_path: Path, prefer: str) -> None:
    """The longest article or the medoid is never the truncated copy."""
    source = write_lines(tmp_path / "a.jsonl", archive_rows())

    assert run(tmp_path / "out", source, "--representative", prefer) == 0
    chosen = {row["id"].partition("-")[2] for row in read_lines(tmp_path / "out" / "representatives.jsonl")}
    assert chosen <= {"original", "edited"}


def test_a_threshold_above_1_is_refused_for_average_linkage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A minimum resemblance is from 0 to 1."""
    source = write_lines(tmp_path / "a.jsonl", archive_rows())
    assert run(tmp_path / "out", source, "--threshold", "7") == 2
    assert "threshold: 7 is not a resemblance from 0 to 1." in capsys.readouterr().err


def test_bad_rows_are_written_only_if_there_are_any(tmp_path: Path) -> None:
    """Not all readers of JSON Lines take an empty file; that of an earlier run is deleted."""
    path = tmp_path / "a.jsonl"
    for rejected, exit_code in (([], 0), ([{"text": " "}], 1), ([], 0)):
        write_lines(path, [*UNRELATED[:2], *rejected])
        assert run(tmp_path / "out", path) == exit_code
        assert (tmp_path / "out" / "bad_rows.jsonl").exists() == bool(rejected)


def test_bad_rows_have_their_content(tmp_path: Path) -> None:
    """The cells of tables as JSON; a row of CSV that does not fit its header has them in the reason."""
    (tmp_path / "a.csv").write_text("id,text\n1,The ferry is late.\n2,\n3,One,two\n")

    assert run(tmp_path / "out", tmp_path / "a.csv") == 1
    empty, long = read_lines(tmp_path / "out" / "bad_rows.jsonl")
    assert json.loads(empty["data"]) == {"id": "2", "text": None}
    assert long["reason"].endswith("than the header has columns: 3, One, two.")
