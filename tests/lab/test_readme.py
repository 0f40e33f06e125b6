"""The functions that packages/lab/README.md names exist, and are coroutines where it says so."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "packages/lab/README.md"
NAMED = re.findall(r"`(aggregator_\w+(?:\.\w+)+)`(\*?)", README.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("name", "mark"), NAMED)
def test_named_functions_exist(name: str, mark: str) -> None:
    """Each can be imported by its name; a mark stands behind coroutines only."""
    module, _, attribute = name.rpartition(".")
    found = getattr(importlib.import_module(module), attribute)

    assert callable(found)
    assert inspect.iscoroutinefunction(found) == bool(mark)


def test_each_command_has_a_function() -> None:
    """All but migrate."""
    rows = README.read_text(encoding="utf-8").partition("## From Python")[2].splitlines()
    commands = [row for row in rows if row.startswith("| `")]

    assert [row.split("`")[1] for row in commands if "aggregator_" not in row] == ["migrate"]
    assert len(commands) >= 13
