"""Units of time in milliseconds, and times as RFC 3339 text."""

from __future__ import annotations

from datetime import UTC, datetime

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
