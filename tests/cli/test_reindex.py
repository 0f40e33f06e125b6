"""``aggregator reindex``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.helpers import OTHER, article_body, run, write_jsonl
from tests.support.factories import write_model
from tests.support.server_fixture import serving_alone


@pytest.mark.services
def test_the_embedded_store_of_a_running_service_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its socket is found through the data directory; no second store is started."""
    articles = write_jsonl(tmp_path / "articles.jsonl", article_body(OTHER))
    write_model(tmp_path)
    migrating = ("--migration-models-dir", str(tmp_path))
    with serving_alone(tmp_path, *migrating) as (_, url):
        assert run("ingest", "--server", url, "--out", os.devnull, articles) == 0
        options = ["--data-dir", str(tmp_path / "data"), *migrating]
        assert run("reindex", "--no-progress", *options) == 0

    assert "1 articles examined, 0 could not be copied." in capsys.readouterr().err


def test_rejected_lines_are_reported_and_the_exit_code_is_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other lines are processed."""
    articles = write_jsonl(tmp_path / "a.jsonl", article_body(OTHER), "{oops", {"id": 7}, article_body(OTHER))
    write_model(tmp_path)
    options = ["--store", "memory", "--migration-models-dir", str(tmp_path), "--no-progress"]

    assert run("reindex", *options, articles) == 1

    reported = capsys.readouterr().err
    assert [f"{articles}:{number}: " in reported for number in range(1, 5)] == [False, True, True, False]
    assert "2 lines skipped, since their articles are not stored" in reported
