"""Reader of the file of policy profiles (setting ``policy_profiles_file``; form: docs/configuration.md).

The keys of a profile are those fields of ``Policy`` that are not derived, under the names of their settings
(``policy`` for ``Policy.name``), and are checked like these.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aggregator.config_file import read_toml
from aggregator.dedup.policy import DEFAULT_PROFILE, Policy, PolicyProfiles, SourceRule
from aggregator.errors import ConfigurationError
from aggregator.settings import POLICY_NAMES, Settings, parse

SETTING = "policy_profiles_file"
PROFILE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
RESERVED_NAMES = (DEFAULT_PROFILE, *POLICY_NAMES)  # ``--policy`` takes both names of rules and of profiles

_POLICY_FIELDS = {
    "policy" if field.name == "name" else field.name: field
    for field in dataclasses.fields(Policy)
    if field.init
}
_SETTING_FIELDS = {option.name: option for option in dataclasses.fields(Settings)}
# Fields of ``Policy`` that are settings; the others are keys of profiles only.
_POLICY_SETTINGS = [field.name for key, field in _POLICY_FIELDS.items() if key in _SETTING_FIELDS]


def load_policies(settings: Settings) -> PolicyProfiles:
    """The policy of the settings and the profiles of ``policy_profiles_file``. Raises ConfigurationError."""
    own = {name: getattr(settings, "policy" if name == "name" else name) for name in _POLICY_SETTINGS}
    return load_policy_profiles(settings.policy_profiles_file, Policy(**own))


def load_policy_profiles(file: str, default: Policy) -> PolicyProfiles:
    """The profiles of ``file``; "" for none. Raises ConfigurationError with one sentence per fault."""
    if not file:
        return PolicyProfiles(default)
    _, document = read_toml(Path(file), SETTING)
    reader = _Reader(default)
    profiles, rules = reader.read(document)
    if reader.problems:
        raise ConfigurationError([f"{SETTING}: {file}: {problem}" for problem in reader.problems])
    return PolicyProfiles(default, profiles, rules)


class _Reader:
    """Converts the document; collects all problems, each with the key that it concerns."""

    def __init__(self, default: Policy) -> None:
        self._default = default
        self.problems: list[str] = []

    def read(self, document: Mapping[str, Any]) -> tuple[dict[str, Policy], list[SourceRule]]:
        self._check_keys(document, ("profiles", "rules"), "")
        tables, rules = document.get("profiles", {}), document.get("rules", [])
        if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
            self.problems.append("profiles: expected tables, such as [profiles.agency].")
            tables = {}
        profiles = {name: self._read_profile(name, table) for name, table in tables.items()}
        if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
            self.problems.append("rules: expected a list of tables, each written as [[rules]].")
            rules = []
        return profiles, self._read_rules(rules, (DEFAULT_PROFILE, *profiles))

    def _read_profile(self, name: str, table: Mapping[str, Any]) -> Policy:
        where = f"profiles.{name}"
        if name in RESERVED_NAMES:
            self.problems.append(f"{where}: this name is reserved; choose another one.")
        elif not PROFILE_NAME.fullmatch(name):
            self.problems.append(
                f"{where}: expected a name of at most 40 lower-case letters, digits, - and _, "
                "starting with a letter or digit."
            )
        self._check_keys(table, tuple(_POLICY_FIELDS), f"{where}.")
        values: dict[str, Any] = {}
        for key in table.keys() & _POLICY_FIELDS.keys():
            field = _POLICY_FIELDS[key]
            try:
                values[field.name] = parse(_SETTING_FIELDS.get(key, field), table[key], in_file=True)
            except ValueError as problem:
                self.problems.append(f"{where}.{key}: {problem}.")
        try:
            return dataclasses.replace(self._default, **values)
        except ValueError as problem:
            self.problems.append(f"{where}.{problem}.")
            return self._default

    def _read_rules(self, tables: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[SourceRule]:
        rules = []
        first_use: dict[str, int] = {}
        for number, table in enumerate(tables, 1):
            where = f"rules, number {number}"
            self._check_keys(table, ("sources", "profile"), f"{where}: ")
            sources, profile = table.get("sources"), table.get("profile")
            is_list = isinstance(sources, list) and all(isinstance(s, str) and s.strip() for s in sources)
            if not sources or not is_list:
                self.problems.append(f"{where}: sources: expected a list of non-empty strings.")
                sources = []
            for pattern in sources:
                first = first_use.setdefault(pattern.casefold(), number)
                if first != number:
                    self.problems.append(
                        f"{where}: sources: {pattern!r} is a pattern of rule {first} already, which applies."
                    )
            if profile not in names:
                self.problems.append(
                    f"{where}: profile: {profile!r} is not a profile; known: {', '.join(names)}."
                    if profile is not None
                    else f"{where}: profile: missing; name one of {', '.join(names)}."
                )
            rules.append(SourceRule(tuple(sources), str(profile)))
        return rules

    def _check_keys(self, table: Mapping[str, Any], known: Sequence[str], prefix: str) -> None:
        for key in table:
            if key not in known:
                self.problems.append(f"{prefix}{key}: unknown key; allowed: {', '.join(known)}.")
