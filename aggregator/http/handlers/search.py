"""Routes that find articles by words, and compare two."""

from __future__ import annotations

from typing import Any

from aggregator.analysis.article_id import validate_id
from aggregator.analysis.text.language import UNDETERMINED, language_from_tag
from aggregator.analysis.text.normalization import source_key
from aggregator.app import Service
from aggregator.contract import encoding
from aggregator.contract.decoding import to_article, to_unix_ms
from aggregator.contract.requests import ArticleFilterQuery, ArticlesQuery, ExplainIn, SearchQuery
from aggregator.contract.validation import combined
from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator.http.handlers import event_views
from aggregator.http.handlers.events import decode_result_cursor, encode_cursor
from aggregator.queries.headline_table import SearchFilter
from aggregator.queries.search import SearchResult
from aggregator_client.wire import ArticleIn, ArticlesOut, ExplainOut, SearchedOut, SearchOut

MAX_EVENTS = 10


async def search(service: Service, query: SearchQuery) -> SearchOut:
    """Search events and articles by words, URL or id. Only articles in later pages."""
    if not query.q.strip():
        raise InvalidInput("q: give the words, the id or the URL to search for.", field="q")
    conditions = article_filter(query)
    found = await service.articles.search.find(
        query.q, conditions, limit=query.limit, after=decode_result_cursor(query.cursor), order=query.sort
    )
    terms, now_ms = "" if query.cursor else query.q, service.clock()
    events, total = await service.events.search.find(terms, MAX_EVENTS, **event_conditions(conditions))
    return SearchOut(
        **await _page_out(service, found),
        words=found.words,
        events=[event_views.event_out(event, now_ms) for event, _ in events],
        events_total=total,
    )


async def list_articles(service: Service, query: ArticlesQuery) -> ArticlesOut:
    """List stored articles, newest first."""
    found = await service.articles.search.find(
        "", article_filter(query, query.url), limit=query.limit, after=decode_result_cursor(query.cursor)
    )
    return ArticlesOut(**await _page_out(service, found))


def article_filter(query: ArticleFilterQuery, url: str = "") -> SearchFilter:
    """The conditions of a query. Raises InvalidInput naming the parameter."""
    return SearchFilter(
        lang=language_of_tag(query.lang),
        sources=(source_key(query.source),) if query.source.strip() else (),
        verdict=query.verdict or None,
        since_ms=to_unix_ms(query.since, "since"),
        until_ms=to_unix_ms(query.until, "until"),
        url=url.strip() or None,
    )


def event_conditions(conditions: SearchFilter) -> dict[str, Any]:
    """The conditions that apply to events as well: all but those on verdict and URL."""
    return {name: getattr(conditions, name) for name in ("lang", "sources", "since_ms", "until_ms")}


async def _page_out(service: Service, found: SearchResult) -> dict[str, Any]:
    """The fields that all pages of found articles have."""
    events = await service.events.repository.event_ids_of([result.article.group for result in found.articles])
    since = encoding.to_datetime_or_none(found.since_ms)
    return {
        "articles": [encoding.found_article(r, events.get(r.article.group)) for r in found.articles],
        "total": found.total,
        "next": encode_cursor(found.next_key) if found.next_key else None,
        "searched": SearchedOut(found.searched, since, found.is_loading),
    }


async def explain(service: Service, body: ExplainIn) -> ExplainOut:
    """Compare two articles and explain the verdict. By the deduplication rules."""
    return await service.articles.explain.explain_pair(
        _explain_side(body.a, "a"), _explain_side(body.b, "b"), profile=body.policy or ""
    )


def language_of_tag(tag: str | None) -> str | None:
    """The language code that articles are stored with. Raises InvalidInput for an unknown language."""
    if not tag or tag.lower() == UNDETERMINED:
        return tag.lower() if tag else None
    known = language_from_tag(tag)
    if known is None:
        raise InvalidInput(
            f'lang: unknown language {tag}; give a tag such as "en" or "zh-Hant".', field="lang"
        )
    return known


def _explain_side(id_or_article: str | ArticleIn, field: str) -> str | Article:
    if isinstance(id_or_article, str):
        return validate_id(id_or_article, field)
    try:
        return to_article(id_or_article, for_storage=False)
    except InvalidInput as error:
        raise combined(
            [
                InvalidInput(f"{field}.{part}", field=f"{field}.{part.field}", reason=part.reason)
                for part in (error, *error.others)
            ]
        ) from None
