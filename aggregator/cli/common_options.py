"""Options shared by several commands: settings, stores, time spans."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from aggregator.errors import ConfigurationError
from aggregator.settings import POLICY_NAMES, Settings
from aggregator.time_units import parse_duration

if TYPE_CHECKING:
    from aggregator.dedup.policy import PolicyProfiles


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


SETTING_FIELDS = {option.name: option for option in dataclasses.fields(Settings)}
DEDUP_SETTINGS = _names(
    "policy policy_profiles_file duplicate_bits related_bits related_min_score min_containment "
    "min_shared_shingles strong_containment updates_are_new keep_if_adds"
)
MODEL_SETTINGS = ("models_dir",)
MIGRATION_SETTINGS = ("migration_models_dir", "migration_serve")
STORE_SETTINGS = _names("data_dir appendfsync retention_days store_texts")
DETECTION_SETTINGS = _names("burst_items alerts_per_day burst_window_hours min_sources sensitivity")
LOG_SETTINGS = ("log_level",)
# What a command needs that opens a store and decides on articles; it must use the settings of the service.
SERVICE_SETTINGS = (*DEDUP_SETTINGS, *STORE_SETTINGS, *MODEL_SETTINGS, *MIGRATION_SETTINGS, *LOG_SETTINGS)
MUST_SETTINGS = _names(
    "host port public_url trusted_proxies bootstrap_key workers data_dir store_url appendfsync "
    "retention_days store_texts"
)
EXPERT_SETTINGS = _names(
    "policy duplicate_bits related_bits related_min_score min_containment min_shared_shingles "
    "strong_containment keep_if_adds burst_window_hours detector_interval_seconds "
    "max_body_bytes max_batch_lines analysis_processes max_inflight_articles request_timeout_seconds "
    "related_rate_limit_per_second"
)
# Headings of the help. Only ``--help-all`` lists the last, and more than MAX_SETTINGS_OF_NEED of the second.
SETTING_GROUPS: dict[str, tuple[str, ...]] = {
    "settings to decide": MUST_SETTINGS,
    "settings by need": tuple(n for n in SETTING_FIELDS if n not in (*MUST_SETTINGS, *EXPERT_SETTINGS)),
    "settings for experts": EXPERT_SETTINGS,
}
MAX_SETTINGS_OF_NEED = 12
URL_METAVAR = "URL"
# The options of a process can be read by every user of the machine; secrets are set by variable only.
ENVIRONMENT_ONLY_SETTINGS = ("key", "bootstrap_key", "smtp_url")


class ConciseArgumentParser(argparse.ArgumentParser):
    """Parser with usage errors in one line; ``distribution``: that of a command not installed."""

    siblings: Mapping[str, argparse.ArgumentParser] = {}  # other commands by name

    def __init__(self, distribution: str = "", **options: Any) -> None:
        super().__init__(**options)
        self.advanced: list[tuple[argparse.Action, str | None]] = []
        self._distribution = distribution

    def hide_advanced(self, actions: list[argparse.Action]) -> None:
        """Leave these options out of ``--help``, and add ``--help-all``, which lists them."""
        self.advanced = [(action, action.help) for action in actions]
        for action in actions:
            action.help = argparse.SUPPRESS
        self.add_argument("--help-all", action=_HelpAll, nargs=0, help="list all options and exit")
        more = f"{len(actions)} more settings: `{self.prog} --help-all`."
        self.epilog = f"{self.epilog} {more}" if self.epilog else more

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """The options; unknown ones are an error of the command that they follow."""
        if self._distribution:
            path = self._distribution.replace("-lab", "-archive ./packages/lab")
            path = path.replace("newsdedup-", "./packages/")
            self.exit(2, f"{self.prog}: not installed; in the repository run `pip install {path}`.\n")
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            option, own = unknown[0].partition("=")[0], self._option_string_actions
            known = difflib.get_close_matches(option, own, n=1)
            if others := [n for n, p in self.siblings.items() if option in p._option_string_actions]:
                hint = f"; {option} is an option of {', '.join(others[:3])}"
                here = next((n for n in ("--server URL", "--data-dir DIR") if n.partition(" ")[0] in own), "")
                hint += f", here {here}" if here and option in ("--host", "--port") else ""
            else:
                hint = f"; did you mean {known[0]}?" if known else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        """Print the message, with the valid name nearest to a mistyped one, and exit with code 2."""
        found = re.match(r"argument ([A-Z]+): invalid choice: ('.*') \(choose from '(.*)'\)$", message)
        if found and (near := difflib.get_close_matches(found[2][1:-1], found[3].split("', '"), n=1)):
            message = f"unknown {found[1].lower()} {found[2]}; did you mean {near[0]}?"
        self.exit(2, f"{self.prog}: {message} (see `{self.prog} --help`).\n")


class _HelpAll(argparse.Action):
    def __call__(self, parser: Any, *_: object) -> None:
        parser.usage = parser.format_usage().partition(": ")[2].rstrip()  # that of the short help
        parser.epilog = None
        for action, text in parser.advanced:
            action.help = text
        parser.print_help()
        parser.exit()


def add_command(commands: Any, name: str, help: str, target: str, *, example: str) -> argparse.ArgumentParser:
    """Add a command; ``target``: its function as "module:function", imported when the command runs.

    ``example``: its arguments in the example of its help.
    """
    command: argparse.ArgumentParser = commands.add_parser(
        name, description=f"{help[0].upper()}{help[1:]}.", allow_abbrev=False, help=help
    )
    command.epilog = f"example: `{' '.join((command.prog, *example.split()))}`."
    command.set_defaults(command=name, command_path=target)
    command.add_argument(
        "--config",
        metavar="FILE",
        help="configuration file (default: aggregator.toml here or in /etc/aggregator)",
    )
    return command


def add_settings_options(command: Any, names: Iterable[str], *, profiles: bool = False) -> None:
    """Add one option per setting. ``settings.load`` checks them and reports all problems in one error.

    ``profiles``: ``--policy`` takes the name of a profile, too (``requested_profile``).
    """
    if profiles:
        command.set_defaults(accepts_profiles=True)
    wanted = set(names) - set(ENVIRONMENT_ONLY_SETTINGS)
    hidden: list[argparse.Action] = []
    for title, members in SETTING_GROUPS.items():
        if present := [name for name in members if name in wanted]:
            group = command.add_argument_group(title)
            added = [_add_setting(group, name) for name in present]
            is_long = members is not MUST_SETTINGS and len(added) > MAX_SETTINGS_OF_NEED
            hidden += added if is_long or members is EXPERT_SETTINGS else []
    if hidden and isinstance(command, ConciseArgumentParser):
        command.hide_advanced(hidden)


def _add_setting(group: Any, name: str) -> argparse.Action:
    option = SETTING_FIELDS[name]
    flags = [*(["--store"] if name == "store_url" else []), "--" + name.replace("_", "-")]
    default = "" if option.default in ("", False) else f" (default {option.default})"
    help = (option.metadata["doc"].rstrip(".") + default).replace("%", "%%")
    is_switch = isinstance(option.default, bool)
    kind: dict[str, Any] = (
        {"action": argparse.BooleanOptionalAction} if is_switch else {"metavar": _metavar(option)}
    )
    added: argparse.Action = group.add_argument(*flags, default=None, help=help, **kind)
    return added


def _metavar(option: Any) -> str:
    kind, _, values = option.metadata["expects"].partition("one of ")
    if values and not kind:
        return "{" + ",".join(filter(None, values.split(", "))) + "}"
    return {int: "N", float: "X", str: "TEXT"}[type(option.default)]


def add_target_options(command: argparse.ArgumentParser, *, server: bool = True) -> None:
    """Add ``--server`` and ``--store``: the running service or the store that a command uses."""
    group = command.add_argument_group("target")
    if server:
        group.add_argument(
            "--server", metavar=URL_METAVAR, help="use a running service (default: the local one)"
        )
    else:
        command.set_defaults(opens_store=True)
    group.add_argument(
        "--store", "--store-url", metavar=URL_METAVAR,
        help="open a store in this process: memory, embedded (in --data-dir) or a redis:// URL",
    )  # fmt: skip


def requested_profile(args: argparse.Namespace) -> str:
    """The policy profile that ``--policy`` names; "" for none, or if it names a rule."""
    policy = getattr(args, "policy", None) if getattr(args, "accepts_profiles", False) else None
    return policy if policy is not None and policy not in POLICY_NAMES else ""


def check_profile(policies: PolicyProfiles, profile: str) -> None:
    """Raise ConfigurationError unless there is a profile of this name."""
    if profile not in policies.names:
        raise ConfigurationError(
            f"policy: {profile!r} is neither a rule ({', '.join(POLICY_NAMES)}) nor a profile of "
            f"policy_profiles_file ({', '.join(policies.names)})."
        )


def add_progress_option(command: argparse.ArgumentParser) -> None:
    """Add ``--no-progress``."""
    command.add_argument("--no-progress", action="store_true", help="show no progress bar")


def positive_int(text: str) -> int:
    """An integer of at least 1. Raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of at least 1")
    return int(text)


def duration_ms(text: str) -> int:
    """Milliseconds of a time span such as 24h. Raises ArgumentTypeError."""
    if (found := parse_duration(text)) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time span in m, h, d or w, such as 30m or 7d")
    return found
