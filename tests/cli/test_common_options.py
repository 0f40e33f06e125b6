"""Values and settings that several commands share."""

from __future__ import annotations

import argparse
import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.cli import common_options, options
from aggregator.cli.common_options import (
    ENVIRONMENT_ONLY_SETTINGS,
    EXPERT_SETTINGS,
    MUST_SETTINGS,
    SETTING_FIELDS,
    SETTING_GROUPS,
    ConciseArgumentParser,
    add_settings_options,
    duration_ms,
    positive_int,
)
from aggregator.settings import Settings


@given(
    st.integers(min_value=1, max_value=10**9),
    st.sampled_from([("m", 60), ("h", 3600), ("d", 86400), ("w", 604800)]),
)
def test_a_time_span_is_number_and_unit(number: int, unit: tuple[str, int]) -> None:
    """In milliseconds."""
    name, seconds = unit

    assert duration_ms(f"{number}{name}") == number * seconds * 1000


@pytest.mark.parametrize("text", ["", "h", "24", "0h", "-1h", "1.5h", "24H", "24 h", "1y", "²h"])
def test_another_time_span_is_rejected(text: str) -> None:
    """The message quotes it and gives examples."""
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        duration_ms(text)

    assert str(caught.value) == f"{text!r} is not a time span in m, h, d or w, such as 30m or 7d"


@pytest.mark.parametrize("text", ["", "0", "-1", "+1", "1.0", "1e3", "1_000", "²", " 1"])
def test_another_number_is_rejected(text: str) -> None:
    """Python's own conversion accepts some of these."""
    with pytest.raises(argparse.ArgumentTypeError, match="is not an integer of at least 1"):
        positive_int(text)


def parser_of(*names: str) -> ConciseArgumentParser:
    """A parser with the options of these settings."""
    parser = ConciseArgumentParser(prog="aggregator")
    add_settings_options(parser, names)
    return parser


def test_an_option_that_is_not_given_is_none() -> None:
    """A variable or the default of the setting then applies; switches can also be turned off."""
    parser = parser_of("port", "access_log")

    assert vars(parser.parse_args([])) == {"port": None, "access_log": None}
    assert vars(parser.parse_args(["--port", "http", "--no-access-log"])) == {
        "port": "http", "access_log": False,
    }  # fmt: skip


def test_secrets_never_become_options() -> None:
    """Command lines are visible to every user of the machine."""
    assert ENVIRONMENT_ONLY_SETTINGS
    assert set(ENVIRONMENT_ONLY_SETTINGS) <= set(SETTING_FIELDS)
    assert vars(parser_of(*SETTING_FIELDS).parse_args([])).keys().isdisjoint(ENVIRONMENT_ONLY_SETTINGS)


def test_the_help_of_an_option_is_the_documentation_of_its_setting(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With its heading, its choices, and its default; percent signs are literal."""
    with pytest.raises(SystemExit):
        parser_of(*SETTING_FIELDS).parse_args(["--help-all"])
    help_text = " ".join(capsys.readouterr().out.split())

    for heading in SETTING_GROUPS:
        assert f" {heading}: " in help_text
    assert "--log-format {text,json}" in help_text
    assert f"(default {SETTING_FIELDS['port'].default})" in help_text
    assert "%%" not in help_text


def test_help_lists_common_settings_and_counts_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    """``--help-all`` lists every option once, the common ones first, succeeds and ends without the hint."""
    parser = parser_of(*SETTING_FIELDS)
    short_help = parser.format_help()
    with pytest.raises(SystemExit) as caught:
        parser.parse_args(["--help-all"])
    full_help = capsys.readouterr().out
    shown = [name.replace("store_url", "store") for name in MUST_SETTINGS]
    shown = [name for name in shown if name not in ENVIRONMENT_ONLY_SETTINGS]
    others = SETTING_FIELDS.keys() - {*shown, "store_url"} - set(ENVIRONMENT_ONLY_SETTINGS)
    # A help line starts with its option, after two spaces.
    short, full = (re.findall(r"^  --([a-z-]+)", text, re.MULTILINE) for text in (short_help, full_help))
    names = [name.replace("-", "_") for name in full]

    assert [name.replace("-", "_") for name in short] == ["help_all", *shown]
    assert names[: len(short)] == ["help_all", *shown]
    assert sorted(names[len(short) :]) == sorted(others)
    assert short_help.endswith(f"\n{len(others)} more settings: `aggregator --help-all`.\n")
    assert "--help-all`" not in full_help
    assert full_help.partition("\n\n")[0] == short_help.partition("\n\n")[0]
    assert caught.value.code == 0


def test_a_command_with_few_settings_lists_all_of_them() -> None:
    """It has no second help."""
    help_text = parser_of("data_dir", "log_level").format_help()

    assert "--log-level" in help_text
    assert "--help-all" not in help_text


def test_every_named_setting_exists() -> None:
    """A renamed setting must not disappear from a command."""
    listed = [
        *common_options.SERVICE_SETTINGS,
        *common_options.DETECTION_SETTINGS,
        *MUST_SETTINGS,
        *EXPERT_SETTINGS,
        *(name for names in SETTING_GROUPS.values() for name in names),
    ]

    assert set(listed) <= {field.name for field in dataclasses.fields(Settings)}


def test_an_unknown_option_is_an_error_of_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    """It names the help of the command, also below another one, and an option of nearly that name.

    An option of other commands is called that, not a mistyped one.
    """
    for words, message in (
        (["serve", "--prt", "1"], "aggregator serve: unrecognized arguments: --prt 1; did you mean --port?"),
        (["keys", "list", "--x"], "aggregator keys list: unrecognized arguments: --x"),
        (
            ["migrate", "--port"],
            "aggregator migrate: unrecognized arguments: --port; --port is an option of serve, doctor, "
            "here --data-dir DIR",
        ),
        (
            ["keys", "add", "Ann", "--role=reader", "--port=1"],
            "aggregator keys add: unrecognized arguments: --port=1; --port is an option of serve, doctor, "
            "here --data-dir DIR",
        ),
        (
            ["explain", "A", "B", "--port=1"],
            "aggregator explain: unrecognized arguments: --port=1; --port is an option of serve, doctor, "
            "here --server URL",
        ),
    ):
        with pytest.raises(SystemExit):
            options.build_parser().parse_args(words)
        name = message.partition(":")[0]
        assert capsys.readouterr().err == f"{message} (see `{name} --help`).\n"


def test_a_usage_error_is_one_line_and_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    """The line names the help instead of listing all options."""
    with pytest.raises(SystemExit) as caught:
        parser_of("port").parse_args(["--nope"])

    assert caught.value.code == 2
    assert capsys.readouterr().err == (
        "aggregator: unrecognized arguments: --nope (see `aggregator --help`).\n"
    )
