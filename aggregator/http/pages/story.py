"""Storyline page: the events of one topic over days, and the key developments of each day."""

from __future__ import annotations

from itertools import groupby

from aiohttp import web

from aggregator.contract.requests import NoQuery
from aggregator.events.formatting import title_of
from aggregator.events.severity import severity
from aggregator.http.app_keys import SERVICE
from aggregator.http.pages import cards, html_response
from aggregator.http.query_params import path_id
from aggregator.http.storyline import load_storyline


async def story(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """The storyline of events, the newest day first."""
    service = request.app[SERVICE]
    position = await service.change_broadcaster.latest_position()
    found = await load_storyline(service, path_id(request))
    days = [(day, list(group)) for day, group in groupby(found.developments, key=lambda d: d.day_ms)]
    return html_response(
        request,
        "story.html",
        page="story",
        story=found,
        card=cards.make_card(found.latest, service.clock()),
        severities={event.id: severity(event, service.clock()) for event in found.events},
        titles={event.id: title_of(event) for event in found.events},
        days=days[::-1],
        stream_url="/v1/events/stream",
        stream_position=position.decode(),
    )
