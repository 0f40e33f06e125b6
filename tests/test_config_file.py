"""Configuration file: where it is searched, its values among variables and options, and its problems."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from aggregator import config_file
from aggregator.errors import ConfigurationError
from aggregator.settings import Settings, load, resolve

EXAMPLE = Path(__file__).resolve().parents[1] / "deploy" / "aggregator.toml"


def parse(tmp_path: Path, text: str) -> config_file.ConfigFile:
    """The parsed file ``c.toml`` with this text."""
    path = tmp_path / "c.toml"
    path.write_text(text, encoding="utf-8")
    return config_file.read(path)


def problems(tmp_path: Path, text: str) -> list[str]:
    """The problems of a file, without its directory."""
    with pytest.raises(ConfigurationError) as refusal:
        load({}, {}, parse(tmp_path, text))
    return [problem.replace(f"{tmp_path}/", "") for problem in refusal.value.problems]


def test_option_variable_and_file_take_precedence_in_this_order(tmp_path: Path) -> None:
    """Each origin is recorded."""
    file = parse(tmp_path, "keep_if_adds = 0.5\nport = 1\nworkers = 3\nretention_days = 30\n")

    settings, origins = resolve({"AGGREGATOR_PORT": "2", "AGGREGATOR_WORKERS": "4"}, {"port": "5"}, file)

    assert (settings.port, settings.workers, settings.retention_days) == (5, 4, 30.0)
    assert (settings.keep_if_adds, settings.min_containment) == (0.5, 0.2)
    assert origins["port"] == "--port"
    assert origins["workers"] == "AGGREGATOR_WORKERS"
    assert origins["retention_days"] == f"{tmp_path}/c.toml:4"
    assert "host" not in origins


def test_redis_url_takes_precedence_over_the_file(tmp_path: Path) -> None:
    """It is a variable like the others."""
    file = parse(tmp_path, 'store_url = "memory"')

    assert load({}, {}, file).store_url == "memory"
    assert load({"REDIS_URL": "redis://a"}, {}, file).store_url == "redis://a"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('port = "80"', "c.toml:2: port: '80' is not a whole number without quotes."),
        ("port = true", "c.toml:2: port: True is not a whole number."),
        ("port = 70000", "c.toml:2: port: 70000 must be a number from 0 to 65535."),
        ("retention_days = nan", "c.toml:2: retention_days: nan is not a number."),
        ("store_texts = 'yes'", "c.toml:2: store_texts: 'yes' is not true or false without quotes."),
        ("data_dir = 1", "c.toml:2: data_dir: 1 is not a string in quotes."),
        ("retention_day = 30", "c.toml:2: retention_day: unknown setting; did you mean retention_days?"),
        ("retention-days = 30", "c.toml:2: retention-days: unknown setting; did you mean retention_days?"),
        ("xyz = 30", "c.toml:2: xyz: unknown setting; `aggregator config show` lists all settings."),
        ("[store]", "c.toml:2: store: unknown setting; settings are not grouped in tables."),
        ("[[rules]]\nport = 1", "c.toml:2: rules: unknown setting; settings are not grouped in tables."),
    ],
)
def test_a_problem_names_file_line_and_setting(tmp_path: Path, line: str, message: str) -> None:
    """Unknown keys come with the nearest known name."""
    assert problems(tmp_path, f"# settings\n{line}\n") == [message]


def test_all_problems_of_a_file_are_reported_together(tmp_path: Path) -> None:
    """One edit is enough to correct it."""
    assert len(problems(tmp_path, "port = 'x'\nworkers = 0\nprot = 1\n")) == 3


def test_a_secret_of_the_file_is_not_shown(tmp_path: Path) -> None:
    """Problems are printed and logged."""
    (problem,) = problems(tmp_path, 'bootstrap_key = "geheim"')

    assert problem.startswith("c.toml:1: bootstrap_key: the value must be 32 to 200")
    assert "geheim" not in problem


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"port = \n", "is not valid TOML: Invalid value (at line 1"),
        (b"port = 1\nport = 2\n", "is not valid TOML: Cannot overwrite a value (at line 2"),
        (b"data_dir = '\xff'\n", "is not UTF-8 text (byte 12)"),
        (None, "cannot be read (No such file or directory)"),
    ],
)
def test_an_unusable_file_is_one_sentence(tmp_path: Path, content: bytes | None, message: str) -> None:
    """With its name and what is wrong."""
    path = tmp_path / "c.toml"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(ConfigurationError) as refusal:
        config_file.read(path)

    assert refusal.value.problems[0].startswith(f"config: {path} {message}")


def test_a_named_file_takes_precedence_over_the_search_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A named file need not exist to be chosen: its absence is an error, not another file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(config_file, "DEFAULT_PATHS", (Path("aggregator.toml"), tmp_path / "etc.toml"))

    assert config_file.locate(None) is None
    (tmp_path / "etc.toml").touch()
    assert config_file.locate(None) == tmp_path / "etc.toml"
    (tmp_path / "aggregator.toml").touch()
    assert config_file.locate(None) == Path("aggregator.toml")
    assert config_file.locate("absent.toml") == Path("absent.toml")


def test_the_example_is_valid_in_full() -> None:
    """Also with the lines that it comments out."""
    text = EXAMPLE.read_text(encoding="utf-8")
    proposals = [line[2:] for line in text.splitlines() if line.startswith("# ") and " = " in line]
    assert load({}, {}, config_file.read(EXAMPLE)) != Settings()

    whole = config_file.ConfigFile(EXAMPLE, tomllib.loads("\n".join([*proposals, text])), lines={})

    assert len(whole.values) > len(proposals) > 0
    load({}, {}, whole)
