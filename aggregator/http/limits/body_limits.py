"""Limits on request bodies, from the settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """Limits that every request body is read under.

    max_bytes    decompressed size of a body, or of one line of a batch (setting max_body_bytes)
    max_lines    lines of a batch (setting max_batch_lines)
    timeout_s    time for a whole body, or between two parts of a batch (setting body_timeout_seconds)
    """

    max_bytes: int
    max_lines: int
    timeout_s: float
