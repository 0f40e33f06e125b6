"""Texts and bodies of a desk's notifications. Pure.

The body of a webhook with the format "standard" is

    {"type": "desk.alert", "timestamp": ..., "data": {"desk": {"id": ..., "name": ...}, "events": [...],
     "more": 0}}

with the same fields per event as in event calls.
"""

from __future__ import annotations

import re

import msgspec

from aggregator.events.desks.alerts import Alert
from aggregator.events.desks.model import Desk, items_in_last_hour
from aggregator.events.detection.model import Event
from aggregator.events.formatting import event_url, size_summary, title_of
from aggregator.events.webhooks.payload import event_data, slack_text
from aggregator.events.webhooks.subscriptions import Subscription
from aggregator.time_units import format_rfc3339

LISTED_EVENTS = 10
MAX_TITLE_CHARS = 200
# What chat services read as a mention or a link, in a crawled headline.
_MENTION = re.compile(r"@(?=\w)")


class Message(msgspec.Struct, frozen=True):
    """A notification as text."""

    title: str
    body: str


def alert_body(alert: Alert, target: Subscription, at_ms: int, base_url: str) -> bytes:
    """What is delivered to a target for an alert."""
    if target.kind == "webhook" and target.format == "standard":
        data = {
            "desk": {"id": alert.desk.id, "name": alert.desk.name},
            "events": [event_data(event, base_url) for event in alert.events[:LISTED_EVENTS]],
            "more": max(0, len(alert.events) - LISTED_EVENTS) + alert.dropped,
        }
        return msgspec.json.encode({"type": "desk.alert", "timestamp": format_rfc3339(at_ms), "data": data})
    message = alert_message(alert, at_ms, base_url)
    return encode_message(message, target)


def ping_body(desk: Desk | None, target: Subscription, at_ms: int, base_url: str) -> bytes:
    """What is delivered to a target as a test."""
    name = desk.name if desk is not None else ""
    if target.kind == "webhook" and target.format == "standard":
        data = {"webhook": target.id, "desk": {"id": target.desk, "name": name}}
        return msgspec.json.encode({"type": "ping", "timestamp": format_rfc3339(at_ms), "data": data})
    link = f"\n\n{base_url}/desks/{target.desk}" if base_url and target.desk else ""
    text = "This is a test. Notifications of this desk of the news aggregator arrive here." + link
    return encode_message(
        Message(f"{name}: test notification" if name else "Test notification", text), target
    )


def encode_message(message: Message, target: Subscription) -> bytes:
    """The stored body of a text message; sent as ``{"text": ...}`` by a webhook with the format "slack"."""
    if target.kind == "webhook":
        return msgspec.json.encode({"text": slack_text(f"{message.title}\n{message.body}")})
    if target.kind == "apprise":
        message = Message(_defused(message.title), _defused(message.body))
    return msgspec.json.encode(message)


def decode_message(body: bytes) -> Message:
    """The message of a stored body. Raises msgspec.MsgspecError."""
    return msgspec.json.decode(body, type=Message)


def alert_message(alert: Alert, at_ms: int, base_url: str) -> Message:
    """The text of an alert: one event with its headline as the title, several as a list."""
    name, count = alert.desk.name, len(alert.events) + alert.dropped
    title = f"{name}: {_headline(alert.events[0])}" if count == 1 else f"{name}: {count} new events"
    parts = [_event_text(event, at_ms, base_url) for event in alert.events[:LISTED_EVENTS]]
    if count > len(parts):
        parts.append(f"and {count - len(parts)} more")
    if base_url:
        parts.append(f"Desk: {base_url}/desks/{alert.desk.id}")
    return Message(title, "\n\n".join(parts))


def _event_text(event: Event, now_ms: int, base_url: str) -> str:
    hourly = items_in_last_hour(event, now_ms)
    facts = size_summary(event) + (f", {hourly} in the last hour" if hourly else "")
    if event.status == "closed":
        facts += ", ended"
    lines = [_headline(event), facts]
    if base_url:
        lines.append(event_url(event, base_url))
    return "\n".join(lines)


def _headline(event: Event) -> str:
    title = " ".join(title_of(event).split())
    return title if len(title) <= MAX_TITLE_CHARS else title[: MAX_TITLE_CHARS - 1] + "…"


def _defused(text: str) -> str:
    """Text in which no service finds a mention ("@all", "<!channel>") or markup."""
    return _MENTION.sub("@\u2060", text.replace("<", "‹").replace(">", "›"))
