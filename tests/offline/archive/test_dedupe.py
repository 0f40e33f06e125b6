"""The whole command: groups are found, bad rows set aside, interrupted runs go on, results are complete."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from aggregator.cli import main
from aggregator.offline.archive import rows as corpus_rows
from tests.support.archive_data import archive_rows, read_lines, write_lines

TABLES = ("pairs", "clusters", "representatives", "deduplicated")


def run(out: Path, *args: object) -> int:
    """The command in this process, without workers."""
    return main(["dedupe", *map(str, args), "--out", str(out), "--processes", "1", "--no-progress"])


def groups(out: Path) -> set[frozenset[str]]:
    """Ids by cluster."""
    found: dict[int, set[str]] = {}
    for row in read_lines(out / "clusters.jsonl"):
        found.setdefault(row["cluster"], set()).add(row["id"])
    return {frozenset(ids) for ids in found.values()}


WANTED = {frozenset(f"g{g}-{kind}" for kind in ("original", "edited", "cut", "equal")) for g in range(5)}


def test_groups_representatives_and_the_deduplicated_copy(tmp_path: Path) -> None:
    """Five groups; the earliest of each stays; every row that stays is as it was."""
    source = write_lines(tmp_path / "a.jsonl", archive_rows())

    assert run(tmp_path / "out", source) == 0
    assert groups(tmp_path / "out") == WANTED
    kept = (tmp_path / "out" / "deduplicated.jsonl").read_bytes().splitlines()
    lines = source.read_bytes().splitlines()
    assert kept == [
        line for line in lines if json.loads(line)["id"].endswith(("original",)) or b"alone" in line
    ]
    chosen = {row["id"] for row in read_lines(tmp_path / "out" / "representatives.jsonl")}
    assert chosen == {f"g{g}-original" for g in range(5)}
    assert "g0-cut" in (tmp_path / "out" / "review.html").read_text(encoding="utf-8")
    assert "<svg" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert not (tmp_path / "out" / "work").exists()


def test_bad_rows_are_set_aside_with_their_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The others are used, and the exit code tells."""
    source = write_lines(tmp_path / "a.jsonl", archive_rows())
    with open(source, "ab") as file:
        file.write(
            b'{"id": "broken"\n{"id": "empty", "text": " "}\n{"id": "when", "text": "words", "published_at": "soon"}\n'
        )

    assert run(tmp_path / "out", source) == 1
    bad = read_lines(tmp_path / "out" / "bad_rows.jsonl")
    assert [row["row"] for row in bad] == [61, 62, 63]
    assert [
        "cannot be read" in bad[0]["reason"],
        "neither text" in bad[1]["reason"],
        "soon" in bad[2]["reason"],
    ] == [True] * 3
    assert groups(tmp_path / "out") == WANTED
    assert "3 bad rows" in capsys.readouterr().err


STRANGERS = [
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
@pytest.mark.parametrize("encode", ["combined", "simhash", "sketch", "tfidf"])
def test_an_archive_without_any_copies_stays_as_it_is(tmp_path: Path, count: int, encode: str) -> None:
    """Nothing to link, down to no article at all: empty tables, every row in the deduplicated copy."""
    source = write_lines(tmp_path / "a.jsonl", STRANGERS[:count])

    assert run(tmp_path / "out", source, "--encode", encode) == 0
    assert (
        read_lines(tmp_path / "out" / "clusters.jsonl") == read_lines(tmp_path / "out" / "pairs.jsonl") == []
    )
    assert read_lines(tmp_path / "out" / "deduplicated.jsonl") == STRANGERS[:count]


def test_columns_of_other_names_are_named(tmp_path: Path) -> None:
    """Who forgot --column learns which columns there are; who gave an empty text does not."""
    source = tmp_path / "a.csv"
    source.write_text("headline,body\nDam breaks,The dam broke\n", encoding="utf-8")
    empty = write_lines(tmp_path / "b.jsonl", [{"id": "e", "text": " "}])

    assert run(tmp_path / "csv", source) == run(tmp_path / "json", empty) == 1
    (told,), (short,) = (read_lines(tmp_path / out / "bad_rows.jsonl") for out in ("csv", "json"))
    assert told["reason"] == (
        "The row has neither text, html nor title: its columns are headline, body; --column FIELD=NAME says which holds what."
    )
    assert short["reason"] == "The row has neither text, html nor title."


def test_an_interrupted_run_goes_on_and_ends_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped in every stage in turn; the final files are those of a run at one go."""
    monkeypatch.setattr(corpus_rows, "MAX_BLOCK_ROWS", 7)
    source = write_lines(tmp_path / "a.jsonl", archive_rows())
    assert run(tmp_path / "once", source) == 0

    from aggregator.offline.archive import pipeline, write_results

    for module, name in (
        (pipeline, "gather"),
        (pipeline, "merged"),
        (pipeline, "cluster"),
        (write_results, "choose"),
    ):
        interrupted_run(tmp_path / "out", source, monkeypatch, at=(module, name))
    made = sorted((tmp_path / "out" / "work").rglob("*.npz"))
    before = {file: file.stat().st_mtime_ns for file in made}
    made[0].unlink()
    interrupted_run(tmp_path / "out", source, monkeypatch, at=(write_results, "choose"))
    assert {file: file.stat().st_mtime_ns for file in made[1:]} == {file: before[file] for file in made[1:]}

    assert run(tmp_path / "out", source) == 0
    for name in TABLES:
        assert (tmp_path / "out" / f"{name}.jsonl").read_bytes() == (
            tmp_path / "once" / f"{name}.jsonl"
        ).read_bytes()


def interrupted_run(out: Path, source: Path, monkeypatch: pytest.MonkeyPatch, at: tuple[Any, str]) -> None:
    """A run that somebody ends when it calls this function of a module."""

    def interrupted(*args: Any, **named: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(*at, interrupted)
        assert run(out, source) == 130


def test_work_of_other_settings_is_not_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """A clear refusal, and --fresh starts anew."""
    from aggregator.offline.archive import pipeline

    source = write_lines(tmp_path / "a.jsonl", archive_rows())
    interrupted_run(tmp_path / "out", source, monkeypatch, at=(pipeline, "cluster"))

    assert run(tmp_path / "out", source, "--cap", "7") == 2
    assert "--fresh" in capsys.readouterr().err
    assert run(tmp_path / "out", source, "--cap", "7", "--fresh") == 0


def test_work_of_another_version_is_not_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Its files are of another form: refused, and --fresh starts anew."""
    from aggregator.offline.archive import job, pipeline

    source = write_lines(tmp_path / "a.jsonl", archive_rows())
    with monkeypatch.context() as patch:
        patch.setattr(job, "WORK_FORMAT_VERSION", 1)
        interrupted_run(tmp_path / "out", source, monkeypatch, at=(pipeline, "cluster"))

    assert run(tmp_path / "out", source) == 2
    assert "version" in capsys.readouterr().err
    assert run(tmp_path / "out", source, "--fresh") == 0


def test_within_links_only_articles_of_about_the_same_time(tmp_path: Path) -> None:
    """The equal copy of 19 days later leaves its group; undated articles link freely."""
    rows = archive_rows()
    rows[-4]["published_at"] = rows[-1]["published_at"] = None
    source = write_lines(tmp_path / "a.jsonl", rows)

    assert run(tmp_path / "out", source, "--within", "7d") == 0
    assert groups(tmp_path / "out") == {
        group - {f"g{g}-equal"} if g != 4 else group
        for g in range(5)
        for group in WANTED
        if f"g{g}-cut" in group
    }
    summary = json.loads((tmp_path / "out" / "summary.json").read_bytes())
    assert summary["within"]["pairs_with"] < summary["within"]["pairs_without"]


def test_two_processes_give_the_same_files(tmp_path: Path) -> None:
    """Results do not depend on who did the work."""
    source = write_lines(tmp_path / "a.jsonl", archive_rows())
    run(tmp_path / "one", source)
    args = ["dedupe", str(source), "--out", str(tmp_path / "two"), "--processes", "2"]

    assert main(args) == 0
    for name in TABLES:
        assert (tmp_path / "one" / f"{name}.jsonl").read_bytes() == (
            tmp_path / "two" / f"{name}.jsonl"
        ).read_bytes()


def test_csv_gzip_and_parquet_give_the_same_groups(tmp_path: Path) -> None:
    """Whatever the archive is kept in."""
    import csv

    rows = archive_rows()
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(b"".join(json.dumps(row).encode() + b"\n" for row in rows)))
    with open(tmp_path / "a.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]])
        writer.writeheader()
        writer.writerows(row | {"text": row["text"].replace(". ", ".\n\n")} for row in rows)

    assert run(tmp_path / "gz", packed) == 0
    assert run(tmp_path / "csv", tmp_path / "a.csv") == 0
    assert groups(tmp_path / "gz") == groups(tmp_path / "csv") == WANTED


def test_parquet_in_and_out(tmp_path: Path) -> None:
    """The tables come back as columns."""
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    parquet.write_table(pyarrow.Table.from_pylist(archive_rows()), tmp_path / "a.parquet")

    assert run(tmp_path / "out", tmp_path / "a.parquet", "--format", "parquet") == 0
    kept = parquet.read_table(tmp_path / "out" / "deduplicated.parquet").to_pylist()
    assert [row["id"] for row in kept] == [f"alone{n}" for n in range(40)] + [
        f"g{g}-original" for g in range(5)
    ]
    assert parquet.read_table(tmp_path / "out" / "clusters.parquet").num_rows == 20


def test_other_column_names(tmp_path: Path) -> None:
    """Archives name their columns as they like."""
    rows = [{"guid": row["id"], "body": row["text"]} for row in archive_rows()]
    source = write_lines(tmp_path / "a.jsonl", rows)

    assert run(tmp_path / "out", source, "--column", "id=guid", "--column", "text=body") == 0
    assert groups(tmp_path / "out") == WANTED
    assert run(tmp_path / "out", source, "--column", "body=text") == 2


@pytest.mark.parametrize("prefer", ["longest", "medoid"])
def test_other_representatives(tmp_path: Path, prefer: str) -> None:
    """The longest, or the one in the middle; never the one that was cut."""
    source = write_lines(tmp_path / "a.jsonl", archive_rows())

    assert run(tmp_path / "out", source, "--representative", prefer) == 0
    chosen = {row["id"].partition("-")[2] for row in read_lines(tmp_path / "out" / "representatives.jsonl")}
    assert chosen <= {"original", "edited"}


@pytest.mark.parametrize("encode", ["tfidf", "doc2vec"])
def test_candidates_by_vectors(tmp_path: Path, encode: str) -> None:
    """The nearest by cosine are confirmed like any others."""
    source = write_lines(tmp_path / "a.jsonl", archive_rows())

    assert run(tmp_path / "out", source, "--encode", encode, "--cosine", "0.3") == 0
    assert groups(tmp_path / "out") == WANTED


def test_a_cosine_that_depends_on_the_titles_confirms(tmp_path: Path) -> None:
    """Under equal headlines a fifth of the terms is enough; without any the texts must be nearly one."""
    rows = archive_rows()
    for row in rows:
        row["title"] = "Mayor opens the harbour bridge"
        if row["id"].endswith("-cut"):
            row["text"] = " ".join(row["text"].split()[:60])
    source = write_lines(tmp_path / "a.jsonl", rows)
    assert run(tmp_path / "out", source, "--verify", "titles") == 0
    assert groups(tmp_path / "out") == WANTED

    other = write_lines(tmp_path / "b.jsonl", [row | {"title": None} for row in rows])
    assert run(tmp_path / "other", other, "--verify", "titles") == 0
    assert groups(tmp_path / "other") == {
        frozenset(id_ for id_ in group if not id_.endswith("-cut")) for group in WANTED
    }


def test_a_classifier_learns_from_labelled_articles_what_a_copy_is(tmp_path: Path) -> None:
    """Trained on other groups than it is used on."""
    labelled = archive_rows(first=5000)
    for row in labelled:
        row["cluster"] = row["id"].partition("-")[0]
    known = write_lines(tmp_path / "known.jsonl", labelled)
    source = write_lines(tmp_path / "a.jsonl", archive_rows())

    assert run(tmp_path / "out", source, "--verify", "classifier", "--labelled", known) == 0
    assert groups(tmp_path / "out") == WANTED


def test_a_classifier_without_labels_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And labels that teach nothing are."""
    rows = archive_rows()
    source = write_lines(tmp_path / "a.jsonl", rows)
    assert run(tmp_path / "out", source, "--verify", "classifier") == 2
    assert "--labelled FILE" in capsys.readouterr().err
    same = write_lines(tmp_path / "same.jsonl", [row | {"cluster": "one"} for row in rows])
    assert run(tmp_path / "out", source, "--verify", "classifier", "--labelled", same) == 2
    assert "of one cluster and of two" in capsys.readouterr().err


def test_a_resemblance_beyond_one_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bits instead of a share, say; resolutions of communities may be any."""
    source = write_lines(tmp_path / "a.jsonl", archive_rows())
    assert run(tmp_path / "out", source, "--threshold", "7") == 2
    assert "threshold: a resemblance is from 0 to 1, not 7." in capsys.readouterr().err
