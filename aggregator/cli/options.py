"""Every command and option; those that set a setting are generated from ``settings.Settings``."""

from __future__ import annotations

import argparse
from typing import Any

from aggregator import __version__
from aggregator.cli import common_options, dedupe_options, evaluate_options

EPILOG = """\
exit codes: 0 all well; 1 some lines were bad or an id is unknown; 2 usage, settings, files or models that
cannot work; 3 store or server unavailable; 130 interrupted.

Every setting is also a variable: --data-dir is AGGREGATOR_DATA_DIR. `aggregator serve --help` lists all.
"""


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = common_options.ConciseArgumentParser(
        prog="aggregator",
        description="Tells for each news article whether it is new, related or a duplicate, and what is breaking.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"aggregator {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_serve(commands)
    _add_ingest(commands, "ingest", "check article files and store them, one verdict line per line")
    _add_ingest(commands, "check", "the same as ingest, but nothing is stored")
    _add_work(commands)
    _add_explain(commands)
    _add_reindex(commands)
    _add_replay(commands)
    dedupe_options.add_fit_command(commands)
    dedupe_options.add_dedupe_command(commands)
    evaluate_options.add_evaluate_command(commands)
    _add_keys(commands)
    _add_doctor(commands)
    return top


def setting_overrides(args: argparse.Namespace) -> dict[str, Any]:
    """The settings given as options; those not given are None."""
    given = {name: getattr(args, name, None) for name in common_options.SETTING_FIELDS}
    store = getattr(args, "store", None)
    if store is not None:
        given["store_url"] = "" if store == "embedded" else store
    return given


def _add_serve(commands: Any) -> None:
    command = common_options.add_command(
        commands, "serve", "run the HTTP service", "aggregator.cli.serve:run"
    )
    common_options.add_settings_options(command, common_options.SETTING_FIELDS)


def _add_ingest(commands: Any, name: str, help: str) -> None:
    command = common_options.add_command(commands, name, help, "aggregator.cli.ingest:run")
    command.add_argument(
        "files", nargs="*", default=["-"], metavar="FILE",
        help=".jsonl, .jsonl.gz or - for standard input (the default)",
    )  # fmt: skip
    command.add_argument(
        "--out", metavar="FILE", help="write the verdict lines here (default: standard output)"
    )
    common_options.add_progress_option(command)
    common_options.add_target_options(command)
    common_options.add_settings_options(
        command,
        (
            *common_options.DEDUP_SETTINGS,
            *common_options.STORE_SETTINGS,
            "max_body_bytes",
            "log_level",
            "log_format",
        ),
    )


def _add_work(commands: Any) -> None:
    command = common_options.add_command(
        commands, "work", "take articles from one Redis stream and put verdicts into another",
        "aggregator.cli.stream_worker:run",
    )  # fmt: skip
    command.add_argument(
        "--redis",
        metavar=common_options.URL_METAVAR,
        default="redis://127.0.0.1:6379",
        help="where the streams are",
    )
    command.add_argument(
        "--server", metavar=common_options.URL_METAVAR, help="a running service (default: the local one)"
    )
    command.add_argument(
        "--source", default="articles", metavar="STREAM", help="entries with a field 'article'"
    )
    command.add_argument("--verdicts", default="verdicts", metavar="STREAM", help="where the verdicts go")
    command.add_argument("--group", default="aggregator", metavar="NAME", help="the consumer group")
    command.add_argument(
        "--consumer", metavar="NAME", help="this worker's name, its own and lasting (default: the host's)"
    )
    command.add_argument("--until-empty", action="store_true", help="end when nothing is left to do")
    common_options.add_settings_options(command, ("log_level", "log_format"))


def _add_explain(commands: Any) -> None:
    command = common_options.add_command(
        commands, "explain", "show why two articles are or are not copies", "aggregator.cli.explain:run"
    )
    command.add_argument("first", metavar="A", help="id of a stored article, or a file with its text (or - )")
    command.add_argument("second", metavar="B", help="the same for the other article")
    command.add_argument("--json", action="store_true", help="one JSON object instead of sentences")
    common_options.add_target_options(command)
    common_options.add_settings_options(
        command, (*common_options.DEDUP_SETTINGS, *common_options.STORE_SETTINGS, "log_level", "log_format")
    )


def _add_reindex(commands: Any) -> None:
    command = common_options.add_command(
        commands, "reindex", "fill the space of another model or block plan while the present one serves",
        "aggregator.cli.reindex:run",
    )  # fmt: skip
    command.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="the articles, .jsonl or .jsonl.gz (default: their kept texts)",
    )
    common_options.add_progress_option(command)
    common_options.add_target_options(command, server=False)
    common_options.add_settings_options(
        command,
        (
            *common_options.DEDUP_SETTINGS,
            *common_options.STORE_SETTINGS,
            "max_body_bytes",
            "log_level",
            "log_format",
        ),
    )


def _add_replay(commands: Any) -> None:
    command = common_options.add_command(
        commands, "replay", "run dated articles through the burst rule under their own clock",
        "aggregator.cli.fit_replay:replay",
    )  # fmt: skip
    command.add_argument("files", nargs="+", metavar="FILE", help=".jsonl, .jsonl.gz or - for standard input")
    command.add_argument(
        "--out", metavar="FILE", help="write the event lines here (default: standard output)"
    )
    command.add_argument(
        "--preview", metavar="SPAN", type=common_options.duration_ms,
        help="instead of the events: how many alerts these settings, a stricter and a laxer sensitivity "
        "would have made in the last SPAN (24h, 7d) of the stream",
    )  # fmt: skip
    common_options.add_mode_option(command)
    common_options.add_progress_option(command)
    common_options.add_settings_options(
        command, (*common_options.DETECTION_SETTINGS, "log_level", "log_format")
    )


def _add_keys(commands: Any) -> None:
    top = commands.add_parser("keys", help="say who may use the service, and as what", allow_abbrev=False)
    changes = top.add_subparsers(title="changes", metavar="CHANGE", required=True)
    for name, help in (
        ("add", "make a key and print it, this once"),
        ("list", "all keys: id, role, how long, name"),
        ("revoke", "end a key now"),
        ("rotate", "make another key of the same name and role; the old one lives on for a while"),
    ):
        command = common_options.add_command(changes, name, help, "aggregator.cli.keys:run")
        command.set_defaults(change=name)
        _add_key_options(command, name)
        common_options.add_target_options(command, server=False)
        common_options.add_settings_options(command, ("data_dir", "log_level"))


def _add_key_options(command: argparse.ArgumentParser, change: str) -> None:
    if change == "add":
        command.add_argument("name", metavar="NAME", help="whose key it is; changes are recorded under it")
        command.add_argument("--role", required=True, choices=("crawler", "reader", "editor", "admin"))
        command.add_argument(
            "--expires", metavar="SPAN", type=common_options.duration_ms, help="e.g. 90d (default: never)"
        )
        command.add_argument(
            "--source", metavar="NAME", action="append", default=[],
            help="post and delete articles of this source alone; repeatable",
        )  # fmt: skip
    elif change != "list":
        command.add_argument("id", metavar="ID", help="as `aggregator keys list` shows it")
    if change == "rotate":
        command.add_argument(
            "--overlap", metavar="SPAN", type=common_options.duration_ms, default=common_options.DURATION_UNITS_MS["d"],
            help="how long the old key works beside the new one (default 1d)",
        )  # fmt: skip


def _add_doctor(commands: Any) -> None:
    command = common_options.add_command(
        commands, "doctor", "say what is configured, reachable and loaded, and what is wrong",
        "aggregator.cli.doctor:run",
    )  # fmt: skip
    command.add_argument("--json", action="store_true", help="one JSON object instead of sentences")
    command.add_argument(
        "--audit", type=common_options.positive_int, metavar="N",
        help="compare N stored articles per space with all that is stored, at every radius; 1 if one is missed",
    )  # fmt: skip
    common_options.add_settings_options(command, common_options.SETTING_FIELDS)
