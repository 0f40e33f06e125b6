"""Execution of Jupyter notebooks without Jupyter: plain text outputs of code cells.

python -m tests.support.notebook FILE...    execute and store the outputs
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def execute(notebook: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each code cell and what it prints, with the repr of its last expression at the end."""
    names: dict[str, Any] = {"__name__": "__notebook__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            yield cell, _run("".join(cell["source"]), names)


def stored_output(cell: dict[str, Any]) -> str:
    """The plain text that a notebook stores as the output of a cell."""
    parts = [output.get("text") or output["data"]["text/plain"] for output in cell["outputs"]]
    return "".join(line for part in parts for line in part)


def store_outputs(file: Path) -> None:
    """Execute a notebook and write its outputs into the file."""
    notebook = json.loads(file.read_text(encoding="utf-8"))
    for number, (cell, text) in enumerate(execute(notebook), 1):
        data = {"text/plain": text.splitlines(keepends=True)}
        result = {"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data}
        cell["execution_count"], cell["outputs"] = number, [result] if text else []
    file.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _run(source: str, names: dict[str, Any]) -> str:
    body = ast.parse(source)
    last = body.body[-1] if body.body else None
    if isinstance(last, ast.Expr):
        body.body.pop()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(body, "<cell>", "exec"), names)
        value = (
            eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
            if isinstance(last, ast.Expr)
            else None
        )
    return printed.getvalue() + (repr(value) if value is not None else "")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        store_outputs(Path(argument))
