"""Wall clock, units of time in milliseconds, and times as text."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

DURATION_UNITS_MS = {"m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS}

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def wall_clock_ms() -> int:
    """Milliseconds since 1970-01-01 UTC; the one clock that is passed to inner modules."""
    return time.time_ns() // 1_000_000


def parse_duration(text: str) -> int | None:
    """Milliseconds of a time span such as 30m, 24h, 7d or 2w; None if it is none."""
    number, unit = text[:-1], DURATION_UNITS_MS.get(text[-1:], 0)
    return int(number) * unit or None if number.isdecimal() else None


def format_rfc3339(at_ms: int) -> str:
    """A time as RFC 3339 text in UTC with milliseconds: ``2011-03-13T07:06:40.000Z``."""
    return to_datetime(at_ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_minute(at_ms: int) -> str:
    """``YYYY-MM-DD HH:MM`` in UTC."""
    return to_datetime(at_ms).isoformat(" ", "minutes").removesuffix("+00:00")


def to_datetime(at_ms: int) -> datetime:
    """A time in UTC; ``datetime.fromtimestamp`` loses milliseconds to rounding of floats."""
    return EPOCH + timedelta(milliseconds=at_ms)
