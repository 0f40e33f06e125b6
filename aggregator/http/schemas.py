"""The JSON of the public contract v1: what a request may hold and what an answer looks like.

Requests forbid unknown fields, so that a misspelt name is an error and not a silent loss.
Times are RFC 3339 with an offset; answers always use UTC ("Z") and milliseconds.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from aggregator.bursts.event import ActionName, Scope
from aggregator.domain import VerdictName
from aggregator.event_query import EventStatus
from aggregator.urls import MAX_URL_CHARS

MAX_TITLE_CHARS = 2000
MAX_SOURCE_CHARS = 300
MAX_IDS = 20
MAX_ACTOR_CHARS = 200
MAX_RELATED = 100
MAX_EVENTS = 200

Offset = Annotated[datetime, Meta(tz=True, description="RFC 3339 with an offset, e.g. 2026-11-20T08:00:00Z")]
Source = Annotated[str, Meta(max_length=MAX_SOURCE_CHARS, description="The outlet, e.g. its host name.")]
Identity = Annotated[str, Meta(description="At most 512 bytes, no control characters.")]


# -- requests ----------------------------------------------------------------------------------


class ArticleIn(Struct, forbid_unknown_fields=True, rename={"id_": "id"}):
    """One article. It needs text, html or a title; null counts as not given."""

    id_: Identity | None = None
    url: Annotated[str, Meta(max_length=MAX_URL_CHARS, description="http or https.")] | None = None
    title: Annotated[str, Meta(max_length=MAX_TITLE_CHARS)] | None = None
    text: (
        Annotated[str, Meta(description="The main text. Used in place of html when both are given.")] | None
    ) = None
    html: Annotated[str, Meta(description="The whole page; its main text is extracted.")] | None = None
    source: Source | None = None
    published_at: Offset | None = None
    lang: (
        Annotated[
            str,
            Meta(
                pattern=r"^([A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*)?$",
                max_length=35,
                description='Language tag such as "en" or "zh-Hant"; detected when absent.',
            ),
        ]
        | None
    ) = None


class RelatedIn(ArticleIn, forbid_unknown_fields=True, rename={"id_": "id"}):
    """What the reader has just read: up to 20 ids, or one article that need not be stored."""

    ids: Annotated[list[Identity], Meta(min_length=1, max_length=MAX_IDS)] | None = None


class ExplainIn(Struct, forbid_unknown_fields=True):
    """Two articles, each by its id or as its content."""

    a: str | ArticleIn
    b: str | ArticleIn


class ActionIn(Struct, forbid_unknown_fields=True):
    """What an editor does to an event.

    acknowledge  somebody looks after it; the first name stays
    mute         no more alerts of this story for a week, or of this routine for good (``scope``)
    unmute       takes back a mute or a false alarm
    merge        it goes into the event ``into``, which goes on; its own address leads there from then on
    remove_item  the article ``item`` does not belong to it
    false_alarm  it was none; mutes the story as well
    """

    action: ActionName
    actor: Annotated[
        str,
        Meta(
            max_length=MAX_ACTOR_CHARS, description="Who does it; where keys are asked for, the key's name."
        ),
    ] = ""
    into: Identity | None = None
    item: Identity | None = None
    scope: Scope | None = None


class WatchIn(Struct, forbid_unknown_fields=True):
    """A query of /v1/events to be saved."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    query: Annotated[str, Meta(max_length=2000, description='E.g. "term=bridge&min_size=20".')]


class WebhookIn(Struct, forbid_unknown_fields=True):
    """An address that wants to be called when an event fires, doubles, merges or closes."""

    url: Annotated[str, Meta(max_length=2000, description="https only, unless webhook_private is set.")]
    query: Annotated[str, Meta(max_length=2000, description="Of /v1/events: only such events.")] = ""
    watch: Annotated[
        str, Meta(max_length=40, description="Id of a saved watch, whose query must hold too.")
    ] = ""
    format: Literal["standard", "slack"] = "standard"


class WebhookActionIn(Struct, forbid_unknown_fields=True):
    """``ping`` calls it now with a test body; ``enable`` takes calls up again."""

    action: Literal["ping", "enable"]


class NoQuery(Struct, forbid_unknown_fields=True):
    """No query parameters."""


class IngestQuery(Struct, forbid_unknown_fields=True):
    """Query of the calls that take articles in."""

    dry_run: Annotated[bool, Meta(description="Answer the verdict and store nothing.")] = False


class RelatedQuery(Struct, forbid_unknown_fields=True):
    """Query of the related-news calls."""

    limit: Annotated[int, Meta(ge=1, le=MAX_RELATED, description="Most items answered.")] = 10
    since: (
        Annotated[Offset, Meta(description="Only articles published (else arrived) at or after this time.")]
        | None
    ) = None
    source: Annotated[Source, Meta(description="Only articles from this outlet.")] | None = None
    exclude_source: Annotated[Source, Meta(description="No articles from this outlet.")] | None = None
    lang: (
        Annotated[str, Meta(pattern="^[a-z]{2,3}$", description="Only articles in this language, e.g. de.")]
        | None
    ) = None


class SavedFilter(Struct, forbid_unknown_fields=True):
    """Which events: all that is given must hold. A watch saves such a query."""

    term: Annotated[str, Meta(max_length=200, description="In the headline, or among the terms.")] = ""
    source: Annotated[str, Meta(max_length=MAX_SOURCE_CHARS, description="An outlet that reported it.")] = ""
    lang: Annotated[str, Meta(max_length=35, description="Language of one of its items.")] = ""
    min_size: Annotated[int, Meta(ge=0, description="Items that count, at least.")] = 0
    status: EventStatus | None = None


class EventFilter(SavedFilter, forbid_unknown_fields=True):
    """The list, the stream, the feeds and the editors' page take it."""

    watch: Annotated[
        str, Meta(max_length=40, description="Id of a saved watch, whose query must hold too.")
    ] = ""


class FeedQuery(EventFilter, forbid_unknown_fields=True):
    """Query of the feeds."""

    limit: Annotated[int, Meta(ge=1, le=MAX_EVENTS, description="Most entries.")] = 50


class FrontQuery(EventFilter, forbid_unknown_fields=True):
    """Query of the editors' page."""


class LookupQuery(Struct, forbid_unknown_fields=True):
    """Query of the look-up page."""

    q: Annotated[str, Meta(description="Id or address of a stored article.")] = ""


class CompareQuery(Struct, forbid_unknown_fields=True):
    """Query of the comparison page: ids or addresses of two stored articles."""

    a: str = ""
    b: str = ""


class LookupForm(Struct, forbid_unknown_fields=True):
    """The look-up page's form."""

    q: Annotated[str, Meta(description="Id, address or text of an article.")] = ""


class SignInQuery(Struct, forbid_unknown_fields=True):
    """Query of the sign-in page: where to go on."""

    next: Annotated[str, Meta(max_length=2000)] = "/"


class SignInForm(Struct, forbid_unknown_fields=True):
    """The sign-in page's form."""

    key: Annotated[str, Meta(max_length=200, description="An access key.")] = ""
    next: Annotated[str, Meta(max_length=2000)] = "/"


class CompareForm(Struct, forbid_unknown_fields=True):
    """The comparison page's form: each side by id, address or text."""

    a: str = ""
    b: str = ""


class EventStreamQuery(EventFilter, forbid_unknown_fields=True):
    """Query of the stream of changed events; the Last-Event-ID header goes before ``after``."""

    after: Annotated[str, Meta(max_length=40, description="Resume behind this position.")] = ""


class EventsQuery(EventFilter, forbid_unknown_fields=True):
    """Query of the list of events."""

    since: Annotated[Offset, Meta(description="Only events seen at or after this time.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=MAX_EVENTS, description="Most events answered.")] = 50
    cursor: Annotated[str, Meta(max_length=800, description="``next`` of the page before.")] = ""


# -- answers -----------------------------------------------------------------------------------


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


class AnswerOut(Struct):
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
    """One of the two articles; ``figures`` are those the other lacks (null: its text is not kept)."""

    label: str
    space: str
    fingerprint: Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
    figures: list[str] | None


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
    scope: Scope | None
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
    muted: Scope | None
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


class DeadCall(Struct):
    """A call that was given up after about a day."""

    id: str
    kind: str
    event_id: str
    made_at: datetime
    attempts: int
    result: str


class WebhookDetailOut(WebhookOut):
    """``dead``: the newest calls that were given up, newest first."""

    dead: list[DeadCall]


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


Json = dict[str, Any]
encode = msgspec.json.Encoder().encode
