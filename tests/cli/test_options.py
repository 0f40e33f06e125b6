"""The parser: help, usage errors, and options generated from the settings."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aggregator.cli import common_options, options
from tests.cli.helpers import ROOT, run
from tests.support.hang_limit import HANG_LIMIT_S


@pytest.mark.integration
def test_help_imports_no_large_package() -> None:
    """numpy, aiohttp, the models and the store are not loaded, so --help answers quickly."""
    script = "import sys, aggregator.cli as c; c.options.build_parser().format_help(); print(*sys.modules)"

    loaded = set(subprocess.check_output([sys.executable, "-c", script], text=True, cwd=ROOT).split())

    assert "aggregator.cli.options" in loaded
    assert not loaded & {"numpy", "aiohttp", "redis", "asyncio", "aggregator.app", "tqdm"}


@pytest.mark.parametrize(
    "command", ["serve", "ingest", "check", "explain", "replay", "fit", "evaluate", "doctor"]
)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--help exits with 0 and names the command."""
    assert run(command, "--help") == 0

    assert f"usage: aggregator {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ((), "aggregator follow https://"),
        (("srve",), "unknown command 'srve'; did you mean serve?"),
        (("keys", "ad"), "unknown change 'ad'; did you mean add?"),
        (("serve", "--prot", "1"), "--prot"),
        (("serve", "--port", "http"), "--port: 'http' is not a whole number."),
        (("serve", "--policy", "strict"), "must be one of verified, hamming"),
        (("serve", "--store-url", "localhost"), "store_url: expected memory or one of"),
        (("ingest", "--store", "localhost", "x.jsonl"), "store_url: expected memory or one of"),
        (("ingest", "--store", "memory", "absent.jsonl"), "absent.jsonl cannot be read"),
        (("ingest", "--store", "memory", "--server", "http://x", __file__), "either --store or --server"),
        (("ingest", "--policy", "hamming", __file__), "use --policy with --store"),
        (
            ("ingest", "--store", "memory", "--policy", "agency", __file__),
            "policy: 'agency' is neither a rule (verified, hamming) nor a profile",
        ),
        (("explain", "--store", "memory", "--policy", "agency", __file__, __file__), "(default)."),
        (("dedupe", "--out", "out", "--policy", "agency", __file__), "policy: 'agency' is neither a rule"),
        (
            ("ingest", "--store", "memory", "--policy-profiles-file", "absent.toml", __file__),
            "policy_profiles_file: absent.toml cannot be read",
        ),
        (("ingest", "--server", "x:80", __file__), "server: 'x:80' is not an http:// or https:// URL"),
        (("ingest", "--store", "memory", "--out", "absent/out", __file__), "absent/out cannot be written"),
        (("evaluate", "near-duplicates", "--orders", "0", __file__), "'0' is not an integer of at least 1"),
        (("doctor", "--models-dir", "absent"), ""),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    argv: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is never a traceback."""
    assert run(*argv) == 2

    captured = capsys.readouterr()
    assert message in captured.err or message in captured.out
    assert "Traceback" not in captured.err


@pytest.mark.parametrize("argv", [("nosuch",), ("dedupe",), ("keys", "add", "x", "--role", "boss")])
def test_a_usage_error_is_one_line(argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """The line names the help; the list of options is not printed."""
    assert run(*argv) == 2

    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.endswith(" --help`).\n")


def test_all_invalid_settings_are_reported_in_one_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables and options together."""
    monkeypatch.setenv("AGGREGATOR_DETECTOR_INTERVAL_SECONDS", "soon")

    assert run("serve", "--port", "99999", "--workers", "0") == 2

    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 3
    assert all(line.startswith("aggregator: ") for line in errors)


def test_every_setting_is_an_option_of_serve() -> None:
    """Only secrets are variables without an option."""
    args = options.build_parser().parse_args(["serve"])
    grouped = [name for names in common_options.SETTING_GROUPS.values() for name in names]

    assert set(options.setting_overrides(args)) == set(common_options.SETTING_FIELDS)
    assert set(options.setting_overrides(args).values()) == {None}
    assert sorted(grouped) == sorted(common_options.SETTING_FIELDS)


@pytest.mark.integration
def test_a_start_error_is_a_json_record_with_json_logs(tmp_path: Path) -> None:
    """A log collector that parses JSON must not miss the reason why the service does not start."""
    options = ["--log-format=json", "--store-url=redis://127.0.0.1:1", "--port=0"]
    ended = subprocess.run(
        [sys.executable, "-m", "aggregator", "serve", *options],
        capture_output=True, text=True, timeout=HANG_LIMIT_S, check=False,
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip

    store, record = map(json.loads, ended.stderr.splitlines())
    assert store["message"] == "store: redis://127.0.0.1:1"
    assert (ended.returncode, record["level"]) == (3, "ERROR")
    assert record["message"].startswith("The store at 127.0.0.1:1 cannot be reached")


def test_only_the_service_logs_its_errors_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A configuration file with ``log_format`` is shared with the commands, which a person reads."""
    (tmp_path / "aggregator.toml").write_text('log_format = "json"\nstore_url = "redis://127.0.0.1:1"\n')

    assert run("keys", "list", "--config", str(tmp_path / "aggregator.toml")) == 3

    assert capsys.readouterr().err.startswith("aggregator: The store at 127.0.0.1:1 cannot be reached")


def hints(file: Path) -> Iterator[str]:
    """Commands in backquotes in the texts of a module; "1" stands for each value that is inserted."""
    tree = ast.parse(file.read_text())
    inner = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    inner |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    for node in ast.walk(tree):
        parts = [] if node in inner else getattr(node, "values", [node])
        text = "".join(
            str(getattr(part, "value", "")) if isinstance(part, ast.Constant) else "1" for part in parts
        )
        yield from re.findall(r"(?<!`)`aggregator (\w[^`]*)`", re.sub(r"\{\w+\}", "1", text))


def test_every_command_in_a_message_can_be_run(capsys: pytest.CaptureFixture[str]) -> None:
    """With a file, a name, ... in place of a word in capitals, and with known names of protocols."""
    files = [file for top in ("aggregator", "packages") for file in (ROOT / top).rglob("*.py")]
    found = {hint for file in files for hint in hints(file)}
    parser = options.build_parser()
    wrong = []
    for hint in sorted(found):
        try:
            parser.parse_args(shlex.split(hint.replace("--role ROLE", "--role editor")))
        except SystemExit as exit:
            if exit.code and "invalid choice: '1'" not in capsys.readouterr().err:
                wrong.append(hint)

    assert len(found) > 15 and wrong == []
