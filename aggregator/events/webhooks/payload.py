"""Bodies of webhook calls. Pure.

    {"type": "event.fired", "timestamp": "2026-11-21T08:00:00.000Z",
     "data": {"id": ..., "title": ..., "status": ..., "size": ..., "sources": [...], ..., "url": ...}}

``type`` is event.fired, event.doubled, event.merged or event.closed. The format "slack" is the text message
that incoming webhooks of chat systems accept.
"""

from __future__ import annotations

import msgspec

from aggregator.events.detection import Event
from aggregator.events.formatting import event_url, plain_title, size_summary, title_of
from aggregator.events.webhooks.subscriptions import PayloadFormat
from aggregator.time_units import format_rfc3339

_KIND_LABELS = {"fired": "Breaking", "doubled": "Growing", "merged": "Merged", "closed": "Ended"}


def event_payload(event: Event, kind: str, at_ms: int, payload_format: PayloadFormat, base_url: str) -> bytes:
    """Body of an event call. ``base_url``: public URL of the service; without it the link is missing."""
    url = event_url(event, base_url) if base_url else None
    if payload_format == "slack":
        return _slack_message(event, kind, url)
    return msgspec.json.encode(
        {"type": f"event.{kind}", "timestamp": format_rfc3339(at_ms), "data": event_data(event, base_url)}
    )


def event_data(event: Event, base_url: str) -> dict[str, object]:
    """The fields of an event in a call."""
    return {
        "id": event.id,
        "title": plain_title(event.title),
        "status": event.status,
        "size": event.size,
        "sightings": event.sightings,
        "expected": round(event.expected, 2),
        "sources": event.sources,
        "languages": event.languages,
        "terms": event.terms,
        "detected_at": format_rfc3339(event.detected_at_ms),
        "first_seen": format_rfc3339(event.first_seen_ms),
        "last_seen": format_rfc3339(event.last_seen_ms),
        "reason": event.reason,
        "merged_into": event.merged_into,
        "revision": event.revision,
        "url": event_url(event, base_url) if base_url else None,
    }


def ping_payload(subscription_id: str, at_ms: int, payload_format: PayloadFormat) -> bytes:
    """Body of a test call."""
    if payload_format == "slack":
        return msgspec.json.encode({"text": "Test call from the news aggregator."})
    return msgspec.json.encode(
        {"type": "ping", "timestamp": format_rfc3339(at_ms), "data": {"webhook": subscription_id}}
    )


def _slack_message(event: Event, kind: str, url: str | None) -> bytes:
    """Text message; the characters that Slack interprets (links, mentions) are escaped in the title."""
    title = slack_text(title_of(event))
    linked = f"<{url}|{title}>" if url else title
    return msgspec.json.encode({"text": f"{_KIND_LABELS.get(kind, kind)}: {linked} ({size_summary(event)})"})


def slack_text(text: str) -> str:
    """Text in which Slack finds no link and no mention."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
