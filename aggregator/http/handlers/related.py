"""Routes of related articles: of a stored one, of a text, of a reader, and for a page that a browser shows.

A key with the role ``related`` stands in public pages. It gets ids, titles, addresses, sources and dates,
which any cache may keep for ``PUBLIC_S``; what other keys get is private.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain
from typing import Any

from aiohttp import web
from msgspec import Struct

from aggregator.analysis.text.normalization import source_key
from aggregator.app import Service
from aggregator.contract import encoding, responses
from aggregator.contract.decoding import (
    ErrorCollector,
    check_ids,
    to_article,
    to_duration_ms,
    to_past_ms,
    to_unix_ms,
)
from aggregator.contract.requests import ReadArticle, RelatedBatchIn, RelatedIn, RelatedQuery
from aggregator.domain import RelatedItem
from aggregator.errors import InvalidInput, NotFound
from aggregator.events.selection import EventFilter
from aggregator.http.app_keys import SERVICE, caller_id, is_public
from aggregator.http.endpoint import JSON_TYPE
from aggregator.http.handlers.search import language_of_tag
from aggregator.http.pages import conditional_response
from aggregator.queries.ranking import RelatedOptions
from aggregator.time_units import DAY_MS
from aggregator_client.wire import (
    ArticleIn,
    RelatedBatchOut,
    RelatedListOut,
    RelatedToManyOut,
    RelatedToOneOut,
)

PUBLIC_S = 60
# Lists of a batch that are computed at a time.
CONCURRENT_LISTS = 8
NO_PARAMETERS = RelatedQuery()


async def get_related(request: web.Request, id_: str, query: RelatedQuery) -> web.Response:
    """List articles related to a stored article."""
    service = request.app[SERVICE]
    return _response(
        request,
        RelatedListOut(_shown(request, await service.articles.related.of_id(id_, _options(service, query)))),
    )


async def get_top(request: web.Request, query: RelatedQuery) -> web.Response:
    """List articles for a reader who has read nothing. One of each top story."""
    service = request.app[SERVICE]
    return _response(
        request, RelatedListOut(_shown(request, await _top_stories(service, _options(service, query))))
    )


async def post_related(request: web.Request, query: RelatedQuery, body: RelatedIn) -> web.Response:
    """List articles related to an article by content, to stored ones, or to what a reader has read."""
    service = request.app[SERVICE]
    related, options = service.articles.related, _options(service, query, body)
    read, not_found = _read(body), list[str]()
    if read is None and _is_article(body, empty=True):
        found = await related.of_article(to_article(body, for_storage=False), options)
    elif read:
        found, not_found = await related.of_ids(read, options)
    else:
        found = await _top_stories(service, options)
    return _response(request, RelatedToManyOut(_shown(request, found), not_found))


def _read(body: RelatedIn) -> dict[str, int] | None:
    """The ids of a body with the times in ms when they were read; None: it has no ids."""
    if body.ids is None:
        return None
    if _is_article(body):
        raise InvalidInput("ids: give either ids or an article, not both.", field="ids")
    read, found = (
        [ReadArticle(each) if isinstance(each, str) else each for each in body.ids],
        ErrorCollector(),
    )
    times = [found.run(to_unix_ms, each.read_at, f"ids[{i}].read_at") for i, each in enumerate(read)]
    found.raise_all()
    latest = max(filter(None, times), default=0)
    pairs = zip(check_ids([each.id for each in read]), (time or latest for time in times), strict=True)
    return dict(sorted(pairs, key=lambda pair: pair[1]))  # of an id that is repeated, the latest time


async def post_batch(request: web.Request, body: RelatedBatchIn) -> web.Response:
    """List articles related to each of up to 100 stored articles, for pages that are rendered in advance."""
    service, ids = request.app[SERVICE], list(dict.fromkeys(check_ids(body.ids)))
    options, slots = _options(service, NO_PARAMETERS, body), asyncio.Semaphore(CONCURRENT_LISTS)

    async def related(id_: str) -> Sequence[RelatedItem] | None:
        async with slots:
            try:
                return await service.articles.related.of_id(id_, options)
            except NotFound:
                return None

    found = list(zip(ids, await asyncio.gather(*map(related, ids)), strict=True))
    lists = [RelatedToOneOut(id_, _shown(request, items)) for id_, items in found if items is not None]
    return _response(request, RelatedBatchOut(lists, [id_ for id_, items in found if items is None]))


async def _top_stories(service: Service, options: RelatedOptions) -> list[RelatedItem]:
    """The article of the headline of each story of the last day, or else its first."""
    stories = await service.events.repository.top_stories(
        EventFilter(lang=options.lang or ""), service.clock() - DAY_MS
    )
    choices = [(found.story.event.headline_id, found.story.event.id) for found in stories]
    wanted = list(dict.fromkeys(filter(None, chain.from_iterable(choices))))
    stored = await service.articles.index.articles.get_many(wanted)
    shown = {
        id_: stored[id_].record for id_ in wanted if id_ in stored and options.matches(stored[id_].record)
    }
    records = {id_: shown[id_] for ids in choices if (id_ := next(filter(shown.__contains__, ids), ""))}
    items = [
        RelatedItem(r.id, r.title, r.url, r.source, r.published_at_ms, 64, 0.0) for r in records.values()
    ]
    return items[: options.limit]


def _options(
    service: Service, query: RelatedQuery, body: RelatedIn | RelatedBatchIn | None = None
) -> RelatedOptions:
    """The parameters of the query and the body. Raises InvalidInput that says where each stands."""
    of_query, of_body, found = _given(query), _given(body) if body else {}, ErrorCollector()
    for name in of_query.keys() & of_body.keys():
        found.add(f"{name}: given in the query and in the body; give it once.", name, "repeated")
    values, now_ms = of_body | of_query, service.clock()
    for name in {"since", "until"} & values.keys():
        values[f"{name}_ms"] = found.run(to_past_ms, values.pop(name), name, now_ms)
    if "half_life" in values:
        values["half_life_ms"] = found.run(to_duration_ms, values.pop("half_life"), "half_life")
    if "lang" in values:
        values["lang"] = found.run(language_of_tag, values["lang"])
    sources = values.pop("source", [])
    options = RelatedOptions(
        sources=_source_keys([sources] if isinstance(sources, str) else sources),
        exclude_sources=_source_keys(values.pop("exclude_source", [])),
        exclude_ids=frozenset(values.pop("exclude_ids", [])),
        **values,
    )
    for error in found.errors:
        error.place = "parameter" if error.field in of_query else "body"
    found.raise_all()
    return options


def _given(parameters: Struct) -> dict[str, Any]:
    """The parameters that are not at their defaults."""
    names = set(RelatedQuery.__struct_fields__)
    if isinstance(parameters, RelatedIn) and _is_article(parameters):
        names -= {"lang", "source"} if isinstance(parameters.source, str) else {"lang"}  # of the article
    values = {name: getattr(parameters, name) for name in names}
    return {n: value for n, value in values.items() if value not in (None, "", getattr(NO_PARAMETERS, n))}


def _source_keys(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(source_key(name) for name in names if name.strip())


def _is_article(body: ArticleIn, *, empty: bool = False) -> bool:
    """Whether a member of an article is given; ``empty``: also one without content, which is an error."""
    parts = (body.id_, body.url, body.title, body.text, body.html)
    return any(part is not None if empty else bool(part) for part in parts)


def _shown(request: web.Request, items: Sequence[RelatedItem]) -> list[Any]:
    """The articles as the caller may see them."""
    if is_public(request):
        return [encoding.fields_of(item, responses.RelatedLinkOut) for item in items]
    return list(map(encoding.related_out, items))


def _response(request: web.Request, body: Struct) -> web.Response:
    """200 or 304, with an ETag of the content."""
    public = is_public(request) and request.method in ("GET", "HEAD")
    headers = {"Cache-Control": f"public, max-age={PUBLIC_S}" if public else "private, no-cache"}
    if caller_id(request):
        headers["Vary"] = "Authorization"
    return conditional_response(
        request, responses.encode(body) + b"\n", JSON_TYPE, charset=None, headers=headers
    )
