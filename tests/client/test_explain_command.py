"""``aggregator explain``: articles by id and by file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.helpers import EDITED, ORIGINAL, OTHER, article_body, run, write_jsonl


@pytest.mark.integration
def test_an_embedded_store_persists_between_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second ingest finds the original of the first; explain finds both by id."""
    store = ("--store", "embedded", "--data-dir", str(tmp_path / "data"), "--store-texts")
    assert run("ingest", *store, write_jsonl(tmp_path / "one", article_body(ORIGINAL))) == 0
    assert run("ingest", *store, write_jsonl(tmp_path / "two", article_body(EDITED))) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert [a["verdict"] for a in answers] == ["new", "duplicate"]
    assert run("explain", *store, ORIGINAL["id"], EDITED["id"]) == 0
    output = capsys.readouterr().out
    assert "Copies: " in output
    assert "shared wording: containment" in output
    assert "  relatedness: similarity " in output and ". Probability of one subject 0." in output
    assert run("explain", *store, ORIGINAL["id"], "demo-unknown") == 1
    error = capsys.readouterr().err
    assert f"There is no file {ORIGINAL['id']!r} or 'demo-unknown', and as an id: " in error
    assert error.endswith("under the id 'demo-unknown'.\n")


def test_a_missing_file_is_named_before_the_service(
    tmp_path: Path, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its name counts as an id, and no service answers; of two files only the service is missing."""
    one = tmp_path / "one.txt"
    one.write_text(ORIGINAL["text"], encoding="utf-8")
    server = ("--server", f"http://127.0.0.1:{free_port}")

    assert run("explain", *server, str(one), "missing.txt") != 0
    assert "There is no file 'missing.txt', and as an id: No service answers" in capsys.readouterr().err
    assert run("explain", *server, str(one), str(one)) != 0
    said = capsys.readouterr().err
    assert said.startswith("aggregator: No service answers")
    assert said.endswith(" Two files need none with --store memory.\n")


def test_bits_and_differing_passages_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two rows of 64 bits with the differing ones marked, and the passages of only one text."""
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("The ferry sank off the long pier in heavy fog")
    two.write_text("The ferry sank off the new bridge in heavy fog")

    assert run("explain", "--store", "memory", str(one), str(two)) == 0
    lines = capsys.readouterr().out.splitlines()
    first, second, marks = (line[2:] for line in lines[5:8])
    assert len(first) == 67 and set(first) <= set("01 ")
    assert [a != b for a, b in zip(first, second, strict=True)] == [c == "^" for c in marks.ljust(67)]
    assert '  only the first: "long pier"' in lines and '  only the second: "new bridge"' in lines


def test_a_reversed_statement_is_said_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before how much wording is equal, which is nearly all of it."""
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    for path, verb in ((one, "accepted"), (two, "rejected")):
        path.write_text(
            f"The council of Brackwater has {verb} the plan for a tunnel below the harbour on Tuesday, "
            "after a debate of six hours. Eleven members were present.",
            encoding="utf-8",
        )

    assert run("explain", "--store", "memory", str(one), str(two)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "One reverses the other by a negation, or by a word and its opposite."
    assert lines[1].startswith("Copies: ")


def test_files_are_compared_without_storing_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --json the labels are the file names; an empty or binary file is one sentence."""
    one, two, empty, binary = (tmp_path / name for name in ("one.txt", "two.txt", "empty.txt", "binary"))
    one.write_text(ORIGINAL["text"], encoding="utf-8")
    two.write_text(OTHER["text"], encoding="utf-8")
    empty.write_text(" \n")
    binary.write_bytes(b"\xff\xfe\x00")

    assert run("explain", "--store", "memory", "--json", str(one), str(two)) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["is_copy"] is False
    assert (result["a"]["label"], result["b"]["label"]) == (str(one), str(two))
    assert run("explain", "--store", "memory", str(one), str(empty)) == 2
    assert "is empty" in capsys.readouterr().err
    assert run("explain", "--store", "memory", str(one), str(binary)) == 2
    assert "is not UTF-8" in capsys.readouterr().err


def test_the_policy_option_selects_the_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The answer names it."""
    one, two, profiles = (tmp_path / name for name in ("one.txt", "two.txt", "profiles.toml"))
    one.write_text(ORIGINAL["text"], encoding="utf-8")
    two.write_text(EDITED["text"], encoding="utf-8")
    profiles.write_text('[profiles.paper]\npolicy = "hamming"\nduplicate_bits = 0\n')
    options = ("--store", "memory", "--policy-profiles-file", str(profiles), "--json", str(one), str(two))

    assert run("explain", *options) == 0
    assert run("explain", "--policy", "paper", *options) == 0
    default, paper = map(json.loads, capsys.readouterr().out.splitlines())
    assert (default["policy"], default["is_copy"]) == ("default", True)
    assert (paper["policy"], paper["is_copy"]) == ("paper", False)
    assert "policy hamming" in paper["summary"] and "Policy profile: paper." in paper["summary"]
    assert paper["summary"].endswith("A text file has no headline, outlet or date, which the rule uses too.")
