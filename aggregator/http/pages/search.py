"""Search page: one field, which decides what it got; and the comparison of two articles.

* the id or address of an article: the article, what it repeats, what repeats it, its event
* the address of an event: its report
* words: events and articles, those of one event together
* more than FEW_WORDS, or a text: the event and the articles that it is about, and whether it is a copy
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal
from urllib.parse import unquote, urlencode

import msgspec
from aiohttp import web
from msgspec import Struct

from aggregator.analysis.text.normalization import source_key
from aggregator.analysis.text.tokenizer import search_terms
from aggregator.app import Service
from aggregator.contract.decoding import to_article
from aggregator.contract.requests import MAX_SEARCH_CHARS, SearchOrder
from aggregator.dedup.diff import MAX_COMPARED_CHARS, diff_texts
from aggregator.dedup.wording import has_text
from aggregator.domain import Article
from aggregator.errors import InvalidInput, NoText, NotFound
from aggregator.events.days import Day
from aggregator.events.event import Event
from aggregator.http.app_keys import SERVICE
from aggregator.http.handlers.events import decode_result_cursor, encode_cursor
from aggregator.http.handlers.search import MAX_EVENTS, event_conditions, language_of_tag
from aggregator.http.pages import html_response
from aggregator.http.pages.cards import make_card
from aggregator.index import StoredArticle
from aggregator.queries.headline_table import NO_FILTER, SearchFilter, canonical_or_none
from aggregator.queries.ranking import RelatedOptions
from aggregator.queries.search import FoundArticle, SearchResult, missing_words
from aggregator_client.wire import ArticleIn, Source, VerdictName, doc

MAX_RELATED, PAGE_ARTICLES = 20, 30
MAX_DUPLICATES = 100  # listed; /v1/articles/{id}/copies has more
FEW_WORDS = 4  # no headline that an event could be about


class SearchPageQuery(Struct, forbid_unknown_fields=True):
    """Query or form of the search page; ``since`` and ``until``: days in the time zone, both included."""

    q: Annotated[str, doc("Words, a headline, a text; an id or a URL.", "swimming hall")] = ""
    lang: Annotated[str, doc("Only in this language.", "en", max_length=35)] = ""
    source: Annotated[Source, doc("Only from this outlet.", "Brackwater Gazette")] = ""
    verdict: Annotated[VerdictName | Literal[""], doc("Only with this verdict.", "new")] = ""
    sort: Annotated[SearchOrder, doc("Best or newest first.")] = "relevance"
    since: Annotated[str, doc("Only from this day on.", "2026-11-20", max_length=10)] = ""
    until: Annotated[str, doc("Only until this day.", "2026-11-20", max_length=10)] = ""
    time_zone: Annotated[str, doc("IANA name; empty: UTC.", "Europe/Berlin", max_length=60)] = ""
    cursor: Annotated[str, doc("Articles of the next page.", "WzEsMl0", max_length=200)] = ""


class CompareQuery(Struct, forbid_unknown_fields=True):
    """The articles of the comparison page: by id or address, in a form also by their texts."""

    a: Annotated[str, doc("Id or URL of the first article.", "pool-1")] = ""
    b: Annotated[str, doc("Id or URL of the second article.", "pool-2")] = ""


async def search_pasted(request: web.Request, form: SearchPageQuery) -> web.Response:
    """Page: as the search; what fits into an address redirects there. A text is not stored."""
    if not is_text(form.q):
        raise web.HTTPSeeOther(_address(form))
    return await search(request, form)


def is_text(given: str) -> bool:
    """Whether the input is a text: neither words nor an id or a URL."""
    given = given.strip()
    return "\n" in given or (len(given) > MAX_SEARCH_CHARS and not canonical_or_none(given))


async def search(request: web.Request, query: SearchPageQuery) -> web.Response:
    """Page: events and articles by words, a headline, a text, an id or a URL."""
    service, given, problem = request.app[SERVICE], query.q.strip(), ""
    events, articles = service.events, service.articles.search
    about: dict[str, Any] | None = None  # the article with this id, or what is known of a text
    result: SearchResult | None = None
    event_ids: Mapping[int, str] = {}
    shown: dict[str, Event] = {}
    groups: dict[str, list[FoundArticle]] = {}  # by event id, in the order of their first articles
    try:
        conditions, after = _conditions(query), decode_result_cursor(query.cursor)
        if is_text(given):
            about = await _about(service, given, conditions)
        elif given and after is None and (exact := await articles.exact(given)):
            about = await _about(service, given, conditions, exact[0].article)
        elif given or conditions != NO_FILTER or query.sort == "time":
            if canonical_or_none(given):
                event_id = re.split("[/?#]", given.partition("/events/")[2])[0]
                if await events.repository.get_many([unquote(event_id)]):
                    raise web.HTTPSeeOther(f"/events/{event_id}")
                raise NotFound(f"No article is stored under the address {given[:200]}. Paste its headline.")
            result = await articles.find(
                given, conditions, limit=PAGE_ARTICLES, after=after, order=query.sort
            )
            event_ids = await events.repository.event_ids_of([f.article.group for f in result.articles])
            if after is None:
                found, _ = await events.search.find(given, MAX_EVENTS, **event_conditions(conditions))
                has_all = any(not missing for _, missing in found)
                shown = {event.id: event for event, missing in found if not (missing and has_all)}
                if query.sort == "relevance":  # what has all words is first
                    groups = {event.id: [] for event, missing in found if not missing}
                if max(result.words, len(given.split())) > FEW_WORDS:
                    same = _with_headline(result, given)
                    about = await _about(service, given, conditions, same)
                    about |= {"record": None, "canonical": same.record} if same else {}
    except (InvalidInput, NoText, NotFound) as error:
        problem = str(error)
    by_event = event_ids if given else {}  # all articles are in order of time
    others = {*by_event.values(), *((about or {}).get("event_ids", ()))} - shown.keys()
    shown |= await events.repository.get_many(sorted(others))
    for each in result.articles if result else ():
        groups.setdefault(by_event.get(each.article.group, ""), []).append(each)
    return html_response(
        request,
        "search.html",
        page="search",
        given=given,
        query=query,
        problem=problem,
        about=about,
        result=result,
        cards={id_: make_card(event, service.clock()) for id_, event in shown.items()},
        groups=groups | {id_: [] for id_ in shown if id_ not in groups},
        event_ids=event_ids,
        unfiltered=result and (result.total or (await articles.find(given, NO_FILTER, limit=1)).total),
        missing_words=missing_words,
        search_terms=search_terms,
        max_duplicates=MAX_DUPLICATES,
        next_url=_address(query, encode_cursor(result.next_key)) if result and result.next_key else "",
    )


def _conditions(query: SearchPageQuery) -> SearchFilter:
    """Raises InvalidInput for an unknown language, time zone or date."""
    since, until = (
        Day.parse(text, query.time_zone, name) if (text := getattr(query, name)) else None
        for name in ("since", "until")
    )
    return SearchFilter(
        lang=language_of_tag(query.lang.strip()),
        sources=(source_key(query.source),) if query.source.strip() else (),
        verdict=query.verdict or None,
        since_ms=since.start_ms if since else None,
        until_ms=until.end_ms if until else None,
    )


def _address(query: SearchPageQuery, cursor: str = "") -> str:
    values = msgspec.structs.asdict(query) | {"q": query.q.strip(), "cursor": cursor}
    return "/search?" + urlencode({n: v for n, v in values.items() if v not in ("", "relevance")})


def _with_headline(result: SearchResult, headline: str) -> StoredArticle | None:
    """An article with this headline, if possible no duplicate."""
    found = [each.article for each in result.articles]
    same = [article for article in found if source_key(article.record.title) == source_key(headline)]
    return min(same, key=lambda article: article.outcome.verdict == "duplicate", default=None)


async def _about(
    service: Service, given: str, conditions: SearchFilter, stored: StoredArticle | None = None
) -> dict[str, Any]:
    """What is known of a stored article, or of a headline or text. Raises InvalidInput, NoText."""
    index, options = service.articles.index.articles, RelatedOptions(MAX_RELATED)
    if stored is not None:
        analysis: Any = stored.record
        outcome, own_id, groups = stored.outcome, stored.record.id, [stored.group]
        related = await service.articles.related.of_id(own_id, options)
    else:
        article = to_article(ArticleIn(text=given) if is_text(given) else ArticleIn(title=given))
        analysis = await service.articles.ingest.submit(article, dry_run=True)
        outcome, own_id, groups = analysis.outcome, "", []
        options = replace(options, **event_conditions(conditions))
        of_article, of_id = service.articles.related.of_article, service.articles.related.of_id
        match = outcome.match
        related = await (of_id(match.canonical_id, options) if match else of_article(article, options))
    original_id = outcome.match.canonical_id if outcome.match else ""
    of_group = own_id or original_id
    group = await index.group_members(of_group, MAX_DUPLICATES + 2) if of_group else []
    known = [record.id for record in group]
    related = [item for item in related if item.id not in known]
    near = await index.get_many([*known, *(item.id for item in related)])
    groups += [article.group for article in near.values()]
    events = await service.events.repository.event_ids_of(groups)
    return {
        "outcome": outcome,
        "analysis": analysis,
        "canonical": next((record for record in group if record.id == original_id), None),
        "duplicates": [record for record in group if record.id != own_id][: MAX_DUPLICATES + 1],
        "related": related,
        "event_ids": list(dict.fromkeys(events[g] for g in groups if g in events))[:1],
        "record": stored and stored.record,
        "is_member": any(near[id_].group in events for id_ in known if id_ in near),
    }


async def compare(request: web.Request, query: CompareQuery) -> web.Response:
    """Page: comparison of two stored articles."""
    a, b, problem, found = query.a.strip(), query.b.strip(), "", None
    if a and b:
        try:
            found = await _load_comparison(request, a, b)
        except (InvalidInput, NotFound) as error:
            problem = str(error)
    return html_response(request, "compare.html", page="compare", a=a, b=b, comparison=found, problem=problem)


async def compare_pasted(request: web.Request, form: CompareQuery) -> web.Response:
    """Page: comparison of two articles, stored or pasted."""
    return await compare(request, form)


async def _load_comparison(request: web.Request, a: str, b: str) -> dict[str, Any]:
    """``diffs``: None if the text of one is not stored."""
    service = request.app[SERVICE]
    sides = [await _article_or_id(request, side) for side in (a, b)]
    first, second = await service.articles.explain.load_pair(sides[0], sides[1])
    stored = await service.articles.index.articles.get_many([side for side in sides if isinstance(side, str)])
    records = [stored[s].record if isinstance(s, str) and s in stored else None for s in sides]
    groups = [stored[record.id].group for record in records if record]
    event_ids = await service.events.repository.event_ids_of(groups)
    explanation = await service.articles.explain.compare(first, second)
    diffs, bare = None, [not has_text(side.record) for side in (first, second)]
    if first.text is not None and second.text is not None:
        langs = first.record.lang, second.record.lang
        diffs = await asyncio.to_thread(diff_texts, first.text, second.text, *langs, headlines=all(bare))
    return {
        "explanation": explanation,
        "fingerprints": [side.record.fingerprint for side in (first, second)],
        "bare": bare,
        "events": [event_ids.get(group) for group in groups],
        "records": records,
        "diffs": diffs,
        "truncated": any(len(side.text or "") > MAX_COMPARED_CHARS for side in (first, second)),
    }


async def _article_or_id(request: web.Request, given: str) -> str | Article:
    if found := await request.app[SERVICE].articles.search.exact(given):
        return found[0].article.record.id
    if given and not re.search(r"\s", given):
        raise NotFound(f"No article is stored under {given[:200]!r}. Paste the text itself.")
    return to_article(ArticleIn(text=given), for_storage=False)
