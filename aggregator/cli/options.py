"""Parser of the whole command line; options of settings are generated from ``settings.Settings``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

from aggregator import __version__, config_file, extensions
from aggregator.analysis.extractors.registry import TFIDF_PCA, feature_names
from aggregator.cli import common_options
from aggregator.settings import config_variable
from aggregator.time_units import DAY_MS

EPILOG = """\
exit codes: 0 success; 1 some input lines were invalid or an id is unknown; 2 usage, settings, files or
models that cannot work; 3 the store or the server is unavailable; 130 interrupted.

settings: an option (--data-dir), else the variable (AGGREGATOR_DATA_DIR), else the configuration file
(data_dir in --config FILE, AGGREGATOR_CONFIG, ./aggregator.toml or /etc/aggregator/aggregator.toml), else
the default. `aggregator config show` lists all of them with their values.
"""
INPUT_HELP = ".jsonl, .jsonl.gz or - for standard input"


def build_parser() -> argparse.ArgumentParser:
    """The parser with all commands."""
    top = common_options.ConciseArgumentParser(
        prog="aggregator",
        description="Detect duplicate and related news articles, and breaking events.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"aggregator {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    known, added = _commands(), extensions.installed(extensions.COMMANDS)
    for name in (*known, *(name for name in added if name not in known)):
        add = known.get(name)
        if callable(add):
            add(commands)
        elif name in added:
            added[name].load()(commands)
        else:
            commands.add_parser(name, distribution=add)
    return top


def read_config_file(args: argparse.Namespace) -> config_file.ConfigFile | None:
    """The configuration file of this command; None if there is none. Raises ConfigurationError."""
    path = config_file.locate(getattr(args, "config", None) or config_variable())
    return config_file.read(path) if path is not None else None


def setting_overrides(args: argparse.Namespace) -> dict[str, Any]:
    """The settings given as options; None for the others."""
    given = {name: getattr(args, name, None) for name in common_options.SETTING_FIELDS}
    if common_options.requested_profile(args):
        given["policy"] = None
    store = getattr(args, "store", None)
    if store is not None:
        given["store_url"] = "" if store == "embedded" else store
    return given


def _commands() -> dict[str, Callable[[Any], None] | str]:
    """The commands in the order of the help, by the function that adds them.

    A string is the distribution that has the command, as an extension (``extensions.COMMANDS``).
    """
    return {
        "serve": _add_serve,
        "ingest": lambda commands: _add_ingest(
            commands, "ingest", "check and store the articles of files; print one verdict per line"
        ),
        "check": lambda commands: _add_ingest(commands, "check", "like ingest, without storing anything"),
        "learn": lambda commands: _add_ingest(
            commands,
            "learn",
            "like ingest --backfill: teach the event detector what is usual by dated articles",
        ),
        "work": "newsdedup-client",
        "explain": _add_explain,
        "reindex": _add_reindex,
        "delete-index": _add_delete_index,
        "replay": "newsdedup-archive",
        "fit": _add_fit,
        "dedupe": "newsdedup-archive",
        "evaluate": "newsdedup-lab",
        "backup": _add_backup,
        "restore": _add_restore,
        "config": _add_config,
        "keys": _add_keys,
        "clock": _add_clock,
        "doctor": _add_doctor,
    }


def _add_serve(commands: Any) -> None:
    command = common_options.add_command(
        commands, "serve", "run the HTTP service", "aggregator.cli.serve:run"
    )
    common_options.add_settings_options(command, common_options.SETTING_FIELDS)


def _add_ingest(commands: Any, name: str, help: str) -> None:
    command = common_options.add_command(commands, name, help, "aggregator.cli.ingest:run")
    command.add_argument(
        "files", nargs="*", default=["-"], metavar="FILE", help=f"{INPUT_HELP} (the default)"
    )
    default_out = "nowhere" if name == "learn" else "standard output"
    command.add_argument("--out", metavar="FILE", help=f"write the verdicts here (default: {default_out})")
    if name == "ingest":
        command.add_argument(
            "--backfill", action="store_true",
            help="the articles are an archive or a backlog: they fire no events, and dated ones teach the "
            "detector what is usual at their time",
        )  # fmt: skip
    if name == "learn":
        command.set_defaults(backfill=True, out=os.devnull)
    common_options.add_progress_option(command)
    common_options.add_target_options(command)
    common_options.add_policy_options(command, (*common_options.SERVICE_SETTINGS, "max_body_bytes"))


def _add_explain(commands: Any) -> None:
    command = common_options.add_command(
        commands, "explain", "show why two articles are duplicates, or not", "aggregator.cli.explain:run"
    )
    command.add_argument(
        "first", metavar="A", help="id of a stored article, or a text file (- for standard input)"
    )
    command.add_argument("second", metavar="B", help="the other article, likewise")
    command.add_argument("--json", action="store_true", help="print one JSON object")
    common_options.add_target_options(command)
    common_options.add_policy_options(command, common_options.SERVICE_SETTINGS)


def _add_reindex(commands: Any) -> None:
    command = common_options.add_command(
        commands, "reindex",
        "copy stored articles into the index of another model, block plan or version",
        "aggregator.cli.reindex:run",
    )  # fmt: skip
    command.add_argument(
        "files", nargs="*", metavar="FILE", help="the articles, .jsonl or .jsonl.gz (default: stored texts)"
    )
    common_options.add_progress_option(command)
    common_options.add_target_options(command, server=False)
    common_options.add_settings_options(command, (*common_options.SERVICE_SETTINGS, "max_body_bytes"))


def _add_delete_index(commands: Any) -> None:
    command = common_options.add_command(
        commands, "delete-index", "delete an index that the settings do not read, with its articles",
        "aggregator.cli.delete_index:run",
    )  # fmt: skip
    command.add_argument(
        "index", metavar="INDEX", help="its name, e.g. en.3f2a (`aggregator doctor` shows it)"
    )
    command.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    common_options.add_target_options(command, server=False)
    common_options.add_settings_options(command, common_options.SERVICE_SETTINGS)


def _add_fit(commands: Any) -> None:
    command = common_options.add_command(
        commands, "fit", "fit a feature model to your own articles", "aggregator.cli.fit:run"
    )
    command.add_argument("files", nargs="+", metavar="FILE", help=".jsonl, .jsonl.gz or - for standard input")
    command.add_argument("--group", required=True, metavar="NAME", help="language group: en, zh, ...")
    command.add_argument("--out", required=True, metavar="FILE", help="model file to write, e.g. en.model")
    command.add_argument(
        "--features", choices=feature_names(), default=TFIDF_PCA,
        help=f"feature extractor (default {TFIDF_PCA}, that of the shipped models)",
    )  # fmt: skip
    command.add_argument("--card", metavar="FILE", help="Markdown file for the model card")
    command.add_argument("--corpus", metavar="TEXT", help="description of the articles, for the model card")
    command.add_argument("--licence", metavar="TEXT", help="license of the articles, for the model card")
    common_options.add_progress_option(command)
    group = command.add_argument_group("experiments", "The defaults are those of the shipped models.")
    group.add_argument("--components", metavar="N", type=int, help="number of principal components")
    group.add_argument("--terms", metavar="N", type=int, help="maximum size of the vocabulary")
    group.add_argument(
        "--hyperplanes", choices=("hashed", "orthogonal", "learned"),
        help="hashed: as in the paper; learned: more duplicates by fingerprint, and more false positives "
        "(default orthogonal)",
    )  # fmt: skip
    group.add_argument(
        "--counts", choices=("log", "power", "raw"), help="weight of a term's frequency (default log)"
    )
    group.add_argument(
        "--whiten", metavar="X", type=float,
        help="scale the components towards equal variance (up to 1), or away from it (down to -2): more "
        "duplicates by fingerprint, and more false positives",
    )  # fmt: skip
    common_options.add_settings_options(command, common_options.LOG_SETTINGS)


def _add_backup(commands: Any) -> None:
    command = common_options.add_command(
        commands, "backup", "write a backup of the store while the service runs", "aggregator.cli.backup:run"
    )
    command.add_argument("directory", metavar="DIR", help="directory in which the backup gets one of its own")
    command.add_argument(
        "--keep", type=common_options.positive_int, metavar="N",
        help="afterwards delete all but the N newest backups in DIR (default: keep all)",
    )  # fmt: skip
    common_options.add_target_options(command, server=False)
    common_options.add_settings_options(command, ("data_dir", "appendfsync", *common_options.LOG_SETTINGS))


def _add_restore(commands: Any) -> None:
    command = common_options.add_command(
        commands, "restore", "make a backup the data of a store that no service uses",
        "aggregator.cli.restore:run",
    )  # fmt: skip
    command.add_argument(
        "backup", metavar="BACKUP", help="a backup, or a directory of backups: the newest is taken"
    )
    command.add_argument(
        "--check", action="store_true", help="only verify that the backup is complete and can be loaded"
    )
    command.add_argument(
        "--replace", action="store_true",
        help="replace the data of a store that is not empty (an embedded one keeps its former log)",
    )  # fmt: skip
    common_options.add_target_options(command, server=False)
    common_options.add_settings_options(command, ("data_dir", *common_options.LOG_SETTINGS))


def _add_config(commands: Any) -> None:
    top = commands.add_parser("config", help="show or check the settings", allow_abbrev=False)
    views = top.add_subparsers(title="views", metavar="VIEW", required=True)
    show = common_options.add_command(
        views,
        "show",
        "print every setting with its value and where it comes from",
        "aggregator.cli.config:show",
    )
    show.add_argument("--changed", action="store_true", help="leave out the defaults")
    show.add_argument("--json", action="store_true", help="print JSON")
    check = common_options.add_command(
        views,
        "check",
        "check the configuration file, the variables and the options",
        "aggregator.cli.config:check",
    )
    for command in (show, check):
        common_options.add_settings_options(command, common_options.SETTING_FIELDS)


def _add_keys(commands: Any) -> None:
    top = commands.add_parser("keys", help="manage API keys", allow_abbrev=False)
    changes = top.add_subparsers(title="changes", metavar="CHANGE", required=True)
    for name, help in (
        ("add", "create an API key and print it (shown only once)"),
        ("list", "list API keys with role, times (UTC) of creation, last use and expiry, name and sources"),
        ("revoke", "revoke an API key now"),
        ("rotate", "create a key with the same name and role; the old one stays valid for a while"),
    ):
        command = common_options.add_command(changes, name, help, "aggregator.cli.keys:run")
        command.set_defaults(change=name)
        _add_key_options(command, name)
        common_options.add_target_options(command, server=False)
        common_options.add_settings_options(command, ("data_dir", "log_level"))


def _add_key_options(command: argparse.ArgumentParser, change: str) -> None:
    if change == "add":
        command.add_argument("name", metavar="NAME", help="owner of the key; recorded with each change")
        command.add_argument("--role", required=True, choices=("crawler", "reader", "editor", "admin"))
        command.add_argument(
            "--expires", metavar="SPAN", type=common_options.duration_ms, help="e.g. 90d (default: never)"
        )
        command.add_argument(
            "--source", metavar="NAME", action="append", default=[],
            help="limit the key to posting and deleting articles of this source; repeatable",
        )  # fmt: skip
    elif change != "list":
        command.add_argument("id", metavar="ID", help="key id from `aggregator keys list`")
    if change == "rotate":
        command.add_argument(
            "--overlap", metavar="SPAN", type=common_options.duration_ms, default=DAY_MS,
            help="how long the old key stays valid (default 1d)",
        )  # fmt: skip


def _add_clock(commands: Any) -> None:
    command = common_options.add_command(
        commands, "clock", "show whether the clock of this machine fits the stored data",
        "aggregator.cli.clock:run",
    )  # fmt: skip
    command.add_argument(
        "--accept", action="store_true",
        help="declare it right, after the service ran with a wrong clock or did not run for over 30 days",
    )  # fmt: skip
    common_options.add_target_options(command, server=False)
    common_options.add_settings_options(command, ("data_dir", "retention_days", "log_level"))


def _add_doctor(commands: Any) -> None:
    command = common_options.add_command(
        commands, "doctor", "report what is configured, reachable and loaded, and what is wrong",
        "aggregator.cli.doctor:run",
    )  # fmt: skip
    command.add_argument("--json", action="store_true", help="print JSON")
    command.add_argument(
        "--audit", type=common_options.positive_int, metavar="N",
        help="compare N stored articles per index with all others at every distance; exit code 1 if "
        "the index misses one",
    )  # fmt: skip
    common_options.add_settings_options(command, common_options.SETTING_FIELDS)
