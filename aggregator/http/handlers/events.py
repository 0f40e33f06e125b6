"""Routes of breaking events: list, report, storyline, editor actions, read marks; filters of requests."""

from __future__ import annotations

import base64
import binascii
from math import floor
from typing import Annotated, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

import msgspec
from aiohttp import web

from aggregator.analysis.article_id import validate_id
from aggregator.app import Service
from aggregator.contract import encoding, requests, responses
from aggregator.contract.decoding import ErrorCollector, to_plain_text, to_single_line, to_unix_ms
from aggregator.errors import InvalidInput, NotFound
from aggregator.events.days import Day
from aggregator.events.desks import Desks, view_filter
from aggregator.events.detection.numbers import items_within
from aggregator.events.event import EditorAction, Event
from aggregator.events.read_marks import ReadMark
from aggregator.events.selection import PAGED_ORDERS, EventFilter, EventOrder, PageKey, page_key
from aggregator.http import body as bodies
from aggregator.http.app_keys import SERVICE, caller_id, caller_name
from aggregator.http.endpoint import parse_pairs
from aggregator.http.handlers import event_views
from aggregator.http.handlers.event_views import load_storyline
from aggregator.queries.search import ResultKey
from aggregator.time_units import HOUR_MS, to_datetime
from aggregator_client.wire import ActedOut, EventDetailOut, EventsOut, LearningOut

Key = TypeVar("Key")
Unsigned = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
MAX_DETAIL_ARTICLES = 50  # articles that a report includes in full; it lists the ids of all items
MAX_DAY_EVENTS = 500
# Fields of an action; with "!" required.
ACTION_FIELDS = {
    "merge": "into!", "remove_item": "item! items", "mute": "scope", "note": "text!", "delete_note": "note!",
    "assign": "assignee!", "set_work_status": "work_status! assignee", "choose_headline": "item",
    "move_items": "items! into", "undo": "of!",
}  # fmt: skip
ALL_FIELDS = tuple(dict.fromkeys(" ".join(ACTION_FIELDS.values()).replace("!", "").split()))


async def list_(service: Service, query: requests.EventsQuery) -> EventsOut:
    """List breaking events. By default the most recently seen first."""
    now_ms = service.clock()
    is_paged = query.sort in PAGED_ORDERS
    if query.cursor and not is_paged:
        raise InvalidInput(
            f"cursor: sort={query.sort} has one page, of open events; raise `limit` instead.", field="cursor"
        )
    events = await service.events.repository.list_events(
        status=query.status,
        since_ms=to_unix_ms(query.since, "since"),
        limit=query.limit + 1,
        event_filter=await build_filter(service.events.desks, query),
        after=decode_cursor(query.cursor, query.sort) if query.cursor else None,
        order=query.sort,
        now_ms=now_ms,
    )
    page = events[: query.limit]
    has_next = is_paged and len(events) > len(page)
    next_cursor = encode_cursor(page_key(page[-1], page[-1].id, query.sort), query.sort) if has_next else None
    status, days = await service.events.repository.learning(now_ms), None
    if status is not None and not status.is_complete:
        days = LearningOut(floor(10 * status.known_days) / 10, status.needed_days)
    return EventsOut([event_views.event_out(event, now_ms) for event in page], next_cursor, days)


async def list_top_stories(service: Service, query: requests.TopStoriesQuery) -> responses.TopStoriesOut:
    """List the largest stories of the last hours, usual or not, and those that may become events."""
    wanted = await build_filter(
        service.events.desks, requests.EventFilterQuery(lang=query.lang, watch=query.desk)
    )
    found = await service.events.repository.top_stories(wanted, service.clock() - query.hours * HOUR_MS)
    chosen = found, [ranked for ranked in found if ranked.story.needed]
    return responses.TopStoriesOut(*(list(map(event_views.top_story_out, s[: query.limit])) for s in chosen))


async def get_day(service: Service, date: str, query: requests.DayQuery) -> responses.DayOut:
    """List the events of a day of a time zone. Most items of the day first."""
    day, now_ms = await day_of(service, query, date), service.clock()
    events = await load_period(service, query.watch, day.start_ms, day.end_ms)
    start, end = to_datetime(day.start_ms), to_datetime(day.end_ms)
    return responses.DayOut(day.date, start, end, [event_views.event_out(event, now_ms) for event in events])


async def load_period(service: Service, desk: str, since_ms: int, until_ms: int) -> list[Event]:
    """The events of a period and a desk, most items in it first. Raises NotFound for an unknown desk."""
    wanted = await build_filter(service.events.desks, requests.EventFilterQuery(watch=desk))
    found = await service.events.repository.list_events(
        None, since_ms, MAX_DAY_EVENTS, wanted, until_ms=until_ms
    )
    return sorted(found, key=lambda event: -items_within(event, since_ms, until_ms))


async def day_of(service: Service, query: requests.DayQuery, date: str = "") -> Day:
    """The day of a date, "" for today, in the zone of the query or desk. Raises InvalidInput, NotFound."""
    zone = query.time_zone
    if query.watch and not zone:
        zone = (await service.events.desks.get(query.watch)).time_zone
    return Day.parse(date, zone) if date else Day.at(service.clock(), zone)


async def get(service: Service, id_: str) -> EventDetailOut | web.Response:
    """Get the report on one event. A merged event redirects to the event that absorbed it."""
    event = await service.events.repository.get(id_)
    if event.merged_into is not None:
        return web.Response(
            status=308, headers={"Location": f"/v1/events/{quote(event.merged_into, safe='')}"}
        )
    previous, following = await service.events.repository.story_neighbors(event)
    ids = event.items[-MAX_DETAIL_ARTICLES:]
    stored = await service.articles.index.articles.get_many(ids)
    articles = [encoding.article_ref(stored[id_].record) for id_ in ids if id_ in stored]
    return event_views.event_detail_out(event, service.clock(), articles, previous, following)


async def get_story(service: Service, id_: str) -> responses.StoryOut:
    """Get a storyline: events of one topic over days, with key developments by day."""
    return event_views.story_out(id_, *await load_storyline(service, id_), service.clock())


async def post_action(request: web.Request, service: Service, id_: str, body: requests.ActionIn) -> ActedOut:
    """Apply an editor's action to an event; returns the changed event."""
    body.actor = caller_name(request) or body.actor  # where keys are required, that of the key
    event, done = await service.events.editor_actions.apply(_to_action(body, id_, service.clock()))
    return ActedOut(**msgspec.structs.asdict(event_views.event_out(event, service.clock())), done=done)


def _to_action(body: requests.ActionIn, event_id: str, now_ms: int) -> EditorAction:
    """The validated action. Raises InvalidInput naming the fields."""
    given = {name: getattr(body, name) for name in ALL_FIELDS}
    found, fields = ErrorCollector(), ACTION_FIELDS.get(body.action, "").split()
    for name, value in given.items():
        if value is None and f"{name}!" in fields and not (name == "item" and body.items):
            found.add(f"{name}: required by the action {body.action}.", name, "missing")
        elif value is not None and not {name, f"{name}!"} & {*fields}:
            found.add(f"{name}: not allowed with the action {body.action}.", name, "not_allowed")
        elif value is not None and name in ("into", "item"):
            found.run(validate_id, value, name)
    given["items"] = tuple(dict.fromkeys(body.items or ()))
    if body.text is not None:
        given["text"] = to_plain_text(body.text)
        if not given["text"]:
            found.add("text: blank; write the note.", "text", "missing")
    if body.assignee is not None:
        given["assignee"] = to_single_line(body.assignee)
    actor = to_single_line(body.actor)
    if not actor:
        found.add("actor: blank; give the name of the editor.", "actor", "missing")
    found.raise_all()
    return EditorAction(action=body.action, actor=actor, at_ms=now_ms, event=event_id, **given)


async def get_read_mark(request: web.Request) -> responses.ReadMarkOut:
    """Get which events the user of the caller's key has seen."""
    return _read_mark_out(await request.app[SERVICE].events.read_marks.get(_user(request)))


async def post_read_mark(request: web.Request, service: Service) -> responses.ReadMarkOut:
    """Mark events as seen by the user of the caller's key. A time in the future counts as now."""
    user = _user(request)
    body = await bodies.read_struct(request, requests.ReadMarkIn)
    looked_ms = min(to_unix_ms(body.looked_at, "looked_at") or 0, service.clock())
    return _read_mark_out(await service.events.read_marks.advance(user, looked_ms, body.seen))


def _user(request: web.Request) -> str:
    """Id of the caller's key. Raises NotFound where no key is required."""
    user = caller_id(request)
    if not user:
        raise NotFound(
            "There are no users here, since no access key is required. Keep the read mark in the client."
        )
    return user


def _read_mark_out(mark: ReadMark) -> responses.ReadMarkOut:
    return responses.ReadMarkOut(to_datetime(mark.looked_ms) if mark.looked_ms else None, list(mark.seen))


async def build_filter(desks: Desks, query: requests.EventFilterQuery) -> EventFilter:
    """The filter of a query and of the desk it names. Raises NotFound for an unknown one."""
    return EventFilter(
        query.term.strip(),
        query.source.strip(),
        query.lang,
        query.min_size,
        query.status,
        and_also=(view_filter(await desks.get(query.watch)),) if query.watch else (),
    )


def parse_filter(query_string: str) -> requests.SavedFilterQuery:
    """The filter of the field ``query`` of a body, with or without "?". Raises InvalidInput."""
    pairs = parse_qsl(query_string.removeprefix("?"), keep_blank_values=True)
    try:
        return parse_pairs(pairs, requests.SavedFilterQuery)
    except InvalidInput as error:
        for part in (error, *error.others):
            part.path = ("query",)
        raise


def canonical_query_string(query: requests.SavedFilterQuery) -> str:
    """The canonical query string of a filter, without empty values."""
    return urlencode([(name, value) for name, value in msgspec.structs.asdict(query).items() if value])


# A cursor is the sort key of the last entry of a page, base64-encoded; one of another order than that of time
# begins with the name of its order and a dot.
_event_keys: msgspec.json.Decoder[PageKey] = msgspec.json.Decoder(PageKey)
_result_keys: msgspec.json.Decoder[ResultKey] = msgspec.json.Decoder(tuple[Unsigned, Unsigned])


def encode_cursor(page_key: PageKey | ResultKey, order: EventOrder = "time") -> str:
    """The cursor of the page after ``page_key``."""
    encoded = base64.urlsafe_b64encode(msgspec.json.encode(page_key)).rstrip(b"=").decode()
    return encoded if order == "time" else f"{order}.{encoded}"


def decode_cursor(cursor: str, order: EventOrder = "time") -> PageKey:
    """The sort key of a cursor of events. Raises InvalidInput, also for a cursor of another order."""
    named, dot, encoded = cursor.rpartition(".")
    if (dot and named != order) or (not dot and order != "time"):
        raise InvalidInput(
            f"cursor: it belongs to another order than sort={order}; repeat `sort` with each page.",
            field="cursor",
        )
    return _decode(_event_keys, encoded)


def decode_result_cursor(cursor: str) -> ResultKey | None:
    """The sort key of a cursor of a search; None for "", the first page. Raises InvalidInput."""
    return _decode(_result_keys, cursor) if cursor else None


def _decode(keys: msgspec.json.Decoder[Key], cursor: str) -> Key:
    try:
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        return keys.decode(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, msgspec.MsgspecError, UnicodeError, ValueError):
        raise InvalidInput(
            "cursor: invalid cursor; use `next` of the previous page.", field="cursor"
        ) from None
