"""Every regular expression of the package, and texts that make a careless one slow."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import time
from collections.abc import Iterator
from pathlib import Path

import aggregator

CALLS = {"compile", "match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
PIECES = ["a", " ", "\n", "0", ",", ".", "-", "/", "<", "<a ", "<html", "&", "=", "\t ", "新", "a.", "1,", "T1 ", "aA",
          "| ", "_", "%41", "%4", "http://", "\u0301", '"', "(", "x" * 50 + " ", " - ", "1:", "\u200b", "\U0001f32a"]  # fmt: skip


def expressions() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Where it stands, and the expression: compiled at the top of a module, or written in a call or a schema."""
    seen: set[tuple[str, int]] = set()
    for where, found in (*_compiled(), *_written()):
        if (found.pattern, found.flags) not in seen:
            seen.add((found.pattern, found.flags))
            yield where, found


def texts(expression: re.Pattern[str], characters: int) -> Iterator[tuple[str, str]]:
    """Pieces, and a text of each again and again with an end that nothing expects."""
    literals = re.findall(r"[A-Za-z0-9%<?=:&;/-]{2,20}", expression.pattern)
    for piece in [*PIECES, *literals, *(literal + " " for literal in literals)]:
        yield piece, (piece * (characters // len(piece) + 1))[:characters] + "\x00"


def cpu_seconds(expression: re.Pattern[str], text: str) -> float:
    """What it takes to find all matches, and to match the whole."""
    started = time.process_time()
    for _ in expression.finditer(text):
        pass
    expression.fullmatch(text)
    return time.process_time() - started


def _compiled() -> Iterator[tuple[str, re.Pattern[str]]]:
    for module in pkgutil.walk_packages(aggregator.__path__, "aggregator."):
        if not module.name.endswith("__main__"):
            for name, value in vars(importlib.import_module(module.name)).items():
                if isinstance(value, re.Pattern):
                    yield f"{module.name}.{name}", _as_text(value)


def _as_text(found: re.Pattern[str] | re.Pattern[bytes]) -> re.Pattern[str]:
    if isinstance(found.pattern, str):
        return found  # type: ignore[return-value]
    return re.compile(found.pattern.decode("latin-1"), found.flags & re.IGNORECASE)


def _written() -> Iterator[tuple[str, re.Pattern[str]]]:
    root = Path(aggregator.__file__).parent
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                for source in _sources(node):
                    yield f"{path.relative_to(root)}:{node.lineno}", re.compile(source)


def _sources(call: ast.Call) -> Iterator[str]:
    function = call.func
    of_re = (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
    )
    arguments = [keyword.value for keyword in call.keywords if keyword.arg == "pattern"]
    if of_re and function.attr in CALLS:  # type: ignore[attr-defined]
        arguments += call.args[:1]
    for argument in arguments:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield argument.value
