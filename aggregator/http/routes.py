"""The one list of routes. Router, OpenAPI document and documentation page are made from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from msgspec import Struct

from aggregator.auth.api_keys import Need
from aggregator.contract import requests, responses
from aggregator.http import pages, query_params
from aggregator.http.handlers import (
    articles,
    events,
    feeds,
    operations,
    related,
    saved_filters,
    sse,
    webhooks,
)
from aggregator.http.middleware import auth
from aggregator.http.middleware.errors import expected
from aggregator.http.pages import documentation, front, health, lookup, report, sign_in

Handler = Callable[[web.Request, Any], Awaitable[web.StreamResponse]]

JSON, NDJSON = "application/json", "application/x-ndjson"
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One route.

    path      as in OpenAPI; "{id}" may hold slashes, so ids made of addresses work unescaped
    query     its parameters; None: not looked at
    body      what it takes (``many``: one per line; ``form``: the fields of a page's form)
    answers   status -> what it answers: a Struct type, a media type, or None for no content
    problems  error statuses worth naming besides 500
    needs     the least that a caller's key must allow, where keys are asked for (``access.GRANTS``)
    audited   whether each use is told to the audit log
    """

    method: str
    path: str
    handler: Handler
    name: str
    summary: str
    tag: str
    answers: dict[int, type[Struct] | str | None]
    query: type[Struct] | None = None
    body: type[Struct] | None = None
    many: bool = False
    form: bool = False
    problems: tuple[int, ...] = ()
    needs: Need = "admin"
    audited: bool = False


ARTICLE, RELATED, EVENT, OPERATION, PAGE = "articles", "related", "events", "operations", "pages"
BODY = (400, 413, 415, 422, 503)

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST", "/v1/articles", articles.post, "postArticle",
        "Have we got this already? Check an article and store it.", ARTICLE,
        {201: responses.AnswerOut, 200: responses.AnswerOut},
        query=requests.IngestQuery, body=requests.ArticleIn, problems=BODY,
        needs="crawler",
    ),
    Endpoint(
        "POST", "/v1/articles/batch", articles.batch, "postBatch",
        "Many articles, one JSON object per line; one answer per line, in order.", ARTICLE,
        {200: responses.AnswerOut},
        query=requests.IngestQuery, body=requests.ArticleIn, many=True, problems=(400, 415, 503),
        needs="crawler",
    ),
    Endpoint(
        "GET", "/v1/articles/{id}/copies", articles.copies, "getCopies",
        "All stored copies of an article, the first one in front.", ARTICLE,
        {200: responses.CopiesOut}, query=requests.NoQuery, problems=(400, 404, 410, 503),
        needs="reader",
    ),
    Endpoint(
        "GET", "/v1/articles/{id}/related", related.of_id, "getRelated",
        "What else is about this?", RELATED,
        {200: responses.RelatedListOut}, query=requests.RelatedQuery, problems=(400, 404, 410, 503),
        needs="reader",
    ),
    Endpoint(
        "GET", "/v1/articles/{id}", articles.get, "getArticle",
        "A stored article and its verdict.", ARTICLE,
        {200: responses.ArticleOut}, query=requests.NoQuery, problems=(400, 404, 410, 503),
        needs="key",
    ),
    Endpoint(
        "DELETE", "/v1/articles/{id}", articles.delete, "deleteArticle",
        "Undo a reservation, or take an article down.", ARTICLE,
        {204: None}, query=requests.NoQuery, problems=(400, 404, 410, 503),
        needs="crawler", audited=True,
    ),
    Endpoint(
        "POST", "/v1/related", related.of_body, "postRelated",
        "What else is about this text, or about what was just read?", RELATED,
        {200: responses.RelatedListOut},
        query=requests.RelatedQuery, body=requests.RelatedIn, problems=(*BODY, 404),
        needs="reader",
    ),
    Endpoint(
        "POST", "/v1/explain", related.explain, "explain",
        "Why are two articles copies, related, or neither?", RELATED,
        {200: responses.ExplainOut},
        query=requests.NoQuery, body=requests.ExplainIn, problems=(*BODY, 404),
        needs="reader",
    ),
    Endpoint(
        "GET", "/v1/events", events.list_, "listEvents",
        "What is breaking now?", EVENT,
        {200: responses.EventsOut}, query=requests.EventsQuery, problems=(400, 404, 503),
        needs="reader",
    ),
    Endpoint(
        "GET", "/v1/events/stream", sse.events, "streamEvents",
        "Events as they change: server-sent events, resumed by Last-Event-ID.", EVENT,
        {200: "text/event-stream"}, query=requests.EventStreamQuery, problems=(400, 404, 503),
        needs="reader",
    ),
    Endpoint(
        "GET", "/v1/events.atom", feeds.atom, "atomFeed",
        "Events as an Atom feed.", EVENT,
        {200: feeds.ATOM_TYPE, 304: None}, query=requests.FeedQuery, problems=(400, 404, 503),
        needs="reader",
    ),
    Endpoint(
        "GET", "/v1/events.json", feeds.json_feed, "jsonFeed",
        "Events as a JSON Feed.", EVENT,
        {200: feeds.JSON_FEED_TYPE, 304: None}, query=requests.FeedQuery, problems=(400, 404, 503),
        needs="reader",
    ),
    Endpoint(
        "POST", "/v1/watches", saved_filters.post, "postWatch",
        "Save a query of /v1/events under a name.", EVENT,
        {201: responses.WatchOut}, query=requests.NoQuery, body=requests.WatchIn, problems=(*BODY, 409),
        needs="editor", audited=True,
    ),
    Endpoint(
        "GET", "/v1/watches", saved_filters.list_, "listWatches",
        "All saved watches.", EVENT,
        {200: responses.WatchesOut}, query=requests.NoQuery, problems=(400, 503),
        needs="reader",
    ),
    Endpoint(
        "GET", "/v1/watches/{id}", saved_filters.get, "getWatch",
        "One saved watch.", EVENT,
        {200: responses.WatchOut}, query=requests.NoQuery, problems=(400, 404, 503),
        needs="reader",
    ),
    Endpoint(
        "DELETE", "/v1/watches/{id}", saved_filters.delete, "deleteWatch",
        "Forget a saved watch.", EVENT,
        {204: None}, query=requests.NoQuery, problems=(400, 404, 503),
        needs="editor", audited=True,
    ),
    Endpoint(
        "GET", "/v1/events/{id}", events.detail, "getEvent",
        "The special report of one event.", EVENT,
        {200: responses.EventDetailOut, 308: None}, query=requests.NoQuery, problems=(400, 404, 503),
        needs="reader",
    ),
    Endpoint(
        "POST", "/v1/events/{id}/actions", events.act, "postAction",
        "What an editor does to an event; answers the event as it stands then.", EVENT,
        {200: responses.EventOut},
        query=requests.NoQuery, body=requests.ActionIn, problems=(*BODY, 404, 409),
        needs="editor", audited=True,
    ),
    Endpoint(
        "POST", "/v1/webhooks", webhooks.post, "postWebhook",
        "Be called when an event fires, doubles, merges or closes (Standard Webhooks).", EVENT,
        {201: responses.WebhookOut},
        query=requests.NoQuery, body=requests.WebhookIn, problems=(*BODY, 404, 409),
        needs="editor", audited=True,
    ),
    Endpoint(
        "GET", "/v1/webhooks", webhooks.list_, "listWebhooks",
        "All webhooks and how they fare.", EVENT,
        {200: responses.WebhooksOut}, query=requests.NoQuery, problems=(400, 503),
        needs="editor",
    ),
    Endpoint(
        "GET", "/v1/webhooks/{id}", webhooks.get, "getWebhook",
        "One webhook, and the calls that were given up.", EVENT,
        {200: responses.WebhookDetailOut}, query=requests.NoQuery, problems=(400, 404, 503),
        needs="editor",
    ),
    Endpoint(
        "DELETE", "/v1/webhooks/{id}", webhooks.delete, "deleteWebhook",
        "No more calls.", EVENT,
        {204: None}, query=requests.NoQuery, problems=(400, 404, 503),
        needs="editor", audited=True,
    ),
    Endpoint(
        "POST", "/v1/webhooks/{id}/actions", webhooks.act, "postWebhookAction",
        "Call it now with a test body, or take calls up again.", EVENT,
        {200: responses.WebhookOut},
        query=requests.NoQuery, body=requests.WebhookActionIn, problems=(*BODY, 404, 409),
        needs="editor", audited=True,
    ),
    Endpoint(
        "GET", "/healthz", operations.health, "health",
        "Does the process run?", OPERATION, {200: responses.HealthOut},
        needs="nothing",
    ),
    Endpoint(
        "GET", "/readyz", operations.ready, "ready",
        "Can requests be served?", OPERATION, {200: responses.ReadyOut}, problems=(503,),
        needs="nothing",
    ),
    Endpoint(
        "GET", "/metrics", operations.metrics, "metrics",
        "Figures for Prometheus.", OPERATION, {200: "text/plain"},
        needs="reader",
    ),
    Endpoint(
        "GET", "/openapi.json", operations.openapi, "openapi",
        "This document.", OPERATION, {200: JSON},
        needs="nothing",
    ),
    Endpoint(
        "GET", "/docs", documentation.docs, "docs",
        "This document for people.", PAGE, {200: "text/html"},
        needs="nothing",
    ),
    Endpoint(
        "GET", "/", front.front, "front",
        "The editors' page: events and recent verdicts.", PAGE,
        {200: "text/html"}, query=requests.FrontQuery, problems=(400, 404, 503),
        needs="reader",
    ),
    Endpoint(
        "GET", "/events/{id}", report.report, "report",
        "The special report of one event, for people.", PAGE,
        {200: "text/html"}, query=requests.NoQuery, problems=(400, 404, 503),
        needs="reader",
    ),
    Endpoint(
        "GET", "/lookup", lookup.lookup, "lookup",
        "The verdict on a stored article, for people.", PAGE,
        {200: "text/html"}, query=requests.LookupQuery, problems=(400, 503),
        needs="reader",
    ),
    Endpoint(
        "POST", "/lookup", lookup.lookup_pasted, "lookupPasted",
        "The verdict on a pasted text, for people; nothing is stored.", PAGE,
        {200: "text/html", 303: None}, query=requests.LookupQuery, body=requests.LookupForm, form=True,
        problems=(400, 413, 503),
        needs="reader",
    ),
    Endpoint(
        "GET", "/compare", lookup.compare, "compare",
        "Two stored articles side by side, for people.", PAGE,
        {200: "text/html"}, query=requests.CompareQuery, problems=(400, 503),
        needs="reader",
    ),
    Endpoint(
        "POST", "/compare", lookup.compare_pasted, "comparePasted",
        "Two articles side by side, stored or pasted, for people.", PAGE,
        {200: "text/html"}, query=requests.CompareQuery, body=requests.CompareForm, form=True,
        problems=(400, 413, 503),
        needs="reader",
    ),
    Endpoint(
        "GET", "/health", health.health, "healthPage",
        "How the service is, for people.", PAGE, {200: "text/html"},
        needs="reader",
    ),
    Endpoint(
        "GET", "/sign-in", sign_in.form, "signInForm",
        "Where a person gives a key, and gets a session for the browser.", PAGE,
        {200: "text/html"}, query=requests.SignInQuery, problems=(400,),
        needs="nothing",
    ),
    Endpoint(
        "POST", "/sign-in", sign_in.sign_in, "signIn",
        "Exchange a key for a session.", PAGE,
        {303: None}, query=requests.NoQuery, body=requests.SignInForm, form=True, problems=(400, 401, 413, 429, 503),
        needs="nothing", audited=True,
    ),
    Endpoint(
        "POST", "/sign-out", sign_in.sign_out, "signOut",
        "End the session.", PAGE, {303: None}, query=requests.NoQuery, problems=(400, 503),
        needs="nothing", audited=True,
    ),
    Endpoint(
        "GET", "/static/{name}", pages.static, "static",
        "Style, script and icon of the pages.", PAGE, {200: "application/octet-stream"}, problems=(404,),
        needs="nothing",
    ),
)  # fmt: skip


def add_routes(app: web.Application) -> None:
    """Put every endpoint into the router."""
    for endpoint in ENDPOINTS:
        for method in ("GET", "HEAD") if endpoint.method == "GET" else (endpoint.method,):
            app.router.add_route(method, _pattern(endpoint.path), _handler(endpoint), expect_handler=expected)


def _pattern(path: str) -> str:
    # Escaped slashes stay escaped while a path is matched: "a%2Fcopies" is an id, "a/copies" its copies.
    return path.replace("{id}", r"{id:[\s\S]+}")


def _handler(endpoint: Endpoint) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        await auth.admit(request, endpoint.needs)
        query = query_params.parse(request, endpoint.query) if endpoint.query is not None else None
        response = await endpoint.handler(request, query)
        if endpoint.audited:
            auth.record(request, endpoint.name, response.status)
        return response

    return handle
