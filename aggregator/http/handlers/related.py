"""Routes that compare: related articles, and why two articles are or are not copies."""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web

from aggregator.analysis.article_id import checked_id
from aggregator.analysis.text.language import UNDETERMINED, from_tag
from aggregator.contract import encoding
from aggregator.contract.decoding import checked_ids, path_id, to_article, to_ms
from aggregator.contract.requests import ArticleIn, ExplainIn, NoQuery, RelatedIn, RelatedQuery
from aggregator.contract.responses import RelatedListOut
from aggregator.domain import Article
from aggregator.errors import BadInput
from aggregator.http import body as bodies
from aggregator.http import json_response
from aggregator.http.app_keys import SERVICE
from aggregator.queries.related import Filter

_related_in = msgspec.json.Decoder(RelatedIn).decode
_explain_in = msgspec.json.Decoder(ExplainIn).decode


async def of_id(request: web.Request, query: RelatedQuery) -> web.StreamResponse:
    """Articles related to a stored one."""
    id_ = path_id(request.match_info["id"])
    found = await request.app[SERVICE].related.of_id(id_, **_wanted(query))
    return json_response.json(RelatedListOut([encoding.related(item) for item in found]))


async def of_body(request: web.Request, query: RelatedQuery) -> web.StreamResponse:
    """Articles related to a text that is not stored, or to what was just read."""
    service = request.app[SERVICE]
    body = await bodies.decoded(request, _related_in)
    if body.ids is None:
        if not _has_content(body):
            raise BadInput(
                "text: give an article by its text, html or title, or the ids of stored ones.", field="text"
            )
        found = await service.related.of_article(to_article(body, stored=False), **_wanted(query))
    elif _has_content(body):
        raise BadInput("ids: give either ids or an article, not both.", field="ids")
    else:
        found = await service.related.of_ids(checked_ids(body.ids), **_wanted(query))
    return json_response.json(RelatedListOut([encoding.related(item) for item in found]))


async def explain(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """Two articles compared."""
    service = request.app[SERVICE]
    body = await bodies.decoded(request, _explain_in)
    found = await service.explain.pair(_side(body.a, "a"), _side(body.b, "b"))
    return json_response.json(encoding.explanation(found))


def _wanted(query: RelatedQuery) -> dict[str, Any]:
    return {
        "limit": query.limit,
        "wanted": Filter(
            since_ms=to_ms(query.since, "since"),
            source=query.source,
            exclude_source=query.exclude_source,
            lang=_language(query.lang),
        ),
    }


def _language(tag: str | None) -> str | None:
    """The language of a tag as articles are stored under it. Raises BadInput for one that names none."""
    if not tag or tag.lower() == UNDETERMINED:
        return tag.lower() if tag else None
    known = from_tag(tag)
    if known is None:
        raise BadInput(
            f'lang: {tag} is no language known here; give a tag such as "en" or "zh-Hant".', field="lang"
        )
    return known


def _has_content(body: ArticleIn) -> bool:
    return any((body.id_, body.url, body.title, body.text, body.html))


def _side(given: str | ArticleIn, field: str) -> str | Article:
    if isinstance(given, str):
        return checked_id(given, field)
    try:
        return to_article(given, stored=False)
    except BadInput as error:
        named = BadInput(f"{field}.{error}", field=f"{field}.{error.field}")
        raise named from None
