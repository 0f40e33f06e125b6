"""Look-up and comparison: what does the service say of this text, and what do two articles share?"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import parse_qsl, urlencode

from aiohttp import web

from aggregator.analysis.article_id import MAX_ID_BYTES, canonical_url, validate_id
from aggregator.contract.decoding import convert_strings, to_article
from aggregator.contract.requests import ArticleIn, CompareForm, CompareQuery, LookupForm, LookupQuery
from aggregator.dedup.diff import MAX_COMPARED_CHARS, DiffSpan, align
from aggregator.domain import Article, ArticleRecord, Match, RelatedItem
from aggregator.errors import InvalidInput, NoText, NotFound
from aggregator.http import body as bodies
from aggregator.http.app_keys import DISTANCE_THRESHOLDS, SERVICE
from aggregator.http.pages import html_response
from aggregator.queries.explain import ComparedArticle, Explanation, explain

MAX_RELATED = 20
F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class LookupResult:
    """What is shown of one article that was looked up. ``record``: None for a text that is not stored."""

    verdict: str
    record: ArticleRecord | None
    text: str
    match: Match | None
    distance: int | None
    hamming_class: str
    fingerprint: int
    space: str
    short: bool
    updated_figures: bool
    event_id: str | None
    canonical: ArticleRecord | None
    copies: tuple[ArticleRecord, ...]
    related: tuple[RelatedItem, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two articles side by side; ``texts`` is None where one of them is not kept."""

    explanation: Explanation
    records: tuple[ArticleRecord | None, ArticleRecord | None]
    diffs: tuple[Sequence[DiffSpan], Sequence[DiffSpan]] | None
    truncated: bool


async def lookup(request: web.Request, query: LookupQuery) -> web.StreamResponse:
    """The verdict on a stored article."""
    given = query.q.strip()
    if not given:
        return _lookup_page(request, given)
    try:
        return _lookup_page(request, given, await _look_up_stored(request, await _resolve_id(request, given)))
    except (InvalidInput, NotFound) as error:
        return _lookup_page(request, given, problem=str(error))


async def lookup_pasted(request: web.Request, query: LookupQuery) -> web.StreamResponse:
    """The verdict on a pasted text, which is not stored; an id or address is looked up under its own address."""
    given = (await read_form(request, LookupForm)).q.strip()
    if is_id_or_url(given):
        try:
            await _resolve_id(request, given)
        except (InvalidInput, NotFound) as error:
            if " " not in given:
                return _lookup_page(request, given, problem=str(error))
        else:
            raise web.HTTPSeeOther("/lookup?" + urlencode({"q": given}))
    try:
        return _lookup_page(request, given, await _look_up_pasted(request, given) if given else None)
    except (InvalidInput, NoText) as error:
        return _lookup_page(request, given, problem=str(error))


async def compare(request: web.Request, query: CompareQuery) -> web.StreamResponse:
    """Two stored articles side by side."""
    return await _compare_page(request, query.a.strip(), query.b.strip())


async def compare_pasted(request: web.Request, query: CompareQuery) -> web.StreamResponse:
    """Two articles side by side, each stored or pasted."""
    form = await read_form(request, CompareForm)
    return await _compare_page(request, form.a.strip(), form.b.strip())


def is_id_or_url(text: str) -> bool:
    """Whether it may be an id or an address, and not a text."""
    return "\n" not in text and 0 < len(text.encode("utf-8", "replace")) <= MAX_ID_BYTES


async def _resolve_id(request: web.Request, given: str) -> str:
    """The id under which it is stored: as it stands, or as an address. Raises BadInput, NotFound."""
    candidates = [given]
    if given.lower().startswith(("http://", "https://")):
        candidates.append(canonical_url(given))
    for id_ in candidates:
        if is_id_or_url(id_) and await request.app[SERVICE].index.get_many([validate_id(id_, "q")]):
            return id_
    raise NotFound(f"Nothing is stored under {given[:200]!r}. Paste the text itself to see its verdict.")


async def _look_up_stored(request: web.Request, id_: str) -> LookupResult:
    service = request.app[SERVICE]
    stored = await service.index.get(id_)
    record, outcome = stored.record, stored.outcome
    match = outcome.match
    copies = await service.index.group_members(id_)
    events = await service.events.event_ids_of([stored.group])
    return LookupResult(
        verdict=outcome.verdict,
        record=record,
        text="",
        match=match,
        distance=outcome.distance,
        hamming_class=request.app[DISTANCE_THRESHOLDS].hamming_class(outcome.distance),
        fingerprint=record.fingerprint,
        space=record.space,
        short=record.short,
        updated_figures=outcome.updated_figures,
        event_id=events.get(stored.group),
        canonical=next((c for c in copies if match and c.id == match.canonical_id), None),
        copies=tuple(c for c in copies if c.id != id_),
        related=tuple(await service.related.of_id(id_, limit=MAX_RELATED)),
    )


async def _look_up_pasted(request: web.Request, text: str) -> LookupResult:
    service = request.app[SERVICE]
    answer = await service.ingest.submit(to_article(ArticleIn(text=text)), dry_run=True)
    match = answer.outcome.match
    copies = await service.index.group_members(match.canonical_id) if match else []
    return LookupResult(
        verdict=answer.outcome.verdict,
        record=None,
        text=text,
        match=match,
        distance=answer.outcome.distance,
        hamming_class=request.app[DISTANCE_THRESHOLDS].hamming_class(answer.outcome.distance),
        fingerprint=answer.fingerprint,
        space=answer.space,
        short=answer.short,
        updated_figures=answer.outcome.updated_figures,
        event_id=answer.event_id,
        canonical=copies[0] if copies else None,
        copies=tuple(copies),
        related=answer.related,
    )


def _lookup_page(
    request: web.Request, given: str, verdict: LookupResult | None = None, problem: str = ""
) -> web.Response:
    return html_response(
        request,
        "lookup.html",
        page="lookup",
        given=given,
        verdict=verdict,
        problem=problem,
        stream="",
        position="",
    )


async def _compare_page(request: web.Request, a: str, b: str) -> web.Response:
    problem, compared = "", None
    if a and b:
        try:
            compared = await _load_comparison(request, a, b)
        except (InvalidInput, NotFound) as error:
            problem = str(error)
    return html_response(
        request,
        "compare.html",
        page="compare",
        a=a,
        b=b,
        compared=compared,
        problem=problem,
        stream="",
        position="",
    )


async def _load_comparison(request: web.Request, a: str, b: str) -> Comparison:
    service = request.app[SERVICE]
    given = [await _article_or_id(request, side) for side in (a, b)]
    first, second = await service.explain.load_pair(given[0], given[1])
    known = await service.index.get_many([g for g in given if isinstance(g, str)])
    records = [known[g].record if isinstance(g, str) and g in known else None for g in given]
    explanation = await asyncio.to_thread(explain, first, second, service.explain.policy)
    return Comparison(
        explanation=explanation,
        records=(records[0], records[1]),
        diffs=await _diff_texts(first, second),
        truncated=any(len(side.text or "") > MAX_COMPARED_CHARS for side in (first, second)),
    )


async def _diff_texts(
    first: ComparedArticle, second: ComparedArticle
) -> tuple[Sequence[DiffSpan], Sequence[DiffSpan]] | None:
    if first.text is None or second.text is None:
        return None
    return await asyncio.to_thread(align, first.text, second.text, first.lang, second.lang)


async def _article_or_id(request: web.Request, given: str) -> str | Article:
    if is_id_or_url(given):
        try:
            return await _resolve_id(request, given)
        except NotFound:
            if " " not in given:
                raise
    return to_article(ArticleIn(text=given), for_storage=False)


async def read_form(request: web.Request, struct_type: type[F]) -> F:
    """The fields of a form. Raises BadInput, TooLarge."""
    service = request.app[SERVICE]
    # Percent signs make up to three bytes of one.
    body = await bodies.read_body(request, 3 * service.settings.max_body_bytes)
    try:
        fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=8, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise InvalidInput(
            "body: expected the fields of the page's form, percent-encoded.", field="body"
        ) from None
    return convert_strings(dict(fields), struct_type)
