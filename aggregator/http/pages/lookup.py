"""Search page, look-up page (verdict for a stored or pasted article) and comparison page (two articles).

The look-up page also lists the events about what was typed, if that is short: "dam" is no article.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from aiohttp import web
from msgspec import Struct

from aggregator.analysis.article_id import MAX_ID_BYTES, canonical_url, validate_id
from aggregator.app import Service
from aggregator.contract.decoding import to_article
from aggregator.contract.encoding import hamming_class
from aggregator.contract.requests import MAX_SEARCH_CHARS
from aggregator.dedup.diff import MAX_COMPARED_CHARS, diff_texts
from aggregator.domain import Article
from aggregator.errors import InvalidInput, NoText, NotFound
from aggregator.events.selection import EventFilter
from aggregator.http.app_keys import SERVICE
from aggregator.http.handlers.events import decode_result_cursor, encode_cursor
from aggregator.http.handlers.search import MAX_EVENTS, event_conditions, language_of_tag
from aggregator.http.pages import html_response
from aggregator.http.pages.cards import Card, make_card
from aggregator.queries.headline_table import SearchFilter
from aggregator.queries.ranking import RelatedOptions
from aggregator.queries.search import SearchResult
from aggregator.time_units import HOUR_MS
from aggregator_client.wire import ArticleIn, Source, VerdictName, doc

MAX_RELATED = 20
MAX_TERM_CHARS = 100
MAX_DUPLICATES = 100  # listed; /v1/articles/{id}/copies has more


class SearchPageQuery(Struct, forbid_unknown_fields=True):
    """Query of the search page: ``hours`` is how far back it looks, 0: everything."""

    q: Annotated[str, doc("Words, or the id or the URL of an article.", "swimming hall")] = ""
    lang: Annotated[str, doc("Only in this language.", "en", max_length=35)] = ""
    source: Annotated[Source, doc("Only from this outlet.", "Brackwater Gazette")] = ""
    verdict: Annotated[VerdictName | Literal[""], doc("Only with this verdict.", "new")] = ""
    hours: Annotated[int, doc("Only of these last hours.", 24, ge=0, le=24 * 366)] = 0
    cursor: Annotated[str, doc("Articles of the next page.", "WzEsMl0", max_length=200)] = ""


class LookupQuery(Struct, forbid_unknown_fields=True):
    """Query of the lookup page."""

    q: Annotated[str, doc("Id or address of a stored article.", "pool-1")] = ""


class LookupForm(Struct, forbid_unknown_fields=True):
    """Form of the lookup page."""

    q: Annotated[str, doc("Id, address or text of an article.", "swimming hall")] = ""


class CompareQuery(Struct, forbid_unknown_fields=True):
    """Query of the comparison page: ids or addresses of two stored articles."""

    a: Annotated[str, doc("Id or URL of the first article.", "pool-1")] = ""
    b: Annotated[str, doc("Id or URL of the second article.", "pool-2")] = ""


class CompareForm(CompareQuery, forbid_unknown_fields=True):
    """Form of the comparison page: each side by id, address or text."""


async def lookup(request: web.Request, query: LookupQuery) -> web.Response:
    """Page: verdict on a stored article."""
    given = query.q.strip()
    if not given:
        return await _lookup_page(request, given)
    try:
        found = await _look_up_stored(request, await _resolve_id(request, given))
    except (InvalidInput, NotFound) as error:
        return await _lookup_page(request, given, problem=str(error))
    return await _lookup_page(request, given, found)


async def lookup_pasted(request: web.Request, query: LookupQuery, form: LookupForm) -> web.Response:
    """Page: verdict on a pasted text, without storing it. An id or URL redirects to ``lookup``."""
    given = form.q.strip()
    if is_id_or_url(given):
        try:
            await _resolve_id(request, given)
        except (InvalidInput, NotFound) as error:
            if " " not in given:
                return await _lookup_page(request, given, problem=str(error))
        else:
            raise web.HTTPSeeOther("/lookup?" + urlencode({"q": given}))
    try:
        found = await _look_up_pasted(request, given) if given else None
    except (InvalidInput, NoText) as error:
        return await _lookup_page(request, given, problem=str(error))
    return await _lookup_page(request, given, found)


async def compare(request: web.Request, query: CompareQuery) -> web.Response:
    """Page: comparison of two stored articles."""
    return await _compare_page(request, query.a.strip(), query.b.strip())


async def compare_pasted(request: web.Request, query: CompareQuery, form: CompareForm) -> web.Response:
    """Page: comparison of two articles, stored or pasted."""
    return await _compare_page(request, form.a.strip(), form.b.strip())


def is_id_or_url(text: str) -> bool:
    """Whether the input may be an id or a URL: one line of at most MAX_ID_BYTES."""
    return "\n" not in text and 0 < len(text.encode("utf-8", "replace")) <= MAX_ID_BYTES


async def _resolve_id(request: web.Request, given: str) -> str:
    """Id of the stored article with this id or URL. Raises InvalidInput, NotFound."""
    service = request.app[SERVICE]
    is_url = given.lower().startswith(("http://", "https://"))
    for id_ in (given, canonical_url(given)) if is_url else (given,):
        if is_id_or_url(id_) and await service.articles.index.articles.get_many([validate_id(id_, "q")]):
            return id_
    if is_url:  # stored with another id than its URL
        found = await service.articles.search.find("", SearchFilter(url=given), limit=1)
        for result in found.articles:
            return result.article.record.id
    raise NotFound(f"No article is stored under {given[:200]!r}. Paste the text itself to get its verdict.")


async def _look_up_stored(request: web.Request, id_: str) -> dict[str, Any]:
    """As for a pasted text; ``duplicates``: other articles of its group, ``canonical`` the one it copies."""
    service = request.app[SERVICE]
    stored = await service.articles.index.articles.get(id_)
    match = stored.outcome.match
    group = await service.articles.index.articles.group_members(id_, MAX_DUPLICATES)
    events = await service.events.repository.event_ids_of([stored.group])
    return {
        "outcome": stored.outcome,
        "analysis": stored.record,
        "hamming_class": hamming_class(stored.outcome.distance, service.settings),
        "event_id": events.get(stored.group),
        "canonical": next((r for r in group if match and r.id == match.canonical_id), None),
        "duplicates": tuple(r for r in group if r.id != id_)[:MAX_DUPLICATES],
        "related": await service.articles.related.of_id(id_, RelatedOptions(limit=MAX_RELATED)),
        "record": stored.record,
        "text": "",
    }


async def _look_up_pasted(request: web.Request, text: str) -> dict[str, Any]:
    """The verdict on a text as values for the page."""
    service = request.app[SERVICE]
    answer = await service.articles.ingest.submit(to_article(ArticleIn(text=text)), dry_run=True)
    match = answer.outcome.match
    group_members = service.articles.index.articles.group_members
    group = await group_members(match.canonical_id, MAX_DUPLICATES) if match else []
    return {
        "outcome": answer.outcome,
        "analysis": answer,
        "hamming_class": hamming_class(answer.outcome.distance, service.settings),
        "event_id": answer.event_id,
        "canonical": group[0] if group else None,
        "duplicates": tuple(group)[:MAX_DUPLICATES],
        "related": answer.related,
        "record": None,
        "text": text,
    }


async def _events_about(request: web.Request, given: str) -> list[Card]:
    """The latest events whose headline contains what was typed, or whose terms are these words."""
    if not given or "\n" in given or len(given) > MAX_TERM_CHARS:
        return []
    service = request.app[SERVICE]
    events = await service.events.repository.list_events(
        limit=MAX_EVENTS, event_filter=EventFilter(term=given)
    )
    return [make_card(event, service.clock()) for event in events]


async def _lookup_page(
    request: web.Request, given: str, result: dict[str, Any] | None = None, problem: str = ""
) -> web.Response:
    return html_response(
        request,
        "lookup.html",
        page="lookup",
        given=given,
        max_duplicates=MAX_DUPLICATES,
        result=result,
        events=[] if result is not None and result["record"] else await _events_about(request, given),
        problem=problem,
    )


async def _compare_page(request: web.Request, a: str, b: str) -> web.Response:
    problem, comparison = "", None
    if a and b:
        try:
            comparison = await _load_comparison(request, a, b)
        except (InvalidInput, NotFound) as error:
            problem = str(error)
    return html_response(
        request, "compare.html", page="compare", a=a, b=b, comparison=comparison, problem=problem
    )


async def _load_comparison(request: web.Request, a: str, b: str) -> dict[str, Any]:
    """``diffs``: None if the text of one is not stored."""
    service = request.app[SERVICE]
    sides = [await _article_or_id(request, side) for side in (a, b)]
    first, second = await service.articles.explain.load_pair(sides[0], sides[1])
    stored = await service.articles.index.articles.get_many([side for side in sides if isinstance(side, str)])
    records = [stored[s].record if isinstance(s, str) and s in stored else None for s in sides]
    explanation = await service.articles.explain.compare(first, second)
    diffs = None
    if first.text is not None and second.text is not None:
        langs = first.record.lang, second.record.lang
        diffs = await asyncio.to_thread(diff_texts, first.text, second.text, *langs)
    truncated = any(len(side.text or "") > MAX_COMPARED_CHARS for side in (first, second))
    return {
        "explanation": explanation,
        "fingerprints": [side.record.fingerprint for side in (first, second)],
        "records": records,
        "diffs": diffs,
        "truncated": truncated,
    }


async def _article_or_id(request: web.Request, given: str) -> str | Article:
    if is_id_or_url(given):
        try:
            return await _resolve_id(request, given)
        except NotFound:
            if " " not in given:
                raise
    return to_article(ArticleIn(text=given), for_storage=False)


PAGE_ARTICLES = 30


async def search(request: web.Request, service: Service, query: SearchPageQuery) -> web.StreamResponse:
    """Page: events and articles by words. Events first, then articles by rank, a page at a time."""
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
            after = decode_result_cursor(query.cursor)
            result = await service.articles.search.find(given, conditions, limit=PAGE_ARTICLES, after=after)
            groups = [found.article.group for found in result.articles]
            event_ids = await service.events.repository.event_ids_of(groups)
            if after is None:
                about, _ = await service.events.search.find(given, MAX_EVENTS, **event_conditions(conditions))
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
    return "/search?" + urlencode({**values, "cursor": encode_cursor(result.next_key)})
