"""How values are written on a page. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from aggregator.contract.encoding import to_datetime


def safe_url(url: str) -> str:
    """``url`` when a browser may follow it, else "": whatever got into the store, no script gets out."""
    return url if url.lower().startswith(("http://", "https://")) else ""


def iso_time(at: datetime | int) -> str:
    """For the datetime attribute of <time>; milliseconds or a time."""
    return _to_utc(at).strftime("%Y-%m-%dT%H:%M:%SZ")


def utc_time(at: datetime | int) -> str:
    """For people whose browser runs no script; the script shows their own zone instead."""
    return _to_utc(at).strftime("%d %b %Y, %H:%M UTC")


def hours_minutes(at: datetime | int) -> str:
    """Hours and minutes, for an axis."""
    return _to_utc(at).strftime("%H:%M")


def pluralize(count: int, singular: str, plural: str = "") -> str:
    """``3 items``; the plural takes an s unless it is given."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}".replace(",", "\u202f")


def byte_size(count: float) -> str:
    """Bytes as people say them: ``1.4 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError


def inline_code(text: str) -> Markup:
    """``so`` marked words as <code>, all else escaped."""
    parts = text.split("``")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else escape(part)
        for place, part in enumerate(parts)
    )


FILTERS: Mapping[str, Callable[..., Any]] = {
    f.__name__: f for f in (safe_url, iso_time, utc_time, hours_minutes, pluralize, byte_size, inline_code)
}


def _to_utc(at: datetime | int) -> datetime:
    return (to_datetime(at) if isinstance(at, int) else at).astimezone(UTC)
