"""``aggregator migrate``."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.cli.helpers import ORIGINAL, OTHER, article_body, run, write_jsonl
from tests.support.factories import write_model
from tests.support.server_fixture import serving_alone


@pytest.mark.services
def test_the_embedded_store_of_a_running_service_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its socket is found through the data directory; no second store is started."""
    articles = write_jsonl(tmp_path / "articles.jsonl", article_body(OTHER))
    invalid = write_jsonl(tmp_path / "a.jsonl", article_body(ORIGINAL), "{oops", {"id": 7})
    write_model(tmp_path)
    migrating = ("--migration-models-dir", str(tmp_path))
    with serving_alone(tmp_path, *migrating) as (_, url):
        assert run("ingest", "--server", url, "--out", os.devnull, articles) == 0
        options = ["--data-dir", str(tmp_path / "data"), *migrating]
        assert run("migrate", "--no-progress", *options) == 0
        said = capsys.readouterr().err
        assert run("migrate", "--no-progress", *options, "--migration-serve") == 0
        served = capsys.readouterr().err
        assert run("migrate", "--no-progress", *options, invalid) == 1
        reported = capsys.readouterr().err
        assert run("migrate", *options[:2]) == 2
        forgotten = capsys.readouterr().err

    assert "1 articles examined, 0 could not be copied." in said
    assert "done 2. " in said
    assert "next 3. stop every process" in said
    assert "done 2. " in served and "not checked: 3. stop every process" in served  # it runs without
    assert f"next 4. when no return is wanted: set models_dir = {tmp_path}" in served
    assert [f"{invalid}:{number}: " in reported for number in range(1, 4)] == [False, True, True]
    assert re.search(
        r"xx\.\w+ is used by a service with other settings; if .*, repeat this in a minute", forgotten
    )
    assert "--delete" not in forgotten
    assert "1 lines skipped, since their articles are not stored" in reported


@pytest.mark.services
def test_the_index_of_a_running_service_is_not_deleted_under_other_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither the command nor the doctor offers it; once the service has ended, its record of use expires."""
    articles = write_jsonl(tmp_path / "articles.jsonl", article_body(OTHER))
    write_model(tmp_path)
    options = ["--data-dir", str(tmp_path / "data")]
    with serving_alone(tmp_path, "--models-dir", str(tmp_path)) as (_, url):
        assert run("ingest", "--server", url, "--out", os.devnull, articles) == 0
        run("doctor", *options)
        found = re.search(r"wrong +index +(xx\.\w+) is used by a service .*", said := capsys.readouterr().out)
        assert found is not None and "--delete" not in said
        assert run("migrate", *options, "--delete", found[1], "--yes") == 2
        assert f"{found[1]} is used by these settings, or by a service that runs" in capsys.readouterr().err
        assert run("migrate", *options, "--delete", "xx.mistyped", "--yes") == 2
        assert found[1] not in capsys.readouterr().err
        with urlopen(f"{url}/v1/articles/{OTHER['id']}") as response:
            assert response.status == 200


@pytest.mark.services
def test_nothing_is_copied_before_the_service_writes_to_both_indexes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not even by a second run; the running service stays ready."""
    articles = write_jsonl(tmp_path / "articles.jsonl", article_body(OTHER))
    write_model(tmp_path)
    options = ["--no-progress", "--data-dir", str(tmp_path / "data"), "--migration-models-dir", str(tmp_path)]
    with serving_alone(tmp_path) as (_, url):
        assert run("ingest", "--server", url, "--out", os.devnull, articles) == 0
        for _ in range(2):
            capsys.readouterr()
            assert run("migrate", *options) == 2
            said = capsys.readouterr().err
            assert "not done 1. The service that runs, or ran last, does not write to " in said
            assert f"Start it with AGGREGATOR_MIGRATION_MODELS_DIR={tmp_path} first; nothing was" in said
            assert "done 2." not in said
        with urlopen(f"{url}/readyz") as response:
            assert response.status == 200


def test_without_a_migration_nothing_is_copied_and_the_steps_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """That is a success; the first step is to name the models."""
    assert run("migrate", "--data-dir", str(tmp_path)) == 0

    said, *steps = capsys.readouterr().err.splitlines()
    assert said == "Nothing to copy. A change of model has these steps:"
    assert [line[:7] for line in steps] == ["next 1.", "     2.", "     3.", "     4.", "     5."]
    assert "migration_models_dir = DIR" in steps[0]


@pytest.mark.services
def test_an_article_without_text_is_named_and_may_be_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No step counts as done before that, and after it the service with the new model is ready."""
    text = "A câmara municipal aprovou ontem o novo plano de obras para a ponte velha, que fecha em maio."
    articles = write_jsonl(tmp_path / "articles.jsonl", {"id": "lost-1", "title": "A ponte", "text": text})
    write_model(tmp_path)
    migrating = ("--migration-models-dir", str(tmp_path))
    options = ["--no-progress", "--data-dir", str(tmp_path / "data"), *migrating]
    with serving_alone(tmp_path) as (_, url):
        assert run("ingest", "--server", url, "--out", os.devnull, articles) == 0
    with serving_alone(tmp_path, *migrating):
        for serve in ((), ("--migration-serve",)):
            capsys.readouterr()
            assert run("migrate", *options, *serve) == 1
            said = capsys.readouterr().err
            assert "1 could not be copied (lost-1): their text is not stored; pass a FILE" in said
            assert "`--leave-out`" in said
            assert "next 2." in said and "done 2." not in said
        assert run("migrate", *options, "--leave-out") == 0
        assert "next 3." in capsys.readouterr().err
    with serving_alone(tmp_path, *migrating, "--migration-serve") as (_, url), urlopen(f"{url}/readyz") as ok:
        assert ok.status == 200
