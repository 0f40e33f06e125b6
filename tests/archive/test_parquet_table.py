"""Parquet tables: the schema of all rows, values that have no common type, and the types of the inputs."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from aggregator.cli import main
from aggregator_archive import parquet_table
from aggregator_archive.parquet_table import declared_types, open_parquet
from tests.support.archive_data import write_lines

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

NOON = datetime(2026, 1, 5, 12)


def stored(path: Path, values: list[Any], **types: Any) -> tuple[str, list[Any], set[str]]:
    """Type and values of a column after a table of them was written, and the columns that became text."""
    texts: set[str] = set()
    with open_parquet(path, types, texts) as write:
        for value in values:
            write({"x": value})
    table = parquet.read_table(path)
    return str(table.schema.field("x").type), table["x"].to_pylist(), texts


@pytest.mark.parametrize(
    ("values", "type_", "expected"),
    [
        ([1, 1.5], "double", [1.0, 1.5]),
        ([None, 0.5], "double", [None, 0.5]),
        ([None, None], "string", [None, None]),
        ([[1], [1.5]], "list<element: double>", [[1.0], [1.5]]),
        (
            [{"a": 1}, {"a": 2, "b": "c"}],
            "struct<a: int64, b: string>",
            [{"a": 1, "b": None}, {"a": 2, "b": "c"}],
        ),
        ([float("nan"), 1], "double", None),
    ],
)
def test_types_are_widened(
    values: list[Any], type_: str, expected: list[Any] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any order, within a batch and across batches."""
    for size in (1, 2, 3):
        monkeypatch.setattr(parquet_table, "BATCH_ROWS", size)
        for order in (1, -1):
            found, got, texts = stored(tmp_path / "a.parquet", values[::order])
            assert (found, texts) == (type_, set())
            assert expected is None or got == expected[::order]
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, "a", None], ["1", "a", None]),
        ([0.5, True], ["0.5", "true"]),
        ([2**53 + 1, 0.5], ["9007199254740993", "0.5"]),
        ([2**70], ["1180591620717411303424"]),
        ([{"a": "é"}, "a"], ['{"a": "é"}', "a"]),
        ([{"a": 1}, {"a": "b"}], ['{"a": 1}', '{"a": "b"}']),
        ([{"a": 0.5}, {"a": True}], ['{"a": 0.5}', '{"a": true}']),
        ([{}, None], ["{}", None]),
        ([NOON, "2026-01-05"], ["2026-01-05T12:00:00", "2026-01-05"]),
        ([NOON, date(2026, 1, 5)], ["2026-01-05T12:00:00", "2026-01-05"]),
        ([NOON, NOON.replace(tzinfo=UTC)], ["2026-01-05T12:00:00", "2026-01-05T12:00:00+00:00"]),
        ([[NOON, 1]], ['["2026-01-05T12:00:00", 1]']),
    ],
)
def test_values_without_a_common_type_become_text(
    values: list[Any], expected: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No value is rounded, and no truth value counts as a number, whatever the order and the batches."""
    for size in (1, 2, 3):
        monkeypatch.setattr(parquet_table, "BATCH_ROWS", size)
        for order in (1, -1):
            assert stored(tmp_path / "a.parquet", values[::order]) == ("string", expected[::order], {"x"})


def test_declared_types_are_kept(tmp_path: Path) -> None:
    """Of columns on which all files agree; a file that is no Parquet declares nothing."""
    columns = {
        "score": pyarrow.array([None, 0.5], pyarrow.float32()),
        "at": pyarrow.array([1, 2], pyarrow.timestamp("ns")),
        "kind": pyarrow.array(["a", "b"]).dictionary_encode(),
        "number": pyarrow.array([1, 2]),
    }
    for name, number in (("a", columns["number"]), ("b", pyarrow.array(["1", "2"]))):
        parquet.write_table(pyarrow.table({**columns, "number": number}), tmp_path / f"{name}.parquet")
    files = [str(tmp_path / f"{name}.parquet") for name in "ab"]

    types = declared_types(files)

    assert types == {name: array.type for name, array in columns.items() if name != "number"}
    assert declared_types([*files, str(write_lines(tmp_path / "c.jsonl", [{"score": 1}]))]) == {}
    assert stored(tmp_path / "d.parquet", [None, 0.5], x=types["score"]) == ("float", [None, 0.5], set())


def dedupe(out: Path, *args: object) -> int:
    """Run the command with Parquet tables; returns the exit code."""
    return main(["dedupe", *map(str, args), "--out", str(out), "--processes", "1", "--no-progress"])


def test_a_late_row_of_a_large_table(tmp_path: Path) -> None:
    """A fraction, a key and a column that the first 20,000 rows do not have."""
    late: dict[str, Any] = {"id": "late", "score": 1.5, "meta": {"b": "c"}, "note": "d"}
    with open_parquet(tmp_path / "a.parquet", {}, set()) as write:
        for n in range(20_003):
            write({"id": str(n), "score": n, "meta": {"a": n}})
        write(json.dumps(late).encode())

    table = parquet.read_table(tmp_path / "a.parquet")
    assert table.num_rows == 20_004
    assert table.slice(20_003).to_pylist() == [late | {"meta": {"a": None, "b": "c"}}]
    assert table["score"][:3].to_pylist() == [0.0, 1.0, 2.0]


@pytest.mark.integration
def test_files_of_several_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ids and dates of CSV are texts; the columns are named, and in the summary."""
    (tmp_path / "a.csv").write_text("id,text,published_at\n1,The ferry is late.,2026-01-05\n")
    rows = [{"id": 7, "text": "The dam of Corvane broke.", "published_at": NOON}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "b.parquet")

    files = (tmp_path / "a.csv", tmp_path / "b.parquet")
    assert dedupe(tmp_path / "out", *files, "--format", "parquet") == 0
    assert parquet.read_table(tmp_path / "out" / "deduplicated.parquet").to_pylist() == [
        {"id": "1", "text": "The ferry is late.", "published_at": "2026-01-05"},
        {"id": "7", "text": "The dam of Corvane broke.", "published_at": "2026-01-05T12:00:00"},
    ]
    assert "no common type became text: id, published_at\n" in capsys.readouterr().err
    summary = json.loads((tmp_path / "out" / "summary.json").read_bytes())
    assert summary["text_columns"] == ["id", "published_at"]


@pytest.mark.integration
@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_times_in_nanoseconds(kind: str, tmp_path: Path) -> None:
    """The times of pandas, which are no plain datetimes; the schema of the only file is kept."""
    times = pyarrow.array([1_767_614_400_123_456_789], pyarrow.timestamp("ns"))
    table = pyarrow.table({"id": ["1"], "text": ["The ferry is late."], "published_at": times})
    parquet.write_table(table, tmp_path / "a.parquet")

    assert dedupe(tmp_path / "out", tmp_path / "a.parquet", "--format", kind) == 0
    if kind == "parquet":
        assert parquet.read_table(tmp_path / "out" / "deduplicated.parquet").equals(table)
    else:
        assert "2026-01-05T12:00:00.123456789" in (tmp_path / "out" / "deduplicated.jsonl").read_text()
