"""Pages of days: the events of one day, and what happened since an editor left."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from itertools import chain
from typing import Annotated
from urllib.parse import urlencode

from aiohttp import web

from aggregator.app import Service
from aggregator.contract.decoding import to_past_ms
from aggregator.contract.requests import DayQuery
from aggregator.errors import InvalidInput
from aggregator.events.days import Day, edited, handover, is_split_off
from aggregator.events.desks import time_zone
from aggregator.events.detection.numbers import items_within
from aggregator.events.event import Event
from aggregator.events.selection import since_handled
from aggregator.events.storylines import newest_headlines
from aggregator.http.handlers.event_views import load_names
from aggregator.http.handlers.events import day_of, load_period
from aggregator.http.pages import rendered, shared_response
from aggregator.http.pages.cards import make_card
from aggregator.time_units import DAY_MS
from aggregator_client.wire import doc

NEWEST_ITEMS = 3  # of each event, whose headlines are compared with its title
ZONE_COOKIE = "aggregator_zone"


class DaysPageQuery(DayQuery, forbid_unknown_fields=True):
    """Query of the entry to the days: a day, or what happened since a time; else today."""

    date: Annotated[str, doc("Day to show.", "2026-11-20", max_length=10)] = ""
    since: Annotated[str, doc("When the reader left, or an age.", "2026-11-20T08:00Z", max_length=40)] = ""


async def since(request: web.Request, service: Service, query: DaysPageQuery) -> web.Response:
    """Page: the handover since a time. Without one, redirects to a day."""
    shown, now_ms = await _day_of(request, service, query, query.date), service.clock()
    if not query.since:
        raise web.HTTPSeeOther(f"/days/{shown.date}{_parameters(query)}")
    since_ms = to_past_ms(query.since, "since", now_ms, shown.zone) or 0
    if since_ms > now_ms:
        raise InvalidInput("since: this time has not come yet.", field="since")
    return await _page(request, service, query, shown, since_ms)


async def day(request: web.Request, service: Service, date: str, query: DayQuery) -> web.Response:
    """Page: the events of a day; of today also the others of the last 24 hours, as a night has two dates."""
    zone, shown = query.time_zone, await _day_of(request, service, query, date)
    if query.time_zone != zone:  # in an address that is copied, it is the same day for every reader
        raise web.HTTPSeeOther(f"/days/{shown.date}{_parameters(query)}")
    return await _page(request, service, query, shown)


async def _page(
    request: web.Request, service: Service, query: DayQuery, shown: Day, since_ms: int | None = None
) -> web.Response:
    """The page of a day, or of what happened since the reader left."""

    async def render(_: bytes) -> bytes:
        now_ms, limits, began = service.clock(), (shown.start_ms, shown.end_ms), f"{shown.date}T00:00"
        if since_ms is None:
            night_ms = now_ms - DAY_MS if limits[0] <= now_ms < limits[1] else limits[0]
            events = await load_period(service, query.watch, min(limits[0], night_ms), limits[1])
            lists = _day_lists(events, *limits)
        else:
            limits = since_ms, now_ms + 1
            began = f"{datetime.fromtimestamp(since_ms / 1000, shown.zone):%Y-%m-%dT%H:%M}"
            # Open events were seen within the last hours, so within a day before.
            events = await load_period(service, query.watch, since_ms - DAY_MS, limits[1])
            lists = handover(events, *limits)
            quieting = "mute", "false_alarm", "unmute"
            said = ((e, [a for a in e.in_force if a.action in quieting]) for e in events if not e.merged_into)
            last = ((e, a) for e, own in said for a in own[-1:] if a.action != "unmute")
            lists["muted"] = [e for e, a in last if limits[0] <= a.at_ms < limits[1]]
        listed = [*chain(*lists.values())]
        edits = {event.id: edited(event) for event in listed}
        known = (await service.events.repository.summaries()).values()
        return rendered(
            request,
            "days.html",
            page="days",
            query=query,
            shown=shown,
            limits=limits,
            now_ms=now_ms,
            began=began,
            first_ms=min((event.first_seen_ms for event in known), default=now_ms),
            lists={name: [make_card(e, now_ms, since_ms) for e in events] for name, events in lists.items()},
            newest=await newest_headlines(service.articles.index.articles.get_many, listed, NEWEST_ITEMS),
            edits=edits,
            named=await load_names(service, [*chain(*edits.values())]),
            parameters=_parameters(query),
            desks=await service.events.desks.values(),
        )

    return await shared_response(request, render, str(shown.zone))


def _day_lists(events: Sequence[Event], start_ms: int, end_ms: int) -> dict[str, list[Event]]:
    """The events of a day: in each list those first that are back, then those that nobody is on."""
    lists: dict[str, list[Event]] = {"new": [], "earlier": [], "later": [], "before": [], "muted": []}

    def rank(event: Event) -> tuple[bool, bool, int]:
        is_back, is_taken = since_handled(event).is_back, event.status_key != "new"
        return not is_back, is_taken, -items_within(event, start_ms, end_ms)

    for event in sorted(events, key=rank):
        name = "earlier" if event.detected_at_ms < start_ms or is_split_off(event) else "new"
        name = "later" if event.detected_at_ms >= end_ms else name
        name = "muted" if event.muted else "before" if event.last_seen_ms < start_ms else name
        lists[name].append(event)
    return lists


async def _day_of(request: web.Request, service: Service, query: DayQuery, date: str) -> Day:
    """The day of a date, "" for today: in the zone of the query or desk, else in that of the reader."""
    if not (query.time_zone or query.watch) and ZONE_COOKIE in request.cookies:
        query.time_zone = str(reader_zone(request))
    return await day_of(service, query, date)


def reader_zone(request: web.Request) -> tzinfo:
    """The time zone that ``days.js`` noted in a cookie; UTC for a browser without scripts."""
    with suppress(InvalidInput):
        return time_zone(request.cookies.get(ZONE_COOKIE) or "UTC")
    return UTC


def _parameters(query: DayQuery) -> str:
    values = {name: value for name in ("time_zone", "watch") if (value := getattr(query, name))}
    return "?" + urlencode(values) if values else ""
