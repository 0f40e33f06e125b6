"""Request bodies and query parameters of the HTTP API v1, in addition to ``aggregator_client.wire``.

Unknown fields are rejected, so that a misspelled name is an error instead of being silently ignored.
Times are RFC 3339 with an offset. Docstrings become the descriptions of the OpenAPI schemas.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from aggregator.contract.responses import EventOrder
from aggregator_client.wire import (
    LANGUAGE_TAG_PATTERN,
    MAX_PROFILE_CHARS,
    MAX_SOURCE_CHARS,
    MAX_URL_CHARS,
    ActionName,
    ArticleId,
    ArticleIn,
    EventStatus,
    MuteScope,
    OffsetDatetime,
    PolicyProfile,
    Source,
    VerdictName,
    WorkStatus,
)

MAX_RELATED_IDS = 20
MAX_ACTOR_CHARS = 200
MAX_NOTE_CHARS = 2000
MAX_RELATED_PAGE = 100
MAX_EVENT_PAGE = 200
MAX_SEARCH_CHARS = 200
MAX_SEARCH_PAGE = 100


class RelatedIn(ArticleIn, forbid_unknown_fields=True, rename={"id_": "id"}):
    """Articles to find related ones for: up to 20 ids of stored articles, or one article by its content."""

    ids: Annotated[list[ArticleId], Meta(min_length=1, max_length=MAX_RELATED_IDS)] | None = None


class ExplainIn(Struct, forbid_unknown_fields=True):
    """Two articles to compare, each by id or by content.

    policy  the profile to compare them under; absent: that of the article that arrived later, by its source
    """

    a: str | ArticleIn
    b: str | ArticleIn
    policy: PolicyProfile | None = None


class ActionIn(Struct, forbid_unknown_fields=True):
    """An editor's action on an event.

    acknowledge  mark the event as being handled; the first actor is kept
    unacknowledge  withdraw the acknowledgement
    mute         stop alerts for this story for a week, or for this routine permanently (``scope``)
    unmute       undo a mute or a false alarm
    merge        merge this event into the event ``into``; its own address then redirects there
    remove_item  remove the article ``item`` from the event
    false_alarm  mark the event as a false alarm and mute its story
    unlink       take the event out of its storyline: it begins one, and is no translation of another event
    note         add the note ``text``; an event keeps 100 notes and 32,000 bytes of them
    delete_note  delete the note ``note``
    assign       assign the event to ``assignee``, "" for nobody
    set_work_status  set ``work_status``; "on_it" also assigns the event to the actor if nobody has it
    choose_headline  use the headline of the article ``item``; without it, the automatic headline again
    """

    action: ActionName
    actor: Annotated[
        str,
        Meta(
            max_length=MAX_ACTOR_CHARS,
            description="Name of the editor; replaced by the key's name where access keys are required.",
        ),
    ] = ""
    into: ArticleId | None = None
    item: ArticleId | None = None
    scope: MuteScope | None = None
    text: Annotated[str, Meta(max_length=MAX_NOTE_CHARS, description="Plain text, lines kept.")] | None = None
    note: int | None = None
    assignee: Annotated[str, Meta(max_length=MAX_ACTOR_CHARS, description="Name of an editor.")] | None = None
    work_status: WorkStatus | None = None


class ReadMarkIn(Struct, forbid_unknown_fields=True):
    """Events that a user has seen, in addition to those stored.

    looked_at  all events detected until then are seen
    seen       ids of single events that are seen
    """

    looked_at: OffsetDatetime | None = None
    seen: Annotated[list[Annotated[str, Meta(max_length=100)]], Meta(max_length=200)] = []


class WatchIn(Struct, forbid_unknown_fields=True):
    """A query of /v1/events to save."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    query: Annotated[str, Meta(max_length=2000, description='E.g. "term=bridge&min_size=20".')]


class WebhookIn(Struct, forbid_unknown_fields=True):
    """Webhook to register: it is called when an event fires, doubles, merges or closes."""

    url: Annotated[
        str, Meta(max_length=2000, description="https only, unless webhook_allow_private_addresses is set.")
    ]
    query: Annotated[
        str, Meta(max_length=2000, description="Query of /v1/events: only matching events are sent.")
    ] = ""
    watch: Annotated[
        str, Meta(max_length=40, description="Id of a saved watch, whose query must match too.")
    ] = ""
    format: Literal["standard", "slack"] = "standard"


class WebhookActionIn(Struct, forbid_unknown_fields=True):
    """What to do with a webhook or a target of a desk.

    ping     send a test delivery now
    enable   resume suspended deliveries; ``disable``: suspend them, pending ones wait
    retry    make all pending deliveries due now
    resend   enqueue the abandoned delivery ``delivery`` again, under its id
    """

    action: Literal["ping", "enable", "disable", "retry", "resend"]
    delivery: Annotated[str, Meta(max_length=40, description="Id of an abandoned delivery.")] = ""


DeskTerm = Annotated[str, Meta(min_length=1, max_length=200)]
DeskTerms = Annotated[list[DeskTerm], Meta(max_length=50)]
Threshold = Annotated[int, Meta(ge=0, le=1_000_000)]
ClockTime = Annotated[
    str, Meta(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$|^$", description='"22:30", or empty.')
]


class DeskIn(Struct, forbid_unknown_fields=True):
    """A desk: a saved view of the events, and when to notify its targets.

    terms            at least one must be in the headline or terms; places and topics are terms as well
    without          none of these may be
    sources          at least one must have reported the event
    languages        at least one item has one of these languages
    min_size         minimum number of items of an event in the view
    alert_size, alert_sources, alert_hourly   notify when an event has this many items, sources, and items
                     within the last hour; 0: no condition
    pause_minutes    minimum time between two notifications; events in between share the next one
    quiet_from, quiet_until   quiet hours in ``time_zone``: events are held and reported at their end
    quiet_size       an event with this many items is notified during quiet hours as well; 0: none
    paused           send no notifications
    """

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    terms: DeskTerms = []
    without: DeskTerms = []
    sources: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=MAX_SOURCE_CHARS)]], Meta(max_length=50)
    ] = []
    languages: Annotated[
        list[Annotated[str, Meta(min_length=2, max_length=35, pattern=LANGUAGE_TAG_PATTERN)]],
        Meta(max_length=50),
    ] = []
    min_size: Threshold = 0
    alert_size: Threshold = 0
    alert_sources: Threshold = 0
    alert_hourly: Threshold = 0
    pause_minutes: Annotated[int, Meta(ge=0, le=1440)] = 5
    quiet_from: ClockTime = ""
    quiet_until: ClockTime = ""
    time_zone: Annotated[str, Meta(max_length=60, description='IANA name, e.g. "Europe/Berlin".')] = "UTC"
    quiet_size: Threshold = 0
    paused: bool = False


class TargetIn(Struct, forbid_unknown_fields=True):
    """A notification target of a desk.

    kind     mail: an e-mail address; webhook: a signed call
    format   of a webhook: standard (Standard Webhooks) or slack (a text message)
    """

    kind: Literal["mail", "webhook"]
    address: Annotated[str, Meta(min_length=1, max_length=2000)]
    format: Literal["standard", "slack"] = "standard"


class NoQuery(Struct, forbid_unknown_fields=True):
    """No query parameters."""


class IngestQuery(Struct, forbid_unknown_fields=True):
    """Query of the calls that store articles."""

    dry_run: Annotated[bool, Meta(description="Return the verdict without storing anything.")] = False
    policy: Annotated[
        str,
        Meta(
            max_length=MAX_PROFILE_CHARS,
            description="Name of the policy profile for the articles that name none themselves.",
        ),
    ] = ""
    backfill: Annotated[
        bool,
        Meta(
            description="The articles are an archive or a backlog: they get verdicts and fire no events; "
            "dated ones teach what is usual at their time."
        ),
    ] = False


class RelatedQuery(Struct, forbid_unknown_fields=True):
    """Query of the related-article calls."""

    limit: Annotated[int, Meta(ge=1, le=MAX_RELATED_PAGE, description="Maximum number of items.")] = 10
    since: (
        Annotated[
            OffsetDatetime,
            Meta(
                description="Only articles published at or after this time (else arrived, if without date)."
            ),
        ]
        | None
    ) = None
    source: Annotated[Source, Meta(description="Only articles from this outlet.")] | None = None
    exclude_source: Annotated[Source, Meta(description="No articles from this outlet.")] | None = None
    lang: (
        Annotated[
            str,
            Meta(
                pattern=LANGUAGE_TAG_PATTERN,
                max_length=35,
                description='Only articles in this language, e.g. "de"; "und": no language was detected.',
            ),
        ]
        | None
    ) = None


class SavedFilterQuery(Struct, forbid_unknown_fields=True):
    """Filter of events: all given conditions must hold. A watch stores such a query."""

    term: Annotated[str, Meta(max_length=200, description="Text in the headline or terms.")] = ""
    source: Annotated[
        str, Meta(max_length=MAX_SOURCE_CHARS, description="Name of an outlet that reported the event.")
    ] = ""
    lang: Annotated[str, Meta(max_length=35, description="Language of at least one item.")] = ""
    min_size: Annotated[int, Meta(ge=0, description="Minimum number of items.")] = 0
    status: EventStatus | None = None


class EventFilterQuery(SavedFilterQuery, forbid_unknown_fields=True):
    """Filter of events for the list, the stream, the feeds and the editors' page."""

    watch: Annotated[
        str, Meta(max_length=40, description="Id of a saved watch or desk, whose filter must match too.")
    ] = ""


class SourcesPageQuery(Struct, forbid_unknown_fields=True):
    """Query of the page of outlets."""

    q: Annotated[str, Meta(max_length=MAX_SOURCE_CHARS, description="Text in the name.")] = ""
    sort: Annotated[
        Literal["articles", "originals", "copies", "copied", "lag"],
        Meta(description="Most first; lag: the shortest median lag first."),
    ] = "articles"
    offset: Annotated[int, Meta(ge=0, le=10_000, description="Outlets to skip.")] = 0


class SourcesQuery(SourcesPageQuery, forbid_unknown_fields=True):
    """Query of the list of outlets."""

    limit: Annotated[int, Meta(ge=1, le=500, description="Maximum number of outlets.")] = 100


class FeedQuery(EventFilterQuery, forbid_unknown_fields=True):
    """Query of the feeds."""

    limit: Annotated[int, Meta(ge=1, le=MAX_EVENT_PAGE, description="Maximum number of entries.")] = 50


class ArticleFilterQuery(Struct, forbid_unknown_fields=True):
    """Filter of stored articles: all given conditions must hold.

    Times apply to the publication of an article, or to its arrival if that is unknown.
    """

    lang: Annotated[
        str,
        Meta(
            pattern=LANGUAGE_TAG_PATTERN,
            max_length=35,
            description='Only in this language, e.g. "de"; "und": no language was detected.',
        ),
    ] = ""
    source: Annotated[Source, Meta(description="Only from this outlet, in any case.")] = ""
    verdict: Annotated[VerdictName | Literal[""], Meta(description="Only articles with this verdict.")] = ""
    since: Annotated[OffsetDatetime, Meta(description="Only from this time on.")] | None = None
    until: Annotated[OffsetDatetime, Meta(description="Only before this time.")] | None = None


class SearchQuery(ArticleFilterQuery, forbid_unknown_fields=True, kw_only=True):
    """Query of the search. Language, source and times restrict the events, too."""

    q: Annotated[
        str, Meta(max_length=MAX_SEARCH_CHARS, description="Words, or the id or the URL of an article.")
    ]
    limit: Annotated[int, Meta(ge=1, le=MAX_SEARCH_PAGE, description="Maximum number of articles.")] = 20
    cursor: Annotated[str, Meta(max_length=200, description="``next`` of the previous page.")] = ""


class ArticlesQuery(ArticleFilterQuery, forbid_unknown_fields=True):
    """Query of the list of articles."""

    url: Annotated[
        str, Meta(max_length=MAX_URL_CHARS, description="Only with this URL, in any spelling.")
    ] = ""
    limit: Annotated[int, Meta(ge=1, le=MAX_SEARCH_PAGE, description="Maximum number of articles.")] = 50
    cursor: Annotated[str, Meta(max_length=200, description="``next`` of the previous page.")] = ""


class EventStreamQuery(EventFilterQuery, forbid_unknown_fields=True):
    """Query of the event stream; the Last-Event-ID header takes precedence over ``after``."""

    after: Annotated[str, Meta(max_length=40, description="Resume after this position.")] = ""


class EventsQuery(EventFilterQuery, forbid_unknown_fields=True):
    """Query of the list of events."""

    since: (
        Annotated[OffsetDatetime, Meta(description="Only events last seen at or after this time.")] | None
    ) = None
    limit: Annotated[int, Meta(ge=1, le=MAX_EVENT_PAGE, description="Maximum number of events.")] = 50
    cursor: Annotated[str, Meta(max_length=800, description="``next`` of the previous page.")] = ""
    sort: Annotated[
        EventOrder,
        Meta(
            description="Order: time (last item), novelty (detection), size (items), each with cursors; "
            "surprise (unusual and recent) and growth (items per hour more than before): open events, one "
            "page."
        ),
    ] = "time"
