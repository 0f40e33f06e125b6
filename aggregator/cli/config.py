"""``aggregator config``: show every setting with its value and origin, or check the configuration."""

from __future__ import annotations

import argparse
import dataclasses
import json
import stat
import sys

from aggregator import settings as sources
from aggregator.cli import options
from aggregator.cli.common_options import SETTING_FIELDS
from aggregator.config_file import DEFAULT_PATHS, ConfigFile
from aggregator.errors import EXIT_OK
from aggregator.runtime.addresses import redact_url
from aggregator.settings import Settings
from aggregator.store.client import open_client


def show(args: argparse.Namespace, settings: Settings) -> int:
    """Print name, value and origin of each setting; secrets are masked."""
    _, origins = sources.resolve(None, options.setting_overrides(args), args.config_file)
    rows = [
        (option.name, shown(settings, option), origins.get(option.name, "default"))
        for option in dataclasses.fields(settings)
        if not args.changed or option.name in origins
    ]
    if args.json:
        print(json.dumps([dict(zip(("name", "value", "origin"), row, strict=True)) for row in rows]))
        return EXIT_OK
    cells = ((name, json.dumps(value, ensure_ascii=False), origin) for name, value, origin in rows)
    table = [("setting", "value", "from"), *cells]
    widths = [max(len(row[column]) for row in table) for column in (0, 1)]
    for name, value, origin in table:
        print(f"{name:{widths[0]}}  {value:{widths[1]}}  {origin}")
    print(_describe_file(args.config_file), file=sys.stderr)
    return EXIT_OK


def check(args: argparse.Namespace, settings: Settings) -> int:
    """Check the values of the file that options and variables override, too; 2: something is invalid."""
    file: ConfigFile | None = args.config_file
    if file is not None:
        own, _ = sources.resolve({}, {}, file)
        values = [getattr(own, each.name) for each in SETTING_FIELDS.values() if each.metadata["secret"]]
        # An address without a password is none.
        has_secret = any(v and ("://" not in v or "@" in v or "password" in v) for v in values)
        if has_secret and file.path.stat().st_mode & stat.S_IROTH:
            readable = f"{file.path} contains a key or password and every user of this machine can read it"
            print(f"note: {readable}; `chmod o-r {file.path}`.", file=sys.stderr)
    if settings.store_url and not settings.in_memory:
        open_client(settings.store_url)  # raises ConfigurationError; does not connect
    print(_describe_file(file))
    print("All settings are valid; `aggregator doctor` checks the files, models and store that they name.")
    return EXIT_OK


def shown(settings: Settings, option: dataclasses.Field[object]) -> object:
    """The value of a setting; secrets are masked."""
    value = getattr(settings, option.name)
    if value and option.metadata["secret"]:
        return redact_url(value) if option.name == "store_url" else "(set)"
    return value


def _describe_file(file: ConfigFile | None) -> str:
    if file is None:
        return f"No configuration file (searched: {', '.join(map(str, DEFAULT_PATHS))})."
    count = len(file.values)
    return f"Configuration file: {file.path.absolute()}, {count} setting{'s' * (count != 1)}."
