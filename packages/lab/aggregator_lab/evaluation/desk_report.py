"""Table of a desk for a terminal, and a page with its alerts to be judged by hand."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any


def format_table(result: dict[str, Any]) -> str:
    """A column per stream with its measures, and a row per known event."""
    streams, known = result["streams"], result["known"]
    names = list(dict.fromkeys(name for stream in streams for name in stream))
    lines = [f"{name:<18}" + "".join(f"{_cell(s.get(name)):>36}" for s in streams) for name in names]
    if known:
        lines += ["", "".join(f"{name:<22}" for name in known[0])]
    return "\n".join(lines + ["".join(f"{_cell(value):<22.20}" for value in k.values()) for k in known])


def alerts_page(alerts: Sequence[dict[str, Any]]) -> str:
    """An HTML page with one row per alert."""
    rows = "\n".join(
        f"<tr><td>{escape(a['file'])}<br>{a['at']}<td>{a['size']} items<br>{a['sources']} sources"
        f"<td><b>{escape(a['title'])}</b><br>{'<br>'.join(map(escape, a['headlines']))}<td>{a['mark']}"
        for a in alerts
    )
    return f"<!doctype html><meta charset=utf-8><title>Alerts</title><table border=1>\n{rows}\n</table>\n"


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {count}" for key, count in value.items())
    return "-" if value is None else str(value)
