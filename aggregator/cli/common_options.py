"""What the options of several commands have in common: settings, stores, spans of time."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from aggregator.settings import Settings

FIELDS = {option.name: option for option in dataclasses.fields(Settings)}
RULES = (
    "policy",
    "duplicate_bits",
    "related_bits",
    "min_related",
    "preset",
    "min_containment",
    "min_shared",
    "min_similarity",
    "sure_containment",
    "keep_updates",
    "models_dir",
    "block_plan",
)
CHANGE = ("next_models_dir", "next_block_plan", "serve_next")
STORE = (
    "data_dir",
    "appendfsync",
    "retention_days",
    "segment_articles",
    "fingerprints_only",
    "keep_texts",
    *CHANGE,
)
BURSTS = ("burst_items", "burst_window_hours", "min_sources", "sensitivity")
STORE_META = "URL"
# Options of a process can be read by everybody on the machine; these are variables only.
VARIABLES_ONLY = ("key", "bootstrap_key")
SPANS_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, instead of all options first."""

    def error(self, message: str) -> NoReturn:
        """End with 2."""
        self.exit(2, f"{self.prog}: {message} (`{self.prog} --help` tells more).\n")


def command(commands: Any, name: str, help: str, target: str, **more: Any) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=help, description=f"{help[0].upper()}{help[1:]}.", allow_abbrev=False, **more
    )
    command.set_defaults(command=name, command_path=target)
    return command


def settings(command: argparse.ArgumentParser, names: Iterable[str], title: str = "settings") -> None:
    """One option per setting; values are checked by ``settings.load``, so all problems show together."""
    group = command.add_argument_group(title)
    for name in names:
        if name in VARIABLES_ONLY:
            continue
        option = FIELDS[name]
        flag = "--" + name.replace("_", "-")
        shown = "" if option.default in ("", False) else f" (default {option.default})"
        help = (option.metadata["doc"].rstrip(".") + shown).replace("%", "%%")
        if isinstance(option.default, bool):
            group.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=help)
        else:
            metavar = {int: "N", float: "X", str: "TEXT"}[type(option.default)]
            group.add_argument(flag, metavar=metavar, help=help)


def where(command: argparse.ArgumentParser, *, server: bool = True) -> None:
    """Which store or server a command works on."""
    group = command.add_argument_group("where")
    if server:
        group.add_argument("--server", metavar=STORE_META, help="a running service (default: the local one)")
    group.add_argument(
        "--store", dest="store", metavar=STORE_META,
        help="open the store in this process: memory, embedded (in --data-dir) or a redis:// URL",
    )  # fmt: skip


def progress(command: argparse.ArgumentParser) -> None:
    command.add_argument("--no-progress", action="store_true", help="no progress bar on a terminal")


def mode(command: argparse.ArgumentParser, *more: str) -> None:
    command.add_argument(
        "--mode", choices=("stories", "neighbours", *more), default="stories",
        help="similar means of one story (default), or near by bits as in the paper",
    )  # fmt: skip


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def span_ms(text: str) -> int:
    number, unit = text[:-1], text[-1:]
    if unit not in SPANS_MS or not number.isdecimal() or int(number) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a span of time such as 24h or 7d")
    return int(number) * SPANS_MS[unit]


def listed(kind: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """Several values with commas between them."""

    def values(text: str) -> list[Any]:
        try:
            return [kind(part) for part in text.split(",")]
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not numbers with commas between them") from None

    return values
