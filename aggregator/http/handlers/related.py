"""Routes of related articles and of the comparison of two articles."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from aggregator.analysis.article_id import validate_id
from aggregator.analysis.text.language import UNDETERMINED, language_from_tag
from aggregator.contract import encoding
from aggregator.contract.decoding import check_ids, to_article, to_unix_ms
from aggregator.contract.requests import ExplainIn, NoQuery, RelatedIn, RelatedQuery
from aggregator.contract.validation import combined
from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator.http import body as bodies
from aggregator.http import json_response
from aggregator.http.app_keys import SERVICE
from aggregator.http.query_params import errors_in_parameters, path_id
from aggregator.queries.related import RelatedFilter
from aggregator_client.wire import ArticleIn, RelatedListOut, RelatedToManyOut


async def get_related(request: web.Request, query: RelatedQuery) -> web.StreamResponse:
    """Articles related to a stored one."""
    id_ = path_id(request)
    found = await request.app[SERVICE].related.of_id(id_, **_related_arguments(query))
    return json_response.struct_response(RelatedListOut([encoding.related_out(item) for item in found]))


async def post_related(request: web.Request, query: RelatedQuery) -> web.StreamResponse:
    """Articles related to an article by content, or to several stored articles."""
    service = request.app[SERVICE]
    body = await bodies.read_struct(request, RelatedIn)
    not_found: list[str] = []
    if body.ids is None:
        if not _has_content(body):
            raise InvalidInput(
                "text: give an article by text, html or title, or the ids of stored articles.", field="text"
            )
        found = await service.related.of_article(
            to_article(body, for_storage=False), **_related_arguments(query)
        )
    elif _has_content(body):
        raise InvalidInput("ids: give either ids or an article, not both.", field="ids")
    else:
        found, not_found = await service.related.of_ids(check_ids(body.ids), **_related_arguments(query))
    return json_response.struct_response(
        RelatedToManyOut([encoding.related_out(item) for item in found], not_found)
    )


async def explain(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """Compare two articles by the deduplication rules."""
    service = request.app[SERVICE]
    body = await bodies.read_struct(request, ExplainIn)
    found = await service.explain.explain_pair(
        _explain_side(body.a, "a"), _explain_side(body.b, "b"), profile=body.policy or ""
    )
    return json_response.struct_response(encoding.explain_out(found))


def _related_arguments(query: RelatedQuery) -> dict[str, Any]:
    with errors_in_parameters():
        since_ms, lang = to_unix_ms(query.since, "since"), language_of_tag(query.lang)
    return {
        "limit": query.limit,
        "related_filter": RelatedFilter(
            since_ms=since_ms, source=query.source, exclude_source=query.exclude_source, lang=lang
        ),
    }


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


def _has_content(body: ArticleIn) -> bool:
    return any((body.id_, body.url, body.title, body.text, body.html))


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
