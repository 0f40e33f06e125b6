"""Configuration file: a TOML document whose top-level keys are settings; read into values with their lines.

They are checked by ``settings.resolve``, together with variables and options.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from aggregator.errors import ConfigurationError

# Searched in this order if neither an option nor a variable names a file.
DEFAULT_PATHS = (Path("aggregator.toml"), Path("/etc/aggregator/aggregator.toml"))
START_RECORD = "started-with.json"  # in the data directory: the file of the last start, hashes of its values
_KEY = re.compile(r"""\A\s*(?:"([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*[=.]""")
_TABLE = re.compile(r"""\A\s*\[+\s*["']?([^\]."']*)""")


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """The content of a file: values by key, and the line (from 1) that each key is on, if it was found."""

    path: Path
    values: Mapping[str, Any]
    lines: Mapping[str, int]

    def origin(self, key: str) -> str:
        """File and line of a key, such as "aggregator.toml:3"."""
        return f"{self.path}:{self.lines[key]}" if key in self.lines else f"{self.path}: {key}"


def locate(named: str | None) -> Path | None:
    """The file that is named, else the first of DEFAULT_PATHS that exists; None if there is none."""
    return Path(named) if named else next((path for path in DEFAULT_PATHS if path.is_file()), None)


def read(path: Path) -> ConfigFile:
    """Read and parse a file. Raises ConfigurationError if it cannot be read or is not TOML."""
    text, values = read_toml(path, "config")
    return ConfigFile(path, values, _find_lines(text))


def read_toml(path: Path, setting: str) -> tuple[str, dict[str, Any]]:
    """The text of a file and what it says; ``setting`` names it in errors. Raises ConfigurationError."""
    try:
        text = path.read_bytes().decode()
        return text, tomllib.loads(text)
    except OSError as error:
        raise ConfigurationError(f"{setting}: {path} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{setting}: {path} is not UTF-8 text (byte {error.start}).") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{setting}: {path} is not valid TOML: {error}.") from None


def record_start(config: ConfigFile | None, data_dir: Path) -> None:
    """Record with which values a service starts, for ``changed_since_start``."""
    with suppress(OSError):  # the store says what is wrong with it
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        record = {"path": str(config.path.absolute()), "hashes": _hashes(config)} if config else None
        (data_dir / START_RECORD).write_text(json.dumps(record), encoding="utf-8")


def changed_since_start(data_dir: Path, check: Callable[..., object]) -> str:
    """What the file of the last start has changed since, or what ``check`` of it raises; "" if nothing."""
    try:
        record = json.loads((data_dir / START_RECORD).read_bytes())
        check(config=(file := read(Path(record["path"]))))
        before, now = record["hashes"], _hashes(file)
    except (OSError, ValueError, LookupError, TypeError):  # never started here, or without a file
        return ""
    except ConfigurationError as error:
        return str(error)
    changed = ", ".join(sorted(name for name in before | now if before.get(name) != now.get(name)))
    return changed and f"{record['path']}: changed after the last start, and read at the next: {changed}."


def _hashes(config: ConfigFile) -> dict[str, str]:
    """A hash of each value, since some are secret."""
    return {key: sha256(repr((key, value)).encode()).hexdigest() for key, value in config.values.items()}


def _find_lines(text: str) -> dict[str, int]:
    """The line of each top-level key and table; tomllib does not report it."""
    lines: dict[str, int] = {}
    in_table = False
    for number, line in enumerate(text.splitlines(), 1):
        if table := _TABLE.match(line):
            in_table = True
            lines.setdefault(table[1].strip(), number)
        elif not in_table and (key := _KEY.match(line)):
            lines.setdefault(next(part for part in key.groups() if part is not None), number)
    return lines
