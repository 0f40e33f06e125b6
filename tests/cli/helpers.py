"""Helpers of the command-line tests: demonstration articles, input files, and running a command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aggregator.cli import main
from aggregator.runtime import demo

ROOT = Path(__file__).resolve().parents[2]
ROWS = {row["id"]: row for row in demo.load_rows()}
ORIGINAL, EDITED, OTHER = (ROWS[id_] for id_ in ("demo-post-tram", "demo-coast-tram", "demo-radio-bees"))


def article_body(row: dict[str, Any]) -> dict[str, Any]:
    """The request body for a demonstration row, without a date."""
    return {name: row[name] for name in ("id", "url", "source", "title", "text")}


def write_jsonl(path: Path, *lines: object) -> str:
    """Write a .jsonl file of objects, or of raw lines given as text; returns its name."""
    texts = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return str(path)


def run(*argv: str) -> int:
    """The exit code of a command, also of a usage error."""
    try:
        return main(argv)
    except SystemExit as stop:
        assert isinstance(stop.code, int)
        return stop.code
