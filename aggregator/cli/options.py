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


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = common_options.Parser(
        prog="aggregator",
        description="Tells for each news article whether it is new, related or a duplicate, and what is breaking.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"aggregator {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _serve(commands)
    _ingest(commands, "ingest", "check article files and store them, one verdict line per line")
    _ingest(commands, "check", "the same as ingest, but nothing is stored")
    _work(commands)
    _explain(commands)
    _reindex(commands)
    _replay(commands)
    dedupe_options.fit(commands)
    dedupe_options.dedupe(commands)
    evaluate_options.evaluate(commands)
    _keys(commands)
    _doctor(commands)
    return top


def overrides(args: argparse.Namespace) -> dict[str, Any]:
    """The settings given as options; those not given are None."""
    given = {name: getattr(args, name, None) for name in common_options.FIELDS}
    store = getattr(args, "store", None)
    if store is not None:
        given["store_url"] = "" if store == "embedded" else store
    return given


def _serve(commands: Any) -> None:
    command = common_options.command(commands, "serve", "run the HTTP service", "aggregator.cli.serve:run")
    common_options.settings(command, common_options.FIELDS)


def _ingest(commands: Any, name: str, help: str) -> None:
    command = common_options.command(commands, name, help, "aggregator.cli.ingest:run")
    command.add_argument(
        "files", nargs="*", default=["-"], metavar="FILE",
        help=".jsonl, .jsonl.gz or - for standard input (the default)",
    )  # fmt: skip
    command.add_argument(
        "--out", metavar="FILE", help="write the verdict lines here (default: standard output)"
    )
    common_options.progress(command)
    common_options.where(command)
    common_options.settings(
        command, (*common_options.RULES, *common_options.STORE, "max_body_bytes", "log_level", "log_format")
    )


def _work(commands: Any) -> None:
    command = common_options.command(
        commands, "work", "take articles from one Redis stream and put verdicts into another",
        "aggregator.cli.stream_worker:run",
    )  # fmt: skip
    command.add_argument(
        "--redis",
        metavar=common_options.STORE_META,
        default="redis://127.0.0.1:6379",
        help="where the streams are",
    )
    command.add_argument(
        "--server", metavar=common_options.STORE_META, help="a running service (default: the local one)"
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
    common_options.settings(command, ("log_level", "log_format"))


def _explain(commands: Any) -> None:
    command = common_options.command(
        commands, "explain", "show why two articles are or are not copies", "aggregator.cli.explain:run"
    )
    command.add_argument("first", metavar="A", help="id of a stored article, or a file with its text (or - )")
    command.add_argument("second", metavar="B", help="the same for the other article")
    command.add_argument("--json", action="store_true", help="one JSON object instead of sentences")
    common_options.where(command)
    common_options.settings(
        command, (*common_options.RULES, *common_options.STORE, "log_level", "log_format")
    )


def _reindex(commands: Any) -> None:
    command = common_options.command(
        commands, "reindex", "fill the space of another model or block plan while the present one serves",
        "aggregator.cli.reindex:run",
    )  # fmt: skip
    command.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="the articles, .jsonl or .jsonl.gz (default: their kept texts)",
    )
    common_options.progress(command)
    common_options.where(command, server=False)
    common_options.settings(
        command, (*common_options.RULES, *common_options.STORE, "max_body_bytes", "log_level", "log_format")
    )


def _replay(commands: Any) -> None:
    command = common_options.command(
        commands, "replay", "run dated articles through the burst rule under their own clock",
        "aggregator.cli.fit_replay:replay",
    )  # fmt: skip
    command.add_argument("files", nargs="+", metavar="FILE", help=".jsonl, .jsonl.gz or - for standard input")
    command.add_argument(
        "--out", metavar="FILE", help="write the event lines here (default: standard output)"
    )
    command.add_argument(
        "--preview", metavar="SPAN", type=common_options.span_ms,
        help="instead of the events: how many alerts these settings, a stricter and a laxer sensitivity "
        "would have made in the last SPAN (24h, 7d) of the stream",
    )  # fmt: skip
    common_options.mode(command)
    common_options.progress(command)
    common_options.settings(command, (*common_options.BURSTS, "log_level", "log_format"))


def _keys(commands: Any) -> None:
    top = commands.add_parser("keys", help="say who may use the service, and as what", allow_abbrev=False)
    changes = top.add_subparsers(title="changes", metavar="CHANGE", required=True)
    for name, help in (
        ("add", "make a key and print it, this once"),
        ("list", "all keys: id, role, how long, name"),
        ("revoke", "end a key now"),
        ("rotate", "make another key of the same name and role; the old one lives on for a while"),
    ):
        command = common_options.command(changes, name, help, "aggregator.cli.keys:run")
        command.set_defaults(change=name)
        _key_options(command, name)
        common_options.where(command, server=False)
        common_options.settings(command, ("data_dir", "log_level"))


def _key_options(command: argparse.ArgumentParser, change: str) -> None:
    if change == "add":
        command.add_argument("name", metavar="NAME", help="whose key it is; changes are recorded under it")
        command.add_argument("--role", required=True, choices=("crawler", "reader", "editor", "admin"))
        command.add_argument(
            "--expires", metavar="SPAN", type=common_options.span_ms, help="e.g. 90d (default: never)"
        )
        command.add_argument(
            "--source", metavar="NAME", action="append", default=[],
            help="post and delete articles of this source alone; repeatable",
        )  # fmt: skip
    elif change != "list":
        command.add_argument("id", metavar="ID", help="as `aggregator keys list` shows it")
    if change == "rotate":
        command.add_argument(
            "--overlap", metavar="SPAN", type=common_options.span_ms, default=common_options.SPANS_MS["d"],
            help="how long the old key works beside the new one (default 1d)",
        )  # fmt: skip


def _doctor(commands: Any) -> None:
    command = common_options.command(
        commands, "doctor", "say what is configured, reachable and loaded, and what is wrong",
        "aggregator.cli.doctor:run",
    )  # fmt: skip
    command.add_argument("--json", action="store_true", help="one JSON object instead of sentences")
    command.add_argument(
        "--audit", type=common_options.positive, metavar="N",
        help="compare N stored articles per space with all that is stored, at every radius; 1 if one is missed",
    )  # fmt: skip
    common_options.settings(command, common_options.FIELDS)
