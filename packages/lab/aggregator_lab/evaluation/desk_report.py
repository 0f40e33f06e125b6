"""Table of a desk for a terminal."""

from __future__ import annotations

from typing import Any


def format_table(result: dict[str, Any]) -> str:
    """A column per stream with its measures, and a row per known event."""
    streams, known = result["streams"], result["known"]
    names = list(dict.fromkeys(name for stream in streams for name in stream))
    lines = [f"{name:<18}" + "".join(f"{_cell(s.get(name)):>36}" for s in streams) for name in names]
    if known:
        lines += ["", "".join(f"{name:<22}" for name in known[0])]
    return "\n".join(lines + ["".join(f"{_cell(value):<22.20}" for value in k.values()) for k in known])


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {count}" for key, count in value.items())
    return "-" if value is None else str(value)
