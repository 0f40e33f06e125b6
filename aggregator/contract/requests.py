"""What a request of the public contract v1 may hold.

Unknown fields are forbidden, so that a misspelt name is an error and not a silent loss.
Times are RFC 3339 with an offset.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from aggregator.analysis.article_id import MAX_URL_CHARS
from aggregator.events.detection.model import ActionName, MuteScope
from aggregator.events.filter import EventStatus

MAX_TITLE_CHARS = 2000
MAX_SOURCE_CHARS = 300
MAX_RELATED_IDS = 20
MAX_ACTOR_CHARS = 200
MAX_RELATED = 100
MAX_EVENTS = 200
LANGUAGE_TAG_PATTERN = r"^([A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*)?$"

OffsetDatetime = Annotated[
    datetime, Meta(tz=True, description="RFC 3339 with an offset, e.g. 2026-11-20T08:00:00Z")
]
Source = Annotated[str, Meta(max_length=MAX_SOURCE_CHARS, description="The outlet, e.g. its host name.")]
ArticleId = Annotated[str, Meta(description="At most 512 bytes, no control characters.")]


class ArticleIn(Struct, forbid_unknown_fields=True, rename={"id_": "id"}):
    """One article. It needs text, html or a title; null counts as not given."""

    id_: ArticleId | None = None
    url: Annotated[str, Meta(max_length=MAX_URL_CHARS, description="http or https.")] | None = None
    title: Annotated[str, Meta(max_length=MAX_TITLE_CHARS)] | None = None
    text: (
        Annotated[str, Meta(description="The main text. Used in place of html when both are given.")] | None
    ) = None
    html: Annotated[str, Meta(description="The whole page; its main text is extracted.")] | None = None
    source: Source | None = None
    published_at: OffsetDatetime | None = None
    lang: (
        Annotated[
            str,
            Meta(
                pattern=LANGUAGE_TAG_PATTERN,
                max_length=35,
                description='Language tag such as "en" or "zh-Hant"; detected when absent.',
            ),
        ]
        | None
    ) = None


class RelatedIn(ArticleIn, forbid_unknown_fields=True, rename={"id_": "id"}):
    """What the reader has just read: up to 20 ids, or one article that need not be stored."""

    ids: Annotated[list[ArticleId], Meta(min_length=1, max_length=MAX_RELATED_IDS)] | None = None


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
    into: ArticleId | None = None
    item: ArticleId | None = None
    scope: MuteScope | None = None


class WatchIn(Struct, forbid_unknown_fields=True):
    """A query of /v1/events to be saved."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    query: Annotated[str, Meta(max_length=2000, description='E.g. "term=bridge&min_size=20".')]


class WebhookIn(Struct, forbid_unknown_fields=True):
    """An address that wants to be called when an event fires, doubles, merges or closes."""

    url: Annotated[
        str, Meta(max_length=2000, description="https only, unless webhook_allow_private_addresses is set.")
    ]
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
        Annotated[
            OffsetDatetime, Meta(description="Only articles published (else arrived) at or after this time.")
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
                description='Only articles in this language, e.g. "de"; "und": of which none was detected.',
            ),
        ]
        | None
    ) = None


class SavedFilterQuery(Struct, forbid_unknown_fields=True):
    """Which events: all that is given must hold. A watch saves such a query."""

    term: Annotated[str, Meta(max_length=200, description="In the headline, or among the terms.")] = ""
    source: Annotated[str, Meta(max_length=MAX_SOURCE_CHARS, description="An outlet that reported it.")] = ""
    lang: Annotated[str, Meta(max_length=35, description="Language of one of its items.")] = ""
    min_size: Annotated[int, Meta(ge=0, description="Items that count, at least.")] = 0
    status: EventStatus | None = None


class EventFilterQuery(SavedFilterQuery, forbid_unknown_fields=True):
    """The list, the stream, the feeds and the editors' page take it."""

    watch: Annotated[
        str, Meta(max_length=40, description="Id of a saved watch, whose query must hold too.")
    ] = ""


class FeedQuery(EventFilterQuery, forbid_unknown_fields=True):
    """Query of the feeds."""

    limit: Annotated[int, Meta(ge=1, le=MAX_EVENTS, description="Most entries.")] = 50


class FrontQuery(EventFilterQuery, forbid_unknown_fields=True):
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


class EventStreamQuery(EventFilterQuery, forbid_unknown_fields=True):
    """Query of the stream of changed events; the Last-Event-ID header goes before ``after``."""

    after: Annotated[str, Meta(max_length=40, description="Resume behind this position.")] = ""


class EventsQuery(EventFilterQuery, forbid_unknown_fields=True):
    """Query of the list of events."""

    since: Annotated[OffsetDatetime, Meta(description="Only events seen at or after this time.")] | None = (
        None
    )
    limit: Annotated[int, Meta(ge=1, le=MAX_EVENTS, description="Most events answered.")] = 50
    cursor: Annotated[str, Meta(max_length=800, description="``next`` of the page before.")] = ""
