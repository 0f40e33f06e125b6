"""Front page: breaking events and the latest articles; orders and filters are links with the whole view."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Annotated, Literal
from urllib.parse import urlencode

from aiohttp import web

from aggregator.app import Service, build_burst_rule
from aggregator.contract.requests import EventFilterQuery, SavedFilterQuery
from aggregator.domain import StreamItem
from aggregator.events.selection import SEVERITIES, EventFilter, EventOrder, Severity, is_settled
from aggregator.http.app_keys import SERVICE, caller_id
from aggregator.http.auth import base_url
from aggregator.http.handlers.events import build_filter
from aggregator.http.pages import cards, rendered, shared_response
from aggregator.http.pages.cards import Card
from aggregator.http.pages.desks import may_edit
from aggregator.index.article_stream import ArticleStream
from aggregator.time_units import HOUR_MS
from aggregator_client.wire import doc

MAX_EVENTS = 100
MAX_VERDICTS = 40
TOP_HOURS, MAX_TOP_STORIES, MAX_BUILDING_UP = 4, 10, 5
MAX_FILTERED = 300  # with a filter, the latest articles are taken from so many


class FrontQuery(EventFilterQuery, forbid_unknown_fields=True):
    """Query of the editors' page."""

    sort: Annotated[EventOrder, doc("Order of the open events.", "time")] = "surprise"
    severity: Annotated[Severity, doc("Only events of this severity.", "growing")] | None = None
    ours: Annotated[Literal["yes", "no"], doc("Whether an own source has published it.", "yes")] | None = None
    kiosk: Annotated[bool, doc("Large type without controls, for a screen on a wall.", False)] = False


async def front(request: web.Request, service: Service, query: FrontQuery) -> web.StreamResponse:
    """Page: breaking events and recent verdicts. 304 while nothing has changed."""
    read_mark = await _read_mark(request)
    newest = await service.articles.index.stream.recent_entries(1)

    return await shared_response(request, partial(_render, request, query, read_mark), read_mark, *newest)


async def _render(request: web.Request, query: FrontQuery, read_mark: str | None, position: bytes) -> bytes:
    service = request.app[SERVICE]
    event_filter = await build_filter(service.events.desks, query)
    events = await service.events.repository.list_events(limit=MAX_EVENTS, event_filter=event_filter)
    articles = [] if query.kiosk else await _recent(service.articles.index.stream, event_filter)
    numbers = [n for item in articles for n in (item.first_version, item.canonical_first) if n]
    event_ids = await service.events.repository.event_ids_of(numbers)
    settings, now_ms = service.settings, service.clock()
    only_ours = None if query.ours is None else query.ours == "yes"
    lists = cards.event_lists(events, now_ms, query.sort, query.severity, only_ours)
    listed = {event.id for event in events if event.merged_into or event.status != "closed"}
    largest = await service.events.repository.top_stories(event_filter, now_ms - TOP_HOURS * HOUR_MS)
    largest = [found for found in largest if found.story.event.id not in listed]
    near = [f for f in largest if f.items >= f.story.needed * 2 / 3 > 0]
    near = sorted(near, key=lambda found: -found.items / found.story.needed)[:MAX_BUILDING_UP]
    desks = {desk.id: desk.name for desk in await service.events.desks.values()}
    history = await service.events.repository.learned_history()
    needed = history.needed if history else build_burst_rule(settings).items
    return rendered(
        request,
        "kiosk.html" if query.kiosk else "front.html",
        page="events",
        heading=desks.get(query.watch, "Breaking now"),
        learning=history.status(now_ms) if history else None,
        lists=lists,
        on_wall=[card for card in (*lists["open"], *lists["handled"]) if not is_settled(card.event)],
        top_stories=[found for found in largest if found not in near][:MAX_TOP_STORIES],
        building_up=near,
        verdicts=[
            (i, event_ids.get(i.first_version, event_ids.get(i.canonical_first or 0))) for i in articles
        ],
        feed=filter_query(query),
        view=view(query, (*lists["open"], *lists["closed"]), desks),
        desk_fields=desk_fields(query) if may_edit(request) else {},
        read_mark=read_mark,
        tour=settings.demo,
        rule=f"more than {needed} similar items within {settings.burst_window_hours:g} hours",
        event_filter=event_filter,
        stream_url="/v1/events/stream" + filter_query(query),
        stream_position=position.decode(),
        origin=base_url(request) or "http://ADDRESS",
    )


async def _recent(stream: ArticleStream, wanted: EventFilter) -> list[StreamItem]:
    """The latest articles that match, whatever the size and state of their events."""
    items = await stream.recent(MAX_VERDICTS if wanted == EventFilter() else MAX_FILTERED)
    found = (item for item in items if item.kind == "article" and item.space and wanted.matches_article(item))
    return list(islice(found, MAX_VERDICTS))


async def _read_mark(request: web.Request) -> str | None:
    """The read mark of a user as JSON, "null" before the first front page; None: the browser keeps it."""
    user = caller_id(request)
    if not user:
        return None
    mark = await request.app[SERVICE].events.read_marks.get(user)
    return json.dumps({"at": mark.looked_ms, "seen": mark.seen} if mark.looked_ms else None)


ORDERS: dict[EventOrder, tuple[str, str]] = {
    "surprise": ("Most urgent", "Items and sources of the last 30 minutes against the usual number"),
    "novelty": ("Newest", "Time of detection, newest first"),
    "growth": ("Growing", "Items in the last hour minus items in the hour before"),
    "size": ("Largest", "Number of items"),
    "time": ("Last published", "Time of publication of the last item, newest first"),
}
SEVERITY_LABELS = {s: "Growing fast" if s == "growing" else s.capitalize() for s in SEVERITIES}
SIZES = (20, 50, 100, 200, 500, 1000)
MAX_LISTED_SOURCES = 12
MAX_DESK_NAME = 100
_LABELS = {
    "term": "Term", "source": "Source", "lang": "Language", "status": "Status", "severity": "State",
    "watch": "Desk or watch",
}  # fmt: skip
VIEW_PARAMETERS = ("sort", "kiosk")  # parameters that do not filter events
OURS_LABELS = {"yes": "Published by us", "no": "Not published by us yet"}


@dataclass(frozen=True, slots=True)
class Choice:
    """A link to another view. ``count``: events that it would show, None where it is not known."""

    label: str
    url: str
    count: int | None = None
    is_current: bool = False
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """What the front page needs to draw its controls.

    chips    filters in force, without a desk that is named; each links to the view without it
    facets   choices by label, taken from the events that are shown
    kept     parameters that the form of the filter keeps as hidden fields
    """

    orders: tuple[Choice, ...]
    desks: tuple[Choice, ...]
    chips: tuple[Choice, ...]
    facets: dict[str, tuple[Choice, ...]]
    kept: tuple[tuple[str, str], ...]
    clear_url: str


def view(query: FrontQuery, cards: Sequence[Card], desks: Mapping[str, str]) -> View:
    """Controls for a query that shows ``cards``. ``desks``: their names by id."""
    values = given_values(query)
    chosen, others = query.watch, _without(values, "watch")
    filters = [name for name in values if name not in VIEW_PARAMETERS]
    return View(
        orders=tuple(
            Choice(label, front_url(values | {"sort": order}), None, order == query.sort, meaning)
            for order, (label, meaning) in ORDERS.items()
        ),
        chips=tuple(
            Choice(_chip_label(name, values[name]), front_url(_without(values, name)))
            for name in filters
            if name != "watch" or query.watch not in desks
        ),
        desks=tuple(
            Choice(name, front_url(others if id_ == chosen else values | {"watch": id_}), None, id_ == chosen)
            for id_, name in desks.items()
        ),
        facets={label: choices for label, choices in _facets(values, cards).items() if choices},
        kept=tuple((n, v) for n, v in values.items() if n not in ("term", "source", "min_size")),
        clear_url=front_url(_without(values, *filters)),
    )


def given_values(query: FrontQuery) -> dict[str, str]:
    """Parameters that differ from their default, in the order of the contract."""
    defaults = FrontQuery()
    return {
        name: "1" if value is True else str(value)
        for name in query.__struct_fields__
        if (value := getattr(query, name)) != getattr(defaults, name)
    }


def front_url(values: dict[str, str]) -> str:
    """Address of the front page with these parameters in a fixed order, without the default order."""
    names = (n for n in FrontQuery.__struct_fields__ if n in values)
    values = {n: values[n] for n in names if (n, values[n]) != ("sort", FrontQuery().sort)}
    return "/" + ("?" + urlencode(values) if values else "")


def desk_fields(query: FrontQuery) -> dict[str, str]:
    """Fields of the form of a desk with the same filter; empty where a desk has no such filter."""
    fields = {"terms": query.term, "sources": query.source, "languages": query.lang}
    given = {name: value for name, value in fields.items() if value}
    name = (", ".join(given.values()) or f"At least {query.min_size} items")[:MAX_DESK_NAME]
    if query.min_size:
        given["min_size"] = str(query.min_size)
    if not given or query.watch:
        return {}
    return given | {"name": name, "pause_minutes": "5", "time_zone": "UTC"}


def filter_query(query: FrontQuery) -> str:
    """Query string of the stream and the feeds that have the same filter; "" without one."""
    names = (*SavedFilterQuery.__struct_fields__, "watch")
    values = {name: value for name in names if (value := getattr(query, name))}
    return "?" + urlencode(values) if values else ""


def _without(values: dict[str, str], *names: str) -> dict[str, str]:
    return {n: v for n, v in values.items() if n not in names}


def _chip_label(name: str, value: str) -> str:
    if name == "min_size":
        return f"At least {value} items"
    if name == "severity":
        return f"State: {SEVERITY_LABELS[value]}"  # type: ignore[index]  # decoded as a Severity
    if name == "ours":
        return OURS_LABELS[value]
    return f"{_LABELS[name]}: {value}"


def _facets(values: dict[str, str], cards: Sequence[Card]) -> dict[str, tuple[Choice, ...]]:
    """Choices that narrow the view: only values that occur."""
    states: dict[str, str] = {s: SEVERITY_LABELS[s] for s in SEVERITIES}
    smallest = int(values.get("min_size", 0))
    sizes = {s: sum(card.event.size >= s for card in cards) for s in SIZES if s > smallest}
    size_choices = tuple(
        Choice(f"{s} items", front_url(values | {"min_size": str(s)}), n)
        for s, n in sizes.items()
        if 0 < n < len(cards)
    )
    ours = ("yes" if card.is_ours else "no" for card in cards if card.is_ours is not None)
    languages = (lang for card in cards for lang in card.event.languages)
    sources = (source for card in cards for source in card.event.sources)
    return {
        "State": _choices("severity", values, (card.severity for card in cards), states),
        "Our coverage": _choices("ours", values, ours, OURS_LABELS),
        "Language": _choices("lang", values, languages),
        "At least": size_choices,
        "Source": _choices("source", values, sources)[:MAX_LISTED_SOURCES],
    }


def _choices(
    name: str, values: dict[str, str], occurring: Iterable[str], labels: Mapping[str, str] | None = None
) -> tuple[Choice, ...]:
    """The values of a parameter that occur, in the order of ``labels`` or the most frequent first."""
    if name in values:
        return ()
    counts = Counter(filter(None, occurring))
    labels = labels or {value: value for value in sorted(counts, key=lambda v: (-counts[v], v))}
    return tuple(
        Choice(label, front_url(values | {name: value}), counts[value])
        for value, label in labels.items()
        if counts[value]
    )
