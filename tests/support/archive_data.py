"""A small generated archive with known duplicate groups."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.factories import edited, story

DAY = "2026-03-{:02}T08:00:00Z"


def archive_rows(first: int = 0) -> list[dict[str, Any]]:
    """60 articles: 40 unrelated ones, and 5 groups of an original with an edited, a cut and an equal copy.

    Another ``first`` gives other texts.
    """
    rows = [_row(f"alone{n}", story(first + n), n % 28 + 1) for n in range(40)]
    for group in range(5):
        text = story(first + 1000 + group)
        rows.append(_row(f"g{group}-original", text, 1))
        rows.append(_row(f"g{group}-edited", edited(text, group), 2))
        rows.append(_row(f"g{group}-cut", " ".join(text.split()[:150]), 3))
        rows.append(_row(f"g{group}-equal", text, 20))
    return rows


def _row(id_: str, text: str, day: int) -> dict[str, Any]:
    return {
        "id": id_,
        "title": id_,
        "text": text,
        "published_at": DAY.format(day),
        "source": id_,
        "lang": "en",
    }


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows as JSON Lines; returns the path."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
