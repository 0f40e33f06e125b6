"""Response bodies of the HTTP API v1, in addition to those of ``aggregator_client.wire``.

Times are RFC 3339 in UTC ("Z") with microseconds. Docstrings become the descriptions of the OpenAPI schemas.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

import msgspec
from msgspec import Struct

from aggregator_client.wire import ArticleRef, EventOut

TargetKind = Literal["webhook", "mail"]
EventOrder = Literal["time", "novelty", "size", "surprise", "growth"]


class EventItemOut(Struct):
    """An article of an event.

    similarity  to the story when the article joined it, 0..1
    copy_of     id of the article that it duplicates, null for an original
    """

    id: str
    title: str
    url: str
    source: str
    lang: str
    published_at: datetime | None
    arrived_at: datetime
    similarity: float
    copy_of: str | None


class EventItemsOut(Struct):
    """The articles of an event that are still stored, in order of time."""

    event_id: str
    title: str
    items: list[EventItemOut]


class DevelopmentOut(Struct):
    """What one event of a storyline brought on one day (UTC).

    items    items of the event on that day
    article  the article whose headline reports it, null if none is stored
    """

    day: date
    event_id: str
    title: str
    items: int
    article: ArticleRef | None


class StoryOut(Struct):
    """A storyline: events of one topic over days and weeks, in order of detection.

    id            of its first event, which may have expired; ``title``: of the event detected last
    developments  by day, on one day in order of detection
    """

    id: str
    title: str
    first_seen: datetime
    last_seen: datetime
    events: list[EventOut]
    developments: list[DevelopmentOut]


class ReadMarkOut(Struct):
    """What a user has seen.

    looked_at  all events detected until then, null before the first time; ``seen``: ids of later ones (200)
    """

    looked_at: datetime | None
    seen: list[str]


class WatchOut(Struct):
    """A saved watch, and the addresses of its events."""

    id: str
    name: str
    query: str
    created_at: datetime
    list: str
    stream: str
    atom: str
    json: str


class WatchesOut(Struct):
    """All saved watches, oldest first."""

    watches: list[WatchOut]


class WebhookOut(Struct):
    """A webhook or a target of a desk, with its delivery status; ``secret`` is returned only on creation.

    kind      webhook or mail
    url       masked unless it is the URL of a webhook: it contains credentials
    desk      the desk whose notifications it gets, null: every change of an event
    disabled  why deliveries are suspended, null: they are not
    owed      pending deliveries; ``failed``: number of failed attempts
    """

    id: str
    url: str
    queries: list[str]
    format: str
    created_at: datetime
    secret: str | None
    disabled: str | None
    owed: int
    delivered: int
    failed: int
    last_at: datetime | None
    last_result: str | None
    kind: TargetKind = "webhook"
    desk: str | None = None


class AttemptOut(Struct):
    """One attempt at a delivery. ``error``: null, it was delivered; ``next_at``: null, no further attempt."""

    delivery: str
    kind: str
    at: datetime
    number: int
    error: str | None
    next_at: datetime | None
    event_id: str | None
    events: int


class DeskOut(Struct):
    """A desk; see the fields of its creation. ``events``, ``stream``, ``atom``, ``json_feed``: its view."""

    id: str
    name: str
    terms: list[str]
    without: list[str]
    sources: list[str]
    languages: list[str]
    min_size: int
    alert_size: int
    alert_sources: int
    alert_hourly: int
    pause_minutes: int
    quiet_from: str
    quiet_until: str
    time_zone: str
    quiet_size: int
    paused: bool
    created_at: datetime
    events: str
    stream: str
    atom: str
    json_feed: str


class DesksOut(Struct):
    """All desks, oldest first."""

    desks: list[DeskOut]


class DeadLetterOut(Struct):
    """A delivery that was abandoned after about a day of retries."""

    id: str
    kind: str
    event_id: str
    made_at: datetime
    attempts: int
    result: str


class WebhookDetailOut(WebhookOut):
    """A webhook with its deliveries, newest first. ``dead``: abandoned ones; ``attempts``: history."""

    dead: list[DeadLetterOut] = []
    attempts: list[AttemptOut] = []


class WebhooksOut(Struct):
    """All webhooks, oldest first."""

    webhooks: list[WebhookOut]


class StoreOut(Struct):
    """State of the store."""

    kind: str
    version: str
    memory_bytes: int
    durability: str


class HealthOut(Struct):
    """The process is alive."""

    status: Literal["ok"]
    version: str


class ReadyOut(Struct):
    """The service can handle requests."""

    status: Literal["ready"]
    store: StoreOut
    spaces: list[str]


encode = msgspec.json.Encoder().encode
