"""Pages of days: the events of one day, and what happened since an editor left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, tzinfo
from typing import Annotated
from urllib.parse import urlencode

from aiohttp import web

from aggregator.app import Service
from aggregator.contract.decoding import to_unix_ms
from aggregator.contract.requests import DayQuery
from aggregator.errors import InvalidInput
from aggregator.events.days import Day, handover, is_split_off
from aggregator.events.desks import time_zone
from aggregator.events.detection.numbers import items_within
from aggregator.events.event import Event
from aggregator.http.app_keys import SERVICE, caller_id, caller_name
from aggregator.http.handlers.events import day_of, load_period
from aggregator.http.pages import PAGES, conditional_response, shared_body
from aggregator.http.pages.cards import make_card
from aggregator.time_units import DAY_MS
from aggregator_client.wire import OffsetDatetime, doc

_Find = Callable[[], Awaitable[Mapping[str, list[Event]]]]


class DaysPageQuery(DayQuery, forbid_unknown_fields=True):
    """Query of the entry to the days: a day, or what happened since a time; else today."""

    date: Annotated[str, doc("Day to show.", "2026-11-20", max_length=10)] = ""
    since: Annotated[OffsetDatetime, doc("When the reader left.", "2026-11-20T08:00:00Z")] | None = None


async def since(request: web.Request, service: Service, query: DaysPageQuery) -> web.Response:
    """Page: the handover since a time. Without one, redirects to a day."""
    shown, until_ms = await _day_of(request, query, query.date), service.clock() + 1
    since_ms = min(to_unix_ms(query.since, "since") or 0, until_ms - 1)
    if not since_ms:
        raise web.HTTPSeeOther(f"/days/{shown.date}{_parameters(query)}")

    async def find() -> Mapping[str, list[Event]]:
        # Open events were seen within the last hours, so within a day before.
        events = await load_period(service, query.watch, since_ms - DAY_MS, until_ms)
        return handover(events, since_ms, until_ms)

    return await _page(request, query, shown, (since_ms, until_ms), find)


async def day(request: web.Request, service: Service, date: str, query: DayQuery) -> web.Response:
    """Page: the events of a day; of today also the others of the last 24 hours, as a night has two dates."""
    shown = await _day_of(request, query, date)
    start_ms, end_ms = shown.start_ms, shown.end_ms

    async def find() -> Mapping[str, list[Event]]:
        lists: dict[str, list[Event]] = {"new": [], "earlier": [], "later": [], "before": [], "muted": []}
        found = await load_period(service, query.watch, start_ms, end_ms)
        if start_ms <= (now_ms := service.clock()) < end_ms:
            night = await load_period(service, query.watch, now_ms - DAY_MS, start_ms)
            found += [event for event in night if event.last_seen_ms < start_ms]
        for event in found:
            name = "earlier" if event.detected_at_ms < start_ms or is_split_off(event) else "new"
            name = "later" if event.detected_at_ms >= end_ms else name
            name = "muted" if event.muted else "before" if event.last_seen_ms < start_ms else name
            lists[name].append(event)
        return lists

    return await _page(request, query, shown, (start_ms, end_ms), find)


async def _page(
    request: web.Request, query: DayQuery, shown: Day, limits: tuple[int, int], find: _Find
) -> web.Response:
    """``limits``: its start and end in ms; that of ``shown`` unless it began when the reader left."""
    service = request.app[SERVICE]

    async def render(_: bytes) -> bytes:
        lists, now_ms = await find(), service.clock()
        known = (await service.events.repository.summaries()).values()
        return request.app[PAGES].render(
            "days.html",
            page="days",
            user=caller_name(request),
            query=query,
            shown=shown,
            limits=limits,
            now_ms=now_ms,
            first_ms=min((event.first_seen_ms for event in known), default=now_ms),
            lists={name: [make_card(event, now_ms) for event in events] for name, events in lists.items()},
            items={event.id: items_within(event, *limits) for found in lists.values() for event in found},
            parameters=_parameters(query),
            desks=await service.events.desks.values(),
        )

    page = await shared_body(request, render, str(shown.zone), viewer=caller_id(request))
    return conditional_response(request, page, "text/html")


async def _day_of(request: web.Request, query: DayQuery, date: str) -> Day:
    """The day of a date, "" for today: in the zone of the query or desk, else in that of the reader."""
    if not (query.time_zone or query.watch) and (zone := reader_zone(request)) is not UTC:
        query.time_zone = str(zone)
    return await day_of(request.app[SERVICE], query, date)


def reader_zone(request: web.Request) -> tzinfo:
    """The time zone that ``days.js`` noted in a cookie; UTC for a browser without scripts."""
    with suppress(InvalidInput):
        return time_zone(request.cookies.get("aggregator_zone") or "UTC")
    return UTC


def _parameters(query: DayQuery) -> str:
    values = {name: value for name in ("time_zone", "watch") if (value := getattr(query, name))}
    return "?" + urlencode(values) if values else ""
