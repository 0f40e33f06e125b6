"""Search page: events and articles by words."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from aggregator.contract.requests import MAX_SEARCH_CHARS
from aggregator.domain import VerdictName
from aggregator.errors import InvalidInput
from aggregator.http import query_params
from aggregator.http.app_keys import SERVICE
from aggregator.http.handlers.related import language_of_tag
from aggregator.http.handlers.search import MAX_EVENTS, event_conditions
from aggregator.http.pages import html_response
from aggregator.http.pages.cards import Card, make_card
from aggregator.http.pages.forms import SearchPageQuery
from aggregator.queries.headline_table import SearchFilter
from aggregator.queries.search import SearchResult
from aggregator.time_units import HOUR_MS

PAGE_ARTICLES = 30
PERIODS = {0: "Any time", 1: "Last hour", 24: "Last 24 hours", 72: "Last 3 days", 168: "Last 7 days"}
VERDICTS: dict[VerdictName | str, str] = {
    "": "All articles",
    "new": "New only",
    "related": "Related only",
    "duplicate": "Duplicates only",
}


async def search(request: web.Request, query: SearchPageQuery) -> web.StreamResponse:
    """Events first, then articles by rank, a page at a time."""
    given = query.q.strip()
    problem = ""
    events: list[Card] = []
    result: SearchResult | None = None
    event_ids: dict[int, str] = {}
    try:
        if len(given) > MAX_SEARCH_CHARS:
            raise InvalidInput(
                f"A search has at most {MAX_SEARCH_CHARS} characters. To check a whole text, use Look up."
            )
        conditions = _conditions(request, query)
        if given or conditions != SearchFilter():
            after = query_params.decode_result_cursor(query.cursor) if query.cursor else None
            service = request.app[SERVICE]
            result = await service.search.find(given, conditions, limit=PAGE_ARTICLES, after=after)
            event_ids = await service.events.event_ids_of([found.article.group for found in result.articles])
            if after is None:
                about, _ = await service.event_search.find(given, event_conditions(conditions), MAX_EVENTS)
                events = [make_card(event, service.clock()) for event in about]
    except InvalidInput as error:
        problem = str(error)
    return html_response(
        request,
        "search.html",
        page="search",
        given=given,
        query=query,
        problem=problem,
        events=events,
        result=result,
        event_ids=event_ids,
        next_url=_next_url(query, result),
        periods=PERIODS,
        verdicts=VERDICTS,
    )


def _conditions(request: web.Request, query: SearchPageQuery) -> SearchFilter:
    """Raises InvalidInput for an unknown language."""
    now_ms = request.app[SERVICE].clock()
    return SearchFilter(
        lang=language_of_tag(query.lang.strip()),
        source=query.source.strip() or None,
        verdict=query.verdict or None,
        since_ms=now_ms - query.hours * HOUR_MS if query.hours else None,
    )


def _next_url(query: SearchPageQuery, result: SearchResult | None) -> str:
    if result is None or result.next_key is None:
        return ""
    values: dict[str, Any] = {
        name: value for name in ("q", "lang", "source", "verdict", "hours") if (value := getattr(query, name))
    }
    return "/search?" + urlencode({**values, "cursor": query_params.encode_cursor(result.next_key)})
