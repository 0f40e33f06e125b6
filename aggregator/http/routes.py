"""The route table; the router, the OpenAPI document and the documentation page are built from it."""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from typing import Any

from aiohttp import web
from msgspec import Struct

from aggregator.auth.api_keys import Permission
from aggregator.contract import provenance as provenance_contract
from aggregator.contract import requests, responses
from aggregator.errors import AggregatorError, BodyTimeout, DeadlineExceeded
from aggregator.http import auth, idempotency, pages, query_params
from aggregator.http.app_keys import BASE_PATH, DEPRECATION_HEADERS, SERVICE
from aggregator.http.errors import handle_expect_header
from aggregator.http.handlers import (
    articles,
    desks,
    event_views,
    events,
    feeds,
    operations,
    provenance,
    search,
    webhooks,
)
from aggregator.http.pages import desks as desk_pages
from aggregator.http.pages import documentation, forms, front, health, lookup, report, sign_in
from aggregator.http.pages import webhooks as webhook_pages
from aggregator_client import wire

Handler = Callable[[web.Request, Any], Awaitable[web.StreamResponse]]

JSON_TYPE, NDJSON_TYPE = "application/json", "application/x-ndjson"
FORM_TYPE = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Deprecation:
    """A route is deprecated ``since`` a time, and may be removed at ``sunset``; both UTC."""

    since: datetime
    sunset: datetime

    def headers(self, operation_id: str, base: str = "") -> dict[str, str]:
        """Deprecation (RFC 9745), Sunset (RFC 8594), and a link to /docs below ``base``."""
        return {
            "Deprecation": f"@{int(self.since.timestamp())}",
            "Sunset": format_datetime(self.sunset, usegmt=True),
            "Link": f'<{base}/docs#{operation_id}>; rel="deprecation"; type="text/html"',
        }


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One route.

    path             as in OpenAPI; "{id}" may contain slashes, so ids that are addresses work unescaped
    operation_id     operationId of the OpenAPI document, also written to the audit log
    responses        status -> body: a Struct type, a media type, or None for no content
    query            its query parameters; None: the query string is ignored
    body             type of the request body (``ndjson``: one per line; ``form``: fields of an HTML form)
    errors           error statuses to document in addition to those that ``error_statuses`` adds
    permission       what the caller's key must allow, where keys are required (``api_keys.ROLE_PERMISSIONS``)
    audited          whether each request is written to the audit log
    deprecation      since when it is deprecated and when it may go; None: it is not (docs/api-versioning.md)
    idempotency_key  whether it takes an Idempotency-Key (``idempotency.py``)
    long_running     answered in parts, so that the deadline of requests covers its admission only
    """

    method: str
    path: str
    handler: Handler
    operation_id: str
    summary: str
    tag: str
    responses: dict[int, type[Struct] | str | None]
    query: type[Struct] | None = requests.NoQuery
    body: type[Struct] | None = None
    ndjson: bool = False
    form: bool = False
    errors: tuple[int, ...] = ()
    permission: Permission = "admin"
    audited: bool = False
    deprecation: Deprecation | None = None
    idempotency_key: bool = False
    long_running: bool = False

    @property
    def error_statuses(self) -> tuple[int, ...]:
        """Error statuses of the route, besides 500 and those of authentication."""
        if self.query is None:
            return self.errors
        found = (404,) if "{" in self.path else ()
        of_body = (413,) if self.form else (415,) if self.ndjson else (413, 415, 422) if self.body else ()
        return (400, *found, *of_body, *self.errors, 503)


TAG_ARTICLES, TAG_RELATED, TAG_EVENTS = "articles", "related", "events"
TAG_OPERATIONS, TAG_PAGES = "operations", "pages"

_read = functools.partial(Endpoint, "GET", permission="reader")
_change = functools.partial(Endpoint, permission="editor", audited=True)
ENDPOINTS: tuple[Endpoint, ...] = (
    _change("POST", "/v1/articles", articles.post, "postArticle",
        "Check an article for duplicates and store it.", TAG_ARTICLES,
        {201: wire.VerdictOut, 200: wire.VerdictOut}, requests.IngestQuery, wire.ArticleIn,
        permission="crawler", audited=False),
    _change("POST", "/v1/articles/batch", articles.post_batch, "postBatch",
        "Check and store many articles: JSON lines, one answer line each, in order.", TAG_ARTICLES,
        {200: wire.VerdictOut}, requests.IngestQuery, wire.ArticleIn, ndjson=True, permission="crawler",
        audited=False, long_running=True),
    _read("/v1/articles", search.list_articles, "listArticles", "List stored articles, newest first.",
        TAG_ARTICLES, {200: wire.ArticlesOut}, requests.ArticlesQuery),
    _read("/v1/search", search.search, "search", "Search events and articles by words, URL or id.",
        TAG_ARTICLES, {200: wire.SearchOut}, requests.SearchQuery),
    _read("/v1/articles/{id}/copies", articles.get_copies, "getCopies",
        "List the articles of an article's duplicate group, the canonical one first.", TAG_ARTICLES,
        {200: wire.CopiesOut}, errors=(410,)),
    _read("/v1/articles/{id}/related", search.get_related, "getRelated",
        "List articles related to a stored article.", TAG_RELATED, {200: wire.RelatedListOut},
        requests.RelatedQuery, errors=(410,)),
    _read("/v1/articles/{id}/provenance", provenance.of_article, "getProvenance",
        "Get who published an article's text first, who repeated it, and what each changed.", TAG_ARTICLES,
        {200: provenance_contract.ProvenanceOut}, errors=(410,)),
    _read("/v1/articles/{id}", articles.get, "getArticle", "Get a stored article and its verdict.",
        TAG_ARTICLES, {200: wire.ArticleOut}, errors=(410,), permission="key"),
    _change("DELETE", "/v1/articles/{id}", articles.delete, "deleteArticle",
        "Delete an article, or undo a reservation.", TAG_ARTICLES, {204: None}, errors=(410,),
        permission="crawler"),
    _change("POST", "/v1/related", search.post_related, "postRelated",
        "List articles related to an article by content, or to several stored articles.", TAG_RELATED,
        {200: wire.RelatedToManyOut}, requests.RelatedQuery, requests.RelatedIn, permission="reader",
        audited=False),
    _change("POST", "/v1/explain", search.explain, "explain", "Compare two articles and explain the verdict.",
        TAG_RELATED, {200: wire.ExplainOut}, body=requests.ExplainIn, errors=(404,), permission="reader",
        audited=False),
    _read("/v1/events", events.list_, "listEvents", "List breaking events.", TAG_EVENTS,
        {200: wire.EventsOut}, requests.EventsQuery, errors=(404,)),
    _read("/v1/events/stream", feeds.stream_events, "streamEvents",
        "Stream event changes as server-sent events; resume with Last-Event-ID.", TAG_EVENTS,
        {200: "text/event-stream"}, requests.EventStreamQuery, errors=(404,), long_running=True),
    _read("/v1/events.atom", feeds.atom_feed, "atomFeed", "Get events as an Atom feed.", TAG_EVENTS,
        {200: feeds.ATOM_TYPE, 304: None}, requests.FeedQuery, errors=(404,)),
    _read("/v1/events.json", feeds.json_feed, "jsonFeed", "Get events as a JSON Feed.", TAG_EVENTS,
        {200: feeds.JSON_FEED_TYPE, 304: None}, requests.FeedQuery, errors=(404,)),
    _read("/v1/read-mark", events.get_read_mark, "getReadMark",
        "Get which events the user of the caller's key has seen.", TAG_EVENTS, {200: responses.ReadMarkOut},
        errors=(404,)),
    _change("POST", "/v1/read-mark", events.post_read_mark, "postReadMark",
        "Mark events as seen by the user of the caller's key.", TAG_EVENTS, {200: responses.ReadMarkOut},
        body=requests.ReadMarkIn, errors=(404, 409), permission="reader", audited=False),
    _change("POST", "/v1/watches", desks.post_watch, "postWatch",
        "Save a query of /v1/events under a name (a watch).", TAG_EVENTS,
        {201: responses.WatchOut, 200: responses.WatchOut}, body=requests.WatchIn, errors=(409,),
        idempotency_key=True),
    _read("/v1/watches", desks.list_watches, "listWatches", "List saved watches.", TAG_EVENTS,
        {200: responses.WatchesOut}),
    _read("/v1/watches/{id}", desks.get_watch, "getWatch", "Get a saved watch.", TAG_EVENTS,
        {200: responses.WatchOut}),
    _change("DELETE", "/v1/watches/{id}", desks.delete_watch, "deleteWatch", "Delete a saved watch.",
        TAG_EVENTS, {204: None}),
    _read("/v1/events/{id}/provenance", provenance.of_event, "getEventProvenance",
        "Get which outlet had an event first, who followed, and which outlets share texts.", TAG_EVENTS,
        {200: provenance_contract.EventProvenanceOut}),
    _read("/v1/events/{id}/items", event_views.get_items, "getEventItems",
        "List all stored articles of an event in order of time, at most 5,000.", TAG_EVENTS,
        {200: responses.EventItemsOut}),
    _read("/v1/events/{id}/items.csv", event_views.get_items_csv, "getEventItemsCsv",
        "Download the articles of an event as CSV.", TAG_EVENTS, {200: event_views.CSV_TYPE}),
    _read("/v1/events/{id}", events.get, "getEvent", "Get the report on one event.", TAG_EVENTS,
        {200: wire.EventDetailOut, 308: None}),
    _read("/v1/stories/{id}", events.get_story, "getStory",
        "Get a storyline: events of one topic over days, with key developments by day.", TAG_EVENTS,
        {200: responses.StoryOut}),
    _change("POST", "/v1/events/{id}/actions", events.post_action, "postAction",
        "Apply an editor's action to an event; returns the changed event.", TAG_EVENTS, {200: wire.EventOut},
        body=requests.ActionIn, errors=(409,)),
    _change("POST", "/v1/desks", desks.post, "postDesk",
        "Create a desk: a saved view of the events with its own thresholds and notifications.", TAG_EVENTS,
        {201: responses.DeskOut, 200: responses.DeskOut}, body=requests.DeskIn, errors=(409,),
        idempotency_key=True),
    _read("/v1/desks", desks.list_, "listDesks", "List desks.", TAG_EVENTS, {200: responses.DesksOut}),
    _change("POST", "/v1/desks/{id}/targets", desks.post_target, "postTarget",
        "Add a notification target to a desk: e-mail or webhook.", TAG_EVENTS,
        {201: responses.WebhookOut, 200: responses.WebhookOut}, body=requests.TargetIn, errors=(409,),
        idempotency_key=True),
    _read("/v1/desks/{id}", desks.get, "getDesk", "Get a desk.", TAG_EVENTS, {200: responses.DeskOut}),
    _change("PUT", "/v1/desks/{id}", desks.put, "putDesk",
        "Replace the settings of a desk; its targets stay.", TAG_EVENTS, {200: responses.DeskOut},
        body=requests.DeskIn),
    _change("DELETE", "/v1/desks/{id}", desks.delete, "deleteDesk", "Delete a desk and its targets.",
        TAG_EVENTS, {204: None}),
    _change("POST", "/v1/webhooks", webhooks.post, "postWebhook",
        "Register a webhook for events that fire, double, merge or close (Standard Webhooks).", TAG_EVENTS,
        {201: responses.WebhookOut, 200: responses.WebhookOut}, body=requests.WebhookIn, errors=(404, 409),
        idempotency_key=True),
    _read("/v1/webhooks", webhooks.list_, "listWebhooks",
        "List webhooks and targets of desks with delivery status.", TAG_EVENTS, {200: responses.WebhooksOut},
        permission="editor"),
    _read("/v1/webhooks/{id}", webhooks.get, "getWebhook",
        "Get a webhook or target, its dead letters and the history of its deliveries.", TAG_EVENTS,
        {200: responses.WebhookDetailOut}, permission="editor"),
    _change("DELETE", "/v1/webhooks/{id}", webhooks.delete, "deleteWebhook", "Delete a webhook.", TAG_EVENTS,
        {204: None}),
    _change("POST", "/v1/webhooks/{id}/actions", webhooks.post_action, "postWebhookAction",
        "Send a test delivery, suspend or resume deliveries, retry pending or abandoned ones.", TAG_EVENTS,
        {200: responses.WebhookOut}, body=requests.WebhookActionIn, errors=(409,)),
    _read("/v1/sources", provenance.list_sources, "listSources",
        "List outlets with their originals, copies and lags, and the syndication families.", TAG_ARTICLES,
        {200: provenance_contract.SourcesOut}, requests.SourcesQuery),
    _read("/v1/sources/{name}", provenance.get_source, "getSource",
        "Get the statistics of one outlet: what it copies, who copies it, its family.", TAG_ARTICLES,
        {200: provenance_contract.SourceDetailOut}),
    _read("/healthz", operations.health, "health", "Liveness check.", TAG_OPERATIONS,
        {200: responses.HealthOut}, query=None, permission="nothing"),
    _read("/readyz", operations.ready, "ready", "Readiness check.", TAG_OPERATIONS, {200: responses.ReadyOut},
        query=None, errors=(503,), permission="nothing"),
    _read("/metrics", operations.metrics, "metrics", "Prometheus metrics.", TAG_OPERATIONS,
        {200: "text/plain"}, query=None),
    _read("/openapi.json", operations.openapi, "openapi", "This OpenAPI document.", TAG_OPERATIONS,
        {200: JSON_TYPE}, query=None, permission="nothing"),
    _read("/docs", documentation.docs, "docs", "This document as a web page.", TAG_PAGES, {200: "text/html"},
        query=None, permission="nothing"),
    _read("/", front.front, "front", "Page: breaking events and recent verdicts.", TAG_PAGES,
        {200: "text/html"}, forms.FrontQuery, errors=(404,)),
    _read("/events/{id}/provenance", report.event_provenance, "eventProvenance",
        "Page: which outlet had an event first, and who followed.", TAG_PAGES, {200: "text/html"}),
    _read("/articles/{id}/provenance", report.article_provenance, "articleProvenance",
        "Page: who published an article's text first, and who repeated it.", TAG_PAGES, {200: "text/html"},
        errors=(410,)),
    _read("/events/{id}", report.report, "report", "Page: report on one event.", TAG_PAGES,
        {200: "text/html"}, forms.ReportQuery),
    _read("/stories/{id}", report.story, "story", "Page: a storyline by day.", TAG_PAGES, {200: "text/html"}),
    _read("/search", lookup.search, "searchPage", "Page: events and articles by words.", TAG_PAGES,
        {200: "text/html"}, forms.SearchPageQuery),
    _read("/desks", desk_pages.desk_list, "desksPage", "Page: desks and a form for a new desk.", TAG_PAGES,
        {200: "text/html"}, forms.DeskPageQuery),
    _change("POST", "/desks", desk_pages.create, "createDesk", "Page: create a desk, or preview it.",
        TAG_PAGES, {200: "text/html", 303: None}, forms.DeskPageQuery, forms.DeskForm, form=True,
        errors=(409,)),
    _read("/desks/{id}", desk_pages.desk, "deskPage", "Page: one desk, its targets and notifications.",
        TAG_PAGES, {200: "text/html"}, forms.DeskPageQuery),
    _change("POST", "/desks/{id}", desk_pages.change, "changeDesk",
        "Page: save, preview or delete a desk, or add a target.", TAG_PAGES, {200: "text/html", 303: None},
        forms.DeskPageQuery, forms.DeskForm, form=True, errors=(409,)),
    _read("/webhooks", webhook_pages.webhook_list, "webhooksPage",
        "Page: webhooks and targets with their deliveries.", TAG_PAGES, {200: "text/html"},
        forms.DeskPageQuery, permission="editor"),
    _change("POST", "/webhooks", webhook_pages.create, "createWebhook", "Page: register a webhook.",
        TAG_PAGES, {200: "text/html"}, forms.DeskPageQuery, forms.WebhookForm, form=True, errors=(409,)),
    _read("/webhooks/{id}", webhook_pages.webhook, "webhookPage",
        "Page: one webhook or target, its history and abandoned deliveries.", TAG_PAGES, {200: "text/html"},
        forms.DeskPageQuery, permission="editor"),
    _change("POST", "/webhooks/{id}", webhook_pages.change, "changeWebhook",
        "Page: test, suspend, resume, retry or remove a webhook or target.", TAG_PAGES, {303: None},
        forms.DeskPageQuery, forms.WebhookForm, form=True),
    _read("/lookup", lookup.lookup, "lookup", "Page: verdict on a stored article.", TAG_PAGES,
        {200: "text/html"}, forms.LookupQuery),
    _change("POST", "/lookup", lookup.lookup_pasted, "lookupPasted",
        "Page: verdict on a pasted text, without storing it.", TAG_PAGES, {200: "text/html", 303: None},
        forms.LookupQuery, forms.LookupForm, form=True, permission="reader", audited=False),
    _read("/compare", lookup.compare, "compare", "Page: comparison of two stored articles.", TAG_PAGES,
        {200: "text/html"}, forms.CompareQuery),
    _change("POST", "/compare", lookup.compare_pasted, "comparePasted",
        "Page: comparison of two articles, stored or pasted.", TAG_PAGES, {200: "text/html"},
        forms.CompareQuery, forms.CompareForm, form=True, permission="reader", audited=False),
    _read("/sources", report.sources, "sourcesPage", "Page: outlets and syndication families.",
        TAG_PAGES, {200: "text/html"}, requests.SourcesPageQuery),
    _read("/sources/{name}", report.source, "sourcePage", "Page: one outlet.", TAG_PAGES,
        {200: "text/html"}),
    _read("/health", health.health, "healthPage", "Page: state of the service.", TAG_PAGES,
        {200: "text/html"}, query=None),
    _read("/sign-in", sign_in.sign_in_form, "signInForm", "Page: sign-in form.", TAG_PAGES,
        {200: "text/html"}, forms.SignInQuery, permission="nothing"),
    _change("POST", "/sign-in", sign_in.sign_in, "signIn", "Exchange an access key for a browser session.",
        TAG_PAGES, {303: None}, body=forms.SignInForm, form=True, errors=(401, 429), permission="nothing"),
    _change("POST", "/sign-out", sign_in.sign_out, "signOut", "End the browser session.", TAG_PAGES,
        {303: None}, permission="nothing"),
    _read("/static/{name}", pages.static, "static", "Static files of the pages.", TAG_PAGES, {200: "*/*"},
        query=None, errors=(404,), permission="nothing"),
)  # fmt: skip


def add_routes(app: web.Application) -> None:
    """Add every endpoint to the router."""
    for endpoint in ENDPOINTS:
        for method in ("GET", "HEAD") if endpoint.method == "GET" else (endpoint.method,):
            app.router.add_route(
                method,
                _route_pattern(endpoint.path),
                _make_handler(endpoint),
                expect_handler=handle_expect_header,
            )


def _route_pattern(path: str) -> str:
    """The pattern of aiohttp for a path of OpenAPI.

    aiohttp matches the path with slashes still escaped: "a%2Fcopies" is an id, "a/copies" the copies of "a".
    "/v1/articles/{id}" leaves paths such as "/v1/articles/a/copies" to the routes that have them, so that
    other methods are refused there instead of taken for the id "a/copies".
    """
    suffixes = sorted(e.path.removeprefix(path) for e in ENDPOINTS if e.path.startswith(path + "/"))
    others = "".join(rf"(?<!{re.escape(suffix)})" for suffix in dict.fromkeys(suffixes))
    return path.replace("{id}", rf"{{id:[\s\S]+{others}}}")


def _make_handler(endpoint: Endpoint) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """The handler of a route: authorization, query, deadline, and what the endpoint asks for.

    The time of the body, of every queue, of the analysis and of the store counts together, so three time-outs
    of the store in a row delay nobody three times. When it has passed, the work is cancelled and the request
    is answered 503. A commit that has begun is not interrupted (``ingest/pending.py``): the article may be
    stored although the answer was 503, and repeating the request returns its verdict.
    """
    is_plain = endpoint.deprecation is None and not endpoint.idempotency_key and not endpoint.audited
    run = endpoint.handler if is_plain else functools.partial(_run, endpoint)

    async def handle(request: web.Request) -> web.StreamResponse:
        timeout_s = request.app[SERVICE].settings.request_timeout_seconds
        try:
            async with asyncio.timeout(timeout_s) as scope:
                await auth.authorize(request, endpoint.permission)
                query = None if endpoint.query is None else query_params.parse_query(request, endpoint.query)
                if endpoint.audited:  # a change that has begun is completed, whoever still waits for it
                    return await asyncio.shield(asyncio.ensure_future(run(request, query)))
                if not endpoint.long_running:
                    return await run(request, query)
        except TimeoutError:
            if not scope.expired():
                raise
            raise _timeout_error(request, timeout_s) from None
        return await run(request, query)

    return handle


def _timeout_error(request: web.Request, timeout_s: float) -> AggregatorError:
    if not request.content.is_eof():
        return BodyTimeout(
            f"body: not received within {timeout_s:g} s (setting request_timeout_seconds).", field="body"
        )
    return DeadlineExceeded(
        f"The request was not finished within {timeout_s:g} s (setting request_timeout_seconds); repeat "
        "it. An article that was stored meanwhile is then answered with its verdict, and one whose "
        "analysis takes longer when it has been analyzed."
    )


async def _run(endpoint: Endpoint, request: web.Request, query: Any) -> web.StreamResponse:
    """Call the handler, once for an Idempotency-Key, with the headers of a deprecation and the audit log."""
    if endpoint.deprecation is not None:
        request[DEPRECATION_HEADERS] = endpoint.deprecation.headers(
            endpoint.operation_id, request.app[BASE_PATH]
        )
    if endpoint.idempotency_key:
        response = await idempotency.run_once(request, query, endpoint.handler)
    else:
        response = await endpoint.handler(request, query)
    if endpoint.audited:
        auth.audit_request(request, endpoint.operation_id, response.status)
    return response
