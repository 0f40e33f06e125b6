"""Request bodies and query parameters of the HTTP API v1, in addition to ``aggregator_client.wire``.

Unknown fields are rejected, so that a misspelled name is an error instead of being silently ignored.
Times are RFC 3339 with an offset. Docstrings become the descriptions of the OpenAPI schemas.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from aggregator_client.wire import (
    LANGUAGE_TAG_PATTERN,
    MAX_PROFILE_CHARS,
    MAX_SOURCE_CHARS,
    MAX_URL_CHARS,
    ActionName,
    ArticleId,
    ArticleIn,
    EventStatus,
    LanguageTag,
    MuteScope,
    NewWorkStatus,
    OffsetDatetime,
    PolicyProfile,
    Source,
    VerdictName,
    doc,
)

MAX_NOTE_CHARS = 2000
MAX_RELATED_PAGE = 100
MAX_EVENT_PAGE = 200
MAX_SEARCH_CHARS = 200
MAX_SEARCH_PAGE = 100
ONLY_LANGUAGE = 'Only articles in this language, e.g. "de"; "und": no language was detected.'
BACKFILL = "An archive: verdicts without events; dated articles teach what is usual at their time."
TAKE_DOWN = "Editors: true keeps the text from being stored again under any id (410), false lifts that."
UNDO = (
    "After a failed insert: copies that were not to keep leave with it, since the crawler has none of them."
)
ORDER = (
    "Order: time (last item), novelty (detection), size (items), each with cursors; surprise (items and "
    "sources of the last 30 minutes against the usual, handled events last) and growth (items per hour more "
    "than before): open events, one page."
)
BODY_SOURCE = "A list: as in the query. A text: the outlet of the article; with ids, as a list of one."
HALF_LIFE = (
    "Age before now at which an answer counts half, similar scores as equal, e.g. 12h; 0: by score. Default: "
    "7d before the article asked about, and over 3d apart it has to be likelier."
)
EXCLUDED_IDS = "Neither these nor their copies; each repeats the parameter, and unknown ids have no effect."
DIVERSITY = "How much an answer that resembles better ones moves back, 0 to 1; by default 0, for ids 0.3."

ProfileName = Annotated[str, Meta(max_length=MAX_PROFILE_CHARS)]
Moment = Annotated[str, Meta(max_length=40)]  # RFC 3339 or an age
Sources = Annotated[list[Source], doc("Only from these whole names.", ["Coastline News"], max_length=50)]
ExcludedSources = Annotated[list[Source], doc("None of these whole names.", ["Estmark Radio"], max_length=50)]
ExcludedIds = Annotated[list[ArticleId], doc(EXCLUDED_IDS, ["pool-3"], max_length=200)]
RelatedLimit = Annotated[int, doc("Maximum number of items.", 20, ge=1, le=MAX_RELATED_PAGE)]
RelatedSince = Annotated[Moment, doc("Published (else arrived) from this time, day (UTC) or age on.", "7d")]
RelatedUntil = Annotated[Moment, doc("Published (else arrived) before this time, day (UTC) or age.", "1h")]
HalfLife = Annotated[str, doc(HALF_LIFE, "2d", max_length=10)]
Diversity = Annotated[float, doc(DIVERSITY, 0.3, ge=0, le=1)]
MinScore = Annotated[float, doc("Least score. Absent: related_min_score, more with days.", 0.5, ge=0, le=1)]
SeenIds = Annotated[list[Annotated[str, Meta(max_length=100)]], Meta(max_length=200)]
NoteText = Annotated[str, Meta(max_length=MAX_NOTE_CHARS)]
EventsQueryString = Annotated[str, Meta(max_length=2000)]
ChangeName = Literal["fired", "development", "doubled", "merged", "closed"]
PayloadFormat = Annotated[
    Literal["standard", "slack"],
    doc("Format of the body: Standard Webhooks, or a Slack message.", "standard"),
]
SearchOrder = Literal["relevance", "time"]
EventOrder = Literal["time", "novelty", "size", "surprise", "growth"]
SourceOrder = Literal["articles", "originals", "copies", "copied", "lag"]


class ReadArticle(Struct, forbid_unknown_fields=True):
    """An article that a reader has read; without a time it counts as read last."""

    id: Annotated[ArticleId, Meta(examples=["pool-1"])]
    read_at: Annotated[OffsetDatetime | None, Meta(examples=["2026-11-20T08:40:00Z"])] = None


ReadArticles = Annotated[
    list[ArticleId | ReadArticle], doc("What a reader has read, 0 to 50.", ["pool-1"], max_length=50)
]


class RelatedIn(ArticleIn, forbid_unknown_fields=True, rename={"id_": "id"}):
    """What to find related articles for: an article by its content, or ids; neither: a new reader.

    The parameters of the query may be given here instead.
    """

    ids: ReadArticles | None = None
    source: Annotated[Sources | Source | None, doc(BODY_SOURCE, "Brackwater Gazette")] = None  # type: ignore[assignment]
    limit: RelatedLimit | None = None
    since: RelatedSince | None = None
    until: RelatedUntil | None = None
    exclude_source: ExcludedSources | None = None
    exclude_ids: ExcludedIds | None = None
    half_life: HalfLife | None = None
    diversity: Diversity | None = None
    min_score: MinScore | None = None


class ExplainIn(Struct, forbid_unknown_fields=True):
    """Two articles to compare, each by id or content, under ``policy`` or that of the later one's source."""

    a: Annotated[str | ArticleIn, doc("The first article: an id, or an article by its content.", "pool-1")]
    b: Annotated[str | ArticleIn, doc("The second article: an id, or an article by its content.", "pool-2")]
    policy: Annotated[PolicyProfile | None, Meta(examples=["default"])] = None


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
    set_work_status  set ``work_status``; "on_it" also assigns the event to the actor if nobody has it; "new":
                 open, not acknowledged and assigned to nobody; "seen": acknowledged, otherwise like "new"
    choose_headline  use the headline of the article ``item``; without it, the automatic headline again
    move_items   move the articles ``items`` to the event ``into`` (itself: those of none), or to a new event
    undo         undo the action ``of``, unless what it changed was changed again
    """

    action: Annotated[ActionName, doc("What to do.", "acknowledge")]
    actor: Annotated[str, doc("The editor; with access keys, that of the key.", "Ada", max_length=200)] = ""
    into: Annotated[ArticleId | None, Meta(examples=["pool-3"])] = None
    item: Annotated[ArticleId | None, Meta(examples=["pool-2"])] = None
    scope: Annotated[MuteScope | None, doc("What to mute; absent: the story.", "story")] = None
    text: Annotated[NoteText | None, doc("Text of the note.", "Called the pool: opens at noon.")] = None
    note: Annotated[int | None, doc("Id of the note to delete.", 1)] = None
    assignee: Annotated[str, doc("Name of an editor.", "Ada", max_length=200)] | None = None
    work_status: Annotated[NewWorkStatus | None, doc("State of the newsroom's work.", "on_it")] = None
    items: (
        Annotated[list[ArticleId], doc("Ids of articles.", ["pool-2"], min_length=1, max_length=500)] | None
    ) = None
    of: Annotated[int | None, doc("Id of the action to undo.", 1795164000000)] = None


class ReadMarkIn(Struct, forbid_unknown_fields=True):
    """Events that a user has seen, in addition to those stored."""

    looked_at: Annotated[OffsetDatetime | None, Meta(examples=["2026-11-20T08:40:00Z"])] = None
    seen: Annotated[SeenIds, doc("Ids of single events that are seen, at most 200.", ["pool-1"])] = []


class WebhookIn(Struct, forbid_unknown_fields=True):
    """Webhook to register: it is called when an event fires, develops, doubles, merges or closes."""

    url: Annotated[
        str,
        doc(
            "URL to call: https, unless private addresses are allowed.",
            "https://hooks.example/news",
            max_length=2000,
        ),
    ]
    query: Annotated[EventsQueryString, doc("Only matching events are sent.", "term=flood")] = ""
    format: PayloadFormat = "standard"
    kinds: Annotated[list[ChangeName], doc("Changes to send; empty: all.", ["fired"], max_length=5)] = []


class WebhookActionIn(Struct, forbid_unknown_fields=True):
    """What to do with a webhook or a target of a desk; ``ping`` sends a test.

    ``retry`` makes all pending deliveries due now, ``resend`` enqueues the abandoned ``delivery`` again.
    """

    action: Annotated[Literal["ping", "enable", "disable", "retry", "resend"], doc("What to do.")]
    delivery: Annotated[str, doc("Id of an abandoned delivery.", "d-81f2", max_length=40)] = ""


DeskTerms = Annotated[list[Annotated[str, Meta(min_length=1, max_length=200)]], Meta(max_length=50)]
Threshold = Annotated[int, Meta(ge=0, le=1_000_000)]
ClockTime = Annotated[
    str, Meta(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$|^$", description='"22:30", or empty.')
]


class DeskIn(Struct, forbid_unknown_fields=True):
    """A desk: a saved view of the events, and when to notify its targets.

    Events between two notifications share the next one; in quiet hours they are held and reported at the end.
    """

    name: Annotated[str, doc("Name of the desk.", "Harbour desk", min_length=1, max_length=100)]
    terms: Annotated[DeskTerms, doc("One must be in the headline or terms.", ["ferry", "harbour"])] = []
    without: Annotated[DeskTerms, doc("None of these may be in the headline or terms.", ["football"])] = []
    sources: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=MAX_SOURCE_CHARS)]],
        doc("At least one must have reported the event, at most 50.", ["Coastline News"], max_length=50),
    ] = []
    languages: Annotated[
        list[Annotated[str, Meta(min_length=2, max_length=35, pattern=LANGUAGE_TAG_PATTERN)]],
        doc("At least one item has one of these languages, at most 50.", ["en", "zh"], max_length=50),
    ] = []
    min_size: Annotated[Threshold, doc("Minimum number of items.", 20)] = 0
    alert_size: Annotated[Threshold, doc("Notify at this many items; 0: no condition.", 20)] = 0
    alert_sources: Annotated[Threshold, doc("Notify at this many sources; 0: no condition.", 5)] = 0
    alert_hourly: Annotated[Threshold, doc("Notify at this many items within the last hour; 0: any.", 0)] = 0
    pause_minutes: Annotated[int, doc("Minutes between two notifications.", 5, ge=0, le=1440)] = 5
    quiet_from: Annotated[ClockTime, doc('"22:30", or empty.', "22:30")] = ""
    quiet_until: Annotated[ClockTime, doc('"22:30", or empty.', "06:00")] = ""
    time_zone: Annotated[str, doc('IANA name, e.g. "Europe/Berlin".', "Europe/Berlin", max_length=60)] = "UTC"
    quiet_size: Annotated[Threshold, doc("Items from which quiet hours do not hold it; 0: none.", 100)] = 0
    paused: Annotated[bool, doc("Whether no notifications are sent.", False)] = False
    digest_at: Annotated[ClockTime, doc("When targets that take text get a digest of the day.", "07:00")] = ""


class TargetIn(Struct, forbid_unknown_fields=True):
    """A notification target of a desk."""

    kind: Annotated[Literal["mail", "webhook"], doc("Kind of the target.", "webhook")]
    address: Annotated[
        str,
        doc(
            "E-mail address, URL of a chat or push service, or URL of a webhook.",
            "https://hooks.example/desk",
            min_length=1,
            max_length=2000,
        ),
    ]
    format: PayloadFormat = "standard"
    kinds: Annotated[
        list[Literal["development", "doubled", "closed"]],
        doc("Later changes of a reported event to send, too.", ["development"], max_length=3),
    ] = []


class NoQuery(Struct, forbid_unknown_fields=True):
    """No query parameters."""


class IngestQuery(Struct, forbid_unknown_fields=True):
    """Query of the calls that store articles."""

    dry_run: Annotated[bool, doc("Store nothing; lines are not compared with each other.", True)] = False
    policy: Annotated[ProfileName, doc("Policy profile of articles that name none.", "default")] = ""
    backfill: Annotated[bool, doc(BACKFILL, False)] = False


class DeleteQuery(Struct, forbid_unknown_fields=True):
    """Query of the deletion of an article."""

    take_down: Annotated[bool, doc(TAKE_DOWN, True)] | None = None
    undo: Annotated[bool, doc(UNDO, True)] = False


class RelatedQuery(Struct, forbid_unknown_fields=True):
    """Which related articles are answered, and in which order."""

    limit: RelatedLimit = 10
    since: RelatedSince | None = None
    until: RelatedUntil | None = None
    source: Sources = []
    exclude_source: ExcludedSources = []
    exclude_ids: ExcludedIds = []
    lang: Annotated[LanguageTag, doc(ONLY_LANGUAGE, "en")] | None = None
    half_life: HalfLife | None = None
    diversity: Diversity | None = None
    min_score: MinScore | None = None


class RelatedBatchIn(RelatedQuery, forbid_unknown_fields=True, kw_only=True):
    """Stored articles that each get a separate list, for pages that are rendered in advance."""

    ids: Annotated[list[ArticleId], doc("1 to 100 ids, each once.", ["pool-1"], min_length=1, max_length=100)]
    source: Annotated[Sources | Source, doc(BODY_SOURCE, ["Coastline News"])] = []  # type: ignore[assignment]


class SavedFilterQuery(Struct, forbid_unknown_fields=True):
    """Filter of events: all given conditions must hold."""

    term: Annotated[str, doc("Text in the headline or terms.", "swimming", max_length=200)] = ""
    source: Annotated[Source, doc("An outlet that reported the event.", "Brackwater Gazette")] = ""
    lang: Annotated[str, doc("Language of at least one item.", "en", max_length=35)] = ""
    min_size: Annotated[int, doc("Minimum number of items.", 20, ge=0)] = 0
    status: Annotated[EventStatus | None, doc("Stage by the detector.", "breaking")] = None


class EventFilterQuery(SavedFilterQuery, forbid_unknown_fields=True):
    """Filter of events for the list, the stream, the feeds and the editors' page."""

    watch: Annotated[str, doc("Id of a desk to match too.", "1ac4d0f935b5", max_length=40)] = ""


class TopStoriesQuery(Struct, forbid_unknown_fields=True):
    """Query of the largest stories."""

    hours: Annotated[int, doc("Hours, at most those of the window.", 2, ge=1, le=24)] = 4
    lang: Annotated[LanguageTag, doc("Only stories with an item in this language.", "en")] = ""
    desk: Annotated[str, doc("Id of a desk to match.", "1ac4d0f935b5", max_length=40)] = ""
    limit: Annotated[int, doc("Maximum number of stories.", 20, ge=1, le=60)] = 10


class SourcesPageQuery(Struct, forbid_unknown_fields=True):
    """Query of the page of outlets."""

    q: Annotated[str, doc("Text in the name of the outlet.", "Gazette", max_length=MAX_SOURCE_CHARS)] = ""
    sort: Annotated[SourceOrder, doc("Order of the outlets.", "articles")] = "articles"
    offset: Annotated[int, doc("Outlets to skip.", 0, ge=0, le=10_000)] = 0


class SourcesQuery(SourcesPageQuery, forbid_unknown_fields=True):
    """Query of the list of outlets."""

    limit: Annotated[int, doc("Maximum number of outlets.", 20, ge=1, le=500)] = 100


class SourceTrustIn(Struct, forbid_unknown_fields=True):
    """Whether a source is trusted."""

    untrusted: Annotated[
        bool,
        doc("True: store nothing of it from now on, and delete what is stored. False: store again.", True),
    ]


class DayQuery(Struct, forbid_unknown_fields=True):
    """Query of a day."""

    time_zone: Annotated[str, doc("Else that of the desk, or UTC.", "Europe/Berlin", max_length=60)] = ""
    watch: Annotated[str, doc("Id of a desk to match.", "1ac4d0f935b5", max_length=40)] = ""


class FeedQuery(EventFilterQuery, forbid_unknown_fields=True):
    """Query of the feeds."""

    limit: Annotated[int, doc("Maximum number of entries.", 20, ge=1, le=MAX_EVENT_PAGE)] = 50
    digest: Annotated[bool, doc("The last digest of the desk ``watch`` instead.", False)] = False


class ArticleFilterQuery(Struct, forbid_unknown_fields=True):
    """Filter of stored articles: all conditions must hold. Times are of publication, or else of arrival."""

    lang: Annotated[LanguageTag, doc(ONLY_LANGUAGE, "en")] = ""
    source: Annotated[Source, doc("Only from this outlet, in any case.", "Brackwater Gazette")] = ""
    verdict: Annotated[VerdictName | Literal[""], doc("Only articles with this verdict.", "new")] = ""
    since: Annotated[OffsetDatetime, doc("Only from this time on.", "2026-11-20T08:00:00Z")] | None = None
    until: Annotated[OffsetDatetime, doc("Only before this time.", "2027-01-01T00:00:00Z")] | None = None


class SearchQuery(ArticleFilterQuery, forbid_unknown_fields=True, kw_only=True):
    """Query of the search. Language, source and times restrict the events, too."""

    q: Annotated[
        str, doc("Words, in quotes a phrase; an id or URL.", "swimming hall", max_length=MAX_SEARCH_CHARS)
    ]
    sort: Annotated[SearchOrder, doc("Best first; or those that lack fewest words, newest first.")] = (
        "relevance"
    )
    limit: Annotated[int, doc("Maximum number of articles.", 20, ge=1, le=MAX_SEARCH_PAGE)] = 20
    cursor: Annotated[str, doc("``next`` of the previous page.", "WzEsMl0", max_length=200)] = ""


class ArticlesQuery(ArticleFilterQuery, forbid_unknown_fields=True):
    """Query of the list of articles."""

    url: Annotated[
        str,
        doc("Only with this URL, in any spelling.", "https://gazette.example/pool", max_length=MAX_URL_CHARS),
    ] = ""
    limit: Annotated[int, doc("Maximum number of articles.", 20, ge=1, le=MAX_SEARCH_PAGE)] = 50
    cursor: Annotated[str, doc("``next`` of the previous page.", "WzEsMl0", max_length=200)] = ""


class EventStreamQuery(EventFilterQuery, forbid_unknown_fields=True):
    """Query of the event stream; the Last-Event-ID header takes precedence over ``after``."""

    after: Annotated[str, doc("Resume after this position.", "0", max_length=40)] = ""


class EventsQuery(EventFilterQuery, forbid_unknown_fields=True):
    """Query of the list of events."""

    since: Annotated[OffsetDatetime, doc("Last seen then or later.", "2026-11-20T08:00:00Z")] | None = None
    limit: Annotated[int, doc("Maximum number of events.", 20, ge=1, le=MAX_EVENT_PAGE)] = 50
    cursor: Annotated[
        str, doc("`next` of a page.", "WzE3OTAwMDAwMDAwMDAsNDIsInBvb2wtMSJd", max_length=800)
    ] = ""
    sort: Annotated[EventOrder, doc(ORDER, "time")] = "time"
