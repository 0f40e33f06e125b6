"""Types of the HTTP API v1 that clients and service share: articles, verdicts, events, problems.

Unknown fields of a request are rejected, so that a misspelled name is an error instead of being silently
ignored; those of an answer are ignored by clients. Times are RFC 3339: with an offset in requests, in UTC
("Z") with microseconds in answers. Docstrings become the descriptions of the OpenAPI schemas.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, get_args, get_type_hints

import msgspec
from msgspec import Meta

TEXT = (
    "The swimming hall of Brackwater opens again on Saturday after two years of repairs. The roof, which had "
    "let in rain since a storm, was replaced, and the water is now heated by warm waste air from the ice "
    "rink next door, which saves a third of the gas. Schools may use the pool free of charge in the mornings."
)


class _DocumentedMeta(msgspec.StructMeta):
    """Type of the types below, whose ``help`` shows fields with meanings instead of a long signature."""

    __signature__ = None  # type: ignore[assignment]  # help prints none


class Struct(msgspec.Struct, metaclass=_DocumentedMeta):
    """Base class of the types below."""


def _meaning(hint: Any) -> str:
    parts = (*getattr(hint, "__metadata__", ()), *get_args(hint))
    found = (part.description or "" if isinstance(part, Meta) else _meaning(part) for part in parts)
    return next(filter(None, found), "")


_DocumentedMeta.__slots__ = property(  # type: ignore[attr-defined]  # pydoc reads it
    lambda kind: {name: _meaning(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}
)


def doc(description: str, *examples: Any, **limits: Any) -> Meta:
    """Documentation of a field, for the OpenAPI document: what it is, with its unit, and an example.

    ``limits``: other arguments of Meta.
    """
    return Meta(description=description, examples=list(examples) or None, **limits)


MAX_URL_CHARS = 4096  # as in analysis/article_id.py, which clients do not load
MAX_TITLE_CHARS = 2000
MAX_SOURCE_CHARS = 300
MAX_PROFILE_CHARS = 40
LANGUAGE_TAG_PATTERN = r"^([A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*)?$"  # codes are no longer (ISO 639)
LanguageTag = Annotated[str, Meta(pattern=LANGUAGE_TAG_PATTERN, max_length=35)]
OffsetDatetime = Annotated[datetime, doc("RFC 3339 with an offset, e.g. 2026-11-20T08:00:00Z", tz=True)]
Source = Annotated[str, Meta(max_length=MAX_SOURCE_CHARS, description="The outlet, e.g. its host name.")]
ArticleId = Annotated[str, Meta(description="At most 512 bytes, no control characters.")]
PolicyProfile = Annotated[
    str,
    Meta(
        max_length=MAX_PROFILE_CHARS,
        description='Name of a policy profile of the service, or "default"; absent: selected by the source.',
    ),
]

PublishedAt = Annotated[
    datetime | None, doc("Time of publication that the outlet states; null: unknown.", "2026-11-20T08:00:00Z")
]
ArrivedAt = Annotated[
    datetime, doc("Time at which the article was stored first.", "2026-11-20T08:00:05.120000Z")
]
UpdatedFigures = Annotated[
    bool, doc("Whether it repeats an article with other numbers, such as a new toll.", False)
]
Reversed = Annotated[bool, doc("Whether it repeats an article with a word replaced by its opposite.", False)]
FingerprintText = Annotated[
    str, doc("64-bit simhash as 16 hexadecimal digits.", "a6e27d385a93ac82", pattern="^[0-9a-f]{16}$")
]
ErrorDetail = Annotated[
    str, doc("What was wrong, where, and what to do.", "id: expected a string, got an integer.")
]

VerdictName = Literal["new", "related", "duplicate"]
KeepReason = Literal["adds", "fuller", "updated_figures", "reversed", "correction", "headline", "news"]
KEEP_REASONS: dict[KeepReason, str] = {  # the first that holds is given
    "adds": "enough of its words are new",
    "fuller": "it contains the original and is longer",
    "updated_figures": "its outlet replaced figures",
    "reversed": "its outlet replaced a word by its opposite",
    "correction": "its outlet says that it corrects",
    "headline": "its headline contradicts that of each kept version",
    "news": "its headline and text say what no kept version does",
}
WhyKept = Annotated[
    KeepReason | None,
    doc(f"Why a duplicate is kept: {'; '.join(map(': '.join, KEEP_REASONS.items()))}. Else null.", "adds"),
]
EventStatus = Literal["emerging", "breaking", "fading", "closed"]
Severity = Literal["emerging", "breaking", "growing", "running", "fading", "ended"]
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
    "move_items",
    "undo",
]
WorkStatus = Literal["open", "on_it", "published", "dropped"]
NewWorkStatus = Literal[WorkStatus, "new", "seen"]
MuteScope = Literal["story", "routine"]
RelatedKindName = Literal[
    "", "part_of", "same_event", "same_story", "background", "same_person_or_place", "top_story", "recent"
]
RELATED_KINDS = (
    "part_of (it contains the article asked for), same_event (detected), same_story, background (an older "
    "article of the subject), same_person_or_place (or the same news); for a new reader top_story, recent; "
    "empty: unlikely, or not known."
)


class ArticleIn(Struct, forbid_unknown_fields=True, rename={"id_": "id"}):
    """One article with text, html or at least a title; null and an empty text count as not given.

    So does a ``published_at`` in the year 1, which programs write for no date. Without an id the URL
    identifies it; without a URL, or with that of a front page such as /en, its content.
    """

    id_: Annotated[ArticleId | None, Meta(examples=["pool-1"])] = None
    url: (
        Annotated[str, doc("http or https.", "https://gazette.example/pool", max_length=MAX_URL_CHARS)] | None
    ) = None
    title: (
        Annotated[str, doc("Headline.", "Brackwater swimming hall opens again", max_length=MAX_TITLE_CHARS)]
        | None
    ) = None
    text: Annotated[str, doc("The main text; takes precedence over html.", TEXT)] | None = None
    html: (
        Annotated[
            str,
            doc(
                "The whole page; the main text is extracted from it.",
                f"<html><body><article><p>{TEXT}</p></article></body></html>",
            ),
        ]
        | None
    ) = None
    source: Annotated[Source | None, Meta(examples=["Brackwater Gazette"])] = None
    published_at: Annotated[OffsetDatetime | None, Meta(examples=["2026-11-20T08:00:00Z"])] = None
    lang: Annotated[
        LanguageTag | None, doc('Language tag such as "en" or "zh-Hant"; detected when absent.', "en")
    ] = None
    policy: Annotated[PolicyProfile | None, Meta(examples=["default"])] = None


class DuplicateOf(Struct):
    """The stored article that this one duplicates; to link to one that was kept, use ``canonical_id``."""

    id: Annotated[str, doc("Id of the article it resembles most, itself maybe dropped.", "pool-2")]
    canonical_id: Annotated[str, doc("Id of the first article of the group, which was kept.", "pool-1")]
    distance: Annotated[
        int, doc("Differing bits of the two fingerprints, 0 to 64; null: no stored article is near.", 5)
    ]
    overlap: Annotated[
        float | None, doc("Share of wording in common, 0 to 1; null: it was not compared.", 0.82)
    ]
    rule: Annotated[
        Literal["exact", "hamming", "overlap"],
        doc("The rule that decided: equal text, fingerprint or shared wording.", "overlap"),
    ]


class SharedWord(Struct):
    """A word that both articles are about."""

    word: Annotated[str, doc("The word as a headline spells it, or stems if none has any.", "Brackwater")]
    weight: Annotated[float, doc("Its share of all that the articles have in common, 0 to 1.", 0.4)]


class RelatedOut(Struct):
    """A stored article on the same topic; a key with the role ``related`` gets the first five fields."""

    id: Annotated[str, doc("Id of the article.", "pool-1")]
    title: Annotated[str, doc("Headline.", "Brackwater swimming hall opens again")]
    url: Annotated[str, doc("Address of the article; empty: it has none.", "https://gazette.example/pool")]
    source: Annotated[str, doc("Name of the outlet; empty: unknown.", "Brackwater Gazette")]
    published_at: PublishedAt
    distance: Annotated[int, doc("Differing bits of the two fingerprints, 0 to 64.", 5)] = 64
    similarity: Annotated[float, doc("Cosine of the main terms, 0 to 1.", 0.61)] = 0.0
    score: Annotated[
        float | None, doc("Probability of one subject, 0 to 1; null in a verdict and for a new reader.", 0.83)
    ] = None
    kind: Annotated[RelatedKindName, doc(RELATED_KINDS, "same_story")] = ""
    copies: Annotated[int, doc("Number of its copies that are stored and not shown.", 3)] = 0
    shared: Annotated[list[SharedWord], doc("What both are about, heaviest first.")] = []
    hours_apart: Annotated[
        float | None, doc("Hours between the two dates; null: one is unknown, or in a verdict.", 26.5)
    ] = None
    because_of: Annotated[str, doc("Id of the article of the question that it belongs to.", "pool-1")] = ""


PROBLEMS = (
    "What is wrong as the crawler sent it: not_article, empty (no text), cut, markup, other_language (than "
    "declared), late (4 h after its date), future (over 1 h before it), no_time, undated, reused_id, "
    "untrusted (its source: not stored)."
)


class ReplacedArticle(Struct):
    """The article that an id stood for before; its copies stay in their group."""

    title: Annotated[str, doc("Headline.", "Harbour bridge closed")]
    source: Annotated[str, doc("Name of the outlet; empty: unknown.", "Brackwater Gazette")]
    published_at: PublishedAt
    verdict: Annotated[VerdictName, doc("The verdict that was answered for it.", "new")]


class OutcomeOut(Struct):
    """What was decided on an article. ``distance``: bits to the nearest stored article, null if above 7.

    ``keep`` is false for a duplicate with nothing that readers do not have, which a crawler drops.
    """

    id: Annotated[str, doc("Id of the article.", "pool-1")]
    verdict: Annotated[VerdictName, doc("new, related or duplicate, by the policy of the article.", "new")]
    keep: Annotated[
        bool,
        doc("Whether to store it: not a duplicate that adds too little, nor of an untrusted source.", True),
    ]
    keep_reason: WhyKept
    distance: Annotated[
        int | None, doc("Differing bits to the nearest stored article, 0 to 7; null: none is as near.", 5)
    ]
    hamming_class: Annotated[
        VerdictName, doc("The verdict by the distance alone, with the bits of the settings.", "new")
    ]
    duplicate_of: Annotated[
        DuplicateOf | None,
        doc("The stored article that this one duplicates; null unless the verdict is duplicate."),
    ]
    adds: Annotated[
        float | None,
        doc("Share of a duplicate's words that no kept article of its group has, 0 to 1; else null.", 0.05),
    ]
    fuller: Annotated[bool, doc("Whether it contains the original and has 60 words or 30 % more.", False)]
    updated_figures: UpdatedFigures
    reversed: Reversed
    text_is_article: Annotated[
        bool, doc("False: the text is a notice or a list that stands under many headlines.", True)
    ]
    part_of: Annotated[
        str | None, doc("Id of the collection that contains the article; null: none.", "briefing-7")
    ]
    follows: Annotated[
        str | None,
        doc("Id of the article of which it is a later version with a new text; null: none.", "live-1"),
    ]
    event_id: Annotated[str | None, doc("Id of the event that the article belongs to; null: none.", "pool-1")]
    space: Annotated[str, doc("Index of the article: language group and id of its model.", "en.e816")]
    fingerprint: FingerprintText
    short: Annotated[bool, doc("Whether the text is too short for reliable wording rules.", False)]


class VerdictOut(OutcomeOut):
    """The verdict on one article."""

    related: Annotated[list[RelatedOut], doc("Related articles, best first.")]
    problems: Annotated[list[str], doc(PROBLEMS, ["cut"])] = []
    stored_as: Annotated[
        str | None,
        doc("SOURCE:ID, then also id, if the posted id is of another source; else null.", "Gazette:1042"),
    ] = None
    reused_id: Annotated[
        bool,
        doc("Whether the id stood for another article, with next to nothing in common with this one.", False),
    ] = False
    replaces: Annotated[ReplacedArticle | None, doc("That other article; null unless reused_id.")] = None
    withdrawn: Annotated[
        list[str],
        doc("Submit these again: this text is no article, or what they repeat lost its id.", ["gazette-11"]),
    ] = []
    unchecked: Annotated[
        bool,
        doc("Whether the store forgot what it held: a copy may be called new, see /readyz.", False),
    ] = False
    stored: Annotated[
        bool,
        doc("Whether it is stored: not by a dry run, in another's store, or of an untrusted source.", True),
    ] = True
    created: Annotated[
        bool, doc("Whether this request stored it first, to be kept (201); DELETE ?undo=true.", True)
    ] = False


class ArticleRef(Struct):
    """An article in a list: title, address, source and times."""

    id: Annotated[str, doc("Id of the article.", "pool-1")]
    title: Annotated[str, doc("Headline.", "Brackwater swimming hall opens again")]
    url: Annotated[str, doc("Address of the article; empty: it has none.", "https://gazette.example/pool")]
    source: Annotated[str, doc("Name of the outlet; empty: unknown.", "Brackwater Gazette")]
    published_at: PublishedAt
    arrived_at: ArrivedAt


class ArticleOut(OutcomeOut):
    """A stored article: its metadata and its verdict."""

    title: Annotated[str, doc("Headline.", "Brackwater swimming hall opens again")]
    url: Annotated[str, doc("Address of the article; empty: it has none.", "https://gazette.example/pool")]
    source: Annotated[str, doc("Name of the outlet; empty: unknown.", "Brackwater Gazette")]
    lang: Annotated[str, doc("Language code; und: none was detected.", "en")]
    published_at: PublishedAt
    arrived_at: ArrivedAt
    updated_at: Annotated[
        datetime,
        doc("Time at which what is stored of the article changed last.", "2026-11-20T08:00:05.120000Z"),
    ]


class CopiesOut(Struct):
    """The stored articles of one duplicate group, the canonical one first."""

    id: Annotated[str, doc("Id of the article.", "pool-1")]
    canonical_id: Annotated[str, doc("Id of the first article of the duplicate group.", "pool-1")]
    copies: Annotated[
        list[ArticleRef], doc("The articles of the group, the canonical one first, at most 1,000.")
    ]
    truncated: Annotated[bool, doc("Whether there are more than are listed or compared.", False)]


class FoundArticle(ArticleRef):
    """An article in a result."""

    lang: Annotated[str, doc("Language code; und: none was detected.", "en")]
    verdict: Annotated[VerdictName, doc("new, related or duplicate, by the policy of the article.", "new")]
    keep: Annotated[bool, doc("Whether to store it: false for a duplicate without news.", True)]
    missing: Annotated[int, doc("Words of the query that headline, source and key terms lack.", 0)]
    event_id: Annotated[str | None, doc("Id of the event that the article belongs to; null: none.", "pool-1")]


class SearchedOut(Struct):
    """The headlines that were searched in full; older articles are found by their key terms."""

    articles: Annotated[int, doc("Number of articles searched in full.", 14223)]
    since: Annotated[
        datetime | None, doc("Arrival of the oldest of them; null: there are none.", "2026-11-20T08:00:00Z")
    ]
    loading: Annotated[
        bool, doc("Whether older headlines are still being read: repeat the search for more.", False)
    ]


class ArticlesOut(Struct):
    """Stored articles, newest first."""

    articles: Annotated[list[FoundArticle], doc("Articles, newest first or best first.")]
    total: Annotated[int, doc("Number of all that match.", 214)]
    next: Annotated[str | None, doc("Cursor of the next page; null on the last one.", "WzEsMl0")]
    searched: Annotated[SearchedOut, doc("The headlines that were searched in full.")]


class RelatedListOut(Struct):
    """Related articles, nearest first."""

    related: Annotated[
        list[RelatedOut],
        doc(
            "Related articles, best first. Empty: nothing that passes the filters has a rare word in common "
            "and reaches min_score, by default more with days apart (not with half_life)."
        ),
    ]


class RelatedToManyOut(RelatedListOut):
    """As RelatedListOut. ``not_found``: those of the given ids that are not stored, or not any more."""

    not_found: Annotated[list[str], doc("Given ids that are not stored, or not any more.", ["pool-9"])]


class RelatedToOneOut(Struct):
    """As RelatedListOut, of one article of a batch."""

    id: Annotated[str, doc("Id of the article.", "pool-1")]
    related: Annotated[list[RelatedOut], doc("Related articles, best first.")]


class RelatedBatchOut(Struct):
    """A list for each of several stored articles."""

    lists: Annotated[list[RelatedToOneOut], doc("The lists, in order of the given ids.")]
    not_found: Annotated[list[str], doc("Given ids that are not stored, or not any more.", ["pool-9"])]


class OverlapOut(Struct):
    """Shared wording, estimated from shingle sketches: ratios in 0..1, ``shared`` in shingles."""

    containment: Annotated[
        float, doc("Share of the shingles of the shorter text that are in the other, 0 to 1.", 0.82)
    ]
    resemblance: Annotated[float, doc("Shared shingles divided by all of both texts, 0 to 1.", 0.55)]
    shared: Annotated[float, doc("Estimated number of shared shingles.", 61.0)]
    opening: Annotated[
        float, doc("Larger share of either opening (80 words) that the other text contains, 0 to 1.", 0.9)
    ]
    common_opening: Annotated[
        float, doc("Share of the shorter opening that is in the other opening, 0 to 1.", 0.85)
    ]
    length_ratio: Annotated[
        float, doc("Length of the shorter text divided by that of the longer one, 0 to 1.", 0.74)
    ]


class ExplainSideOut(Struct):
    """One of the two articles; figures and passages that the other lacks (null: a text is not stored)."""

    label: Annotated[str, doc("Headline or id of the article.", "Swimmers get their hall back")]
    space: Annotated[str, doc("Index of the article: language group and id of its model.", "en.e816")]
    fingerprint: FingerprintText
    figures: Annotated[
        list[str] | None,
        doc("Numbers in the text that the other lacks; null: a text is not stored.", ["1,200"]),
    ]
    own_passages: Annotated[
        list[str] | None,
        doc("Passages that the other lacks; null: a text is not stored.", ["Good news for swimmers"]),
    ]


class RelatednessOut(Struct):
    """Why two articles are related, or not."""

    summary: Annotated[
        str, doc("The relation in two sentences.", "Probability of one subject 0.93: both are about rivers.")
    ]
    listed: Annotated[bool, doc("Whether the list of the first one may have the second one.", True)]
    similarity: Annotated[float, doc("Cosine of all terms, 0 to 1.", 0.66)]
    score: Annotated[float, doc("Probability of one subject, 0 to 1.", 0.83)]
    kind: Annotated[RelatedKindName, doc(RELATED_KINDS, "same_story")]
    shared: Annotated[list[SharedWord], doc("What both are about, heaviest first.")]
    hours_apart: Annotated[float | None, doc("Hours between the two times; null: one is unknown.", 1.5)]


class ExplainOut(Struct):
    """Comparison of two articles. Bit 0 is the least significant bit of the fingerprint."""

    summary: Annotated[
        str,
        doc("The comparison in one or two sentences.", "Duplicate: 82% of the shorter text is in the other."),
    ]
    a: Annotated[ExplainSideOut, doc("The first article.")]
    b: Annotated[ExplainSideOut, doc("The second article.")]
    distance: Annotated[
        int | None, doc("Differing bits, 0 to 64; null: the articles are in different indexes.", 12)
    ]
    differing_bits: Annotated[
        list[int] | None,
        doc("Positions of the differing bits, 0: least significant; null as the distance.", [3, 17, 60]),
    ]
    overlap: Annotated[OverlapOut, doc("Wording in common.")]
    similarity: Annotated[float, doc("Cosine of the main terms, 0 to 1.", 0.61)]
    headline_similarity: Annotated[float, doc("Share of headline words in common, 0 to 1.", 0.4)]
    same_outlet: Annotated[bool, doc("Whether both have the same source.", False)]
    hours_apart: Annotated[float | None, doc("Hours between the two times; null: one is unknown.", 1.5)]
    common_figures: Annotated[int, doc("Number of numbers in common.", 2)]
    is_copy: Annotated[bool, doc("Whether the rules take one for a duplicate of the other.", True)]
    keep: Annotated[bool, doc("Whether to store the later one if only the earlier one is stored.", False)]
    keep_reason: WhyKept
    updated_figures: UpdatedFigures
    reversed: Reversed
    shared_passages: Annotated[
        list[str] | None, doc("Passages in both; null: a text is not stored.", ["opens again on Saturday"])
    ]
    policy: Annotated[str, doc("Name of the policy profile.", "default")] = "default"
    relatedness: Annotated[
        RelatednessOut | None,
        doc("Whether they have one subject; null: the articles are in different indexes."),
    ] = None


class ActionOut(Struct):
    """One entry of an event's audit trail. ``event``: id of the event that the editor acted on.

    note      id of the added or deleted note; ``assignee``: "" for nobody; ``work_status``: the new one
    items     ids of the articles that were moved; ``of``: id of the action that was undone
    """

    action: Annotated[ActionName, doc("What to do.", "acknowledge")]
    actor: Annotated[str, doc("Name of the editor; empty: automatic.", "Ada")]
    at: Annotated[datetime, doc("Time.", "2026-11-20T08:40:00Z")]
    event: Annotated[str, doc("Id of the event that the editor acted on.", "pool-1")]
    scope: Annotated[
        MuteScope | None, doc("What to mute: the story for a week, or the routine permanently.", "story")
    ]
    into: Annotated[str | None, doc("Id of the event to merge into.", "pool-3")]
    item: Annotated[str | None, doc("Id of an article of the event.", "pool-2")]
    note: Annotated[int | None, doc("Id of the added or deleted note.", 1)]
    assignee: Annotated[str | None, doc('Name of the editor who works on it; "" for nobody.', "Ada")]
    work_status: Annotated[NewWorkStatus | None, doc("State of the work; null: unchanged.", "on_it")]
    id: Annotated[int, doc("Id of the action, unique within the event.", 1795164000000)] = 0
    items: Annotated[list[str], doc("Ids of the moved articles.", ["pool-2"])] = []
    of: Annotated[int | None, doc("Id of the undone action; null: none.", 1795164000000)] = None


class NoteOut(Struct):
    """A note of an editor on an event."""

    id: Annotated[int, doc("Id of the note.", 1)]
    actor: Annotated[str, doc("Name of the editor.", "Ada")]
    at: Annotated[datetime, doc("Time.", "2026-11-20T08:40:00Z")]
    text: Annotated[str, doc("Plain text of the note.", "Called the pool: opens at noon.")]


class EventDevelopment(Struct):
    """A new fact in a story that continues after its alert."""

    at: Annotated[datetime, doc("Time at which it was noticed.", "2026-11-21T08:40:00Z")]
    terms: Annotated[list[str], doc("Words new to the story; empty: it doubled.", ["reserves"])]


class EventOut(Struct):
    """One breaking event.

    severity  how fast outlets report it at the time of the response: "breaking" (detected less than 2 h ago,
              and in the last hour 10 items or a third of the peak), "emerging" (new, slower, not slowing),
              "growing" (older, as fast, twice the hour before), "running" (any other open event), "fading"
              (at most half as fast as at its peak, or no item in the last hour), "ended"
    handled   such events are last in sort=surprise; false again after a development, or items as for an alert
    translation_of  the alert is not repeated
    """

    id: Annotated[str, doc("Id of the event: that of its first article.", "pool-1")]
    title: Annotated[str, doc("Headline of the event.", "Brackwater swimming hall opens again")]
    current_title: Annotated[str, doc("As said now: Quake kills 9 (2+ outlets: 31 dead).", "Pool reopens")]
    status: Annotated[EventStatus, doc("Stage by the detector.", "breaking")]
    severity: Annotated[Severity, doc("How fast outlets report it at the time of the answer.", "growing")]
    detected_at: Annotated[datetime, doc("Time at which the event fired.", "2026-11-20T08:40:00Z")]
    first_seen: Annotated[datetime, doc("Time of the first item not in doubt.", "2026-11-20T08:00:00Z")]
    last_seen: Annotated[datetime, doc("Time of the last item.", "2026-11-20T09:30:00Z")]
    size: Annotated[int, doc("Items counted, of any age.", 31)]
    sightings: Annotated[int, doc("Further duplicates from sources that were counted already.", 12)]
    peak: Annotated[int, doc("Maximum number of items within one window (4 h).", 24)]
    rate: Annotated[int, doc("Maximum number of items within 10 minutes.", 6)]
    expected: Annotated[float, doc("Usual items per window for this story when it fired.", 1.4)]
    handled: Annotated[bool, doc("Whether an editor acknowledged, published, dropped or muted it.", False)]
    last_hour: Annotated[int, doc("Items in the last hour.", 14)]
    hour_before: Annotated[int, doc("Items in the hour before the last one.", 5)]
    sources: Annotated[list[str], doc("Names of outlets.", ["Brackwater Gazette", "Coastline News"])]
    languages: Annotated[list[str], doc("Language codes.", ["en"])]
    terms: Annotated[list[str], doc("Terms.", ["swimming", "hall"])]
    reason: Annotated[str, doc("Why it fired, in one sentence.", "24 items in 4 h, usually 1.4.")]
    merged_into: Annotated[str | None, doc("Id of the event that it was merged into; null: none.", "pool-3")]
    story_id: Annotated[str, doc("Id of its storyline, for /v1/stories/{id}.", "pool-1")]
    translation_of: Annotated[
        str | None, doc("Id of the event that reported it before in another language; null: none.", "pool-4")
    ]
    absorbed: Annotated[list[str], doc("Ids of the events merged into this one.", ["pool-5"])]
    acknowledged_by: Annotated[str | None, doc("Editor who acknowledged it; null: nobody.", "Ada")]
    muted: Annotated[MuteScope | None, doc("Scope of the muted alerts; null: not muted.", "story")]
    false_alarm: Annotated[bool, doc("Whether an editor marked it as a false alarm.", False)]
    actions: Annotated[list[ActionOut], doc("Editor actions, oldest first, the newest 300.")]
    assignee: Annotated[str, doc('Name of the editor who works on it; "" for nobody.', "Ada")]
    work_status: Annotated[WorkStatus, doc("State of the newsroom's work; null: unchanged.", "on_it")]
    note_count: Annotated[int, doc("Number of notes.", 1)]
    revision: Annotated[int, doc("Version number, which increases with each change.", 42)]
    developments: Annotated[list[EventDevelopment], doc("New facts after it fired, oldest first.")]


class ActedOut(EventOut):
    """The event after an action. ``done``: id of that action in ``actions``."""

    done: Annotated[int | None, doc("Id of the action; null: it changed nothing.", 1795164000000)]


class TimelinePoint(Struct):
    """Number of items that joined in the 10 minutes from ``at``; intervals without items are omitted."""

    at: Annotated[datetime, doc("Time.", "2026-11-20T08:40:00Z")]
    items: Annotated[int, doc("Number of items that joined in the 10 minutes.", 6)]


class EventDetailOut(EventOut):
    """The report on one event: ``items`` are ids in order of joining, ``articles`` the newest in full."""

    timeline: Annotated[list[TimelinePoint], doc("Items by 10 minutes; steps without items are omitted.")]
    items: Annotated[list[str], doc("Ids of the items in order of joining.", ["pool-1", "pool-2"])]
    cosines: Annotated[
        list[float],
        doc("Similarity of each to the story when it joined, 0 to 1 (1: duplicate or first).", [1.0, 0.61]),
    ]
    first_source: Annotated[
        str, doc("Source of the earliest item that is about it; empty: not certain.", "Brackwater Gazette")
    ]
    headline_id: Annotated[str, doc("Id of the article whose headline is the title.", "pool-1")]
    headline_is_chosen: Annotated[bool, doc("Whether an editor chose the headline.", False)]
    notes: Annotated[list[NoteOut], doc("Notes of editors, oldest first, at most 100.")]
    articles: Annotated[list[ArticleRef], doc("The newest items in full.")]
    previous: Annotated[
        str | None, doc("Id of the event of the storyline detected before this one; null: none.", "pool-0")
    ]
    next: Annotated[
        str | None, doc("Id of the event of the storyline detected after this one; null: none.", "pool-7")
    ]


class LearningOut(Struct):
    """How much the detector knows of what is usual: until all days are known, routine may fire."""

    known_days: Annotated[float, doc("Days of the last 7 that the detector knows.", 2.5)]
    needed_days: Annotated[int, doc("Days that it needs.", 7)]


class EventsOut(Struct):
    """Events in the order of ``sort``."""

    events: Annotated[list[EventOut], doc("Events.")]
    next: Annotated[
        str | None, doc("Cursor of the next page; null on the last one, and for surprise and growth.", "None")
    ]
    learning: Annotated[
        LearningOut | None, doc("Progress of the detector; null: it knows its 7 days, or nothing.")
    ]


class SearchOut(ArticlesOut):
    """Events and articles, best match first; ``events`` are in the first page only, at most 10."""

    words: Annotated[int, doc("Number of words searched; 0: the query has stop words only.", 2)]
    events: Annotated[list[EventOut], doc("Events.")]
    events_total: Annotated[int, doc("Number of all events that match.", 3)]


class ErrorOut(Struct, omit_defaults=True):
    """One error of an input: ``pointer`` or ``parameter`` says where it is."""

    detail: ErrorDetail
    code: Annotated[str, doc("Stable reason of this error.", "wrong_type")]
    pointer: Annotated[
        str | None, doc("JSON pointer into the body as a URI fragment; #: the whole body.", "#/id")
    ] = None
    parameter: Annotated[str | None, doc("Name of a parameter of the query or path.", "limit")] = None


class Problem(Struct, omit_defaults=True):
    """RFC 9457 problem details. ``code`` is stable; ``field`` names the offending part of the input.

    errors  all errors of the input that were found, at most 50, the first one is that of ``detail``
    """

    type: Annotated[
        str, doc("Address of the description of the error, relative to the service.", "/docs#error-bad_input")
    ]
    title: Annotated[str, doc("The kind of error in words.", "Invalid request")]
    status: Annotated[int, doc("HTTP status.", 400)]
    detail: ErrorDetail
    code: Annotated[str, doc("Stable code of the error.", "bad_input")]
    field: Annotated[str | None, doc("The offending part of the input; absent: no single part.", "id")] = None
    errors: Annotated[
        list[ErrorOut] | None,
        doc("All errors of the input, the first is that of detail; absent: not an input."),
    ] = None
    instance: Annotated[str | None, doc("Path of the request.", "/v1/articles")] = None
    request_id: Annotated[
        str | None, doc("Id of the request in the server's log and in X-Request-Id.", "6680f7ddb130516d")
    ] = None

    @property
    def sentences(self) -> str:
        """All ``errors``, for callers that do not have the list; else ``detail``."""
        return " ".join(error.detail for error in self.errors or (self,))


class LineProblem(Struct):
    """The answer to a rejected batch line; the other lines are not affected."""

    line: Annotated[int, doc("Number of the line in the batch, from 1.", 3)]
    error: Annotated[Problem, doc("The problem.")]
