"""``aggregator evaluate``: JSON and tables of each protocol, and rows that cannot be scored."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import pytest

from aggregator.errors import InvalidInput
from aggregator_lab.evaluation import calibration, plots
from tests.cli.helpers import EDITED, ORIGINAL, OTHER, ROWS, article_body, run, write_jsonl


def test_near_duplicates_are_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Duplicates share a cluster; --grid scores the published system; rows without a label are an error."""
    gold = [
        {**article_body(row), "cluster": row.get("of", row["id"])}
        for row in ROWS.values()
        if row["role"] in ("new", "edited", "copy")
    ]
    labeled = write_jsonl(tmp_path / "gold", *gold)

    assert run("evaluate", "near-duplicates", "--json", "--orders", "2", labeled) == 0

    verified = next(r for r in json.loads(capsys.readouterr().out) if r["policy"] == "verified")
    assert verified["f1"] == 1.0
    small = ("--grid", "--shingle", "3", "--sample", "1", "--sketch", "8,64", "--collisions", "1")
    assert run("evaluate", "near-duplicates", "--json", *small, "--overlap", "0.2", labeled) == 0
    assert [line["p"] for line in json.loads(capsys.readouterr().out)] == [8, 64]
    published = (labeled, "--grid", "published", "--json", "--leading", "1", *small[1:])
    assert run("evaluate", "near-duplicates", *published) == 0
    result = json.loads(capsys.readouterr().out)
    assert [row.get("p") for row in result["published"]] == [8, 64, None]
    assert result["ours"][0]["f1"] == 1.0
    assert result["published"][1]["f1"] >= 0.9
    assert result["table_4"]["NRC-GPHIN"] == 0.955
    assert next(row["f1"] for row in result["service"] if row["policy"] == "verified") == 1.0
    assert run("evaluate", "near-duplicates", *published, "--overlap", "0.2") == 2
    assert "computes no overlap" in capsys.readouterr().err
    assert run("evaluate", "near-duplicates", "--grid", "--shingle", "9", labeled) == 2
    assert "at most 5 words" in capsys.readouterr().err
    assert run("evaluate", "near-duplicates", write_jsonl(tmp_path / "plain", article_body(OTHER))) == 2
    assert "no `cluster`" in capsys.readouterr().err


@pytest.mark.integration
@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([], (), "no articles found"),
        (
            [{"id": "a", "text": "x y", "cluster": 1}] * 2,
            (),
            "the id 'a' is used by 2 articles; give each its own, or name the column",
        ),
        (
            [{"id": "a", "title": 5, "cluster": "c"}],
            (),
            "gold.jsonl, row 1: The row cannot be read: Expected `str | null`, got `int` - at `$.title`.",
        ),
        ([{"id": "a", "text": "x", "cluster": True}], (), "row 1: no `cluster`"),
        ([{"id": "a", "text": "x", "cluster": 1}], ("--html", "nowhere"), "nowhere cannot be read"),
    ],
)
def test_invalid_labeled_articles_are_one_sentence(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    rows: list[dict[str, object]],
    options: tuple[str, ...],
    message: str,
) -> None:
    """An empty file is an error too, not a perfect score; numbers are valid labels."""
    gold = tmp_path / "gold.jsonl"
    gold.write_text("".join(json.dumps(row) + "\n" for row in rows))

    assert run("evaluate", "clusters", str(gold), *options) == 2
    assert message in capsys.readouterr().err


@pytest.mark.integration
def test_clusters_pairs_and_related_articles_are_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each protocol prints JSON or a table, and rejects invalid rows."""
    labeled = [{**article_body(row), "cluster": row.get("of", row["id"])} for row in ROWS.values()]
    gold = write_jsonl(tmp_path / "gold", *labeled)
    texts = [row["text"] for row in list(ROWS.values())[:2]]
    pairs = write_jsonl(
        tmp_path / "pairs",
        {"text1": texts[0], "text2": texts[0], "same": True},
        {"text1": texts[0], "text2": texts[1], "same": False},
    )

    assert run("evaluate", "clusters", "--json", gold) == 0
    assert json.loads(capsys.readouterr().out)[0]["b_cubed_f1"] > 0.5
    assert run("evaluate", "pairs", "--json", pairs) == 0
    assert json.loads(capsys.readouterr().out)["roc_auc"]["all"]["similarity"] == 1.0
    events = [{**article_body(row), "cluster": "one"} for row in (ORIGINAL, OTHER)]
    file = write_jsonl(tmp_path / "events", *events)
    assert run("evaluate", "related", "--json", "--compare", "tf-idf", file) == 0
    (result,) = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in result["rankings"]][2:] == ["no minimum", "tf-idf"]
    assert result["rankings"][3]["recall"] == 1.0
    assert run("evaluate", "related", "--json", file, "--compare") == 0  # with what is always installed
    assert json.loads(capsys.readouterr().out) == [result]
    unnamed = write_jsonl(tmp_path / "unnamed", *({**row, "id": None} for row in events))
    assert run("evaluate", "related", "--show", "2", unnamed) == 0
    printed = capsys.readouterr().out
    assert "2 labeled" in printed and "largest: share of lists with one article" in printed
    assert run("evaluate", "related", "--compare", "rank", file) == 2
    assert "'rank' is not one of tf-idf" in capsys.readouterr().err
    assert run("evaluate", "clusters", gold) == run("evaluate", "pairs", pairs) == 0
    assert "ARI" in capsys.readouterr().out
    assert run("evaluate", "pairs", gold) == 2
    assert "row 1: neither `same`" in capsys.readouterr().err


def test_a_profile_is_evaluated_under_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All articles are judged by it, whatever the rules of sources say."""
    profiles = tmp_path / "profiles.toml"
    profiles.write_text(
        '[profiles.paper]\npolicy = "hamming"\nduplicate_bits = 0\n'
        '[[rules]]\nsources = ["*"]\nprofile = "default"\n'
    )
    rows = [{**article_body(row), "cluster": "tram"} for row in (ORIGINAL, EDITED)]
    options = ("--json", "--policy-profiles-file", str(profiles), write_jsonl(tmp_path / "gold", *rows))

    assert run("evaluate", "near-duplicates", "--policy", "paper", *options) == 0
    scored = {row["policy"]: row for row in json.loads(capsys.readouterr().out)}
    assert "verified" not in scored and scored["paper"]["recall"] == 0
    assert run("evaluate", "near-duplicates", *options) == 0
    assert any(
        row["policy"] == "verified" and row["recall"] == 1 for row in json.loads(capsys.readouterr().out)
    )
    assert run("evaluate", "clusters", "--policy", "wire", *options) == 2
    assert "nor a profile of policy_profiles_file (default, paper)" in capsys.readouterr().err


def test_unlabeled_duplicates_are_counted_under_a_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A profile that only accepts equal fingerprints finds fewer."""
    profiles = tmp_path / "profiles.toml"
    profiles.write_text('[profiles.paper]\npolicy = "hamming"\nduplicate_bits = 0\n')
    file = write_jsonl(tmp_path / "articles.jsonl", article_body(ORIGINAL), article_body(EDITED))
    options = ("--json", "--policy-profiles-file", str(profiles), file)
    found = []
    for policy in ((), ("--policy", "paper")):
        assert run("evaluate", "duplicates", *policy, *options) == 0
        found.append(json.loads(capsys.readouterr().out))

    assert found[0] != found[1]


def test_known_events_of_several_lists_are_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The recordings are in the directory of the lists, unless another one is given first."""
    rows = [
        {"published_at": f"2031-03-01T10:{i:02d}:00Z", "title": f"Bridge at Thornby closed, lane {i}"}
        for i in range(20)
    ]
    with gzip.open(tmp_path / "w.jsonl.gz", "wt") as file:
        file.writelines(json.dumps({"id": str(i), **row}) + "\n" for i, row in enumerate(rows))
    known = {
        "name": "bridge",
        "window_file": "w.jsonl.gz",
        "t16": "2031-03-01T10:15:00Z",
        "first": "2031-03-01T10:00:00Z",
        "date": "2031-03-01",
        "regex": "thornby",
    }
    lists = [str(tmp_path / name) for name in ("one.json", "two.json")]
    for path in lists:
        Path(path).write_text(json.dumps([known]))

    for arguments, events in ((lists[:1], 1), (lists, 2), ((str(tmp_path), *lists), 2)):
        assert run("evaluate", "events", *arguments) == 0
        assert f"of {events}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("header", "row", "protocol", "counted"),
    [
        ("id,text,cluster", "{n},{text},c", "near-duplicates", "policy"),
        ("text1;text2;same", "{text};{text} {n};{same}", "pairs", "alike"),
        ("question1,question2,is_duplicate", "{text},{text} {n},{n}", "pairs", "alike"),
        ("id,title", "{n},Ferry number {n} is late", "duplicates", "articles"),
    ],
)
def test_own_data_is_judged_by_the_protocol_of_its_columns(
    header: str, row: str, protocol: str, counted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says which, and prints what that protocol prints."""
    text = " ".join(f"word{i}" for i in range(40))
    file = tmp_path / "own.csv"
    rows = [row.format(n=n, text=text, same=n % 2 == 0) for n in range(2 if "question1" in header else 4)]
    file.write_text("\n".join([header, *rows]), encoding="utf-8")

    names = {"text1": "question1", "text2": "question2", "same": "is_duplicate"}
    columns = [f"--column={field}={name}" for field, name in names.items() if name in header]
    assert run("evaluate", "own", "--json", "--min-containment", "0.3", *columns, str(file)) == 0

    printed = capsys.readouterr()
    assert f"`aggregator evaluate {protocol}`" in printed.err
    if columns:
        mapped = "columns same (from is_duplicate), text1 (from question1), text2 (from question2); pairs "
        assert mapped in printed.err
    assert counted in printed.out


@pytest.mark.parametrize("content", ["", "id,title,text\n"])
def test_own_data_without_rows_have_no_protocol(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence says so; ``fit`` names no columns that the user could map."""
    file = tmp_path / "own.csv"
    file.write_text(content, encoding="utf-8")

    assert run("evaluate", "own", str(file)) == 2
    assert capsys.readouterr().err == f"aggregator: {file}: no articles found.\n"
    assert run("fit", str(file), "--group", "en", "--out", str(tmp_path / "en.model")) == 2
    assert capsys.readouterr().err == "aggregator: No row has a text or a title: there are no rows.\n"


def test_own_data_with_another_header_case_is_refused_with_the_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not judged as if it had no labels."""
    file = tmp_path / "own.csv"
    file.write_text("Id;text;Cluster\n1;Ferry late;a\n2;Ferry late;a\n", encoding="utf-8")

    assert run("evaluate", "own", str(file)) == 2
    assert "map these with --column id=Id --column cluster=Cluster." in capsys.readouterr().err
    named = ("--column", "cluster=Cluster", "--column", "id=Id")
    assert run("evaluate", "near-duplicates", str(file), *named) == 0
    assert run("evaluate", "near-duplicates", str(file), "--column", "cluster=klaster") == 2
    assert f"column: {file}: no column 'klaster' for cluster; the columns are Id, text, Cluster." in (
        capsys.readouterr().err
    )
    assert run("evaluate", "pairs", str(file), "--column", "txt=text") == 2
    assert "'txt=text' is not FIELD=NAME with FIELD one of id, title, text" in capsys.readouterr().err


def test_a_text_of_another_name_is_reported_as_by_dedupe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The headlines alone were judged silently; labels are columns that are used."""
    row = {**article_body(ORIGINAL), "published_at": "2031-03-01"}
    named = {("inhalt" if field == "text" else field): value for field, value in row.items()}
    gold = write_jsonl(tmp_path / "gold", *({**named, "id": id_, "cluster": "a"} for id_ in "ab"))
    others = write_jsonl(tmp_path / "others", {**named, "id": "c"})
    remark = "no column is text; unused: inhalt; map them, e.g. with --column text=NAME\n"

    assert run("evaluate", "own", gold) == run("evaluate", "duplicates", others) == 0
    err = capsys.readouterr().err
    assert f"{gold}: {remark}" in err and f"{others}: {remark}" in err
    labeled = write_jsonl(tmp_path / "labeled", *({**row, "id": id_, "cluster": "a"} for id_ in "ab"))
    assert run("evaluate", "near-duplicates", labeled) == 0
    assert capsys.readouterr().err == ""
    assert run("evaluate", "near-duplicates", labeled, "--background", others) == 0
    assert capsys.readouterr().err == f"{others}: {remark}"


@pytest.mark.parametrize(
    ("missing", "options", "message"),
    [
        (
            "matplotlib.figure",
            ("near-duplicates", "--plot", "a.png"),
            "--plot needs matplotlib",
        ),
        ("", ("near-duplicates", "--plot", "a.gif"), "must end in .png or .svg"),
        ("", ("clusters", "--plot", "a.gif"), "must end in .png or .svg"),
        ("", ("clusters", "--plot", "gold/a.png"), "cannot be written here (Not a directory)"),
        ("", ("near-duplicates", "--errors", "nowhere/e.jsonl"), "written here (No such file or directory)"),
        ("", ("near-duplicates", "--calibrate"), "give at most 1 labeled articles, not 2"),
        ("", ("duplicates", "--page", "gold/judge.html"), "cannot be written here (Not a directory)"),
        ("bm25s", ("related", "--compare", "bm25"), "BM25 needs bm25s, which is not installed"),
    ],
)
def test_what_a_result_needs_is_checked_before_the_work(
    missing: str,
    options: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Libraries, names of files and numbers of articles; nothing is analyzed or written."""
    rows = [{**article_body(row), "cluster": "tram"} for row in (ORIGINAL, EDITED)]
    file = write_jsonl(tmp_path / "gold", *rows)
    monkeypatch.setitem(sys.modules, missing or "no_module", None)  # its import fails
    monkeypatch.setattr("aggregator.analysis.analyzer.Analyzer.analyze_many", None)
    monkeypatch.setattr(calibration, "MAX_ARTICLES", 1)
    monkeypatch.chdir(tmp_path)

    assert run("evaluate", *options, file) == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["gold"]


def test_standard_input_is_read_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Columns of an option are not looked for in it before; ``own`` looks at its columns first."""
    row = json.dumps({"id": "1", "body": ORIGINAL["text"]}).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(row)))

    assert run("evaluate", "own", "-") == 2
    assert "own reads its input twice and cannot use standard input; name a file." in capsys.readouterr().err
    assert run("evaluate", "duplicates", "-", "--column", "text=body", "--json") == 0
    assert json.loads(capsys.readouterr().out)["total"]["articles"] == 1


@pytest.mark.parametrize("command", [("evaluate", "duplicates"), ("replay",)])
def test_rows_that_are_left_out_are_reported_and_no_failure(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As docs/cli.md says: the result is that of the others; without any other the code is 2."""
    file = tmp_path / "a.jsonl"
    dated = {**article_body(ORIGINAL), "published_at": "2031-03-01T10:00:00Z"}
    file.write_text(json.dumps(dated) + "\nnot an article\n", encoding="utf-8")

    assert run(*command, str(file)) == 0
    assert f"1 row left out, the first: {file}, row 2: The row is not JSON" in capsys.readouterr().err
    file.write_text("not an article\n", encoding="utf-8")
    assert run(*command, str(file)) == 2


def test_names_without_a_directory_are_development_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands of the benchmarks run as printed; a file of the working directory comes first."""
    data, here, judged = tmp_path / "data", tmp_path / "here", tmp_path / "judged"
    for directory in (data, here, judged):
        directory.mkdir()
    texts = [row["text"] for row in list(ROWS.values())[:2]]
    pairs = [{"text1": texts[0], "text2": texts[same], "same": not same} for same in (0, 1)]
    write_jsonl(data / "pairs.jsonl", *pairs)
    for name, rows in (("tram", (ORIGINAL, OTHER)), ("pool", (ORIGINAL, EDITED))):
        articles = [{**article_body(row), "id": str(at), "lang": name} for at, row in enumerate(rows)]
        write_jsonl(data / f"{name}.jsonl.gz", *articles)
        (judged / f"{name}.json").write_text(json.dumps([{"a": "0", "b": "1", "verdict": "right"}]))
    monkeypatch.chdir(here)
    monkeypatch.delenv("AGGREGATOR_DATA", raising=False)

    assert run("evaluate", "pairs", "pairs.jsonl") == 2
    assert "pairs.jsonl cannot be read" in capsys.readouterr().err
    assert run("evaluate", "relatedness", "--judged", str(judged)) == 2
    assert "or their directory in AGGREGATOR_DATA" in capsys.readouterr().err
    monkeypatch.setenv("AGGREGATOR_DATA", str(data))
    assert run("evaluate", "pairs", "pairs.jsonl") == 0
    write_jsonl(data / "gold", *({"id": n, "text": texts[0], "cluster": "a"} for n in "12"))
    assert run("evaluate", "near-duplicates", "gold") == 0
    assert run("dedupe", "gold", "--out", "result", "--no-progress") == 0
    assert run("replay", "tram.jsonl.gz") == 2 and "can be replayed" in capsys.readouterr().err
    assert run("fit", "tram.jsonl.gz", "--group", "zh", "--out", "zh.model") == 2
    assert "no article is in 'zh'" in capsys.readouterr().err
    assert run("evaluate", "relatedness", "--judged", str(judged), "--pairs", "pairs.jsonl") == 2
    assert "give pairs of both verdicts in two languages" in capsys.readouterr().err
    (here / "pairs.jsonl").write_text("{}")
    assert run("evaluate", "pairs", "pairs.jsonl") == 2


def test_relatedness_prints_a_table_or_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the other protocols; the weights fitted here and those of the service have the same columns."""
    texts = {
        "en": (ORIGINAL["text"], OTHER["text"]),
        "de": (
            "Die Fähre nach Estmark fährt nach dem Sturm wieder, sagt die Reederei.",
            "Der Gemeinderat von Brackwasser stimmt am Abend über die neue Turnhalle ab.",
        ),
    }
    pairs = [
        {"text1": first, "text2": second, "same": first == second, "lang1": lang, "lang2": lang}
        for lang, (first, other) in texts.items()
        for second in (first, other)
    ]
    articles = [{**article_body(row), "id": str(at)} for at, row in enumerate((ORIGINAL, OTHER))]
    write_jsonl(tmp_path / "pairs.jsonl", *pairs)
    write_jsonl(tmp_path / "pool.jsonl", *articles)
    (tmp_path / "pool.json").write_text(json.dumps([{"a": "0", "b": "1", "verdict": "wrong"}]))
    files = [*map(str, (tmp_path / "pool.jsonl", "--judged", tmp_path, "--pairs", tmp_path / "pairs.jsonl"))]

    assert run("evaluate", "relatedness", *files, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert run("evaluate", "relatedness", *files) == 0
    table = capsys.readouterr().out
    auc, _reliability, minimum, weights = (part.splitlines() for part in table.split("\n\n"))

    assert auc[0].split() == ["ROC", "AUC", "pairs", "left_out", "shipped", "tfidf"]
    assert [line.split()[0] for line in auc[1:]] == ["en", "de"]
    assert minimum == [
        f"left out, from the minimum, 0.78: precision {result['precision_at_minimum']}, recall 1.0"
    ]
    assert weights[0].split() == ["weights", "bias", "cosine", "rarity", "terms", "days"]
    for line, fit in zip(weights[1:], ("fitted", "shipped"), strict=True):
        values = [result[fit]["bias"], *result[fit]["weights"]]
        assert line.split() == [fit, *(f"{value:.2f}" for value in values)]


@pytest.mark.parametrize("command", ["own", "pairs"])
@pytest.mark.parametrize("options", [["--calibrate"], ["--plot", "a.png"]])
def test_thresholds_are_those_of_near_duplicates(
    command: str, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names the command."""
    assert run("evaluate", command, "judged.csv", *options) == 2
    assert f"{options[0]} is an option of near-duplicates, clusters" in capsys.readouterr().err


def test_the_table_is_printed_before_curves_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plot that fails does not cost the result."""
    rows = [{**article_body(row), "cluster": "tram"} for row in (ORIGINAL, EDITED)]
    monkeypatch.setattr(plots, "check_plot", lambda path: None)

    def full(curves: object, path: Path) -> None:
        raise InvalidInput("No space left.")

    monkeypatch.setattr(plots, "draw_curves", full)
    assert run("evaluate", "near-duplicates", "--plot", "a.png", write_jsonl(tmp_path / "gold", *rows)) == 2
    printed = capsys.readouterr()
    assert "verified" in printed.out and "best F1" in printed.out and "No space left" in printed.err


def test_wrong_pairs_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Missed and wrong ones with both texts, for articles and for pairs; the table names the rule."""
    rows = [
        {**article_body(row), "cluster": label, "published_at": "2026-03-17", "source": "Harbour Times"}
        for row, label in ((ORIGINAL, "tram"), (EDITED, "ferry"), (OTHER, "tram"))
    ]
    file, errors = write_jsonl(tmp_path / "gold", *rows), str(tmp_path / "errors.jsonl")

    assert run("evaluate", "own", "--errors", errors, file) == 0
    printed = capsys.readouterr()
    assert "`verified` is the rule of the service" in printed.out and "not counted in R" in printed.out
    listed = [json.loads(line) for line in Path(errors).read_text().splitlines()]
    found = {(frozenset((row["id1"], row["id2"])), row["error"]) for row in listed}
    tram, copy, bees = (row["id"] for row in (ORIGINAL, EDITED, OTHER))
    assert found == {(frozenset((tram, copy)), "wrong"), (frozenset((tram, bees)), "missed")}
    assert f"1 missed pairs, 1 wrong ones: {errors}" in printed.err
    reasons = {row["error"]: (row["reason"], row["explanation"].split(":")[0]) for row in listed}
    assert reasons == {"wrong": ("copy", "Copies"), "missed": ("too little in common", "Not copies")}
    assert all({"source1", "published_at1", "source2", "published_at2"} <= row.keys() for row in listed)

    again = str(tmp_path / "again.jsonl")
    assert run("evaluate", "own", "--errors", again, errors) == 0  # the file is one of pairs
    assert len(Path(again).read_text().splitlines()) == 2
    plain = write_jsonl(tmp_path / "plain", article_body(OTHER))
    assert run("evaluate", "own", "--errors", again, plain) == 2
    assert "`evaluate duplicates FILE --page judge.html` needs none." in capsys.readouterr().err
    assert run("evaluate", "near-duplicates", "--grid", "--errors", again, file) == 2
    assert "--grid: leave out --errors" in capsys.readouterr().err


@pytest.mark.parametrize("header", ["titel,inhalt,nr", "left,right,is_copy"])
def test_unknown_columns_are_answered_with_those_of_articles_and_of_pairs(
    header: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pairs are not taken for articles without labels; titles and texts are not taken for pairs."""
    file = tmp_path / "own.csv"
    text = "The ferry between Brackwater and Estmark runs again."
    file.write_text("\n".join([header, *(f"{text},{text},{n}" for n in range(2))]), encoding="utf-8")

    assert run("evaluate", "own", str(file)) == 2
    said = capsys.readouterr().err
    assert "Articles: --column text=NAME, with id, title, source and published_at where you" in said
    assert "Pairs: --column text1=NAME --column text2=NAME --column same=NAME." in said


def test_own_pairs_have_dates_and_sources_in_columns_of_any_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And a file in another encoding says as what it is read, once."""
    file, names = tmp_path / "own.csv", ("text1", "text2", "same", "published_at1", "source2")
    cells = ("Fähre fährt;Fähre fährt;yes;5.1.2026;b", "Fähre fährt;Zoo öffnet;no;2026-01-05;b")
    file.write_text("\n".join(["a;b;c;d;e", *cells]) + "\n", encoding="cp1252")

    options = [f"--column={field}={column}" for field, column in zip(names, "abcde", strict=True)]
    assert run("evaluate", "own", str(file), *options) == 0

    printed = capsys.readouterr().err
    assert "1 of 2 dates could not be read, e.g. '5.1.2026'" in printed
    assert printed.count("is not UTF-8; its other letters are read as windows-1252.") == 1
