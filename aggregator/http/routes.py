"""The route table; the router, the OpenAPI document and the documentation page are built from it."""

from __future__ import annotations

import re
from functools import partial

from aiohttp import web
from msgspec import Struct

from aggregator.contract import requests, responses
from aggregator.http import pages
from aggregator.http.endpoint import JSON_TYPE, Endpoint, Responses, make_handler
from aggregator.http.errors import handle_expect_header
from aggregator.http.handlers import (
    articles,
    desks,
    event_views,
    events,
    feeds,
    operations,
    provenance,
    related,
    search,
    webhooks,
)
from aggregator.http.pages import days as day_pages
from aggregator.http.pages import desks as desk_pages
from aggregator.http.pages import documentation, front, health, report, sign_in
from aggregator.http.pages import search as search_pages
from aggregator.http.pages import webhooks as webhook_pages
from aggregator_client import wire

TAG_ARTICLES, TAG_RELATED, TAG_EVENTS = "articles", "related", "events"
TAG_OPERATIONS, TAG_PAGES = "operations", "pages"


def _created(body: type[Struct]) -> Responses:
    return {201: body, 200: body}


_read = partial(Endpoint, "GET", permission="reader")
_related = partial(Endpoint, permission="related")
_page = partial(Endpoint, "GET", tag=TAG_PAGES, answers={200: "text/html"}, permission="reader")
_change = partial(Endpoint, permission="editor", audited=True)
ENDPOINTS: tuple[Endpoint, ...] = (
    _change("POST", "/v1/articles", articles.post, "postArticle", TAG_ARTICLES, _created(wire.VerdictOut),
        reads=wire.ArticleIn, errors=(410,), permission="crawler", audited=False),
    _change("POST", "/v1/articles/batch", articles.post_batch, "postBatch", TAG_ARTICLES,
        {200: wire.VerdictOut}, reads=wire.ArticleIn, ndjson=True, permission="crawler", audited=False,
        long_running=True),
    _read("/v1/articles", search.list_articles, "listArticles", TAG_ARTICLES),
    _read("/v1/search", search.search, "search", TAG_ARTICLES),
    _read("/v1/articles/{id}/copies", articles.get_copies, "getCopies", TAG_ARTICLES, errors=(410,)),
    _related("GET", "/v1/articles/{id}/related", related.get_related, "getRelated", TAG_RELATED,
        {200: wire.RelatedListOut, 304: None}, errors=(410,)),
    _read("/v1/articles/{id}/provenance", provenance.of_article, "getProvenance", TAG_ARTICLES,
        errors=(410,)),
    _read("/v1/articles/{id}", articles.get, "getArticle", TAG_ARTICLES, errors=(410,), permission="key"),
    _change("DELETE", "/v1/articles/{id}", articles.delete, "deleteArticle", TAG_ARTICLES, errors=(410,),
        permission="key"),
    _related("GET", "/v1/related", related.get_top, "getRelatedToNothing", TAG_RELATED,
        {200: wire.RelatedListOut, 304: None}),
    _related("POST", "/v1/related", related.post_related, "postRelated", TAG_RELATED,
        {200: wire.RelatedToManyOut}),
    _related("POST", "/v1/related/batch", related.post_batch, "postRelatedBatch", TAG_RELATED,
        {200: wire.RelatedBatchOut}),
    _change("POST", "/v1/explain", search.explain, "explain", TAG_RELATED, errors=(404,), permission="reader",
        audited=False),
    _read("/v1/events", events.list_, "listEvents", TAG_EVENTS, errors=(404,), shared=True),
    _read("/v1/events/stream", feeds.stream_events, "streamEvents", TAG_EVENTS, {200: "text/event-stream"},
        errors=(404,), long_running=True),
    _read("/v1/events.atom", feeds.atom_feed, "atomFeed", TAG_EVENTS, {200: feeds.ATOM_TYPE, 304: None},
        errors=(404,)),
    _read("/v1/top-stories", events.list_top_stories, "listTopStories", TAG_EVENTS, errors=(404,)),
    _read("/v1/days/{date}", events.get_day, "getDay", TAG_EVENTS, shared=True),
    _read("/v1/read-mark", events.get_read_mark, "getReadMark", TAG_EVENTS, errors=(404,)),
    _change("POST", "/v1/read-mark", events.post_read_mark, "postReadMark", TAG_EVENTS,
        reads=requests.ReadMarkIn, errors=(404, 409), permission="reader", audited=False),
    _read("/v1/events/{id}/provenance", provenance.of_event, "getEventProvenance", TAG_EVENTS),
    _read("/v1/events/{id}/items", event_views.get_items, "getEventItems", TAG_EVENTS),
    _read("/v1/events/{id}/items.csv", event_views.get_items_csv, "getEventItemsCsv", TAG_EVENTS,
        {200: event_views.CSV_TYPE}),
    _read("/v1/events/{id}", events.get, "getEvent", TAG_EVENTS, {200: wire.EventDetailOut, 308: None}),
    _read("/v1/stories/{id}", events.get_story, "getStory", TAG_EVENTS),
    _change("POST", "/v1/events/{id}/actions", events.post_action, "postAction", TAG_EVENTS, errors=(409,)),
    _change("POST", "/v1/desks", desks.post, "postDesk", TAG_EVENTS, _created(responses.DeskOut),
        errors=(409,)),
    _read("/v1/desks", desks.list_, "listDesks", TAG_EVENTS),
    _change("POST", "/v1/desks/{id}/targets", desks.post_target, "postTarget", TAG_EVENTS,
        _created(responses.WebhookOut), errors=(409,)),
    _read("/v1/desks/{id}", desks.get, "getDesk", TAG_EVENTS),
    _change("PUT", "/v1/desks/{id}", desks.put, "putDesk", TAG_EVENTS),
    _change("DELETE", "/v1/desks/{id}", desks.delete, "deleteDesk", TAG_EVENTS),
    _change("POST", "/v1/webhooks", webhooks.post, "postWebhook", TAG_EVENTS, _created(responses.WebhookOut),
        errors=(404, 409)),
    _read("/v1/webhooks", webhooks.list_, "listWebhooks", TAG_EVENTS, permission="editor"),
    _read("/v1/webhooks/{id}", webhooks.get, "getWebhook", TAG_EVENTS, permission="editor"),
    _change("DELETE", "/v1/webhooks/{id}", webhooks.delete, "deleteWebhook", TAG_EVENTS),
    _change("POST", "/v1/webhooks/{id}/actions", webhooks.post_action, "postWebhookAction", TAG_EVENTS,
        errors=(409,)),
    _read("/v1/sources", provenance.list_sources, "listSources", TAG_ARTICLES),
    _read("/v1/sources/{name}", provenance.get_source, "getSource", TAG_ARTICLES),
    _change("PUT", "/v1/sources/{name}", provenance.put_source, "putSource", TAG_ARTICLES, permission="admin",
        long_running=True),
    _read("/healthz", operations.health, "health", TAG_OPERATIONS, any_query=True, permission="nothing"),
    _read("/readyz", operations.ready, "ready", TAG_OPERATIONS, {200: responses.ReadyOut}, any_query=True,
        errors=(503,), permission="nothing"),
    _read("/metrics", operations.metrics, "metrics", TAG_OPERATIONS, {200: "text/plain"}, any_query=True),
    _read("/openapi.json", operations.openapi, "openapi", TAG_OPERATIONS, {200: JSON_TYPE},
        any_query=True, permission="nothing"),
    _page("/docs", documentation.docs, "docs", any_query=True, permission="nothing"),
    _page("/", front.front, "front", errors=(404,)),
    _page("/events/{id}/provenance", report.event_provenance, "eventProvenance"),
    _page("/articles/{id}/provenance", report.article_provenance, "articleProvenance", errors=(410,)),
    _page("/events/{id}", report.report, "report"),
    _page("/stories/{id}", report.story, "story"),
    _page("/days", day_pages.since, "daysPage", answers={200: "text/html", 303: None}, errors=(404,)),
    _page("/days/{date}", day_pages.day, "dayPage", answers={200: "text/html", 303: None}),
    _page("/search", search_pages.search, "searchPage", answers={200: "text/html", 303: None}),
    _change("POST", "/search", search_pages.search_pasted, "searchPasted", TAG_PAGES,
        {200: "text/html", 303: None}, permission="reader", audited=False),
    _page("/desks", desk_pages.desk_list, "desksPage"),
    _change("POST", "/desks", desk_pages.create, "createDesk", TAG_PAGES, {200: "text/html", 303: None},
        errors=(409,)),
    _page("/desks/{id}", desk_pages.desk, "deskPage"),
    _change("POST", "/desks/{id}", desk_pages.change, "changeDesk", TAG_PAGES, {200: "text/html", 303: None},
        errors=(409,)),
    _page("/webhooks", webhook_pages.webhook_list, "webhooksPage", permission="editor"),
    _page("/webhooks/{id}", webhook_pages.webhook, "webhookPage", permission="editor"),
    _change("POST", "/webhooks/{id}", webhook_pages.change, "changeWebhook", TAG_PAGES, {303: None}),
    _page("/compare", search_pages.compare, "compare"),
    _change("POST", "/compare", search_pages.compare_pasted, "comparePasted", TAG_PAGES, {200: "text/html"},
        permission="reader", audited=False),
    _page("/sources", report.sources, "sourcesPage"),
    _page("/sources/{name}", report.source, "sourcePage"),
    _page("/health", health.health, "healthPage", any_query=True),
    _page("/sign-in", sign_in.sign_in_form, "signInForm", permission="nothing"),
    _change("POST", "/sign-in", sign_in.sign_in, "signIn", TAG_PAGES, {303: None}, reads=sign_in.SignInForm,
        form=True, errors=(401, 429), permission="nothing"),
    _change("POST", "/sign-out", sign_in.sign_out, "signOut", TAG_PAGES, {303: None}, permission="nothing"),
    _read("/static/{name}", pages.static, "static", TAG_PAGES, {200: "*/*"}, any_query=True, errors=(404,),
        permission="nothing"),
)  # fmt: skip


def add_routes(app: web.Application) -> None:
    """Add every endpoint to the router."""
    for endpoint in ENDPOINTS:
        for method in ("GET", "HEAD") if endpoint.method == "GET" else (endpoint.method,):
            app.router.add_route(
                method,
                _route_pattern(endpoint.path),
                make_handler(endpoint),
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
