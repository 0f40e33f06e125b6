"""Parser of the whole command line; options of settings are generated from ``settings.Settings``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from aggregator import __version__, extensions
from aggregator.cli import common_options
from aggregator.cli.common_options import (
    LOG_SETTINGS,
    SERVICE_SETTINGS,
    SETTING_FIELDS,
    duration_ms,
    positive_int,
)
from aggregator.time_units import DAY_MS
from aggregator_client.dates import time_zone

EPILOG = """\
exit codes: 0 success; 1 some input lines were invalid or an id is unknown; 2 usage, settings, files or
models that cannot work; 3 the store or the server is unavailable; 130 interrupted.

settings: an option (--data-dir), else the variable (AGGREGATOR_DATA_DIR), else the configuration file
(data_dir in --config FILE, AGGREGATOR_CONFIG, ./aggregator.toml or /etc/aggregator/aggregator.toml), else
the default. `aggregator config show` lists all of them with their values.
"""
INPUT_HELP = ".jsonl, .jsonl.gz or - for standard input"


# The names of an argument, and the other parameters of ``add_argument``.
Argument = tuple[tuple[str, ...], dict[str, Any]]


def arg(*names: str, **spec: Any) -> Argument:
    """An argument of a command."""
    return names, spec


@dataclass(frozen=True, slots=True)
class Command:
    """A command; ``target``: by default ``run`` of its module. ``profiles``: ``--policy`` takes profiles."""

    name: str
    help: str
    example: str
    arguments: Sequence[Argument] = ()
    target: str = ""
    progress: bool = False
    store: bool = False
    server: bool = False
    profiles: bool = False
    settings: Sequence[str] = ()

    def add(self, commands: Any) -> argparse.ArgumentParser:
        """Add the command to a parser."""
        target = self.target or f"aggregator.cli.{self.name.replace('-', '_')}:run"
        command = common_options.add_command(commands, self.name, self.help, target, example=self.example)
        for names, spec in self.arguments:
            command.add_argument(*names, **spec)
        if self.progress:
            common_options.add_progress_option(command)
        if self.store:
            common_options.add_target_options(command, server=self.server)
        common_options.add_settings_options(command, self.settings, profiles=self.profiles)
        return command


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
    known = dict((c.name, c.add) if isinstance(c, Command) else c for c in _COMMANDS)
    added = extensions.installed(extensions.COMMANDS)
    for name in (*known, *(name for name in added if name not in known)):
        add = known.get(name)
        if callable(add):
            add(commands)
        elif name in added:
            added[name].load()(commands)
        else:
            commands.add_parser(name, distribution=add)
    common_options.ConciseArgumentParser.siblings = commands.choices
    return top


def starting_commands(parser: argparse.ArgumentParser) -> str:
    """What ``aggregator`` alone prints: the most used commands with an example each."""
    actions = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    lines = ["The commands that most people use:"]
    for name in ("serve", "follow", "ingest", "dedupe", "doctor"):
        command = actions[0].choices[name]
        if command.epilog:
            lines += ["", f"  {command.description}", f"    {command.epilog.split('`')[1]}"]
    return "\n".join([*lines, "", "All commands: `aggregator --help`."])


def setting_overrides(args: argparse.Namespace) -> dict[str, Any]:
    """The settings given as options; None for the others."""
    given = {name: getattr(args, name, None) for name in common_options.SETTING_FIELDS}
    if common_options.requested_profile(args):
        given["policy"] = None
    store = getattr(args, "store", None)
    if store is not None:
        given["store_url"] = "" if store == "embedded" else store
    return given


_FILES = arg("files", nargs="*", default=["-"], metavar="FILE", help=f"{INPUT_HELP} (the default)")


def _ingest(name: str, help: str, example: str, *arguments: Argument) -> Command:
    out_option = arg("--out", metavar="FILE", help="write the verdicts here (default: standard output)")
    zone = arg("--timezone", metavar="ZONE", type=time_zone, help="of dates without offset: Europe/Berlin")
    limit = "end with code 3 when nothing was accepted for this long (default: repeat until it is)"
    wait = arg("--wait", metavar="SECONDS", type=positive_int, help=limit)
    return Command(
        name, help, example, (_FILES, out_option, zone, wait, *arguments), "aggregator.cli.ingest:run",
        progress=True, store=True, server=True, profiles=True, settings=(*SERVICE_SETTINGS, "max_body_bytes"),
    )  # fmt: skip


def _add_config(commands: Any) -> None:
    top = commands.add_parser("config", help="show or check the settings", allow_abbrev=False)
    views = top.add_subparsers(title="views", metavar="VIEW", required=True)
    Command(
        "show", "print every setting with its value and where it comes from", "--changed",
        (arg("--changed", action="store_true", help="leave out the defaults"),
         arg("--json", action="store_true", help="print JSON")),
        "aggregator.cli.config:show", settings=tuple(SETTING_FIELDS),
    ).add(views)  # fmt: skip
    Command(
        "check", "check the configuration file, the variables and the options", "--config aggregator.toml",
        target="aggregator.cli.config:check", settings=tuple(SETTING_FIELDS),
    ).add(views)  # fmt: skip


def _add_keys(commands: Any) -> None:
    top = commands.add_parser("keys", help="manage API keys", allow_abbrev=False)
    changes = top.add_subparsers(title="changes", metavar="CHANGE", required=True)
    id_ = arg("id", metavar="ID", help="key id from `aggregator keys list`")
    for name, help, example, arguments in (
        ("add", "create an API key and print it (shown only once)", "desk --role admin", (
            arg("name", metavar="NAME", help="owner of the key; recorded with each change"),
            arg("--role", required=True, choices=("related", "crawler", "reader", "editor", "admin")),
            arg("--expires", metavar="SPAN", type=duration_ms, help="e.g. 90d (default: never)"),
            arg("--source", metavar="NAME", action="append", default=[],
                help="limit the key to posting and deleting articles of this source; repeatable"),
        )),
        ("list", "list API keys with role, times (UTC) of creation, last use and expiry, name and sources",
         "", ()),
        ("revoke", "revoke an API key now", "1f2e3d4c", (id_,)),
        ("rotate", "create a key with the same name and role; the old one stays valid for a while",
         "1f2e3d4c --overlap 7d", (
            id_,
            arg("--overlap", metavar="SPAN", type=duration_ms, default=DAY_MS,
                help="how long the old key stays valid (default 1d)"),
        )),
    ):  # fmt: skip
        target, settings = "aggregator.cli.keys:run", ("data_dir", "log_level")
        change = Command(name, help, example, arguments, target, store=True, settings=settings)
        change.add(changes).set_defaults(change=name)


# In the order of the help. Of a pair the second is the function that adds the command, or the distribution
# that has it, as an extension (``extensions.COMMANDS``).
_COMMANDS: tuple[Command | tuple[str, Callable[[Any], object] | str], ...] = (
    Command(
        "serve", "run the HTTP service", "--data-dir /srv/news --workers 2", settings=tuple(SETTING_FIELDS)
    ),
    _ingest(
        "ingest", "check and store the articles of files; print one verdict per line",
        "articles.jsonl.gz --backfill",
        arg("--backfill", action="store_true",
            help="the articles are an archive or a backlog: they fire no events, and dated ones teach the "
            "detector what is usual at their time"),
    ),
    _ingest("check", "like ingest, without storing: lines are not compared with each other", "article.jsonl"),
    ("follow", "newsdedup-client"),
    ("work", "newsdedup-client"),
    Command(
        "explain", "show why two articles are duplicates or related, or not", "pool-1 pool-2",
        (arg("first", metavar="A", help="id of a stored article, or a text file (- for standard input)"),
         arg("second", metavar="B", help="the other article, likewise"),
         arg("--json", action="store_true", help="print one JSON object")),
        "aggregator_client.explain_command:run",
        store=True, server=True, profiles=True, settings=SERVICE_SETTINGS,
    ),
    Command(
        "migrate", "change to another model or version: copy what is stored, and say what to do next",
        "--migration-models-dir new-models",
        (arg("files", nargs="*", metavar="FILE", help=".jsonl or .jsonl.gz (default: stored texts)"),
         arg("--leave-out", action="store_true",
             help="continue without the articles whose text is not stored"),
         arg("--delete", metavar="INDEX",
             help="delete an index that the settings do not read, with its articles, e.g. en.3f2a"),
         arg("--yes", action="store_true", help="delete without confirmation")),
        progress=True, store=True, settings=(*SERVICE_SETTINGS, "max_body_bytes"),
    ),
    ("replay", "newsdedup-archive"),
    ("fit", "newsdedup-lab"),
    ("dedupe", "newsdedup-archive"),
    ("evaluate", "newsdedup-lab"),
    Command(
        "backup", "write a backup of the store while the service runs", "/backups --keep 7",
        (arg("directory", metavar="DIR", help="directory in which the backup gets one of its own"),
         arg("--keep", type=positive_int, metavar="N",
             help="afterwards delete all but the N newest backups in DIR (default: keep all)")),
        store=True, settings=("data_dir", "appendfsync", *LOG_SETTINGS),
    ),
    Command(
        "restore", "make a backup the data of a store that no service uses", "/backups --check",
        (arg("backup", metavar="BACKUP", help="a backup, or a directory of backups: the newest is taken"),
         arg("--check", action="store_false", dest="opens_store",
             help="only verify that the backup is complete and can be loaded"),
         arg("--replace", action="store_true",
             help="replace the data of a store that is not empty (an embedded one keeps its former log)")),
        "aggregator.cli.backup:restore", store=True, settings=("data_dir", *LOG_SETTINGS),
    ),
    ("config", _add_config),
    ("keys", _add_keys),
    Command(
        "audit", "show what a source caused: copies by others and events", "rival.example",
        (arg("source", metavar="SOURCE", help="its name or site"),
         arg("--distrust", action="store_true", help="store nothing of it, and delete what is stored"),
         arg("--trust", action="store_true", help="store its articles again")),
        store=True, settings=SERVICE_SETTINGS,
    ),
    Command(
        "doctor", "report what is configured, reachable and loaded, and what is wrong", "--audit",
        (arg("--json", action="store_true", help="print JSON"),
         arg("--audit", action="store_true",
             help="read all that is stored and compare every entry of the index with its article; exit code "
             "1 if one is damaged, wrong or missing"),
         arg("--accept-store", action="store_true",
             help="declare that the store is wanted as it is, after it was emptied, exchanged or set back"),
         arg("--accept-clock", action="store_true",
             help="declare that the clock is right, after it was wrong or nothing ran for over 30 days"),
         arg("--acl", action="store_true",
             help="print the command that creates a user of the store with the least rights")),
        settings=tuple(SETTING_FIELDS),
    ),
)  # fmt: skip
