"""Routes of the search of events and articles, and of the list of articles."""

from __future__ import annotations

from aiohttp import web

from aggregator.app import Service
from aggregator.contract import encoding
from aggregator.contract.decoding import to_unix_ms
from aggregator.contract.requests import ArticleFilterQuery, ArticlesQuery, SearchQuery
from aggregator.errors import InvalidInput
from aggregator.events.event import Event
from aggregator.events.search import EventConditions
from aggregator.http import json_response, query_params
from aggregator.http.app_keys import SERVICE
from aggregator.http.handlers import event_views
from aggregator.http.handlers.related import language_of_tag
from aggregator.queries.headline_table import SearchFilter
from aggregator.queries.search import SearchResult
from aggregator_client.wire import ArticlesOut, FoundArticle, SearchOut

MAX_EVENTS = 10


async def search(request: web.Request, query: SearchQuery) -> web.StreamResponse:
    """Events and articles by words; only articles in later pages."""
    service = request.app[SERVICE]
    if not query.q.strip():
        raise InvalidInput("q: give the words, the id or the URL to search for.", field="q")
    conditions = article_filter(query)
    found = await service.search.find(query.q, conditions, limit=query.limit, after=_after(query.cursor))
    events: list[Event] = []
    total, now_ms = 0, service.clock()
    if not query.cursor:
        events, total = await service.event_search.find(query.q, event_conditions(conditions), MAX_EVENTS)
    return json_response.struct_response(
        SearchOut(
            articles=await _articles_out(service, found),
            total=found.total,
            next=query_params.encode_cursor(found.next_key) if found.next_key else None,
            searched=encoding.searched_out(found),
            words=found.words,
            events=[event_views.event_out(event, now_ms) for event in events],
            events_total=total,
        )
    )


async def list_articles(request: web.Request, query: ArticlesQuery) -> web.StreamResponse:
    """Stored articles that meet the conditions, newest first."""
    service = request.app[SERVICE]
    found = await service.search.find(
        "", article_filter(query, query.url), limit=query.limit, after=_after(query.cursor)
    )
    return json_response.struct_response(
        ArticlesOut(
            articles=await _articles_out(service, found),
            total=found.total,
            next=query_params.encode_cursor(found.next_key) if found.next_key else None,
            searched=encoding.searched_out(found),
        )
    )


def article_filter(query: ArticleFilterQuery, url: str = "") -> SearchFilter:
    """The conditions of a query. Raises InvalidInput naming the parameter."""
    return SearchFilter(
        lang=language_of_tag(query.lang),
        source=query.source.strip() or None,
        verdict=query.verdict or None,
        since_ms=to_unix_ms(query.since, "since"),
        until_ms=to_unix_ms(query.until, "until"),
        url=url.strip() or None,
    )


def event_conditions(conditions: SearchFilter) -> EventConditions:
    """The conditions that apply to events as well: all but those on verdict and URL."""
    return EventConditions(conditions.lang, conditions.source, conditions.since_ms, conditions.until_ms)


async def _articles_out(service: Service, found: SearchResult) -> list[FoundArticle]:
    groups = [result.article.group for result in found.articles]
    events = await service.events.event_ids_of(groups)
    return [
        encoding.found_article(result, events.get(group))
        for result, group in zip(found.articles, groups, strict=True)
    ]


def _after(cursor: str) -> tuple[int, int] | None:
    return query_params.decode_result_cursor(cursor) if cursor else None
