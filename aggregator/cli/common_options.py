"""What the options of several commands have in common: settings, stores, spans of time."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from aggregator.settings import Settings

SETTING_FIELDS = {option.name: option for option in dataclasses.fields(Settings)}
DEDUP_SETTINGS = (
    "policy",
    "duplicate_bits",
    "related_bits",
    "related_min_cosine",
    "preset",
    "min_containment",
    "min_shared_shingles",
    "min_similarity",
    "strong_containment",
    "updates_are_new",
    "models_dir",
    "block_plan",
)
MIGRATION_SETTINGS = ("migration_models_dir", "migration_block_plan", "migration_serve")
STORE_SETTINGS = (
    "data_dir",
    "appendfsync",
    "retention_days",
    "segment_max_articles",
    "fingerprints_only",
    "store_texts",
    *MIGRATION_SETTINGS,
)
DETECTION_SETTINGS = ("burst_items", "burst_window_hours", "min_sources", "sensitivity")
URL_METAVAR = "URL"
# Options of a process can be read by everybody on the machine; these are variables only.
ENVIRONMENT_ONLY_SETTINGS = ("key", "bootstrap_key")
DURATION_UNITS_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000}


class ConciseArgumentParser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, instead of all options first."""

    def error(self, message: str) -> NoReturn:
        """End with 2."""
        self.exit(2, f"{self.prog}: {message} (`{self.prog} --help` tells more).\n")


def add_command(
    commands: Any, name: str, help: str, target: str, **parser_options: Any
) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=help, description=f"{help[0].upper()}{help[1:]}.", allow_abbrev=False, **parser_options
    )
    command.set_defaults(command=name, command_path=target)
    return command


def add_settings_options(
    command: argparse.ArgumentParser, names: Iterable[str], title: str = "settings"
) -> None:
    """One option per setting; values are checked by ``settings.load``, so all problems show together."""
    group = command.add_argument_group(title)
    for name in names:
        if name in ENVIRONMENT_ONLY_SETTINGS:
            continue
        option = SETTING_FIELDS[name]
        flag = "--" + name.replace("_", "-")
        shown = "" if option.default in ("", False) else f" (default {option.default})"
        help = (option.metadata["doc"].rstrip(".") + shown).replace("%", "%%")
        if isinstance(option.default, bool):
            group.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=help)
        else:
            metavar = {int: "N", float: "X", str: "TEXT"}[type(option.default)]
            group.add_argument(flag, metavar=metavar, help=help)


def add_target_options(command: argparse.ArgumentParser, *, server: bool = True) -> None:
    """Which store or server a command works on."""
    group = command.add_argument_group("where")
    if server:
        group.add_argument("--server", metavar=URL_METAVAR, help="a running service (default: the local one)")
    group.add_argument(
        "--store", dest="store", metavar=URL_METAVAR,
        help="open the store in this process: memory, embedded (in --data-dir) or a redis:// URL",
    )  # fmt: skip


def add_progress_option(command: argparse.ArgumentParser) -> None:
    command.add_argument("--no-progress", action="store_true", help="no progress bar on a terminal")


def add_mode_option(command: argparse.ArgumentParser, *extra_modes: str) -> None:
    command.add_argument(
        "--mode", choices=("stories", "neighbours", *extra_modes), default="stories",
        help="similar means of one story (default), or near by bits as in the paper",
    )  # fmt: skip


def positive_int(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def duration_ms(text: str) -> int:
    number, unit = text[:-1], text[-1:]
    if unit not in DURATION_UNITS_MS or not number.isdecimal() or int(number) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a span of time such as 24h or 7d")
    return int(number) * DURATION_UNITS_MS[unit]


def comma_separated(parse_item: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """Several values with commas between them."""

    def values(text: str) -> list[Any]:
        try:
            return [parse_item(part) for part in text.split(",")]
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not numbers with commas between them") from None

    return values
