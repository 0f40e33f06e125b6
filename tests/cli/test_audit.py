"""``aggregator audit``: each change is logged, and can be undone."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from tests.cli.helpers import OTHER, article_body, run, write_jsonl


def test_a_change_is_logged_and_an_unknown_source_says_how_to_undo_it(
    valkey_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A report alone changes nothing, so that it logs nothing."""
    caplog.set_level(logging.INFO, "aggregator.audit")
    store = ("--store", valkey_url)
    body = {**article_body(OTHER), "source": "Liar Daily"}
    articles = write_jsonl(tmp_path / "articles.jsonl", body)
    assert run("ingest", *store, "--out", os.devnull, "--no-progress", articles) == 0
    capsys.readouterr()

    def audited(*arguments: str) -> tuple[str, list[str]]:
        caplog.clear()
        assert run("audit", *arguments, *store) == (1 if arguments == ("Liar Dayli",) else 0)
        lines = [record.getMessage() for record in caplog.records if record.name == "aggregator.audit"]
        return capsys.readouterr().err, lines

    report, nothing = audited("Liar Dayli")
    mistyped, added = audited("Liar Dayli", "--distrust")
    right, _ = audited("Liar Dayli", "--distrust")
    trusted, removed = audited("Liar Dayli", "--trust")
    known, deleted = audited("Liar Daily", "--distrust")

    assert "check the name; did you mean Liar Daily?" in report and "undoes" not in report
    assert "check the name; did you mean Liar Daily? `--trust` undoes this." in mistyped
    assert "It had been distrusted; its articles are not stored." in right
    assert "It had been distrusted; its articles are stored from now on." in trusted
    assert "check the name" not in right + trusted
    assert "1 articles deleted" in known and "undoes" not in known
    assert (nothing, added) == ([], ["source 'Liar Dayli' untrusted=True articles=0"])
    assert removed == ["source 'Liar Dayli' untrusted=False articles=0"]
    assert deleted == ["source 'Liar Daily' untrusted=True articles=1"]
