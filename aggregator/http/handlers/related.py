"""Routes of related articles. What a key with the role ``related`` gets is public, and may be cached."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from aggregator.analysis.term_profile import unit_vectors
from aggregator.analysis.text.normalization import source_key
from aggregator.app import Service
from aggregator.concurrency import current_caller
from aggregator.contract import decoding, encoding, responses
from aggregator.contract.requests import RelatedBatchIn, RelatedIn, RelatedQuery
from aggregator.domain import RelatedItem
from aggregator.errors import InvalidInput, NotFound
from aggregator.events.selection import EventFilter
from aggregator.http.app_keys import caller_id, is_public
from aggregator.http.auth import SAFE_METHODS
from aggregator.http.endpoint import JSON_TYPE
from aggregator.http.handlers.search import language_of_tag
from aggregator.http.pages import conditional_response
from aggregator.index import StoredArticle
from aggregator.queries.headline_table import SearchFilter
from aggregator.queries.ranking import RelatedOptions, interests_of
from aggregator.time_units import DAY_MS
from aggregator_client import wire

PUBLIC_S = 60
PUBLIC_FIELDS = ("id", "title", "url", "source", "published_at")
CONCURRENT_LISTS = 8  # of a batch
NEWEST = 50  # articles that pass, whose subjects a new reader gets
NO_PARAMETERS = RelatedQuery()


async def get_related(request: web.Request, service: Service, id_: str, query: RelatedQuery) -> web.Response:
    """List articles related to a stored article."""
    found = await service.articles.related.of_id(id_, _options(service, query))
    return _response(request, wire.RelatedListOut(_shown(request, found)))


async def get_top(request: web.Request, service: Service, query: RelatedQuery) -> web.Response:
    """List articles for a new reader. One of each top story, then of each subject of the newest articles."""
    found = await _for_new_reader(service, _options(service, query))
    return _response(request, wire.RelatedListOut(_shown(request, found)))


async def post_related(
    request: web.Request, service: Service, query: RelatedQuery, body: RelatedIn
) -> web.Response:
    """List articles related to an article by content, to stored ones, or to what a reader has read."""
    options, read, not_found = _options(service, query, body), _read_ms(body), list[str]()
    if body.ids is None and any(part is not None for part in _content(body)):
        if all(part is None for part in (body.title, body.text, body.html)):
            raise InvalidInput("ids: give the ids of stored articles, or a title, text or html.", field="ids")
        body = replace(body, source=body.source if isinstance(body.source, str) else None)
        article = decoding.to_article(body, for_storage=False)
        found = await service.articles.related.of_article(article, options)
    else:
        found, not_found = await service.articles.related.of_ids(read, options) if read else ([], [])
        found = found if len(not_found) < len(read) else await _for_new_reader(service, options)
    return _response(request, wire.RelatedToManyOut(_shown(request, found), not_found))


async def post_batch(request: web.Request, service: Service, body: RelatedBatchIn) -> web.Response:
    """List articles related to each of up to 100 stored articles, for pages that are rendered in advance."""
    ids = list(dict.fromkeys(decoding.check_ids(body.ids)))
    options, slots = _options(service, NO_PARAMETERS, body), asyncio.Semaphore(CONCURRENT_LISTS)
    if caller_id(request):  # each list costs as much as a request
        edge = service.edge
        limiter = edge.related_limiter if is_public(request) else edge.rate_limiter
        await limiter.acquire(current_caller.get(), len(ids) - 1)

    async def related(id_: str) -> Sequence[RelatedItem] | None:
        async with slots:
            try:
                return await service.articles.related.of_id(id_, options)
            except NotFound:
                return None

    found = list(zip(ids, await asyncio.gather(*map(related, ids)), strict=True))
    lists = [wire.RelatedToOneOut(id_, _shown(request, items)) for id_, items in found if items is not None]
    return _response(request, wire.RelatedBatchOut(lists, [id_ for id_, items in found if items is None]))


def _read_ms(body: RelatedIn) -> dict[str, int]:
    """The ids of a body with the times in ms when they were read, of a repeated one the latest."""
    if body.ids and any(_content(body)):
        raise InvalidInput("ids: give either ids or an article, not both.", field="ids")
    read = [(each, None) if isinstance(each, str) else (each.id, each.read_at) for each in body.ids or ()]
    found, ids = decoding.ErrorCollector(), decoding.check_ids([id_ for id_, _ in read])
    times = [found.run(decoding.to_unix_ms, at, f"ids[{i}].read_at") for i, (_, at) in enumerate(read)]
    found.raise_all()
    latest = max(filter(None, times), default=0)
    return dict(sorted(zip(ids, (at or latest for at in times), strict=True), key=lambda pair: pair[1]))


async def _for_new_reader(service: Service, options: RelatedOptions) -> list[RelatedItem]:
    """An article of each top story, the headline's if it passes; then of each subject of the newest others.

    Those of many articles and new ones first (``interests_of``).
    """
    get_many, lang = service.articles.index.articles.get_many, options.lang
    wanted = EventFilter(lang=lang or "", any_of=tuple(EventFilter(source=name) for name in options.sources))
    ranked = await service.events.repository.top_stories(wanted, service.clock() - DAY_MS)
    events = [each.story.event for each in ranked]
    excluded = {each.group for each in (await get_many(options.exclude_ids)).values()}

    def passing(found: Iterable[StoredArticle]) -> dict[str, StoredArticle]:
        return {a.record.id: a for a in found if a.group not in excluded and options.matches(a.record)}

    stored = passing((await get_many([event.headline_id for event in events])).values())
    others = [id_ for event in events if event.headline_id not in stored for id_ in event.items]
    stored |= passing((await get_many(others)).values())
    choices = [filter(stored.__contains__, (event.headline_id, *event.items)) for event in events]
    top = {stored[id_].group: stored[id_].record for ids in choices if (id_ := next(ids, ""))}
    found = [RelatedItem.of(record, 64, 0.0, kind="top_story") for record in top.values()]
    if len(found) < options.limit:
        conditions = SearchFilter(lang, options.sources, since_ms=options.since_ms, until_ms=options.until_ms)
        newest = (await service.articles.search.find("", conditions, limit=NEWEST)).articles
        recent = passing(each.article for each in newest).values()
        holders = await service.events.repository.event_ids_of([*top, *(a.group for a in recent)])
        stories = {holders.get(group, group): record for group, record in top.items()}
        rest = {holders.get(a.group, a.group): a.record for a in recent}  # an event once; of copies the first
        pool = [*stories.values(), *(record for key, record in rest.items() if key not in stories)]
        interests = interests_of(unit_vectors(pool), [r.publication_ms for r in pool])
        subjects = dict.fromkeys(min(own) for own, _ in interests)  # interests may share their newest article
        found += [RelatedItem.of(pool[i], 64, 0.0, kind="recent") for i in subjects if i >= len(stories)]
    return found[: options.limit]


def _options(
    service: Service, query: RelatedQuery, body: RelatedIn | RelatedQuery = NO_PARAMETERS
) -> RelatedOptions:
    """The parameters of the query and the body. Raises InvalidInput that says where each stands."""
    of_query, of_body, found = _given(query), _given(body), decoding.ErrorCollector()
    for name in of_query.keys() & of_body.keys():
        found.add(f"{name}: given in the query and in the body; give it once.", name, "repeated")
    values, now_ms = of_body | of_query, service.clock()
    for name in {"since", "until"} & values.keys():
        values[f"{name}_ms"] = found.run(decoding.to_past_ms, values.pop(name), name, now_ms)
    if "half_life" in values:
        values["half_life_ms"] = found.run(decoding.to_duration_ms, values.pop("half_life"), "half_life")
    if "lang" in values:
        values["lang"] = found.run(language_of_tag, values["lang"])
    for name, field in (("source", "sources"), ("exclude_source", "exclude_sources")):
        names = values.pop(name, [])
        values[field] = tuple(map(source_key, [names] if isinstance(names, str) else filter(None, names)))
    for error in found.errors:
        error.place = "parameter" if error.field in of_query else "body"
    found.raise_all()
    return RelatedOptions(**values)


def _given(parameters: RelatedIn | RelatedQuery) -> dict[str, Any]:
    """The parameters that are not at their defaults."""
    names = set(RelatedQuery.__struct_fields__)
    if isinstance(parameters, RelatedIn) and any(_content(parameters)):
        names -= {"lang", "source"} if isinstance(parameters.source, str) else {"lang"}  # of the article
    values = {name: getattr(parameters, name) for name in names}
    return {n: value for n, value in values.items() if value not in (None, "", getattr(NO_PARAMETERS, n))}


def _content(body: RelatedIn) -> tuple[str | None, ...]:
    return body.id_, body.url, body.title, body.text, body.html


def _shown(request: web.Request, items: Sequence[RelatedItem]) -> list[Any]:
    """The articles as the caller may see them."""
    shown = list(map(encoding.related_out, items))
    return [{n: getattr(each, n) for n in PUBLIC_FIELDS} for each in shown] if is_public(request) else shown


def _response(request: web.Request, body: Struct) -> web.Response:
    """200 or 304, with an ETag of the content."""
    public = is_public(request) and request.method in SAFE_METHODS
    headers = {"Cache-Control": f"public, max-age={PUBLIC_S}" if public else "private, no-cache"}
    headers |= {"Vary": "Authorization"} if caller_id(request) else {}
    return conditional_response(
        request, responses.encode(body) + b"\n", JSON_TYPE, charset=None, headers=headers
    )
