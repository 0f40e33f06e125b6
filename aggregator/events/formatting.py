"""Headlines, URLs and counts of events as text. Pure."""

from __future__ import annotations

from urllib.parse import quote

from aggregator.events.detection.model import Event

# Title of an event with neither headline (its article was deleted) nor terms.
NO_HEADLINE = "(no headline)"


def title_of(event: Event) -> str:
    """The headline, or the terms of an event without one."""
    return event.title or ", ".join(event.terms) or NO_HEADLINE


def event_url(event: Event, base_url: str) -> str:
    """URL of the event's page. ``base_url``: public URL of the service, without a trailing slash."""
    return f"{base_url}/events/{quote(event.id, safe='')}"


def size_summary(event: Event) -> str:
    """Number of items and outlets, for example "21 items from 3 outlets"."""
    outlets = len(event.sources)
    return f"{event.size} items from {outlets} {'outlet' if outlets == 1 else 'outlets'}"
