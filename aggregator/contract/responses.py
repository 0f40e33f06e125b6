"""Response bodies of the HTTP API v1, in addition to those of ``aggregator_client.wire``.

Times are RFC 3339 in UTC ("Z") with microseconds. Docstrings become the descriptions of the OpenAPI schemas.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Struct

from aggregator.contract.requests import DeskIn
from aggregator_client.wire import ArticleRef, EventOut, doc

TargetKind = Literal["webhook", "mail"]
TimeBasis = Literal["published", "day", "claimed", "arrived"]
OutletKind = Literal["first", "own", "copy", "same time", "headline", "doubtful"]


class EventItemOut(ArticleRef):
    """An article of an event."""

    lang: Annotated[str, doc("Language code; und: none was detected.", "en")]
    basis: Annotated[TimeBasis, doc("Which time counts: published, or arrived or claimed.", "published")]
    doubtful: Annotated[bool, doc("Whether it is like hardly any of the others, or too early.", False)]
    copy_of: Annotated[str | None, doc("Id of the article that it duplicates; null: an original.", "pool-1")]


class EventItemsOut(Struct):
    """The articles of an event that are still stored, in order of time."""

    event_id: Annotated[str, doc("Id of the event.", "pool-1")]
    title: Annotated[str, doc("Headline of the event.", "Brackwater swimming hall opens again")]
    items: Annotated[list[EventItemOut], doc("The articles in order of time.")]


class DayOut(Struct):
    """The events that had items on a day, whenever detected; at most 500, most items of the day first."""

    date: Annotated[date, doc("The day.", "2026-11-20")]
    since: Annotated[datetime, doc("Its first moment.", "2026-11-19T23:00:00Z")]
    until: Annotated[datetime, doc("The first moment of the next day.", "2026-11-20T23:00:00Z")]
    events: Annotated[list[EventOut], doc("Its events as they are now.")]


class DevelopmentOut(Struct):
    """What one event of a storyline brought on one day (UTC)."""

    day: Annotated[date, doc("The day, UTC.", "2026-11-20")]
    event_id: Annotated[str, doc("Id of the event.", "pool-1")]
    title: Annotated[str, doc("Headline of that day.", "Brackwater swimming hall opens again")]
    items: Annotated[int, doc("Items of the event on that day.", 18)]
    article: Annotated[ArticleRef | None, doc("The article; null: none is stored.")]


class StoryOut(Struct):
    """A storyline: events of one topic over days and weeks, in order of detection."""

    id: Annotated[str, doc("Id of the first event, which may have expired.", "pool-1")]
    title: Annotated[str, doc("Headline of the event detected last.", "Brackwater swimming hall opens again")]
    first_seen: Annotated[datetime, doc("Time of the first item not in doubt.", "2026-11-20T08:00:00Z")]
    last_seen: Annotated[datetime, doc("Time of the last item.", "2026-11-20T09:30:00Z")]
    events: Annotated[list[EventOut], doc("Events.")]
    developments: Annotated[list[DevelopmentOut], doc("What each event brought, by day.")]


class TopStoryOut(Struct):
    """One of the largest stories of the last hours, usual or not; ``building_up``: (items, items to fire)."""

    title: Annotated[str, doc("Headline of the story.", "Brackwater swimming hall opens again")]
    headline_id: Annotated[str, doc("Id of the article with this headline.", "pool-1")]
    items: Annotated[int, doc("Articles in the hours of the query.", 31)]
    voices: Annotated[int, doc("Distinct outlets or families of outlets that published them.", 12)]
    since: Annotated[datetime, doc("Running since: its first item without a gap.", "2026-11-20T08:00:00Z")]
    last_seen: Annotated[datetime, doc("Time of the last item.", "2026-11-20T09:30:00Z")]
    sources: Annotated[list[str], doc("Names of outlets.", ["Brackwater Gazette", "Coastline News"])]
    languages: Annotated[list[str], doc("Language codes.", ["en"])]
    terms: Annotated[list[str], doc("Key terms.", ["swimming", "hall"])]
    event_id: Annotated[str | None, doc("Its event, if it is one; null: none.", "pool-1")]
    storyline_id: Annotated[str | None, doc("Its storyline, for /v1/stories/{id}; null: none.", "pool-1")]
    needed: Annotated[int | None, doc("Articles that make it an event; null: it is one, or usual.", 16)]


class TopStoriesOut(Struct):
    """The largest stories of the last hours."""

    stories: Annotated[list[TopStoryOut], doc("The largest first, by outlets.")]
    building_up: Annotated[list[TopStoryOut], doc("Unusual ones with half of what makes an event, or more.")]


class ReadMarkOut(Struct):
    """What a user has seen."""

    looked_at: Annotated[datetime | None, doc("Seen up to then; null: never looked.", "2026-11-20T08:40:00Z")]
    seen: Annotated[list[str], doc("Ids of single events that are seen, at most 200.", ["pool-1"])]


class WebhookOut(Struct):
    """A webhook or a target of a desk, with its delivery status."""

    id: Annotated[str, doc("Id of the webhook or target.", "9b7f3c21d0e4")]
    url: Annotated[str, doc("URL that is called; masked for targets of desks.", "https://hooks.example/news")]
    queries: Annotated[list[str], doc("Queries of /v1/events that must match; empty: all.", ["term=flood"])]
    format: Annotated[str, doc("Format of the body: Standard Webhooks, or a Slack message.", "standard")]
    created_at: Annotated[datetime, doc("Time of creation.", "2026-11-20T08:40:00Z")]
    secret: Annotated[str | None, doc("Signing secret, on creation only.", "whsec_c2VjcmV0LW9mLXRoZS1wb29s")]
    disabled: Annotated[str | None, doc("Why deliveries wait; null: they do not.", "paused by an editor")]
    owed: Annotated[int, doc("Number of pending deliveries.", 0)]
    delivered: Annotated[int, doc("Number of deliveries that succeeded.", 17)]
    failed: Annotated[int, doc("Number of attempts that failed.", 1)]
    last_at: Annotated[datetime | None, doc("Time of the last attempt; null: none.", "2026-11-20T08:40:00Z")]
    last_result: Annotated[str | None, doc("Result of the last attempt; null: none yet.", "200")]
    kind: Annotated[TargetKind, doc("Kind.", "webhook")] = "webhook"
    desk: Annotated[str | None, doc("Id of its desk; null: it gets every change.", "5d0c1e8a77b2")] = None
    kinds: Annotated[list[str], doc("Changes that are sent; empty: all.", ["fired", "development"])] = []


class AttemptOut(Struct):
    """One attempt at a delivery."""

    delivery: Annotated[str, doc("Id of the delivery.", "d-81f2")]
    kind: Annotated[str, doc("Kind: fired, development, doubled, merged or closed.", "fired")]
    at: Annotated[datetime, doc("Time.", "2026-11-20T08:40:00Z")]
    number: Annotated[int, doc("Number of the attempt, from 1.", 1)]
    error: Annotated[str | None, doc("Why it failed; null: it was delivered.", "connection refused")]
    next_at: Annotated[datetime | None, doc("Time of the next attempt; null: none.", "2026-11-20T08:40:00Z")]
    event_id: Annotated[str | None, doc("Id of the event; null: of several.", "pool-1")]
    events: Annotated[int, doc("Number of events in the delivery.", 1)]
    title: Annotated[str, doc("Its headline, of a mail the subject; empty: unknown.", "Pool closed")]


class DeskOut(DeskIn, forbid_unknown_fields=False, kw_only=True):
    """A desk and the addresses of its view."""

    id: Annotated[str, doc("Id of the desk.", "5d0c1e8a77b2")]
    created_at: Annotated[datetime, doc("Time of creation.", "2026-11-20T08:40:00Z")]
    events: Annotated[str, doc("Path of its list of events.", "/v1/events?watch=5d0c1e8a77b2")]
    stream: Annotated[str, doc("Path of its event stream.", "/v1/events/stream?watch=1ac4d0f935b5")]
    atom: Annotated[str, doc("Path of its Atom feed.", "/v1/events.atom?watch=1ac4d0f935b5")]


class DesksOut(Struct):
    """All desks, oldest first."""

    desks: Annotated[list[DeskOut], doc("The desks, oldest first.")]


class DeadLetterOut(Struct):
    """A delivery that was abandoned after about a day of retries."""

    id: Annotated[str, doc("Id of the delivery.", "d-81f2")]
    kind: Annotated[str, doc("Kind: fired, development, doubled, merged or closed.", "fired")]
    event_id: Annotated[str, doc("Id of the event.", "pool-1")]
    made_at: Annotated[datetime, doc("Time at which the delivery was made.", "2026-11-20T08:40:00Z")]
    attempts: Annotated[int, doc("Number of attempts.", 9)]
    result: Annotated[str, doc("Result of the last attempt.", "503")]
    title: Annotated[str, doc("Its headline, of a mail the subject; empty: unknown.", "Pool closed")]


class WebhookDetailOut(WebhookOut):
    """A webhook with its deliveries."""

    dead: Annotated[list[DeadLetterOut], doc("Deliveries that were abandoned, newest first.")] = []
    attempts: Annotated[list[AttemptOut], doc("Attempts, newest first.")] = []


class WebhooksOut(Struct):
    """All webhooks, oldest first."""

    webhooks: Annotated[list[WebhookOut], doc("The webhooks and targets, oldest first.")]


class StoreOut(Struct):
    """State of the store."""

    kind: Annotated[str, doc("memory, embedded, redis (or Valkey) or redis-cluster.", "embedded")]
    version: Annotated[str, doc("Version.", "0.1.0")]
    memory_bytes: Annotated[int, doc("Memory that the store uses, bytes.", 52428800)]
    durability: Annotated[str, doc("What survives a crash.", "append-only log, at most 1 s is lost")]


class HealthOut(Struct):
    """The process is alive."""

    status: Annotated[Literal["ok"], doc("Always ok.", "ok")]
    version: Annotated[str, doc("Version.", "0.1.0")]
    store: Annotated[str, doc("Identity of the store, or memory; empty: none yet.", "5d0c7e1b9a3f4e26")]


class ReadyOut(Struct):
    """The service can handle requests."""

    status: Annotated[
        Literal["ready", "degraded"], doc("Degraded: articles are answered unchecked.", "ready")
    ]
    store: Annotated[StoreOut, doc("State of the store.")]
    spaces: Annotated[list[str], doc("Indexes that the service has models for.", ["en.e816"])]
    degraded: Annotated[
        str | None, doc("Why it is degraded and what to do, in one sentence.", "The store was emptied.")
    ]


class ChangesOut(Struct):
    """What an article changed of the one that it repeats; without both texts, the numbers are estimates."""

    summary: Annotated[str, doc("The changes in one sentence.", "Cut by a quarter, new headline.")]
    same_text: Annotated[bool, doc("Whether the texts are equal.", False)]
    has_texts: Annotated[bool, doc("Whether both have a text; else only the headlines are known.", True)]
    headline_changed: Annotated[bool, doc("Whether the headlines differ.", True)]
    kept: Annotated[float, doc("Share of the earlier wording that it has, 0 to 1.", 0.76)]
    own: Annotated[float, doc("Share of its wording that the earlier article lacks, 0 to 1.", 0.12)]
    figures_cut: Annotated[int, doc("Numbers of the earlier article that it lacks.", 1)]
    figures_added: Annotated[int, doc("Numbers that the earlier article lacks.", 0)]
    cut_words: Annotated[int | None, doc("Words that it cut; null: a text is not stored.", 35)]
    added_words: Annotated[int | None, doc("Words that it added; null: a text is not stored.", 6)]
    cut: Annotated[
        list[str] | None, doc("Passages cut; null: no texts are stored.", ["It costs four crowns."])
    ]
    added: Annotated[list[str] | None, doc("Passages added; null: as ``cut``.", ["Good news for swimmers."])]
    cut_figures: Annotated[list[str] | None, doc("Numbers cut; null: a text is not stored.", ["1,200"])]
    added_figures: Annotated[list[str] | None, doc("Numbers added; null: a text is not stored.", ["1,300"])]


class StepOut(Struct):
    """One article of a text's lineage.

    ``basis``: "published" (stated by the outlet), "day" (it states a day only), "claimed" (it states a time
    so long before the arrival as it is not known for: the arrival counts) or "arrived" (nothing is stated).
    ``copied_from`` was published strictly earlier.
    """

    article: Annotated[ArticleRef, doc("The article; null: none is stored.")]
    at: Annotated[datetime, doc("Time.", "2026-11-20T08:40:00Z")]
    basis: Annotated[TimeBasis, doc("How the time is known: published, day, claimed, arrived.", "published")]
    lag_minutes: Annotated[float, doc("Minutes after the first publication, 0 or more.", 42.0)]
    copied_from: Annotated[str | None, doc("Id of the article that it repeats; null: none.", "pool-1")]
    resemblance: Annotated[float | None, doc("Resemblance to that article, 0 to 1; null without one.", 0.55)]
    changes: Annotated[ChangesOut | None, doc("What it changed of that article; null: it repeats none.")]


class TextOut(Struct):
    """Who published a text first, and who repeated it.

    ``certain``: outlets stated different times, and the first arrived here first or was declared as past.
    """

    certain: Annotated[bool, doc("Whether the first publisher is known for sure.", True)]
    outlets: Annotated[int, doc("Number of outlets.", 4)]
    steps: Annotated[list[StepOut], doc("The articles in order of time, the first publisher first.")]


class ProvenanceOut(TextOut, kw_only=True):
    """As TextOut, of the text of an article; at most 100 articles are compared."""

    id: Annotated[str, doc("Id of the article.", "pool-1")]
    first: Annotated[ArticleRef, doc("The first article; null: none is stored.")]
    truncated: Annotated[bool, doc("Whether there are more than are listed or compared.", False)]


class OutletOut(Struct):
    """The first article of one outlet on an event.

    ``kind``: "first" of the event; "own": nobody published this text earlier; "copy": another outlet did;
    "same time": another outlet published it at the same time; "headline": only headlines are known, nothing
    is said of texts; "doubtful": all of its articles are.
    """

    source: Annotated[str, doc("Name of the outlet; empty: unknown.", "Brackwater Gazette")]
    article: Annotated[ArticleRef, doc("The article; null: none is stored.")]
    at: Annotated[datetime, doc("Time.", "2026-11-20T08:40:00Z")]
    basis: Annotated[TimeBasis, doc("How the time is known: published, day, claimed, arrived.", "published")]
    lag_minutes: Annotated[float, doc("Minutes after the first article, below 0 if doubtful.", 42.0)]
    kind: Annotated[OutletKind, doc("Whether it was first, wrote its own text, or copied.", "own")]
    original: Annotated[ArticleRef | None, doc("First publication of the text, if another outlet's.")]
    articles: Annotated[int, doc("Articles of this outlet on the event.", 3)]


class EventProvenanceOut(Struct):
    """Who had an event first, and the texts that its outlets share; its first 400 articles are read."""

    id: Annotated[str, doc("Id of the article.", "pool-1")]
    first: Annotated[ArticleRef | None, doc("The first article; null: none is stored.")]
    outlets: Annotated[list[OutletOut], doc("Outlets in order of their first articles.")]
    families: Annotated[list[list[str]], doc("Outlets that usually share texts.", [["Gazette", "Radio"]])]
    independent: Annotated[int, doc("Number of outlets, each family counted once.", 3)]
    texts: Annotated[list[TextOut], doc("Texts that several outlets published.")]
    articles: Annotated[int, doc("Number of articles.", 312)]
    truncated: Annotated[bool, doc("Whether there are more than are listed or compared.", False)]


class PartnerOut(Struct):
    """Another outlet, and the number of texts."""

    name: Annotated[str, doc("Name.", "Brackwater Gazette")]
    texts: Annotated[int, doc("Number of texts.", 57)]


class FamilyOut(Struct):
    """Outlets that publish the same texts; ``texts``: published by two or more of them."""

    members: Annotated[list[str], doc("The outlets, the largest first.", ["Brackwater Gazette", "Radio"])]
    texts: Annotated[int, doc("Number of texts.", 57)]
    first: Annotated[list[PartnerOut], doc("How many of the texts each member published first.")]


class SourceAuditOut(Struct):
    """What a source caused, until its articles were deleted if it is untrusted."""

    articles: Annotated[int, doc("Number of its articles.", 12)]
    copies: Annotated[
        list[ArticleRef], doc("Copies by others; if it is untrusted: new now, send them again.")
    ]
    events: Annotated[dict[str, int], doc("Number of its articles by event id.", {"e1": 3})]


class SourceOut(Struct):
    """One outlet; articles = originals + copies + repeats."""

    name: Annotated[str, doc("Name.", "Brackwater Gazette")]
    articles: Annotated[int, doc("Number of articles.", 312)]
    originals: Annotated[int, doc("Articles whose text no other outlet published earlier.", 180)]
    copies: Annotated[int, doc("Articles whose text another outlet published earlier.", 120)]
    repeats: Annotated[int, doc("Articles that repeat an own text.", 12)]
    original_share: Annotated[float, doc("Originals divided by articles, 0 to 1.", 0.58)]
    copy_share: Annotated[float, doc("Copies divided by articles, 0 to 1.", 0.38)]
    copied: Annotated[int, doc("Originals that other outlets published later.", 44)]
    median_lag_minutes: Annotated[float | None, doc("Median lag of the copies, minutes; null: none.", 38.5)]
    undated: Annotated[int, doc("Articles ordered by arrival or day, for lack of a publication time.", 4)]
    family: Annotated[list[str], doc("Other members of its syndication family.", ["Coastline News"])]
    failing: Annotated[
        list[str], doc("Problems of text or id that half of its newest articles have.", ["cut"])
    ]


class SourcesOut(Struct):
    """Statistics of the outlets of the last 30 days or 500,000 articles, the 5,000 with most articles."""

    computed_at: Annotated[datetime | None, doc("Time of the count; null: none yet.", "2026-11-20T08:00:00Z")]
    since: Annotated[datetime | None, doc("Arrival of the oldest article counted.", "2026-11-20T08:00:00Z")]
    articles: Annotated[int, doc("Number of articles.", 312)]
    unnamed: Annotated[int, doc("Articles without a source, which are not counted.", 2)]
    total: Annotated[int, doc("Number of all that match.", 214)]
    sources: Annotated[list[SourceOut], doc("The outlets.")]
    families: Annotated[list[FamilyOut], doc("Groups of outlets that usually publish the same texts.")]
    truncated: Annotated[bool, doc("Whether there are more than are listed or compared.", False)]


class SourceDetailOut(SourceOut):
    """As SourceOut, with the outlets that it copied most and those that copied it most."""

    checked: Annotated[int, doc("Its newest articles in the window, at most 200.", 200)]
    problems: Annotated[dict[str, float], doc("Share of these with each problem, 0 to 1.", {"cut": 0.02})]
    late_by_hours: Annotated[float | None, doc("Hours by which all come late; null: they differ.", 5.0)]
    copied_from: Annotated[list[PartnerOut], doc("The outlets that it copied most, at most 10.")]
    copied_by: Annotated[list[PartnerOut], doc("The outlets that copied it most, at most 10.")]
    shared_by_family: Annotated[FamilyOut | None, doc("Texts that its family shares; null: it has none.")]
    computed_at: Annotated[datetime, doc("Time of the count.", "2026-11-20T08:00:00Z")]
    since: Annotated[datetime | None, doc("Arrival of the oldest article counted.", "2026-11-20T08:00:00Z")]


encode = msgspec.json.Encoder().encode
