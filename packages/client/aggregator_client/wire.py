"""Types of the HTTP API v1 that clients and service share: articles, verdicts, events, problems.

Unknown fields of a request are rejected, so that a misspelled name is an error instead of being silently
ignored; those of an answer are ignored by clients. Times are RFC 3339: with an offset in requests, in UTC
("Z") with microseconds in answers. Docstrings become the descriptions of the OpenAPI schemas.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

MAX_URL_CHARS = 4096  # as in analysis/article_id.py, which clients do not load
MIN_YEAR, MAX_YEAR = 1700, 2199  # dates outside are typing errors or scraping errors
MAX_TITLE_CHARS = 2000
MAX_SOURCE_CHARS = 300
MAX_PROFILE_CHARS = 40
LANGUAGE_TAG_PATTERN = r"^([A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*)?$"
OffsetDatetime = Annotated[
    datetime, Meta(tz=True, description="RFC 3339 with an offset, e.g. 2026-11-20T08:00:00Z")
]
Source = Annotated[str, Meta(max_length=MAX_SOURCE_CHARS, description="The outlet, e.g. its host name.")]
ArticleId = Annotated[str, Meta(description="At most 512 bytes, no control characters.")]
PolicyProfile = Annotated[
    str,
    Meta(
        max_length=MAX_PROFILE_CHARS,
        description='Name of a policy profile of the service, or "default"; absent: selected by the source.',
    ),
]

VerdictName = Literal["new", "related", "duplicate"]
EventStatus = Literal["emerging", "breaking", "fading", "closed"]
Severity = Literal["emerging", "breaking", "growing", "fading", "ended"]
ActionName = Literal[
    "acknowledge",
    "unacknowledge",
    "mute",
    "unmute",
    "merge",
    "remove_item",
    "false_alarm",
    "unlink",
    "note",
    "delete_note",
    "assign",
    "set_work_status",
    "choose_headline",
]
WorkStatus = Literal["open", "on_it", "published", "dropped"]
MuteScope = Literal["story", "routine"]


class ArticleIn(Struct, forbid_unknown_fields=True, rename={"id_": "id"}):
    """One article with text, html or at least a title; null counts as not given."""

    id_: ArticleId | None = None
    url: Annotated[str, Meta(max_length=MAX_URL_CHARS, description="http or https.")] | None = None
    title: Annotated[str, Meta(max_length=MAX_TITLE_CHARS)] | None = None
    text: Annotated[str, Meta(description="The main text; takes precedence over html.")] | None = None
    html: Annotated[str, Meta(description="The whole page; the main text is extracted from it.")] | None = (
        None
    )
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
    policy: PolicyProfile | None = None


class DuplicateOf(Struct):
    """The stored article that this one duplicates; ``canonical_id`` is the first article of its group."""

    id: str
    canonical_id: str
    distance: int
    overlap: float | None
    rule: Literal["exact", "hamming", "overlap", "title"]


class RelatedOut(Struct):
    """A stored article on the same topic."""

    id: str
    title: str
    url: str
    source: str
    published_at: datetime | None
    distance: int
    similarity: float


class VerdictOut(Struct):
    """The verdict on one article. ``distance``: bits to the nearest stored article, null if above 7."""

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
    """An article in a list: title, address, source and times."""

    id: str
    title: str
    url: str
    source: str
    published_at: datetime | None
    arrived_at: datetime


class ArticleOut(Struct):
    """A stored article: its metadata and its verdict."""

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
    """The stored articles of one duplicate group, the canonical one first.

    ``truncated``: there are more than the 1,000 listed.
    """

    id: str
    canonical_id: str
    copies: list[ArticleRef]
    truncated: bool


class FoundArticle(ArticleRef):
    """An article in a result.

    missing   number of words of the query that its headline, source and key terms lack
    event_id  the event that it belongs to, null without one
    """

    lang: str
    verdict: VerdictName
    missing: int
    event_id: str | None


class SearchedOut(Struct):
    """The headlines that were searched in full; older articles are found by their key terms.

    articles  number of articles
    since     arrival of the oldest of them, null without any
    loading   older ones are still being read: repeat the search for more
    """

    articles: int
    since: datetime | None
    loading: bool


class ArticlesOut(Struct):
    """Stored articles, newest first.

    total  number of all that match; ``next``: cursor of the next page, null on the last one
    """

    articles: list[FoundArticle]
    total: int
    next: str | None
    searched: SearchedOut


class RelatedListOut(Struct):
    """Related articles, nearest first."""

    related: list[RelatedOut]


class RelatedToManyOut(RelatedListOut):
    """As RelatedListOut. ``not_found``: those of the given ids that are not stored, or not any more."""

    not_found: list[str]


class OverlapOut(Struct):
    """Shared wording, estimated from shingle sketches: ratios in 0..1, ``shared`` in shingles.

    ``opening``: the larger share of either opening (80 words) that the other text contains;
    ``common_opening``: the share of the shorter opening that is in the other opening too;
    ``length_ratio``: of the shorter to the longer text.
    """

    containment: float
    resemblance: float
    shared: float
    opening: float
    common_opening: float
    length_ratio: float


class ExplainSideOut(Struct):
    """One of the two articles; figures and passages that the other lacks (null: a text is not stored)."""

    label: str
    space: str
    fingerprint: Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
    figures: list[str] | None
    own_passages: list[str] | None


class ExplainOut(Struct):
    """Comparison of two articles. Bit 0 is the least significant bit of the fingerprint.

    similarity          of the main terms, which the rules see
    related_similarity  by which related articles are ranked
    policy              name of the policy profile that the articles were compared under

    The similarities and ``boilerplate`` are in 0..1; ``boilerplate`` is the share
    of the common wording that other articles of the outlet have too and that does not count.
    """

    summary: str
    a: ExplainSideOut
    b: ExplainSideOut
    distance: int | None
    differing_bits: list[int] | None
    overlap: OverlapOut
    similarity: float
    related_similarity: float
    headline_similarity: float
    same_outlet: bool
    hours_apart: float | None
    boilerplate: float
    common_figures: int
    is_copy: bool
    updated_figures: bool
    shared_passages: list[str] | None
    policy: str = "default"


class ActionOut(Struct):
    """One entry of an event's audit trail. ``event``: id of the event that the editor acted on.

    note      id of a deleted note; ``assignee``: "" for nobody; ``work_status``: the new one
    """

    action: ActionName
    actor: str
    at: datetime
    event: str
    scope: MuteScope | None
    into: str | None
    item: str | None
    note: int | None
    assignee: str | None
    work_status: WorkStatus | None


class NoteOut(Struct):
    """A note of an editor on an event."""

    id: int
    actor: str
    at: datetime
    text: str


class EventOut(Struct):
    """One breaking event.

    severity  how fast outlets report it at the time of the response: "emerging" (detected less than 1 h ago,
              fewer than 30 items), "growing" (10 or more items in the last hour, twice those of the hour
              before), "breaking" (any other open event), "fading" (half its peak or less, or no item for 1
              h), "ended"
    size      counted items of any age; ``sightings``: further duplicates from sources already counted
    peak      maximum number of items within one window; ``rate``: maximum within 10 minutes
    expected  usual number of items per window for this story when the event fired
    last_hour  items in the last hour; ``hour_before``: in the hour before it (by steps of 10 minutes)
    muted     scope of the muted alerts, null: not muted; ``actions``: editor actions, oldest first
    story_id  storyline of the event: ``/v1/stories/{id}``; ``translation_of``: the event that reported it
              before in another language, whose alert is not repeated
    absorbed  ids of events merged into this one; ``revision``: version number, increases with each change
    assignee  editor who works on it, "" for nobody; ``note_count``: notes of editors
    """

    id: str
    title: str
    status: EventStatus
    severity: Severity
    detected_at: datetime
    first_seen: datetime
    last_seen: datetime
    size: int
    sightings: int
    peak: int
    rate: int
    expected: float
    last_hour: int
    hour_before: int
    sources: list[str]
    languages: list[str]
    terms: list[str]
    reason: str
    merged_into: str | None
    story_id: str
    translation_of: str | None
    absorbed: list[str]
    acknowledged_by: str | None
    muted: MuteScope | None
    false_alarm: bool
    actions: list[ActionOut]
    assignee: str
    work_status: WorkStatus
    note_count: int
    revision: int


class TimelinePoint(Struct):
    """Number of items that joined in the 10 minutes from ``at``; intervals without items are omitted."""

    at: datetime
    items: int


class EventDetailOut(EventOut):
    """The report on one event: ``items`` are ids in order of joining, ``articles`` the newest in full.

    cosines       similarity of each item to the story when it joined, 0..1 (1: duplicate or first item)
    previous      event of the same storyline detected before this one; ``next``: after it
    first_source  source of the first item; ``headline_id``: the article whose headline is the title
    headline_is_chosen  whether an editor chose it; ``notes``: oldest first, at most 100
    """

    timeline: list[TimelinePoint]
    items: list[str]
    cosines: list[float]
    first_source: str
    headline_id: str
    headline_is_chosen: bool
    notes: list[NoteOut]
    articles: list[ArticleRef]
    previous: str | None
    next: str | None


class LearningOut(Struct):
    """How much the detector knows of what is usual: until all days are known, routine may fire.

    known_days   of the last 7 days, with one decimal
    needed_days  7
    """

    known_days: float
    needed_days: int


class EventsOut(Struct):
    """Events in the order of ``sort``.

    next      cursor of the next page, null on the last one and for sort=surprise and sort=growth
    learning  null when the detector knows its 7 days, and before it has read an article
    """

    events: list[EventOut]
    next: str | None
    learning: LearningOut | None


class SearchOut(ArticlesOut):
    """Events and articles, best match first; ``events`` are in the first page only, at most 10.

    words         number of words that were searched; 0: the query has nothing but stop words
    events_total  number of all events that match
    """

    words: int
    events: list[EventOut]
    events_total: int


class ErrorOut(Struct, omit_defaults=True):
    """One error of an input: exactly one of ``pointer``, ``parameter`` and ``header`` says where it is.

    code       stable reason: a code of the table of reasons, or that of the problem
    pointer    JSON pointer into the body as a URI fragment ("#/ids/1"; "#": the whole body)
    parameter  name of a parameter of the query or path; ``header``: name of a header
    """

    detail: str
    code: str
    pointer: str | None = None
    parameter: str | None = None
    header: str | None = None


class Problem(Struct, omit_defaults=True):
    """RFC 9457 problem details. ``code`` is stable; ``field`` names the offending part of the input.

    errors  all errors of the input that were found, at most 50, the first one is that of ``detail``
    """

    type: str
    title: str
    status: int
    detail: str
    code: str
    field: str | None = None
    errors: list[ErrorOut] | None = None
    instance: str | None = None
    request_id: str | None = None


class LineProblem(Struct):
    """The answer to a rejected batch line; the other lines are not affected."""

    line: int
    error: Problem
