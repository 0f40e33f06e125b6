"""``aggregator config``: values with their origins, masked secrets, and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aggregator.settings import Settings
from tests.cli.helpers import run

KEY = "k" * 32


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration file of the working directory."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "aggregator.toml"
    path.touch(mode=0o600)
    return path


def test_show_prints_every_setting_with_its_value_and_origin(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the service would use them with these options."""
    file.write_text("port = 1\nworkers = 2\n")
    monkeypatch.setenv("AGGREGATOR_LOG_FORMAT", "json")

    assert run("config", "show", "--json", "--workers", "3") == 0

    rows = {row["name"]: (row["value"], row["origin"]) for row in json.loads(capsys.readouterr().out)}
    assert rows.keys() == Settings.__dataclass_fields__.keys()
    assert rows["port"] == (1, "aggregator.toml:1")
    assert rows["workers"] == (3, "--workers")
    assert rows["log_format"] == ("json", "AGGREGATOR_LOG_FORMAT")
    assert rows["host"] == ("127.0.0.1", "default")


def test_show_masks_secrets(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Keys and passwords; the address of the store remains visible."""
    file.write_text(f'bootstrap_key = "{KEY}"\nstore_url = "redis://me:geheim@db:1/2"\n')

    assert run("config", "show", "--changed") == 0

    shown = capsys.readouterr().out
    assert KEY not in shown and "geheim" not in shown
    assert [line.split() for line in shown.splitlines()] == [
        ["setting", "value", "from"],
        ["store_url", '"redis://NAME:PASSWORD@db:1/2"', "aggregator.toml:2"],
        ["bootstrap_key", '"(set)"', "aggregator.toml:1"],
    ]


def test_check_accepts_a_valid_file(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It names the file that was read."""
    file.write_text("port = 1\n")

    assert run("config", "check") == 0
    captured = capsys.readouterr()
    assert f"Configuration file: {file}, 1 setting." in captured.out
    assert captured.err == ""


@pytest.mark.parametrize("scheme", ["redis", "redis+cluster", "redis+sentinel"])
def test_check_names_an_option_of_the_store_that_does_not_exist(
    scheme: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the start of the service does; without connecting."""
    file.write_text(f'store_url = "{scheme}://absent.example/0?prefix=a:"\n')
    assert run("config", "check") == 0

    file.write_text(f'store_url = "{scheme}://absent.example/0?prefx=a:"\n')
    assert run("config", "check") == 2
    assert "store_url: there is no option 'prefx'; expected prefix, " in capsys.readouterr().err


def test_check_without_a_file_says_where_it_searched(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Variables and options are checked all the same."""
    file.unlink()

    assert run("config", "check") == 0
    assert "No configuration file (searched: aggregator.toml, " in capsys.readouterr().out


def test_check_reports_values_that_a_variable_overrides(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The fault would appear when the variable is removed."""
    file.write_text("port = 'x'\n")
    monkeypatch.setenv("AGGREGATOR_PORT", "80")

    assert run("config", "check") == 2
    assert "aggregator.toml:1: port: 'x' is not a whole number without quotes." in capsys.readouterr().err


def test_check_notes_a_secret_that_all_users_can_read(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only then: a file without secrets may be public."""
    file.write_text(f'bootstrap_key = "{KEY}"\n')
    for mode, noted in ((0o600, False), (0o644, True)):
        file.chmod(mode)
        assert run("config", "check") == 0
        assert ("chmod o-r" in capsys.readouterr().err) is noted
    for url, noted in (("redis://db:1/2?prefix=a:", False), ("redis://db?password=p", True)):
        file.write_text(f'store_url = "{url}"\n')
        assert run("config", "check") == 0
        assert ("chmod o-r" in capsys.readouterr().err) is noted


def test_a_variable_names_the_file_and_an_option_takes_precedence(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file of the working directory is then not read."""
    file.write_text("not TOML")
    for name, port in (("variable.toml", 1), ("option.toml", 2)):
        (file.parent / name).write_text(f"port = {port}\n")
    monkeypatch.setenv("AGGREGATOR_CONFIG", "variable.toml")

    assert run("config", "show", "--changed") == 0
    assert "variable.toml:1" in capsys.readouterr().out
    assert run("config", "show", "--changed", "--config", "option.toml") == 0
    assert "option.toml:1" in capsys.readouterr().out


def test_every_command_uses_the_file(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An invalid one ends it with the same sentence."""
    file.write_text("prot = 1\n")

    assert run("doctor") == 2
    assert "prot: unknown setting; did you mean port?" in capsys.readouterr().err
