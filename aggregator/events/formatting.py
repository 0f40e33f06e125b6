"""How is an event told to those who see no page? Times, addresses and counts as feeds and calls write them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from aggregator.events.detection.model import Event

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def format_rfc3339(at_ms: int) -> str:
    """UTC, to the millisecond.

    >>> rfc3339(1_300_000_000_000)
    '2011-03-13T07:06:40.000Z'
    """
    return (_EPOCH + timedelta(milliseconds=at_ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def event_url(event: Event, base_url: str) -> str:
    """The page of an event, for readers who reach the service at ``base_url`` (without a trailing slash)."""
    return f"{base_url}/events/{quote(event.id, safe='')}"


def size_summary(event: Event) -> str:
    """For example "21 items from 3 outlets"."""
    outlets = len(event.sources)
    return f"{event.size} items from {outlets} {'outlet' if outlets == 1 else 'outlets'}"
