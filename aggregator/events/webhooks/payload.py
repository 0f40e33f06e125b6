"""What a call says. Pure.

    {"type": "event.fired", "timestamp": "2026-11-21T08:00:00.000Z",
     "data": {"id": ..., "title": ..., "status": ..., "size": ..., "sources": [...], ..., "url": ...}}

``type`` is event.fired, event.doubled, event.merged or event.closed. The format "slack" is the text message that
incoming webhooks of chat systems take.
"""

from __future__ import annotations

import msgspec

from aggregator.events.detection import Event
from aggregator.events.formatting import address, count, rfc3339

_WORDS = {"fired": "Breaking", "doubled": "Growing", "merged": "Merged", "closed": "Over"}


def payload(event: Event, kind: str, at_ms: int, format: str, base_url: str) -> bytes:
    """The body of a call. ``base_url``: where readers reach the service, "" when nobody said."""
    url = address(event, base_url) if base_url else None
    if format == "slack":
        return _message(event, kind, url)
    data = {
        "id": event.id,
        "title": event.title,
        "status": event.status,
        "size": event.size,
        "sightings": event.sightings,
        "expected": round(event.expected, 2),
        "sources": event.sources,
        "languages": event.languages,
        "terms": event.terms,
        "detected_at": rfc3339(event.detected_at_ms),
        "first_seen": rfc3339(event.first_seen_ms),
        "last_seen": rfc3339(event.last_seen_ms),
        "reason": event.reason,
        "merged_into": event.merged_into,
        "revision": event.revision,
        "url": url,
    }
    return msgspec.json.encode({"type": f"event.{kind}", "timestamp": rfc3339(at_ms), "data": data})


def ping(hook_id: str, at_ms: int, format: str) -> bytes:
    """The body of a test call."""
    if format == "slack":
        return msgspec.json.encode({"text": "A test call of the news aggregator."})
    return msgspec.json.encode({"type": "ping", "timestamp": rfc3339(at_ms), "data": {"webhook": hook_id}})


def _message(event: Event, kind: str, url: str | None) -> bytes:
    """Titles are strangers' text: the three characters that mark links and mentions are escaped."""
    title = event.title.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    linked = f"<{url}|{title}>" if url else title
    return msgspec.json.encode({"text": f"{_WORDS.get(kind, kind)}: {linked} ({count(event)})"})
