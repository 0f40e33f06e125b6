"""What an answer of the public contract v1 looks like.

Times are RFC 3339 in UTC ("Z") with milliseconds.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from aggregator.domain import VerdictName
from aggregator.events.detection.model import ActionName, MuteScope
from aggregator.events.filter import EventStatus


class DuplicateOf(Struct):
    """The stored article that this one repeats; ``canonical_id`` is the first of its group."""

    id: str
    canonical_id: str
    distance: int
    overlap: float | None
    rule: Literal["exact", "hamming", "overlap", "title"]


class RelatedOut(Struct):
    """A stored article about the same matter."""

    id: str
    title: str
    url: str
    source: str
    published_at: datetime | None
    distance: int
    similarity: float


class VerdictOut(Struct):
    """The verdict on one article. ``distance`` is to the nearest stored article within 7 bits."""

    id: str
    verdict: VerdictName
    distance: int | None
    hamming_class: VerdictName
    duplicate_of: DuplicateOf | None
    related: list[RelatedOut]
    updated_figures: bool
    event_id: str | None
    space: str
    fingerprint: Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
    short: bool


class ArticleRef(Struct):
    """An article in a list: who published what, when."""

    id: str
    title: str
    url: str
    source: str
    published_at: datetime | None
    arrived_at: datetime


class ArticleOut(Struct):
    """A stored article: its metadata and the verdict it was given."""

    id: str
    title: str
    url: str
    source: str
    lang: str
    published_at: datetime | None
    arrived_at: datetime
    updated_at: datetime
    verdict: VerdictName
    distance: int | None
    hamming_class: VerdictName
    duplicate_of: DuplicateOf | None
    updated_figures: bool
    event_id: str | None
    space: str
    fingerprint: Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
    short: bool


class CopiesOut(Struct):
    """All stored articles of one group, the first one in front."""

    id: str
    canonical_id: str
    copies: list[ArticleRef]


class RelatedListOut(Struct):
    """Related articles, the nearest first."""

    related: list[RelatedOut]


class OverlapOut(Struct):
    """Shared wording, estimated from samples of shingles: shares in 0..1, ``shared`` in shingles."""

    containment: float
    resemblance: float
    shared: float


class ExplainSideOut(Struct):
    """One of the two articles; figures and passages are those the other lacks (null: a text is not kept)."""

    label: str
    space: str
    fingerprint: Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
    figures: list[str] | None
    own_passages: list[str] | None


class ExplainOut(Struct):
    """What the rules see of two articles. Bit 0 is the least significant one of the fingerprint."""

    summary: str
    a: ExplainSideOut
    b: ExplainSideOut
    distance: int | None
    differing_bits: list[int] | None
    overlap: OverlapOut
    similarity: float
    is_copy: bool
    updated_figures: bool
    shared_passages: list[str] | None


class ActionOut(Struct):
    """One entry of the audit trail. ``event``: the one that the editor acted on."""

    action: ActionName
    actor: str
    at: datetime
    event: str
    scope: MuteScope | None
    into: str | None
    item: str | None


class EventOut(Struct):
    """One breaking event.

    size      items that count, of any age; ``sightings``: further copies from outlets it already has
    peak      most items within one window; ``rate``: most within 10 minutes
    expected  items per window that were usual for this story when it fired
    muted     what editors want no more alerts of; ``actions``: what they did, oldest first
    absorbed  events that it took over; ``revision``: counts its versions
    """

    id: str
    title: str
    status: EventStatus
    detected_at: datetime
    first_seen: datetime
    last_seen: datetime
    size: int
    sightings: int
    peak: int
    rate: int
    expected: float
    sources: list[str]
    languages: list[str]
    terms: list[str]
    reason: str
    merged_into: str | None
    absorbed: list[str]
    acknowledged_by: str | None
    muted: MuteScope | None
    false_alarm: bool
    actions: list[ActionOut]
    revision: int


class TimelinePoint(Struct):
    """How many items joined in the 10 minutes from ``at``; quiet ones are left out."""

    at: datetime
    items: int


class EventDetailOut(EventOut):
    """The special report: ``items`` are ids in order of joining, ``articles`` the newest of them in full.

    cosines       how near each item was to the story when it joined, 0..1 (1: a copy, or the first)
    first_source  who had it first; ``headline_id``: the article whose headline is the title
    """

    timeline: list[TimelinePoint]
    items: list[str]
    cosines: list[float]
    first_source: str
    headline_id: str
    articles: list[ArticleRef]


class EventsOut(Struct):
    """Events, the most recently seen first. ``next``: cursor of the next page, null on the last one."""

    events: list[EventOut]
    next: str | None


class WatchOut(Struct):
    """A saved watch, and where its events are read."""

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
    """A webhook and how it fares; the ``secret`` is shown only when it is made."""

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


class DeadLetterOut(Struct):
    """A call that was given up after about a day."""

    id: str
    kind: str
    event_id: str
    made_at: datetime
    attempts: int
    result: str


class WebhookDetailOut(WebhookOut):
    """``dead``: the newest calls that were given up, newest first."""

    dead: list[DeadLetterOut]


class WebhooksOut(Struct):
    """All webhooks, oldest first."""

    webhooks: list[WebhookOut]


class StoreOut(Struct):
    """What the store says of itself."""

    kind: str
    version: str
    memory_bytes: int
    durability: str


class HealthOut(Struct):
    """The process runs."""

    status: Literal["ok"]
    version: str


class ReadyOut(Struct):
    """Requests can be served."""

    status: Literal["ready"]
    store: StoreOut
    spaces: list[str]


class Problem(Struct, omit_defaults=True):
    """RFC 9457 problem details. ``code`` is stable; ``field`` names the part of the input to blame."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    field: str | None = None
    instance: str | None = None
    request_id: str | None = None


class LineProblem(Struct):
    """The answer to a batch line that could not be used; the other lines are not affected."""

    line: int
    error: Problem


encode = msgspec.json.Encoder().encode
