"""Events, their articles and storylines as response bodies of the contract; articles also as CSV.

A record takes 0.1 ms to read, and an event lists at most 5,000 articles: they are read in parts, and kept for
a revision of the event.
"""

from __future__ import annotations

import asyncio
import csv
import dataclasses
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo

import msgspec
from aiohttp import web
from msgspec.structs import replace

from aggregator.analysis.source import outlet_name
from aggregator.app import Service
from aggregator.contract import responses
from aggregator.contract.encoding import article_ref, fields_of
from aggregator.contract.responses import EventItemOut, EventItemsOut
from aggregator.dedup.wording import has_text
from aggregator.domain import ArticleRecord, TimeBasis
from aggregator.events import storylines
from aggregator.events.detection.numbers import items_of
from aggregator.events.event import EditorAction, Event, current_title, title_of
from aggregator.events.figures import Figure, Said, figures_in, figures_over_time
from aggregator.events.selection import RankedStory, growth, is_handled, severity
from aggregator.events.storylines import Development, developments, sample_items
from aggregator.http.app_keys import SERVICE
from aggregator.time_units import to_datetime
from aggregator_client import wire


async def load_storyline(
    service: Service, story_id: str, zone: tzinfo = UTC
) -> tuple[list[Event], list[Development]]:
    """A storyline: its events, and what they brought by day of a zone. Raises NotFound, StoreUnavailable."""
    events = await service.events.repository.story_events(story_id)
    stored = await service.articles.index.articles.get_many(sample_items(events))
    return events, developments(events, {id_: article.record for id_, article in stored.items()}, zone)


async def load_names(
    service: Service, actions: Sequence[EditorAction], *more: str
) -> tuple[dict[str, str], dict[str, Event]]:
    """Headlines by id of the events and articles that actions name; these events, and ``more``."""
    items = {id_ for action in actions for id_ in (*action.items[:1], action.item) if id_}
    ids = {id_ for action in actions for id_ in (action.event, action.into) if id_}
    articles = await service.articles.index.articles.get_many(sorted(items))
    events = await service.events.repository.get_many(sorted({*ids, *more}))
    titles = {id_: title_of(event) for id_, event in events.items()}
    return {id_: article.record.title for id_, article in articles.items()} | titles, events


def event_out(event: Event, now_ms: int) -> wire.EventOut:
    """An event in a list, with its severity at ``now_ms``."""
    rates = growth(event, now_ms)
    return fields_of(
        event,
        wire.EventOut,
        current_title=current_title(event),
        severity=severity(event, now_ms),
        handled=is_handled(event),
        expected=round(event.expected, 2),
        last_hour=rates.last_hour,
        hour_before=rates.hour_before,
        story_id=event.story_id or event.id,
        actions=[fields_of(action, wire.ActionOut) for action in event.actions],
        note_count=len(event.notes),
        developments=[wire.EventDevelopment(to_datetime(ms), list(new)) for ms, new in event.developments],
    )


def top_story_out(ranked: RankedStory) -> responses.TopStoryOut:
    """One of the largest stories."""
    story, event = ranked.story, ranked.story.event
    return fields_of(
        event,
        responses.TopStoryOut,
        items=ranked.items,
        voices=ranked.voices,
        since=to_datetime(story.since_ms),
        event_id=event.id if story.is_event else None,
        storyline_id=story.story_id or None,
        needed=story.needed or None,
    )


def event_detail_out(
    event: Event, now_ms: int, listed: list[wire.ArticleRef], previous: Event | None, following: Event | None
) -> wire.EventDetailOut:
    """The report on one event, with its neighbors in the storyline."""
    return fields_of(
        event,
        wire.EventDetailOut,
        **msgspec.structs.asdict(event_out(event, now_ms)),
        timeline=[wire.TimelinePoint(to_datetime(at_ms), items) for at_ms, items in event.timeline],
        first_source=event.first[2] if event.first else "",
        headline_is_chosen=event.chosen_headline is not None,
        notes=[fields_of(note, wire.NoteOut) for note in event.notes],
        articles=listed,
        previous=previous.id if previous else None,
        next=following.id if following else None,
    )


def story_out(
    story_id: str, events: list[Event], found: list[Development], now_ms: int
) -> responses.StoryOut:
    """A storyline: its events in order of detection."""
    return responses.StoryOut(
        id=story_id,
        title=events[-1].title,
        first_seen=to_datetime(min(event.first_seen_ms for event in events)),
        last_seen=to_datetime(max(event.last_seen_ms for event in events)),
        events=[event_out(event, now_ms) for event in events],
        developments=[
            responses.DevelopmentOut(
                day=development.day,
                event_id=development.event.id,
                title=(development.article or development.event).title,
                items=development.items,
                article=article_ref(development.article) if development.article else None,
            )
            for development in found
        ],
    )


ARTICLES_PER_READ = 100
MAX_KEPT_ARTICLES = 20_000
MAX_AGE_MS = 60_000  # metadata of an article may change without its event
CSV_TYPE = "text/csv"
CSV_COLUMNS = (
    "time", "published_at", "arrived_at", "source", "title", "url", "lang", "doubtful", "id", "copy_of",
    "basis",
)  # fmt: skip
# A spreadsheet takes a cell that begins with one of these for a formula.
_FORMULA_START = re.compile(r"^[\s\x00]*[=+\-@|%＝＋－＠]|^[\t\r\n]")
_BYTE_ORDER_MARK = "\ufeff"  # spreadsheets read UTF-8 only behind this mark


class EventItem(msgspec.Struct, frozen=True):
    """One article of an event.

    at_ms       when it was published, as the event counts it; ``basis``: how that is known
    updated_ms  when its version was published, if it is a later one, else 0
    copy_of     the first of the event with its text; "": an original, or what an outlet added to its own text
    adds        whether it was kept, for what it has more than the text that it copies
    has_text    whether more than its headline is known
    """

    id: str
    title: str
    url: str
    source: str
    lang: str
    published_at_ms: int | None
    arrived_ms: int
    at_ms: int
    updated_ms: int = 0
    copy_of: str = ""
    adds: bool = False
    has_text: bool = True
    doubtful: bool = False
    basis: TimeBasis = "published"


@dataclass(frozen=True, slots=True)
class EventItems:
    """Stored articles of an event in order of time, headlines that an editor may choose, figures by kind.

    ``newest``: the latest headlines of different outlets; of a copy only one that says something else.
    """

    items: tuple[EventItem, ...]
    newest: tuple[EventItem, ...]
    alternatives: tuple[EventItem, ...]
    figures: Mapping[str, Sequence[Figure]]


class EventItemsCache:
    """Articles of the events that were read last, at most ``MAX_KEPT_ARTICLES`` in total."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[int, int, EventItems]] = {}

    async def load(self, service: Service, event: Event) -> EventItems:
        """The articles of an event that are still stored. Raises StoreUnavailable."""
        now_ms, kept = service.clock(), self._kept.get(event.id)
        if kept is not None and kept[0] == event.revision and 0 <= now_ms - kept[1] < MAX_AGE_MS:
            return kept[2]
        loaded = await load_event_items(service, event)
        self._kept.pop(event.id, None)
        self._kept[event.id] = event.revision, now_ms, loaded
        while sum(len(items.items) for *_, items in self._kept.values()) > MAX_KEPT_ARTICLES:
            self._kept.pop(next(iter(self._kept)))
        return loaded


EVENT_ITEMS = web.AppKey("event_items", EventItemsCache)


async def load_event_items(service: Service, event: Event) -> EventItems:
    """The articles of an event, read now. Raises StoreUnavailable."""
    facts, by_id = items_of(event), dict[str, EventItem]()
    said: list[Said] = []
    records, compared = dict[str, ArticleRecord](), set(storylines.headline_items(event))
    for start in range(0, len(event.items), ARTICLES_PER_READ):
        ids = event.items[start : start + ARTICLES_PER_READ]
        stored = await service.articles.index.articles.get_many(ids)
        found = [stored[id_] for id_ in ids if id_ in stored]
        for article in found:
            match, record, fact = article.outcome.match, article.record, facts[article.record.id]
            original = by_id.get(match.canonical_id) if match and article.outcome.keep else None
            is_own = original and record.text_words and original.source == outlet_name(record.source)
            matched, updated_ms = by_id.get(match.id) if match else None, record.updated_ms(fact.at_ms)
            copied = matched.id if matched and not matched.copy_of else match.canonical_id if match else ""
            said.append((updated_ms or fact.at_ms, record.source, figures_in(record.title, record.lang)))
            by_id[record.id] = fields_of(
                record,
                EventItem,
                source=outlet_name(record.source),
                at_ms=fact.at_ms,
                updated_ms=updated_ms,
                copy_of="" if is_own else copied,
                adds=match is not None and article.outcome.keep and has_text(record),
                has_text=has_text(record),
                basis="published" if fact.claim_ms is None else "claimed" if fact.claim_ms else "arrived",
                doubtful=fact.doubtful,
            )
            if record.id in compared:
                said_ms = updated_ms or fact.claim_ms or fact.at_ms
                records[record.id] = dataclasses.replace(record, published_at_ms=said_ms)
        await asyncio.sleep(0)  # 100 articles are 10 ms of the event loop
    in_order, firsts = sorted(by_id.values(), key=lambda i: (i.at_ms, i.arrived_ms)), dict[str, str]()
    for item in in_order:  # an original may have arrived, or been dated, after its copy
        if (text := item.copy_of or item.id) in by_id:
            first = firsts.setdefault(text, item.id)
            by_id[item.id] = replace(item, copy_of="" if first == item.id else first)
    newest = storylines.newest_of_outlets(records.values(), "", {i: by_id[i].copy_of for i in records})
    alternatives = storylines.headline_alternatives([*records.values()], event.title, event.tolls)
    return EventItems(
        items=tuple(by_id[item.id] for item in in_order),
        newest=tuple(by_id[record.id] for record in newest),
        alternatives=tuple(by_id[record.id] for record in alternatives),
        figures=figures_over_time(said, event.tolls),
    )


async def get_items(request: web.Request, id_: str) -> EventItemsOut:
    """List all stored articles of an event in order of time, at most 5,000."""
    event, items = await _load(request, id_)
    listed = [
        fields_of(i, EventItemOut, arrived_at=to_datetime(i.arrived_ms), copy_of=i.copy_of or None)
        for i in items
    ]
    return EventItemsOut(event.id, event.title, listed)


async def get_items_csv(request: web.Request, id_: str) -> web.Response:
    """Download the articles of an event as CSV."""
    event, items = await _load(request, id_)
    name = re.sub(r"[^A-Za-z0-9._-]", "_", event.id)[:80]
    return web.Response(
        body=to_csv(items).encode("utf-8", "replace"),
        content_type=CSV_TYPE,
        charset="utf-8",
        headers={"Content-Disposition": f'attachment; filename="event-{name}.csv"'},
    )


def to_csv(items: Iterable[EventItem]) -> str:
    """CSV (RFC 4180) with a header line; no cell is a formula for a spreadsheet."""
    text = io.StringIO()
    text.write(_BYTE_ORDER_MARK)
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow(CSV_COLUMNS)
    for item in items:
        times_ms = item.at_ms, item.published_at_ms, item.arrived_ms
        times = ["" if ms is None else f"{to_datetime(ms):%Y-%m-%dT%H:%M:%SZ}" for ms in times_ms]
        facts = (item.source, item.title, item.url, item.lang, "yes" if item.doubtful else "", item.id)
        cells = (*times, *facts, item.copy_of, item.basis)
        writer.writerow(["'" + cell if _FORMULA_START.match(cell) else cell for cell in cells])
    return text.getvalue()


async def _load(request: web.Request, id_: str) -> tuple[Event, tuple[EventItem, ...]]:
    service = request.app[SERVICE]
    event = await service.events.repository.get(id_)
    return event, (await request.app[EVENT_ITEMS].load(service, event)).items
