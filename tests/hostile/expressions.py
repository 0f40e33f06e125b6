"""All regular expressions of the package, and texts that make a badly written one slow."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aggregator

RE_FUNCTIONS = {"compile", "match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
PIECES = [
    "a", " ", "\n", "0", ",", ".", "-", "/", "<", "<a ", "<html", "&", "=", "\t ", "新", "a.", "1,",
    "aA", "| ", "T1 ", "T1",
    "_", "%41", "%4", "http://", "\u0301", '"', "(", "x" * 50 + " ", " - ", "1:", "\u200b", "\U0001f32a",
]  # fmt: skip


def expressions() -> Iterator[tuple[str, re.Pattern[str]]]:
    """(location, expression): compiled at module level, or a literal in a call of ``re`` or in a schema."""
    seen: set[tuple[str, int]] = set()
    for location, expression in (*_compiled(), *_literals()):
        if (expression.pattern, expression.flags) not in seen:
            seen.add((expression.pattern, expression.flags))
            yield location, expression


def texts(expression: re.Pattern[str], characters: int) -> Iterator[tuple[str, str]]:
    """(piece, text): the piece repeated up to ``characters``, followed by a character that never matches."""
    literals = re.findall(r"[A-Za-z0-9%<?=:&;/-]{2,20}", expression.pattern)
    for piece in [*PIECES, *literals, *(literal + " " for literal in literals)]:
        yield piece, (piece * (characters // len(piece) + 1))[:characters] + "\x00"


def cpu_seconds(expression: re.Pattern[str], text: str) -> float:
    """CPU time to find all matches and to match the whole text."""
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


def _as_text(expression: re.Pattern[Any]) -> re.Pattern[str]:
    if isinstance(expression.pattern, bytes):
        return re.compile(expression.pattern.decode("latin-1"), expression.flags & re.IGNORECASE)
    return expression


def _literals() -> Iterator[tuple[str, re.Pattern[str]]]:
    root = Path(aggregator.__file__).parent
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                for source in _sources(node):
                    yield f"{path.relative_to(root)}:{node.lineno}", re.compile(source)


def _sources(call: ast.Call) -> Iterator[str]:
    function = call.func
    calls_re = (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
        and function.attr in RE_FUNCTIONS
    )
    arguments = [keyword.value for keyword in call.keywords if keyword.arg == "pattern"]
    if calls_re:
        arguments += call.args[:1]
    for argument in arguments:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield argument.value
