"""``aggregator config``: show every setting with its value and origin, or check the configuration."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator

from aggregator import settings as sources
from aggregator.cli import options
from aggregator.cli.common_options import SETTING_FIELDS
from aggregator.config_file import DEFAULT_PATHS, ConfigFile
from aggregator.errors import EXIT_OK
from aggregator.runtime.addresses import redact_url
from aggregator.settings import Settings

HIDDEN = "(set)"


def show(args: argparse.Namespace, settings: Settings) -> int:
    """Print name, value and origin of each setting; secrets are masked."""
    origins = sources.resolve(None, options.setting_overrides(args), args.config_file).origins
    rows = [
        (option.name, shown(settings, option), origins.get(option.name, "default"))
        for option in dataclasses.fields(settings)
        if not args.changed or option.name in origins
    ]
    if args.json:
        print(json.dumps([dict(zip(("name", "value", "origin"), row, strict=True)) for row in rows]))
        return EXIT_OK
    table = [
        ("setting", "value", "from"),
        *((name, json.dumps(value, ensure_ascii=False), origin) for name, value, origin in rows),
    ]
    widths = [max(len(row[column]) for row in table) for column in (0, 1)]
    for name, value, origin in table:
        print(f"{name:{widths[0]}}  {value:{widths[1]}}  {origin}")
    print(_describe_file(args.config_file), file=sys.stderr)
    return EXIT_OK


def check(args: argparse.Namespace, settings: Settings) -> int:
    """Check the values of the file that options and variables override, too; 2: something is invalid."""
    file: ConfigFile | None = args.config_file
    if file is not None:
        sources.resolve({}, {}, file)
        for note in _notes(file):
            print(f"note: {note}", file=sys.stderr)
    print(_describe_file(file))
    print("All settings are valid; `aggregator doctor` checks the files, models and store that they name.")
    return EXIT_OK


def shown(settings: Settings, option: dataclasses.Field[object]) -> object:
    """The value of a setting; secrets are masked."""
    value = getattr(settings, option.name)
    if value and option.metadata["secret"]:
        return redact_url(value) if option.name == "store_url" else HIDDEN
    return value


def _describe_file(file: ConfigFile | None) -> str:
    if file is None:
        return f"No configuration file (searched: {', '.join(map(str, DEFAULT_PATHS))})."
    count = len(file.values)
    return f"Configuration file: {file.path.absolute()}, {count} setting{'s' * (count != 1)}."


def _notes(file: ConfigFile) -> Iterator[str]:
    if file.readable_by_others and any(map(_is_secret, file.values.items())):
        yield (
            f"{file.path} contains a key or password and every user of this machine can read it; "
            f"`chmod o-r {file.path}`."
        )


def _is_secret(item: tuple[str, object]) -> bool:
    name, value = item
    option = SETTING_FIELDS.get(name)
    if option is None or not option.metadata["secret"] or not isinstance(value, str):
        return False
    return redact_url(value) != value if name == "store_url" else bool(value)
