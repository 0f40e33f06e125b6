"""Webhook subscriptions, and the bodies of calls to them.

    {"type": "event.fired", "timestamp": "2026-11-21T08:00:00.000Z", "data": {"id": ..., "title": ..., ...}}
    {"type": "desk.alert", "timestamp": ..., "data": {"desk": {...}, "events": [...], "more": 0}}

``type`` is also event.merged, event. or desk.development, .doubled and .closed. The format "slack" is the
text message that incoming webhooks of chat systems accept.
"""

from __future__ import annotations

import base64
import re
import secrets
from datetime import datetime, tzinfo
from itertools import accumulate
from typing import Any, Literal

import msgspec

from aggregator.analysis.source import outlet_name
from aggregator.domain import ArticleRecord
from aggregator.events.desks import Alert, Desk, time_zone
from aggregator.events.event import Event, current_title, event_url, size_summary
from aggregator.events.newsroom import is_split
from aggregator.events.selection import growth
from aggregator.events.storylines import Headlines
from aggregator.store.base import Store
from aggregator.store.optimistic import VersionedMap
from aggregator.time_units import format_rfc3339

MAX_SUBSCRIPTIONS = 100
SECRET_BYTES = 32

PayloadFormat = Literal["standard", "slack"]
TargetKind = Literal["webhook", "mail"]
_UNSAFE_HOST_CHARS = re.compile(r"[^\w.:-]", re.ASCII)
_KIND_LABELS = {"fired": "New event", "doubled": "Twice as large", "closed": "Ended"}
LISTED_EVENTS = 10
MAX_TITLE_CHARS = 200


class Subscription(msgspec.Struct, frozen=True):
    """One subscription.

    secret    "whsec_" + base64 of 32 random bytes; stored in clear, since it signs the calls
    queries   query strings of /v1/events; an event must match all of them
    kind      "webhook", or "mail": ``url`` is an e-mail address
    kinds     of changes, empty: all; of a target of a desk: those that follow an alert, empty: none
    desk      id of the desk whose alerts it gets; "": a webhook of its own, which gets every change
    disabled  reason why no calls are made ("" while they are); owner: id of the key that created it
    """

    id: str
    url: str
    secret: str
    queries: tuple[str, ...] = ()
    format: PayloadFormat = "standard"
    created_ms: int = 0
    disabled: str = ""
    delivered: int = 0
    failed: int = 0
    last_ms: int = 0
    last_result: str = ""
    owner: str = ""
    kind: TargetKind = "webhook"
    desk: str = ""
    kinds: tuple[str, ...] = ()

    @property
    def service(self) -> str:
        """What it is called on the pages."""
        return "E-mail" if self.kind == "mail" else "Chat" if self.format == "slack" else "Webhook"

    @property
    def shown_url(self) -> str:
        """For editors: an e-mail address, or a URL without secrets: "https://hooks.example/…a7c1"."""
        scheme, _, rest = self.url.partition("://")
        host = _UNSAFE_HOST_CHARS.sub("", rest.partition("/")[0].rpartition("@")[2])
        return self.url if self.kind == "mail" else f"{scheme}://{host}/…{self.id[-4:]}"


class Subscriptions(VersionedMap[Subscription]):
    """The subscriptions of a store, at most 100, of which one key creates at most half."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, b"{events}webhooks", Subscription, "webhook", MAX_SUBSCRIPTIONS)

    async def subscribe(
        self,
        url: str,
        queries: tuple[str, ...],
        payload_format: PayloadFormat,
        now_ms: int,
        owner: str = "",
        *,
        kind: TargetKind = "webhook",
        desk: str = "",
        kinds: tuple[str, ...] = (),
    ) -> tuple[Subscription, bool]:
        """Add a validated URL with a new id and secret, unless known; whether it is new. Raises Conflict."""
        subscription = Subscription(
            secrets.token_hex(6), url, new_secret(), queries, payload_format, now_ms, owner=owner, kind=kind,
            desk=desk, kinds=kinds,
        )  # fmt: skip
        return await self.add_once(subscription.id, subscription, _is_same, lambda known: known.owner)

    async def suspend(self, id_: str, reason: str) -> Subscription:
        """Suspend the calls of a subscription, or resume them without a reason. Raises NotFound."""
        return await self.update(id_, lambda known: msgspec.structs.replace(known, disabled=reason))


def _is_same(one: Subscription, other: Subscription) -> bool:
    first, second = ((s.url, s.kind, s.desk, s.format, {*s.kinds}, {*s.queries}) for s in (one, other))
    return first == second


def new_secret() -> str:
    """New signing secret (Standard Webhooks, "Signature scheme": 24 to 64 random bytes)."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def event_payload(
    event: Event, kind: str, at_ms: int, payload_format: PayloadFormat, base_url: str, latest: Headlines
) -> bytes:
    """Body of an event call. ``base_url``: public URL of the service; without it the link is missing."""
    url = event_url(event, base_url) if base_url else None
    if payload_format == "slack":
        title = slack_text(current_title(event))
        linked = f"<{url}|{title}>" if url else title
        text = f"{_label_of(kind)}{linked} ({slack_text(size_summary(event))})"
        lines = (slack_text(_line_of(record)) for record in latest.get(event.id, ()))
        return msgspec.json.encode({"text": "\n".join((text, *lines))})
    return _encode(f"event.{kind}", at_ms, event_data(event, base_url, latest))


def event_data(event: Event, base_url: str, latest: Headlines) -> dict[str, object]:
    """The fields of an event in a call."""
    names = ("id", "title", "status", "size", "sightings", "sources", "languages", "terms", "reason")
    return {
        **{name: getattr(event, name) for name in (*names, "merged_into", "revision")},
        "current_title": current_title(event),
        "expected": round(event.expected, 2),
        "detected_at": format_rfc3339(event.detected_at_ms),
        "first_seen": format_rfc3339(event.first_seen_ms),
        "last_seen": format_rfc3339(event.last_seen_ms),
        "first_source": event.first[2] if event.first else "",
        "headlines": [{"source": r.source, "title": r.title, "url": r.url} for r in latest.get(event.id, ())],
        "developments": [{"at": format_rfc3339(ms), "terms": terms} for ms, terms in event.developments],
        "url": event_url(event, base_url) if base_url else None,
    }


def slack_text(text: str) -> str:
    """Text in which Slack finds no link and no mention."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Message(msgspec.Struct, frozen=True):
    """A notification as text."""

    title: str
    body: str


def alert_body(alert: Alert, target: Subscription, at_ms: int, base_url: str, latest: Headlines) -> bytes:
    """What is delivered to a target for an alert."""
    if target.kind == "webhook" and target.format == "standard":
        data = {
            "desk": {"id": alert.desk.id, "name": alert.desk.name},
            "events": [event_data(event, base_url, latest) for event in alert.events[:LISTED_EVENTS]],
            "more": max(0, len(alert.events) - LISTED_EVENTS) + alert.dropped,
        }
        return _encode(f"desk.{alert.kind}", at_ms, data)
    return encode_message(alert_message(alert, at_ms, base_url, latest, target.kind == "mail"), target)


def ping_body(desk: Desk | None, target: Subscription, at_ms: int, base_url: str) -> bytes:
    """What is delivered to a webhook or a target of a desk as a test."""
    name = desk.name if desk is not None else ""
    if target.kind == "webhook" and target.format == "standard":
        of_desk = {"desk": {"id": target.desk, "name": name}} if target.desk else {}
        return _encode("ping", at_ms, {"webhook": target.id, **of_desk})
    link = f"\n\n{base_url}/desks/{target.desk}" if base_url and target.desk else ""
    text = "This is a test. Notifications of the news aggregator arrive here." + link
    title = f"{name}: test notification" if name else "Test notification"
    return encode_message(Message(title, text), target)


def _encode(type_: str, at_ms: int, data: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"type": type_, "timestamp": format_rfc3339(at_ms), "data": data})


def encode_message(message: Message, target: Subscription) -> bytes:
    """The stored body of a text message; sent as ``{"text": ...}`` by a webhook with the format "slack"."""
    if target.kind == "webhook":
        return msgspec.json.encode({"text": slack_text(f"{message.title}\n{message.body}")})
    return msgspec.json.encode(message)


def alert_message(alert: Alert, at_ms: int, base_url: str, latest: Headlines, with_links: bool) -> Message:
    """The text of an alert: one event with its headline as the title, several as a list."""
    parts, shown = [], alert.events[: LISTED_EVENTS * (len(alert.sections) or 1)]
    starts = accumulate((min(size, LISTED_EVENTS) for size in alert.sections.values()), initial=0)
    headings = dict(zip(starts, alert.sections, strict=False))
    for at, event in enumerate(shown):
        parts += [f"{headings[at].upper()}: {alert.sections[headings[at]]}"] if at in headings else []
        lines = _event_lines(event, at_ms, base_url, time_zone(alert.desk.time_zone))
        records = latest.get(event.id, ())
        lines[2:2] = [f"{_line_of(record)} {record.url if with_links else ''}".rstrip() for record in records]
        parts.append("\n".join(lines))
    if (more := len(alert.events) + alert.dropped - len(shown)) > 0:
        parts.append(f"and {more} more")
    if base_url:
        parts.append(f"Open the desk {base_url}/desks/{alert.desk.id}")
    return Message(alert_title(alert), "\n\n".join(parts))


def alert_title(alert: Alert) -> str:
    """The subject of an alert: the headline of its event, or how many there are."""
    what = f"{len(alert.events) + alert.dropped} new events"
    if alert.kind == "digest":
        what = ", ".join(("digest", *(f"{n} {name}" for name, n in alert.sections.items())))
    elif len(alert.events) + alert.dropped == 1:
        what = change_title(alert.events[0], alert.kind)
    return f"{alert.desk.name}: {what}"


def change_title(event: Event, kind: str) -> str:
    """What a change of an event is called: "Development: headline", of an alert the headline alone."""
    return _label_of(kind) + _cut(current_title(event))


def _label_of(kind: str) -> str:
    return "" if kind == "alert" else f"{_KIND_LABELS.get(kind, kind.capitalize())}: "


def _event_lines(event: Event, now_ms: int, base_url: str, zone: tzinfo) -> list[str]:
    """Headline with its link; numbers, first report and who is on it; the last note; why it is an event."""
    last_hour = growth(event, now_ms).last_hour
    facts = size_summary(event) + (f", {last_hour} in the last hour" if last_hour else "")
    facts += ", ended" if event.status == "closed" else ""
    if event.first:
        at = datetime.fromtimestamp(event.first[0] / 1000, zone)
        facts += f"; first: {outlet_name(event.first[2])}, {at:%-d %b, %H:%M %Z}"
    link = f" {event_url(event, base_url)}" if base_url else ""
    splits = [(a.at_ms, "split off") for a in event.actions if is_split(a) and a.into == event.id]
    began_ms, how = [(event.detected_at_ms, "detected"), *splits][-1]
    began = datetime.fromtimestamp(began_ms / 1000, zone)
    detected = f"When it was {how}, {began:%-d %b, %H:%M %Z}: {event.reason}"
    actors = {"on_it": f"; on it: {event.assignee}", "seen": f"; seen by {event.acknowledged_by}"}
    notes = [f"Note by {note.actor}: {_cut(note.text)}" for note in event.notes[-1:]]
    return [_cut(current_title(event)) + link, facts + actors.get(event.status_key, ""), *notes, detected]


def _line_of(record: ArticleRecord) -> str:
    return f"{outlet_name(record.source) or 'Unnamed outlet'}: {_cut(record.title)}"


def _cut(title: str) -> str:
    title = " ".join(title.split())
    return title if len(title) <= MAX_TITLE_CHARS else title[: MAX_TITLE_CHARS - 1] + "…"
